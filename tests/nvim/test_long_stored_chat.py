"""A long stored chat in a real Neovim: its newest blocks come first, and the final buffer is identical."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import (
    ChangeUndone,
    ChatCreated,
    EventPayload,
    Insertion,
    MessageAdded,
    TurnEnded,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall, with_changes
from codecompanion.store.opening import open_store
from harness import Nvim
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

CHAT = "10ad0000" * 3
NOTE_ORDER = """
local events = require("codecompanion.chat.wire.events")
_G.cc_order = {}
for _, name in ipairs({ "chat_opened", "restored", "view_marks", "redrawn" }) do
  local run = events[name]
  events[name] = function(chat, event)
    table.insert(_G.cc_order, name)
    return run(chat, event)
  end
end
"""
IS_DRAWN = """
local chat = require("codecompanion.chat").current()
return chat ~= nil and chat.restore.last and not chat.restore.running and not chat.refreshing
  and chat.attached == "yes" and chat.meter ~= nil and chat.marked == true
"""
# Colours are left out: they come where a window has shown a line, so they depend on the moment.
BUFFER = """
local chat, win = require("codecompanion.chat").current(), vim.api.nvim_get_current_win()
local names = {}
for name, ns in pairs(vim.api.nvim_get_namespaces()) do names[ns] = name end
local marks = {}
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(chat.bufnr, -1, 0, -1, { details = true })) do
  local name = names[mark[4].ns_id] or ""
  mark[4].ns_id = nil
  if name:find("codecompanion") and not name:find("pieces") and not name:find("paint") then
    table.insert(marks, ("%06d %04d %s %s"):format(mark[2], mark[3], name, vim.inspect(mark[4])))
  end
end
table.sort(marks)
local folds = {}
for line = 1, vim.api.nvim_buf_line_count(chat.bufnr) do
  folds[line] = ("%d %d"):format(vim.fn.foldlevel(line), vim.fn.foldclosed(line))
