"""Chat buffer names, and writing chat text to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from chat_driver import ChatDriver
from codecompanion.wire import events


def name_of(chat: ChatDriver) -> str:
    return str(chat.nvim.lua("return vim.api.nvim_buf_get_name(require('codecompanion.chat').last_chat().bufnr)"))


def buffers(chat: ChatDriver) -> list[str]:
    return list(chat.nvim.lua("return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())"))


def named(chat: ChatDriver, title: str = "New chat") -> str:
    return f"codecompanion://{title} · {chat.id}"


def test_the_name_has_the_title_and_follows_it(chat: ChatDriver) -> None:
    """A title change creates no second buffer and keeps the alternate file.

    It leaves the buffer unmodified, even while the chat is hidden.
    """
    assert name_of(chat) == named(chat)
    assert len(chat.id) == 12
    chat.nvim.command("edit! other.txt | buffer #")
    before = len(buffers(chat))
    chat.push(events.TitleChanged(title="fix the failing test"))
    assert name_of(chat) == named(chat, "fix the failing test")
    assert chat.nvim.lua("return { vim.fn.bufname('#'), vim.bo.modified, vim.bo.filetype }") == [
        "other.txt",
        False,
        "codecompanion",
    ]
    chat.nvim.command("buffer other.txt")
    chat.push(events.TitleChanged(title="fix it"))
    assert name_of(chat) == named(chat, "fix it")
    assert len(buffers(chat)) == before
    assert chat.nvim.lua("return vim.fn.bufname('#')") == named(chat, "fix it")
    assert chat.nvim.messages().strip() == ""
    chat.nvim.command("buffer fix it")
    assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"
    chat.nvim.command("setlocal buflisted")  # Neovim completes listed buffers only
    assert chat.nvim.lua("return vim.fn.getcompletion('fix', 'buffer')") == [named(chat, "fix it")]


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("raise # to 100% | `ls` $HOME", "raise to 100 - ’ls’ HOME"),
        ("fix src/stack.py:12", "fix src-stack.py:12"),
        ("/explain *this* [and] {that}?", "explain this and that"),
        ("don't\nbreak\tlines", "don’t break lines"),
        ("a" * 60, "a" * 39 + "…"),
        ("日本語の題名" * 8, "日本語の題名" * 3 + "日…"),
        ("tests \u202e\u200b of größe", "tests of größe"),
        ("### ", "New chat"),
    ],
)
def test_a_name_is_safe_in_commands(chat: ChatDriver, title: str, shown: str) -> None:
    """Special characters are replaced, so `:e name` finds the chat and a session file can contain its name."""
    chat.push(events.TitleChanged(title=title))
    name = name_of(chat)
    assert name == named(chat, shown)
    chat.nvim.command("enew")
    chat.nvim.command(f"edit {name}")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.id") == chat.id
    assert chat.nvim.lua("return vim.api.nvim_eval_statusline('%f', {}).str").endswith(chat.id)
    assert chat.nvim.messages().strip() == ""


@pytest.mark.parametrize("name", ["codecompanion://an older title · {}", "codecompanion://{}"])
def test_other_names_with_the_id_open_the_chat(chat: ChatDriver, name: str) -> None:
    """A name with an older title or in an earlier version's format opens the same buffer, with the current title."""
    chat.push(events.TitleChanged(title="fix it"))
    bufnr = chat.nvim.lua("return vim.api.nvim_get_current_buf()")
    chat.nvim.command("enew")
    chat.nvim.command(f"edit {name.format(chat.id)}")
    chat.nvim.wait_lua("return vim.api.nvim_get_current_buf() == ...", bufnr)
    assert [one for one in buffers(chat) if one.startswith("codecompanion://")] == [named(chat, "fix it")]
    assert chat.nvim.messages().strip() == ""

    chat.nvim.command("bwipeout")
    chat.nvim.command(f"edit {name.format(chat.id)}")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.id") == chat.id
    chat.opened(title="fixed", resumed=True)
    assert name_of(chat) == named(chat, "fixed")
    assert [one for one in buffers(chat) if one.startswith("codecompanion://")] == [named(chat, "fixed")]


