"""Tests that generated files are up to date, and that the help file is valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from codecompanion.wire import events, requests
from tests.help_file import option_entries
from tools.docgen import generated
from tools.docgen.__main__ import main
from tools.docgen.helpfile import linked_options
from tools.docgen.schema import SchemaUnreadable, read_schema, walk
from tools.docgen.wrapping import WIDTH

REPO = Path(__file__).parents[2]
HELP = REPO / "doc" / "codecompanion.txt"
TYPES = REPO / "lua" / "codecompanion" / "types.lua"
_TAG = re.compile(r"(?:^|\s)\*([^*\s|]+)\*(?=\s|$)", re.MULTILINE)
_LINK = re.compile(r"\|([^|\s]+)\|")


def find_nvim() -> str:
    """Return the Neovim that the generator would use, or skip the test."""
    candidates = [os.environ.get("NVIM_BIN"), str(REPO / ".venv/bin/nvim"), shutil.which("nvim")]
    candidates.append(str(Path(sys.prefix) / "bin/nvim"))
    found = next((path for path in candidates if path and os.access(path, os.X_OK)), None)
    if found is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    return found


def without_code(text: str) -> str:
    """Return the help text without its code blocks, in which bars and asterisks have no meaning."""
    return re.sub(r"(?ms)(^| )>\w*$.*?^(<|(?=\S))", "", text)


def test_generated_files_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Run `make doc` to fix outdated files."""
    find_nvim()
    status = main(["--check"])
    assert status == 0, capsys.readouterr().err


def test_a_changed_file_is_found_and_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    find_nvim()
    path = tmp_path / "codecompanion.txt"
    path.write_text("one\ntwo\n")
    monkeypatch.setattr("tools.docgen.__main__.ROOT", tmp_path)
    monkeypatch.setattr("tools.docgen.__main__.generate", lambda: {path: "one\nthree\n"})
    assert main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "codecompanion.txt is out of date: run `make doc`" in said
    assert "+three" in said
    assert path.read_text() == "one\ntwo\n"
    assert main([]) == 0
    assert path.read_text() == "one\nthree\n"
    assert main(["--check"]) == 0


def test_without_neovim_the_generator_reports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_neovim() -> str:
        raise SchemaUnreadable("no Neovim was found")

    monkeypatch.setattr("tools.docgen.schema._find_neovim", no_neovim)
    assert main(["--check"]) == 2
    assert "no Neovim was found" in capsys.readouterr().err


def test_every_option_is_in_the_help_file() -> None:
    """An option has an entry below the heading of its section; keys, tools and adapters are in separate lists."""
    find_nvim()
    entries = option_entries()
    missing = []
    for path, option in walk(read_schema().schema):
        inside = re.search(r"\.keymaps\.(?!opts\b)|\.tools\.(?!opts\b|groups\b|<)", path)
        listed = (
            inside or option.entry or re.match(r"interactions\.chat\.editor_context\.[a-z]+\.|rules\.default\.", path)
        )
        has_options = not option.children or not all(child.children for child in option.children)
        if not listed and path not in entries and has_options and not path.endswith(".opts"):
            missing.append(path)
        assert option.description or option.name in {"n", "i", "v"}, path
    assert missing == []
    assert entries >= {
        "adapters.http.extend",
        "interactions.chat.editor_context.lsp",
        "interactions.chat.tools.run_command.opts.allowed_prefixes",
        "rules.default",
    }


def test_an_option_that_a_text_links_to_has_a_tag() -> None:
    """K works on `|codecompanion.…|`, both in the help and in the plugin's messages."""
    find_nvim()
    tags = set(_TAG.findall(HELP.read_text(encoding="utf-8")))
    linked = linked_options(read_schema())
    assert len(linked) > 10
    assert {path for path in linked if f"codecompanion.{path}" not in tags} == set()


def test_every_key_tool_and_adapter_is_in_the_help_file() -> None:
    find_nvim()
    text = HELP.read_text(encoding="utf-8")
    options = walk(read_schema().schema)
    names = [(path, one) for path, one in options if one.keymap or one.tool or (one.entry and "<" not in path)]
    assert len(names) > 50
    missing = [path for path, _ in names if not re.search(rf"^    `?{path.rpartition('.')[2]}`?\b", text, re.MULTILINE)]
    assert missing == []


def test_every_option_is_read_by_some_code() -> None:
    """An option that no code reads would be an empty promise in the help file."""
    find_nvim()
    files = [*REPO.glob("lua/**/*.lua"), *REPO.glob("python/codecompanion/**/*.py"), *REPO.glob("python/**/*.toml")]
    files.append(REPO / "python/codecompanion/builtin_adapters.json")
    no_code = re.compile(r"/config/(options/|schema|foreign)|/types\.lua$")
    code = "\n".join(path.read_text(encoding="utf-8") for path in files if not no_code.search(path.as_posix()))
    names = {
        option.name
        for path, option in walk(read_schema().schema)
        if option.fields is None and not option.name.startswith("<") and ".keymaps." not in path
    }
    assert len(names) > 50
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", code)] == []


