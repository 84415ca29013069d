"""The names of chat buffers, and writing their text to files."""

from __future__ import annotations

from pathlib import Path

import pytest

from chat_driver import ChatDriver


def name_of(chat: ChatDriver) -> str:
    return str(chat.nvim.lua("return vim.api.nvim_buf_get_name(require('codecompanion.chat').last_chat().bufnr)"))


def buffers(chat: ChatDriver) -> list[str]:
    return list(chat.nvim.lua("return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())"))


@pytest.mark.parametrize("command", ["file other.md", "0file", "file other.md | edit", "saveas other.md"])
def test_a_chat_keeps_its_name(chat: ChatDriver, tmp_path: Path, command: str) -> None:
    """`:file` and `:saveas` would make the chat impossible to find; `:saveas` still writes the text."""
    chat.accept("a question")
    chat.reply("an answer")
    before, known = chat.text(), len(buffers(chat))
    chat.nvim.command(command)
    chat.nvim.wait_for(lambda: name_of(chat) == f"codecompanion://{chat.id}", "the name of the chat")
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
    assert name_of(chat) == f"codecompanion://{chat.id}"
    chat.nvim.command("write nowhere/export.md")
    chat.nvim.wait_screen("Not written to nowhere/export.md: No such file")
    assert not chat.nvim.blocked()
