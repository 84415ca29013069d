"""`kill -9` between the log and the file: the file is unchanged or as logged, and can be reverted (lesson 44)."""

from __future__ import annotations

import contextlib

import pytest

from codecompanion.model.history import FileChangeEnded, FileChangeStarted
from files_desk import TEXT, edit, tool
from harness import NvimError, wait_until
from real_chat import read_log

KILL_HOST = """
local edit, when = require('codecompanion.files.edit_buffer'), ...
local change = edit.change
edit.change = function(fields)
  local pid = require('codecompanion.host').inspect().pid
  local result = when == 'after' and change(fields)
  vim.uv.kill(pid, 'sigkill')
  vim.wait(5000, function() return require('codecompanion.host').status() ~= 'ready' end)
  edit.change = change
  return result or { state = 'stale' }
end
"""


def changes(events):
    """Return the logged file changes."""
    return [e.payload for e in events if isinstance(e.payload, FileChangeStarted | FileChangeEnded)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_host_killed_around_the_write_leaves_a_change_that_can_be_reverted(desk, when):
    user = desk(edit("line 5\n", "five\n"))
    buffer = user.open()
    user.nvim.lua(KILL_HOST, when)
    user.nvim.command("tabfirst")
    user.chat.send("go")
    user.nvim.wait_screen("The Python process ended")
    after = TEXT.replace("line 5\n", "five\n")
    assert user.disk() == (after if when == "after" else TEXT)
    (began,) = changes(read_log(user.root.parent, user.chat.id))
    assert began.path == str(user.root / "a.txt")
    user.nvim.command("CodeCompanionRevert")
    user.nvim.wait_screen("insert_edit a.txt .*possibly not applied")
    user.nvim.feed("gX")
    user.nvim.wait_for(lambda: len(changes(read_log(user.root.parent, user.chat.id))) == 4, "the revert")
    assert user.disk() == TEXT
    assert user.lines(buffer) == TEXT.split("\n")[:-1]


def test_an_editor_killed_during_a_file_change_loses_nothing(desk, nvim_factory):
    user = desk(edit("line 5\n", "five\n"))
    user.open()
    user.nvim.lua(
        """local edit = require('codecompanion.files.edit_buffer')
           local change = edit.change
           edit.change = function(fields) change(fields) vim.uv.kill(vim.uv.os_getpid(), 'sigkill') end"""
    )
    user.nvim.command("tabfirst")
    chat_id = user.chat.id
    with contextlib.suppress(NvimError, OSError):  # it is killed before it answers
        user.chat.send("go")
    wait_until(lambda: user.nvim._ended)
    wait_until(lambda: changes(read_log(user.root.parent, chat_id)))
    assert user.disk() == TEXT.replace("line 5\n", "five\n")
    (began, *ended) = changes(read_log(user.root.parent, chat_id))
    assert isinstance(began, FileChangeStarted)
    assert all(isinstance(one, FileChangeEnded) for one in ended)


def test_two_editors_each_see_the_other_chats_changes(desk, nvim_factory, tmp_path):
    """The second one has the file open; there is no prompt, and its next check shows the edit."""
    user = desk(edit("line 5\n", "five\n"), tool("read_file", path="a.txt"))
    other = nvim_factory(root=tmp_path / "other")
    other.command(f"edit {user.root / 'a.txt'}")
    user.say()
    assert "five\n" in user.disk()
    other.command("checktime")
    other.wait_lua("return vim.api.nvim_buf_get_lines(0, 4, 5, true)[1] == 'five'")
    assert not other.blocked()
