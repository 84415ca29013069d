"""`:CodeCompanion memory`: the list of memories, its keys, and the line in a new chat."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.store.files.memory_places import mark_of
from harness import Nvim
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

TIME = 1_795_000_000  # 2026-11-18


def entry(title: str, first: str = "", origin: str = "model", **more: Any) -> dict[str, Any]:
    known = {
        "path": f"/m/{title}.md", "line": 1, "origin": origin, "scope": "project", "is_private": False, "title": title,
        "first": first, "time": TIME, "can_delete": origin != "you",
    }  # fmt: skip
    return {**known, **more}


def page(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    known = {"folder": "/m", "user": "/own.md", "project": "", "of": len(entries), "others": 0}
    return {**known, "entries": list(entries), **more}


ENTRIES = (
    entry("How to run the tests", "pytest -n 2"),
    entry("The parser", "Decisions", "compaction", is_private=True),
    entry("[style] Quays", "Name quays after rivers.", "you", line=7, path="/own.md"),
)


def opened(factory: Callable[..., Nvim], shown: dict[str, Any], **start: Any) -> ChatDriver:
    chat = make_chat(factory, **start)
    chat.answer("show_memory", shown)
    chat.nvim.command("CodeCompanion memory")
    return chat


def test_each_entry_shows_its_day_origin_and_first_line(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, page(*ENTRIES, of=600, others=12))
    chat.nvim.wait_screen(r"2026-11-1\d · model · How to run the tests")
    screen = chat.nvim.screen()
    assert "    pytest -n 2" in screen
    assert "· compaction · private · The parser" in screen
    assert "· you · [style] Quays" in screen
    assert "597 older ones are not listed; s searches them." in screen
    assert "12 more in other projects; a lists them." in screen


def test_the_page_fits_forty_columns(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, page(*ENTRIES), size=(40, 24))
    chat.nvim.wait_screen(r"2026-11-1\d · model · How to run")
    assert "⏎ open · s search · d delete · q" in chat.nvim.screen()
    assert not chat.nvim.blocked()


def test_in_forty_columns_all_keys_are_visible_beside_the_more_sign(nvim_factory: Callable[..., Nvim]) -> None:
    many = [entry(f"Note {number}") for number in range(60)]
    chat = opened(nvim_factory, page(*many), size=(40, 24))
    chat.nvim.wait_screen("↓ · ⏎ open · s search · d delete · q")


LOADING = "vim.cmd('CodeCompanion memory') return vim.api.nvim_buf_get_lines(0, 0, -1, false)"


@pytest.mark.parametrize("key", ["", "q"])
def test_while_the_host_starts_the_page_shows_that(nvim_factory, tmp_path, key) -> None:
    with ChatServerThread([], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opened=False)
        assert chat.nvim.lua(LOADING) == ["Loading: the Python process is starting…"]
        if key:
            chat.nvim.feed(key)
            chat.nvim.wait_lua("return require('codecompanion.host').status() == 'ready'")
            chat.open()  # answered after the page
            assert "Nothing is remembered" not in chat.nvim.screen()
        else:
            chat.nvim.wait_screen("Nothing is remembered yet")
        assert "Loading" not in chat.nvim.screen()


def test_the_folder_of_the_users_entries_is_created_when_they_are_saved(remembering) -> None:
    with ChatServerThread([], key=KEY) as server:
        chat, _ = remembering(server)
        kit = Path(str(chat.nvim.lua("return vim.fn.getcwd()"))) / ".codecompanion"
        chat.nvim.command("CodeCompanion memory")
        chat.nvim.wait_screen(r"model · Run the tests")
        chat.nvim.feed("e")
        chat.nvim.wait_screen("for this project")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_screen("Something every chat should know")
        assert not kit.exists()
        chat.nvim.command("write")
        assert (kit / "memories.md").read_text().startswith("## [style] A title\n")


def test_an_empty_memory_explains_how_it_is_filled(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, page())
    chat.nvim.wait_screen("Nothing is remembered yet")


def test_a_search_is_sent_to_the_host(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, page(*ENTRIES))
    chat.nvim.wait_screen("How to run the tests")
    chat.answer("show_memory", page())
    chat.nvim.lua("vim.ui.input = function(options, done) done('quay') end")
    chat.nvim.feed("s")
    chat.nvim.wait_screen("No entry contains the words “quay”")


def test_only_a_yes_deletes_and_never_a_users_file(nvim_factory: Callable[..., Nvim]) -> None:
    chat = opened(nvim_factory, page(*ENTRIES))
    chat.nvim.wait_screen("How to run the tests")
    chat.nvim.lua(
        "_G.deleted = {}"
        " require('codecompanion.host').answers.delete_memory = function(payload)"
        " table.insert(_G.deleted, payload.path) return 'Deleted it.' end"
    )
    chat.nvim.feed("ggd")
    chat.nvim.wait_screen("Delete “How to run the tests”")
    chat.nvim.feed("n")
    assert chat.nvim.lua("return _G.deleted") == []
    chat.answer("show_memory", page(*ENTRIES[1:]))
    chat.nvim.feed("ggd")
    chat.nvim.wait_screen("Delete “")
    chat.nvim.feed("y")
    chat.nvim.wait_lua("return #_G.deleted == 1")
    assert chat.nvim.lua("return _G.deleted") == ["/m/How to run the tests.md"]
    chat.nvim.wait_for(lambda: "How to run the tests" not in chat.nvim.screen(), "the list without it")
    chat.nvim.feed("Gkd")
    chat.nvim.wait_for(lambda: "opens it there" in chat.nvim.messages() + chat.nvim.screen(), "the hint")
    assert len(chat.nvim.lua("return _G.deleted")) == 1


@pytest.fixture
def remembering(nvim_factory: Callable[..., Nvim], tmp_path: Path):
    """Return a function that starts a chat whose project has a note from an earlier chat."""

    def start(server: ChatServerThread, **options: Any):
        chat = start_chat(nvim_factory, tmp_path, server, opened=False, **options)
        data = Path(str(chat.nvim.lua("return vim.fn.stdpath('data')"))) / "codecompanion/memories"
        cwd = Path(str(chat.nvim.lua("return vim.uv.fs_realpath(vim.fn.getcwd())")))
        folder = data / "projects" / mark_of(cwd)
        folder.mkdir(parents=True)
        (folder / "tests.md").write_text("Run the tests with pytest -n 2.\n")
        chat.open()
        return chat, folder

    return start


def test_a_new_chat_shows_the_memory_as_a_line_that_dd_removes(remembering) -> None:
    with ChatServerThread([reply("First."), reply("Second.")], key=KEY) as server:
        chat, folder = remembering(server)
        chat.nvim.wait_screen(r"> - <memory>1 entry</memory>.*\d+ tokens")
        chat.say("hello")
        assert "pytest -n 2" in str(server.requests[0].body)
        chat.nvim.feed("<Esc>ggjK")
        chat.nvim.wait_screen("Memories of this project")
        chat.nvim.feed("q")
        chat.nvim.feed("ggjgf")
        chat.nvim.wait_screen(r"model · Run the tests with pytest -n 2\.")
        chat.nvim.feed("q")
        chat.nvim.feed("ggjdd")
        chat.nvim.wait_for(lambda: "<memory>" not in chat.text(), "the block without the line")
        chat.say("again")
        assert "pytest -n 2" not in str(server.requests[1].body)
        chat.nvim.command("CodeCompanion memory")
        chat.nvim.wait_screen(r"model · Run the tests with pytest -n 2\.")
        chat.nvim.feed("gg<CR>")
        chat.nvim.wait_lua("return vim.api.nvim_buf_get_name(0):match('tests%.md$') ~= nil")
        assert (folder / "tests.md").exists()


def test_zero_tokens_disables_the_memory(remembering) -> None:
    with ChatServerThread([reply("First.")], key=KEY) as server:
        chat, _ = remembering(server, options={"interactions": {"chat": {"opts": {"memory": {"max_tokens": 0}}}}})
        chat.say("hello")
        assert "<memory>" not in chat.text()
        assert "pytest -n 2" not in str(server.requests[0].body)


def test_u_restores_an_entry_deleted_with_d(remembering) -> None:
    with ChatServerThread([], key=KEY) as server:
        chat, folder = remembering(server)
        chat.nvim.command("CodeCompanion memory")
        chat.nvim.wait_screen(r"model · Run the tests")
        chat.nvim.feed("ggd")
        chat.nvim.wait_screen("Delete “")
        chat.nvim.feed("y")
        chat.nvim.wait_screen("Nothing is remembered yet")
        assert not (folder / "tests.md").exists()
        chat.nvim.feed("u")
        chat.nvim.wait_screen(r"model · Run the tests")
        assert (folder / "tests.md").read_text() == "Run the tests with pytest -n 2.\n"


def test_a_list_changed_by_another_neovim_is_read_again(remembering) -> None:
    with ChatServerThread([], key=KEY) as server:
        chat, folder = remembering(server)
        chat.nvim.command("CodeCompanion memory")
        chat.nvim.wait_screen(r"model · Run the tests")
        (folder / "tests.md").unlink()
        chat.nvim.feed("ggd")
        chat.nvim.wait_screen("Delete “")
        chat.nvim.feed("y")
        chat.nvim.wait_screen("Nothing is remembered yet")


@pytest.mark.parametrize("place", ["fifo", "folder is a file"])
def test_odd_files_in_a_cloned_repository_block_nothing(remembering, place) -> None:
    with ChatServerThread([], key=KEY) as server:
        chat, _ = remembering(server)
        kit = Path(str(chat.nvim.lua("return vim.fn.getcwd()"))) / ".codecompanion"
        if place == "fifo":
            kit.mkdir()
            os.mkfifo(kit / "memories.md")
        else:
            kit.write_text("")
        chat.nvim.command("CodeCompanion memory")
        chat.nvim.wait_screen("Not used: " if place == "fifo" else "model · Run the tests")
        chat.nvim.feed("e")
        chat.nvim.wait_screen("for this project")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(
            lambda: ("not a regular file" if place == "fifo" else "Cannot create the folder") in chat.nvim.messages(),
            "the reason",
        )
        assert not chat.nvim.blocked()


def test_text_of_any_script_is_shown_and_invisible_characters_are_written_out(nvim_factory) -> None:
    text = "川の名前を使う。（全部） नमस्ते"
    hidden = "a\u202eb\x1b[2J"
    unused = ["Not used until trusted: .codecompanion/memories.md"]
    chat = opened(nvim_factory, page(entry("one", text), entry("two", hidden), unused=unused))
    chat.nvim.wait_screen("使う。（全部）")
    assert "a<U+202E>b<U+001B>[2J" in chat.nvim.screen()
    assert "Not used until trusted: .codecompanion/memories.md · :CodeCompanion trust" in chat.nvim.screen()
