"""The examples of the pages (README, doc/*.md) and the help are tried: configurations are checked, names looked up."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from test_generated import HELP, REPO, find_nvim

from codecompanion.adapters.entries.resolve import resolve_adapters

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
    """Run the examples as configurations in a clean Neovim; return everything that was said about them."""
    script = tmp_path / "check.lua"
    code = _CHECK % {"root": json.dumps(str(REPO)), "examples": f"[===[{json.dumps(examples)}]===]"}
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
    answer = json.loads(done.stdout)
    said: list[str] = answer["said"]
    for hello in answer["hellos"]:
        said += resolve_adapters(hello["adapters"] or {}, proxy=hello["proxy"], environ={}).mistakes
    return said


def pages() -> str:
    """Return the README and the pages it leads to, as one text."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def page_blocks(language: str) -> list[str]:
    """Return the code blocks of the pages in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", pages())


def help_examples() -> list[str]:
    """Return the Lua examples of the help file."""
    text = HELP.read_text(encoding="utf-8")
    return [block for block in re.findall(r"(?ms)>lua\n(.*?)^(?:<|(?=\S))", text) if "→" not in block]


def test_the_configurations_of_the_pages_have_no_mistakes(tmp_path: Path) -> None:
    blocks = page_blocks("lua")
    setups = [block for block in blocks if "setup({" in block]
    specs = [f"return ({block}).opts" for block in blocks if block.startswith("{")]
    assert len(setups) == 2
    assert len(specs) == 1
    assert messages_about(setups + specs, tmp_path) == []


def test_a_mistake_in_an_example_would_be_found(tmp_path: Path) -> None:
    assert "displya" in "".join(messages_about(['require("codecompanion").setup({ displya = {} })'], tmp_path))
    adapter = "return { adapters = { http = { openai = { opts = { timeuot = 1 } } } } }"
    assert "did you mean `timeout`" in "".join(messages_about([adapter], tmp_path))


def test_the_configurations_of_the_help_file_have_no_mistakes(tmp_path: Path) -> None:
    examples = [block for block in help_examples() if 'require("codecompanion").setup({' in block]
    assert len(examples) >= 6
    assert messages_about(examples, tmp_path) == []


def test_the_adapters_of_the_help_file_have_no_mistakes(tmp_path: Path) -> None:
    """Entries are shown alone (`ollama = { … }`), or as `adapters = { … }`."""
    entries = [block for block in help_examples() if re.match(r"\s+\w+ = \{\s", block)]
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
    """`completion = { … }` and `context = { … }` are shown alone, several of them in one block one after the other."""
    examples = []
    for block in help_examples():
        parts = re.split(r"(?m)^    (?=(?:completion|context) = \{)", f"\n{block}")[1:]
        examples += [f"return {{ {part} }}" for part in parts]
    assert len(examples) >= 10
    assert messages_about(examples, tmp_path) == []


def test_every_lua_example_of_the_help_file_is_lua(tmp_path: Path) -> None:
    examples = help_examples()
    assert len(examples) > 12
    # Tables are shown without what stands around them.
    code = (
        f"for _, code in ipairs(vim.json.decode([==========[{json.dumps(examples)}]==========])) do"
        " assert(loadstring(code) or loadstring('return {' .. code .. '}'), code) end return {}"
    )
    assert messages_about([code], tmp_path) == []


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


def test_help_tags_named_in_the_pages_exist() -> None:
    tags = set(re.findall(r"\*(codecompanion[^*\s]*)\*", HELP.read_text(encoding="utf-8")))
    named = set(re.findall(r":help (codecompanion[\w-]*)", pages()))
    assert named
    assert named - tags - {"codecompanion"} == set()


def test_links_of_the_pages_lead_somewhere() -> None:
    """A link names a file of the repository, and the heading after `#` is one of that page."""
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, heading = target.partition("#")
            linked = page if not name else page.parent / name
            if not linked.exists() or (heading and heading not in headings(linked)):
                broken.append(f"{page.name}: {target}")
    assert broken == []


def headings(page: Path) -> set[str]:
    """Return the headings of a page as a forge writes them in addresses."""
    found = re.findall(r"(?m)^#+ (.+)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}