end
return {
  lines = vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false),
  marks = marks,
  folds = folds,
  cursor = vim.api.nvim_win_get_cursor(win),
  top = vim.fn.line("w0"),
  undo = vim.fn.undotree(chat.bufnr).seq_cur,
}
"""


def story(turns: int) -> list[EventPayload]:
    """Return `turns` turns, each with a question, a call with its result, and an answer."""
    log: list[EventPayload] = [ChatCreated(adapter="loop", model="test-model", policy="", cwd="")]
    log.append(MessageAdded(message=Message(id="file", role="user", tag="file", path="a.txt", content="A", tokens=1)))
    for number in range(turns):
        turn, call = f"turn-{number}", ToolCall(f"call-{number}", "read_file", '{"path": "a.txt"}')
        fields: dict[str, Any] = {"turn_id": turn, "cycle": number + 1, "tokens": 5}
        log.append(TurnStarted(turn_id=turn, cycle=number + 1))
        for message in (
            Message(id=f"{turn}-q", role="user", content=f"Question {number}", **fields),
            Message(id=f"{turn}-c", role="assistant", content="", tool_calls=(call,), **fields),
            Message(id=f"{turn}-r", role="tool", content="line\n" * 3, tool_call_id=call.id, **fields),
            Message(id=f"{turn}-a", role="assistant", content=f"Answer {number}\n\n- one\n- two", **fields),
        ):
            log.append(MessageAdded(message=message))
        log.append(TurnEnded(turn_id=turn, reason="done"))
    return log


def compaction(log: list[EventPayload], kept: int) -> ViewChanged:
    """Return a compaction of all but the newest messages."""
    messages = [one.message for one in log if isinstance(one, MessageAdded)][1:]
    summary = Message(id="summary", role="user", tag=SUMMARY_TAG, content="SUMMARY", tokens=2)
    return ViewChanged(
        change_id="card",
        kind="compacted",
        removed=tuple(message.id for message in messages[:-kept]),
        inserted=(Insertion(message=summary, after="file"),),
        report=ChangeReport(before=messages[-kept].id, summary="SUMMARY", messages=len(messages) - kept),
    )


def changed(log: list[EventPayload], kept: int, *more: EventPayload) -> list[EventPayload]:
    """Return the log with a compaction that keeps `kept` messages, a cleared and a pinned message, then `more`."""
    messages = [one.message for one in log if isinstance(one, MessageAdded)]
    cleared = ViewChanged(change_id="edit", kind="edited", replaced=(with_changes(messages[-2], edited=True),),
                          report=ChangeReport(cleared=1))  # fmt: skip
    pinned = ViewChanged(change_id="pin", kind="pinned", replaced=(with_changes(messages[-5], pinned=True),))
    return [*log, compaction(log, kept), cleared, pinned, *more]


UNDONE = (ChangeUndone(change_id="pin", by_user=True), ChangeUndone(change_id="edit", by_user=True))
CLEARED = ViewChanged(
    change_id="all", kind="cleared", removed=tuple(f"turn-{n}-{k}" for n in range(194) for k in "qcra")
)
LOGS = {
    "an ordinary log": story(200),
    "a card among the newest blocks": changed(story(200), 12),
    "a card above the newest blocks": changed(story(200), 160),
    "undone changes": changed(story(200), 12, *UNDONE),
    "all but the newest turns are cleared": [*story(200), CLEARED],
}


@pytest.fixture
def server() -> Iterator[ChatServerThread]:
    with ChatServerThread(key=KEY, default=lambda received: reply("the new answer")) as running:
        yield running


def store_log(root: Path, log: list[EventPayload]) -> None:
    store = open_store(root / "data" / "nvim" / "codecompanion")
    store.append(CHAT, log).result()
    store.close()


def resume(chat: RealChat) -> list[str]:
    """Open the stored chat and return its event types in order, up to the marks."""
    chat.nvim.lua("_G.cc_order = {}; require('codecompanion').resume(...)", CHAT)
    chat.nvim.wait_lua(IS_DRAWN, timeout=60)
    return list(chat.nvim.lua("return _G.cc_order"))


def settled(chat: RealChat) -> dict[str, Any]:
    """Return the buffer once it no longer changes."""
    found: list[dict[str, Any]] = [{}]

    def is_settled() -> bool:
        found.append(chat.nvim.lua(BUFFER))
        return found[-1] == found[-2]

    chat.nvim.wait_for(is_settled, "the buffer to settle")
    return found[-1]


def opened(chat: RealChat) -> tuple[list[str], dict[str, Any]]:
    order = resume(chat)
    shown = settled(chat)
    chat.nvim.lua("require('codecompanion.chat').close()")
    return order, shown


def forget_the_row(root: Path) -> None:
    path = root / "data" / "nvim" / "codecompanion" / "sessions.db"
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("DELETE FROM tail_state").rowcount > 0


@pytest.mark.parametrize("kind", LOGS)
def test_the_buffer_equals_the_one_drawn_from_the_whole_log(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, server: ChatServerThread, kind: str
) -> None:
    """The lines, marks, folds, cursor and window position are equal."""
    chat = start_chat(nvim_factory, tmp_path, server)
    chat.nvim.lua(NOTE_ORDER)
    store_log(tmp_path, LOGS[kind])
    order, newest_first = opened(chat)
    if kind != "all but the newest turns are cleared":  # then there are too few blocks for it
        assert order.index("restored") < order.index("view_marks")
    assert "redrawn" not in order
    forget_the_row(tmp_path)
    order, whole = opened(chat)
    assert order.index("view_marks") < order.index("restored")
    assert newest_first == whole


def test_a_message_sent_at_once_is_answered_with_the_whole_chat_in_view(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, server: ChatServerThread
) -> None:
    chat = start_chat(nvim_factory, tmp_path, server)
    store_log(tmp_path, story(200))
    chat.nvim.lua("require('codecompanion').resume(...)", CHAT)
    chat.nvim.wait_screen("Answer 199")
    chat.send("and now?")
    chat.nvim.wait_screen("the new answer")
    body = server.requests[-1].body
    assert b"Question 0" in body
    assert b"Question 199" in body


def test_a_host_killed_after_the_newest_blocks_leaves_a_usable_chat(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, server: ChatServerThread
) -> None:
    chat = start_chat(nvim_factory, tmp_path, server)
    store_log(tmp_path, changed(story(200), 12))
    chat.nvim.lua("require('codecompanion').resume(...)", CHAT)
    chat.nvim.wait_screen("Answer 199")
    os.kill(chat.host_pid(), signal.SIGKILL)
    chat.type("a draft")
    chat.nvim.wait_screen("The Python process ended")
    chat.nvim.lua("require('codecompanion.chat').close()")
    resume(chat)
    assert chat.text().count("Answer 199") == 1
    assert "Question 0" in chat.text()
