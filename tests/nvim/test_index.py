"""`:CodeCompanion index` in a real Neovim with the real host."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import init_lua
from tests.forked_python import forked_python

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("def alpha():\n    return 1\n")
    (folder / "b.lua").write_text("local function beta() end\n")
    return folder


@pytest.fixture
def nvim(nvim_factory: Callable[..., Nvim], project: Path) -> Nvim:
    made = nvim_factory(init=init_lua(NOWHERE, python=forked_python()))
    made.command(f"cd {project}")
    made.lua("_G.seen = {} require('codecompanion.host').subscribe(function(e) table.insert(_G.seen, e) end)")
    return made


def phases(nvim: Nvim) -> list[str]:
    return [event["phase"] for event in nvim.lua("return _G.seen") if event["type"] == "index_progress"]


def index_file(nvim: Nvim) -> Path:
    folder = Path(nvim.lua("return vim.fn.stdpath('cache')")) / "codecompanion" / "code_index"
    [path] = folder.glob("*.db")
    return path


def test_the_folder_is_indexed_in_the_background_and_reported(nvim: Nvim) -> None:
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "ready" in phases(nvim), "an index")
    assert phases(nvim)[0] == "building"
    nvim.command("CodeCompanion index status")
    nvim.wait_for(lambda: "2 files, 2 definitions" in nvim.messages(), "what is indexed")
    assert "The code of project is indexed" in nvim.messages()


def test_a_wrong_argument_is_reported(nvim: Nvim) -> None:
    nvim.command("CodeCompanion index never")
    nvim.wait_for(lambda: "Usage: :CodeCompanion index [--rebuild|status]" in nvim.messages(), "the mistake")
    assert nvim.lua("return vim.fn.getcompletion('CodeCompanion index ', 'cmdline')") == ["--rebuild", "status"]


def test_status_builds_nothing(nvim: Nvim) -> None:
    nvim.command("CodeCompanion index status")
    nvim.wait_for(lambda: "is not indexed" in nvim.messages(), "that there is none")
    assert phases(nvim) == []


def test_status_lists_the_excluded_files(nvim: Nvim, project: Path) -> None:
    (project / "bundle.js").write_text("var a=1;" * 10_000)
    (project / "dist").mkdir()
    (project / "dist" / "out.js").write_text("x\n")
    (project / ".env").write_text("KEY=1\n")
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "ready" in phases(nvim), "an index")
    nvim.feed(":CodeCompanion index status<CR>")
    told = "Not searched: 1 generated (bundle.js), 1 withheld as secret (.env), 1 vendored (dist/)."
    nvim.wait_screen("Code index")  # in as many rows as it takes: the command line has no room for all of it
    assert told in nvim.lines()
    assert not nvim.blocked()


def test_a_rebuild_repairs_damage(nvim: Nvim) -> None:
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "ready" in phases(nvim), "an index")
    index_file(nvim).write_bytes(b"garbage" * 1000)
    nvim.command("CodeCompanion index --rebuild")
    nvim.wait_for(lambda: phases(nvim).count("ready") == 2, "a second index")
    with sqlite3.connect(index_file(nvim)) as connection:
        assert connection.execute("SELECT count(*) FROM files").fetchone() == (2,)
    connection.close()


def test_an_unwritable_cache_is_one_sentence(nvim: Nvim) -> None:
    folder = Path(nvim.lua("return vim.fn.stdpath('cache')")) / "codecompanion"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "code_index").write_text("in the way")
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "The code is not indexed: " in nvim.messages(), "why not")
    assert "Errno" not in nvim.messages()


def test_a_saved_file_is_reported_once_there_is_an_index(nvim: Nvim, project: Path) -> None:
    nvim.lua(
        "_G.told = {}"
        " require('codecompanion.host.index_progress').show({ phase = 'ready', root = '/x', why = '' },"
        " function(verb, payload) table.insert(_G.told, { verb, payload.paths }) end,"
        " function() return _G.is_ready end)"
    )
    nvim.command(f"edit {project}/a.py")
    nvim.command("write")
    assert nvim.lua("return _G.told") == [], "nobody hears it while no host runs"
    nvim.lua("_G.is_ready = true")
    nvim.command("write")
    assert nvim.lua("return _G.told") == [["files_changed", [f"{project}/a.py"]]]


def test_a_saved_file_is_indexed_at_the_next_question(nvim: Nvim, project: Path) -> None:
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "ready" in phases(nvim), "an index")
    nvim.command(f"edit {project}/a.py")
    nvim.command("call append(0, 'x = 1')")
    nvim.command("write")
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "2 files, 3 definitions" in nvim.messages(), "the new definition")


def test_checkhealth_shows_the_indexed_folders(nvim: Nvim) -> None:
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "ready" in phases(nvim), "an index")
    nvim.command("checkhealth codecompanion")
    text = "\n".join(nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    assert "code index: The code of project is indexed (2 files, 2 definitions" in text
    assert "grammars: python" in text


def test_checkhealth_shows_the_effect_of_an_unwritable_cache(nvim: Nvim) -> None:
    nvim.lua(
        "local stdpath = vim.fn.stdpath"
        " vim.fn.stdpath = function(what) return what == 'cache' and '/dev/null/cache' or stdpath(what) end"
    )
    nvim.command("checkhealth codecompanion")
    text = "\n".join(nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    assert "cache (code indexes) cannot be written: /dev/null/cache/codecompanion" in text
    assert "work without a code index" in text
    assert "log: " in text  # the folders after it are looked at all the same