def test_a_session_file_restores_a_chat_whose_title_has_changed(chat: ChatDriver, tmp_path: Path) -> None:
    """The session file has the older title; the chat is found by its id."""
    chat.push(events.TitleChanged(title="it's 100% #1"))
    chat.nvim.command(f"mksession! {tmp_path}/Session.vim")
    assert "it’s 100 1 · " in (tmp_path / "Session.vim").read_text().replace("\\", "")
    chat.nvim.command("bwipeout")
    chat.nvim.command(f"source {tmp_path}/Session.vim")
    chat.nvim.wait_lua("return (vim.b.codecompanion_chat or {}).id == ...", chat.id)
    chat.opened(title="renamed", resumed=True)
    assert name_of(chat) == named(chat, "renamed")
    assert [one for one in buffers(chat) if one.startswith("codecompanion://")] == [named(chat, "renamed")]
    assert "Error" not in chat.nvim.messages()


@pytest.mark.parametrize("command", ["file other.md", "0file", "file other.md | edit", "saveas other.md"])
def test_a_chat_keeps_its_name(chat: ChatDriver, tmp_path: Path, command: str) -> None:
    """`:file` and `:saveas` would make the chat impossible to find; `:saveas` still writes the text."""
    chat.accept("a question")
    chat.reply("an answer")
    before, known = chat.text(), len(buffers(chat))
    chat.nvim.command(command)
    chat.nvim.wait_for(lambda: name_of(chat) == named(chat), "the name of the chat")
    assert len(buffers(chat)) == known
    asked = "edit" in command
    assert len(chat.sent("redraw_chat")) == asked
    if not asked:
        assert chat.text() == before
    assert chat.nvim.lua("return { vim.bo.filetype, vim.bo.buftype, vim.bo.buflisted }") == [
        "codecompanion",
        "acwrite",
        False,
    ]
    written = tmp_path / "work" / "other.md"
    if command.startswith("saveas"):
        assert written.read_text() == before + "\n"
        chat.nvim.wait_screen("8 lines written to other.md")
    else:
        assert not written.exists()
        chat.nvim.wait_screen("A chat keeps its name; :w {file} writes its text")
    assert not chat.nvim.blocked()


def test_the_text_of_a_chat_is_written_to_a_file(chat: ChatDriver, tmp_path: Path) -> None:
    """`:w file` writes the buffer's text; without a name only the draft is saved; write errors are reported."""
    chat.accept("a question")
    chat.reply("with a \0 in it")
    chat.nvim.feed("Gi<C-c>")
    chat.nvim.command("write")
    chat.nvim.command("write export.md")
    chat.nvim.wait_screen("8 lines written to export.md")
    assert (tmp_path / "work" / "export.md").read_bytes() == b"\n".join(
        line.encode() for line in [*chat.text().split("\n"), ""]
    )
    assert b"\0" in (tmp_path / "work" / "export.md").read_bytes() or "^@" in chat.text()
    assert not list((tmp_path / "work").glob("codecompanion*"))
    assert name_of(chat) == named(chat)
    chat.nvim.command("write nowhere/export.md")
    chat.nvim.wait_screen("Cannot write to nowhere/export.md: No such file")
    assert not chat.nvim.blocked()


def test_a_chat_without_a_title_has_one_name_everywhere(chat: ChatDriver) -> None:
    """In its buffer, the palette and the tab line."""
    chat.push(events.TitleChanged(title=""))
    assert chat.nvim.lua("return vim.fn.bufname()").startswith("codecompanion://New chat · ")
    chat.nvim.command("CodeCompanion")
    chat.nvim.wait_screen(r"open +New chat ")
    chat.nvim.feed("q")
    chat.nvim.command("tabnew")
    chat.nvim.wait_screen(r"^ New chat  \[No Name\]")


def test_a_page_is_named_after_its_title(chat: ChatDriver) -> None:
    """Not `[Scratch]`, even where the title changes or contains a slash."""
    result = {"rows": [], "total": 0, "window": 0}
    chat.answer("inspect", result)
    chat.nvim.command("tabnew | tabprevious")
    chat.nvim.feed("gd")
    chat.nvim.wait_screen(r"^ Next request  \[No Name\]")
    chat.answer("inspect", {**result, "request": 2, "requests": 2, "asked": "a/b"})
    chat.nvim.feed("[")
    chat.nvim.wait_screen(r"^ Sent request 2 of 2 · a∕b  \[No Name\]")
    names = chat.nvim.lua("return vim.tbl_map(vim.fn.bufname, vim.api.nvim_list_bufs())")
    assert "Next request" not in names