def test_every_key_has_an_action() -> None:
    """The keys of an open question (approve, reject, cancel) are set by the approval block."""
    find_nvim()
    chat = REPO / "lua/codecompanion/chat"
    code = "\n".join(
        (chat / name).read_text(encoding="utf-8") for name in ("ui/key_actions.lua", "question/approval.lua")
    )
    names = [path.rpartition(".")[2] for path, option in walk(read_schema().schema) if option.keymap]
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []


def test_helptags_accepts_the_doc_folder(tmp_path: Path) -> None:
    """`:helptags` processes every folder below `doc/`, and plugin managers run it there (E154 stops lazy.nvim)."""
    nvim = find_nvim()
    doc = tmp_path / "doc"
    shutil.copytree(HELP.parent, doc, ignore=shutil.ignore_patterns("tags*"))
    done = subprocess.run(
        [nvim, "--clean", "--headless", "-c", f"helptags {doc}", "-c", "qa"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    tags = [line.split("\t")[0] for line in (doc / "tags").read_text(encoding="utf-8").splitlines()]
    assert set(_TAG.findall(without_code(HELP.read_text(encoding="utf-8")))) <= set(tags)
    assert "codecompanion.txt" in tags


def test_no_tag_occurs_twice() -> None:
    counts = Counter(_TAG.findall(HELP.read_text(encoding="utf-8")))
    assert [tag for tag, count in counts.items() if count > 1] == []


def test_every_link_leads_to_a_tag_here_or_in_neovims_own_help() -> None:
    nvim = find_nvim()
    text = without_code(HELP.read_text(encoding="utf-8"))
    links = set(_LINK.findall(text)) - set(_TAG.findall(text))
    done = subprocess.run(
        [nvim, "--clean", "--headless", "-c", "lua io.write(vim.env.VIMRUNTIME)", "-c", "qa"],
        capture_output=True,
        text=True,
        check=False,
    )
    neovims = {
        line.split("\t")[0] for line in (Path(done.stdout) / "doc/tags").read_text(encoding="utf-8").splitlines()
    }
    assert sorted(links - neovims) == []


def test_lines_fit_into_the_help_window() -> None:
    """Only a tag may exceed the width, because tags are not read."""
    long = [
        line
        for line in HELP.read_text(encoding="utf-8").splitlines()
        if len(line) > WIDTH and not re.search(r"\*\S+\*$", line)
    ]
    assert long == []


def test_no_list_mark_is_left_in_the_help_file() -> None:
    assert "{{" not in HELP.read_text(encoding="utf-8")


def test_every_event_and_request_has_a_lua_class() -> None:
    text = TYPES.read_text(encoding="utf-8")
    for kind in vars(events).values():
        if isinstance(kind, type) and issubclass(kind, events.Event) and kind is not events.Event:
            assert f"---@class CodeCompanion.Event.{kind.__name__}\n" in text
            assert f'---@field type "{kind.__struct_config__.tag}"\n' in text
    for verb, kind in requests.VERBS.items():
        assert f"---@class CodeCompanion.Request.{kind.__name__}\n" in text
        assert f"---@field {verb} CodeCompanion.Request.{kind.__name__}\n" in text


def test_types_match_the_wire() -> None:
    """One sample of each kind of field is compared, which would reveal a drift in the translation."""
    text = TYPES.read_text(encoding="utf-8")
    for line in (
        "---@field ratio number",
        "---@field call_ids string[]",
        "---@field cycles [integer, integer]",
        '---@field level "DEBUG"|"INFO"|"WARN"|"ERROR"',
        "---@field entries CodeCompanion.Wire.Entry[]",
        "---@field secrets? table<string, string>",
        "---@field snapshot CodeCompanion.Wire.Snapshot",
    ):
        assert f"{line}\n" in text


def test_the_types_are_valid_lua(tmp_path: Path) -> None:
    done = subprocess.run(
        [find_nvim(), "--clean", "--headless", "-c", f"lua assert(loadfile({str(TYPES)!r}))", "-c", "qa"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stderr == ""


def test_the_list_of_generated_files_is_complete() -> None:
    find_nvim()
    assert {path.relative_to(REPO).as_posix() for path in generated.generate()} == {
        "doc/codecompanion.txt",
        "doc/compared-documents.md",
        "doc/dev/requirements/deviations.md",
        "doc/policy-events.md",
        "lua/codecompanion/types.lua",
        "python/codecompanion/settings_defaults.json",
    }
