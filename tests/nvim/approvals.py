"""Approvals in the tests of the chat buffer: requesting one, and going to its block with the user's keys."""

from __future__ import annotations

from typing import Any

from chat_driver import ChatDriver
from codecompanion.wire import events


def ask(
    chat: ChatDriver, call_id: str = "c9", body: str = "rm -rf build\nmake", filetype: str = "sh", **more: Any
) -> None:
    """Start a tool call that requests approval."""
    given = {"name": "run_command", "title": "rm"} | more
    chat.push(
        events.ToolStarted(call_id=call_id, name=given["name"], title="run_command rm"),
        events.ApprovalRequested(call_id=call_id, body=body, filetype=filetype, **given),
    )


def answered(chat: ChatDriver) -> list[tuple[str, str]]:
    """Return the answers so far as (call id, decision)."""
    return [(request["call_id"], request["decision"]) for request in chat.sent("approve")]
