"""Tests the examples in the pages (README, doc/*.md) and the help: configurations are checked, names are looked up."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_generated import HELP, REPO, find_nvim

from codecompanion.adapters.entries.resolve import resolve_adapters
from codecompanion.cli.__main__ import main

PAGES = (REPO / "README.md", *sorted((REPO / "doc").glob("*.md")))
"""The pages for users; those for developers are in `doc/dev`."""

_CHECK = """
vim.opt.runtimepath:prepend(%(root)s)
local said, hellos = {}, {}
local config = require("codecompanion.config")
local given
require("codecompanion").setup = function(options) given = options end
local function run(code)
  given = nil
  local chunk, problem = loadstring(code)
  if not chunk then return problem end
  local ok, answer = pcall(chunk)
  if not ok then return answer end
  config.setup(given or answer)
  config.for_host()
  local adapters = config.adapters()
  hellos[#hellos + 1] = { adapters = adapters.entries, proxy = adapters.proxy }
  vim.list_extend(said, require("codecompanion.config.findings").report(config.findings()))
end
for number, code in ipairs(vim.json.decode(%(examples)s)) do
  local problem = run(code)
  if problem then said[#said + 1] = ("example %%d: %%s"):format(number, problem) end
end
io.stdout:write(vim.json.encode({ said = said, hellos = hellos }))
"""


def messages_about(examples: list[str], tmp_path: Path) -> list[str]:
    """Check the examples as configurations in a clean Neovim; return all messages about them."""
    code = _CHECK % {"root": json.dumps(str(REPO)), "examples": f"[===[{json.dumps(examples)}]===]"}
    answer = answer_of(code, tmp_path)
    said: list[str] = answer["said"]
    for hello in answer["hellos"]:
        said += resolve_adapters(hello["adapters"] or {}, proxy=hello["proxy"], environ={}).mistakes
    return said


def answer_of(code: str, tmp_path: Path) -> dict[str, Any]:
    """Run Lua in a clean Neovim and return the JSON that it prints."""
    script = tmp_path / "check.lua"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [find_nvim(), "--clean", "--headless", "-l", str(script)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def pages() -> str:
    """Return the README and the pages it leads to, as one text."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def page_blocks(language: str) -> list[str]:
    """Return the code blocks of the pages in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", pages())


def help_blocks() -> list[tuple[str, str]]:
    """Return the language ("" if none is given) and the text of each block in the help file."""
    return re.findall(r"(?ms)(?:^| )>(\w*)\n(.*?)^(?:<|(?=\S))", HELP.read_text(encoding="utf-8"))


def help_examples() -> list[str]:
    """Return the Lua examples in the help file, without option defaults, which are generated from the schema."""
    return [block for language, block in help_blocks() if language == "lua" and not _is_default(block)]


def _is_default(block: str) -> bool:
    return block.startswith(" " * 8)


def _is_setup(block: str) -> bool:
    return 'require("codecompanion").setup({' in block


def _is_entry(block: str) -> bool:
    return re.match(r"\s*\w+ = \{\s", block) is not None


def _is_spec(block: str) -> bool:
    return re.match(r"\s*\{", block) is not None


def other_examples() -> list[str]:
    """Return the Lua examples in the pages and the help that are not configurations and not covered by another test."""
    return [
        block
        for block in (*page_blocks("lua"), *help_examples())
        if not (_is_setup(block) or _is_entry(block) or _is_spec(block))
    ]


def test_the_readme_is_short() -> None:
    """At most 700 words, without code, pictures and the targets of links."""
    text = re.sub(r"(?ms)^```.*?^```|!\[[^]]*\]\([^)]*\)", "", PAGES[0].read_text(encoding="utf-8"))
    text = re.sub(r"\]\([^)]*\)", "]", text)
    assert len(re.findall(r"[^\s|#*`-][^\s|]*", text)) <= 700


def test_the_configurations_of_the_pages_and_the_specs_have_no_mistakes(tmp_path: Path) -> None:
    blocks = page_blocks("lua")
    setups = [block for block in blocks if _is_setup(block)]
    entries = [f"return {{ {block} }}" for block in blocks if _is_entry(block)]
    specs = [f"return ({block}).opts" for block in (*blocks, *help_examples()) if _is_spec(block)]
    assert (len(setups), len(entries), len(specs)) == (2, 2, 2)
    assert messages_about(setups + entries + specs, tmp_path) == []


def test_a_mistake_in_an_example_would_be_found(tmp_path: Path) -> None:
    assert "displya" in "".join(messages_about(['require("codecompanion").setup({ displya = {} })'], tmp_path))
    adapter = "return { adapters = { http = { openai = { opts = { timeuot = 1 } } } } }"
    assert "did you mean `timeout`" in "".join(messages_about([adapter], tmp_path))


def test_the_configurations_of_the_help_file_have_no_mistakes(tmp_path: Path) -> None:
    examples = [block for block in help_examples() if _is_setup(block)]
    assert len(examples) >= 6
    assert messages_about(examples, tmp_path) == []


def test_the_adapters_of_the_help_file_have_no_mistakes(tmp_path: Path) -> None:
    """Entries are shown alone (`ollama = { … }`) or within `adapters = { … }`."""
    entries = [block for block in help_examples() if _is_entry(block)]
    examples = [
        f"return {{ {block} }}"
        if block.lstrip().startswith("adapters")
        else f"return {{ adapters = {{ http = {{ {block} }} }} }}"
        for block in entries
        if not block.lstrip().startswith(("compaction", *_SECTIONS))
    ]
    assert len(examples) >= 6
    assert messages_about(examples, tmp_path) == []


_SECTIONS = ("completion =", "context =")


def test_the_sections_of_the_help_file_have_no_mistakes(tmp_path: Path) -> None:
    """`completion = { … }` and `context = { … }` are shown alone; one block may contain several of them in sequence."""
    examples = []
    for block in help_examples():
        parts = re.split(r"(?m)^    (?=(?:completion|context) = \{)", f"\n{block}")[1:]
        examples += [f"return {{ {part} }}" for part in parts]
    assert len(examples) >= 10
    assert messages_about(examples, tmp_path) == []


def test_every_lua_example_of_the_help_file_is_lua(tmp_path: Path) -> None:
    examples = help_examples()
    assert len(examples) > 12
    # Tables are shown without the code around them.
    code = (
        f"for _, code in ipairs(vim.json.decode([==========[{json.dumps(examples)}]==========])) do"
        " assert(loadstring(code) or loadstring('return {' .. code .. '}'), code) end return {}"
    )
    assert messages_about([code], tmp_path) == []


_RUN = """
vim.opt.runtimepath:prepend(%(root)s)
vim.cmd.runtime("plugin/codecompanion.lua")
-- Another plugin: it has every function, and takes and gives everything. Ours has what it has.
local function anything()
  local made = {}
  return setmetatable(made, {
    __index = function(_, name)
      made[name] = anything()
      return made[name]
    end,
    __call = function() return anything() end,
  })
end
table.insert(package.loaders, function(name)
  return not vim.startswith(name, "codecompanion") and function() return anything() end or nil
end)
_G.MiniDeps, vim.pack = anything(), anything()
local ours = require("codecompanion")
package.loaded["codecompanion"] = setmetatable({}, {
  __index = function(_, name) return assert(ours[name], "codecompanion has no " .. name) end,
})
local said = {}
for _, code in ipairs(vim.json.decode(%(examples)s)) do
  local chunk, problem = loadstring(code)
  local ok, answer = pcall(chunk or function() error(problem, 0) end)
  if not ok then said[#said + 1] = code .. "\\n" .. tostring(answer) end
end
vim.cmd.enew()
vim.api.nvim_buf_set_lines(0, 0, -1, false, vim.split(("line\\n"):rep(9), "\\n"))
vim.cmd.normal({ "V\\27", bang = true })
for _, line in ipairs(vim.json.decode(%(lines)s)) do
  local ok, answer = pcall(vim.api.nvim_parse_cmd, line, {})
  if not ok then said[#said + 1] = line .. ": " .. answer end
end
io.stdout:write(vim.json.encode({ said = said, hellos = {} }))
"""


def problems_of(examples: list[str], tmp_path: Path, lines: tuple[str, ...] = ()) -> list[str]:
    """Run Lua examples with stub plugins that accept any call, and parse command lines; return the errors."""
    given = {"examples": f"[===[{json.dumps(examples)}]===]", "lines": f"[===[{json.dumps(lines)}]===]"}
    return answer_of(_RUN % {"root": json.dumps(str(REPO)), **given}, tmp_path)["said"]


def test_every_other_lua_example_runs(tmp_path: Path) -> None:
    """Every example other than configurations and option defaults is run, without exceptions."""
    others = other_examples()
    assert len(others) > 25
    assert any("vim.pack.add" in block for block in others)
    assert any("CodeCompanionChatCompacted" in block for block in others)
    assert problems_of(others, tmp_path) == []


def test_an_example_that_does_not_run_would_be_found(tmp_path: Path) -> None:
    wrong = ['require("lualine").setup({ require("codecompanion").statuslin })', "vim.api.nvim_no_such()", "if"]
    assert len(problems_of(wrong, tmp_path, ("CodeCompanionNo", "nmap x y"))) == 4


def test_every_command_line_in_the_help_file_is_valid(tmp_path: Path) -> None:
    lines = [line.strip() for language, block in help_blocks() if language == "vim" for line in block.splitlines()]
    given = tuple(line for line in lines if line)
    assert len(given) > 10
    assert problems_of([], tmp_path, given) == []


def test_examples_in_other_languages_can_be_read() -> None:
    """Each language has a parser, so that none is skipped; shell lines must name our own commands and options."""
    reads = {"python": ast.parse, "toml": tomllib.loads, "json": json.loads, "sh": _read_shell}
    seen = dict.fromkeys(reads, 0)
    blocks = [*help_blocks(), *re.findall(r"(?ms)^```(\w+)\n(.*?)^```", pages())]
    assert {language for language, _ in blocks} - {"", "lua", "vim", "markdown"} == set(reads)
    for language, block in blocks:
        if language in reads:
            reads[language](textwrap.dedent(block))
            seen[language] += 1
    assert min(seen.values()) > 0, seen


def _read_shell(block: str) -> None:
    """Check that the subcommands and options of our command line in a block of shell lines exist."""
    for words in re.findall(r"(?m)(?:^ *|python -m )codecompanion ([^\n>|]*)", block):
        given = words.split()
        said = _usage(given[:1]) + (_usage(given[:2]) if given[:1] == ["sessions"] else "")
        assert [option for option in given if option.startswith("--") and option not in said] == [], words


def _usage(words: list[str]) -> str:
    """Return the output of `--help` for these arguments."""
    with contextlib.redirect_stdout(io.StringIO()) as said, pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0, f"there is no {' '.join(words)}"
    return said.getvalue()


def test_make_targets_and_benches_named_in_the_pages_exist() -> None:
    text = pages()
    makefile = REPO / "Makefile"
    if not makefile.exists():
        pytest.skip("there is no Makefile here")
    targets = set(re.findall(r"^([a-z-]+):", makefile.read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?m)(?:^|`)make ([a-z-]+)", text)) - targets == set()
    benches = re.findall(r"bench[./](\w+)(?:\.py)?`", text)
    assert len(benches) > 5
    assert [name for name in benches if not (REPO / "bench" / f"{name}.py").exists()] == []


def test_commands_named_in_the_pages_and_the_help_file_exist() -> None:
    declared = set(re.findall(r'command\(\s*"(\w+)"', (REPO / "plugin/codecompanion.lua").read_text(encoding="utf-8")))
    text = pages() + HELP.read_text(encoding="utf-8")
    named = set(re.findall(r":(CodeCompanion\w*)", text))
    assert named
    assert named - declared == set()


def test_subcommands_and_prompts_named_in_the_pages_and_the_help_file_exist() -> None:
    prompts = (REPO / "lua/codecompanion/prompt_library/builtin_prompts.lua").read_text(encoding="utf-8")
    source = (REPO / "lua/codecompanion/commands/subcommands.lua").read_text(encoding="utf-8")
    declared = set(re.findall(r"(?m)^  (\w+) = \{$", source))
    named = set(re.findall(r"[`|]:CodeCompanion (\w+)", pages() + HELP.read_text(encoding="utf-8")))
    assert len(named) > 8
    assert named - declared - set(re.findall(r'alias = "(\w+)"', prompts)) == set()


def test_functions_named_in_the_pages_and_the_help_file_exist(tmp_path: Path) -> None:
    """Functions mentioned only inside other functions, which no test here calls, exist too."""
    text = pages() + HELP.read_text(encoding="utf-8")
    named = set(re.findall(r"""require\(?["']codecompanion["']\)?\.(\w+)""", text))
    named |= set(re.findall(r"\*codecompanion\.(\w+)\(\)\*", text))
    assert len(named) > 12
    assert problems_of([f'return require("codecompanion").{name}' for name in sorted(named)], tmp_path) == []


def test_help_tags_named_in_the_pages_exist() -> None:
    tags = set(re.findall(r"\*(codecompanion[^*\s]*)\*", HELP.read_text(encoding="utf-8")))
    named = set(re.findall(r":help (codecompanion[\w-]*)", pages()))
    assert named
    assert named - tags - {"codecompanion"} == set()


def test_links_of_the_pages_lead_somewhere() -> None:
    """A link names a file in the repository, and the part after `#` is a heading of that page."""
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, heading = target.partition("#")
            linked = page if not name else page.parent / name
            if not linked.exists() or (heading and heading not in headings(linked)):
                broken.append(f"{page.name}: {target}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings in a page, as GitHub generates them."""
    found = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}
