"""Collects content blocks from stream events and turns them into tool calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from typing import Any

import msgspec

from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import ToolCall


class StreamedEvent(msgspec.Struct):
    """One payload of the stream, of any type; its fields are read when needed."""

    type: Any = None
    index: Any = None
    message: Any = None
    content_block: Any = None
    delta: Any = None
    usage: Any = None
    context_management: Any = None


READ_EVENT = typed.json_decoder(StreamedEvent)


class Draft:
    """A content block that is still arriving: its initial fields (`block`) and the streamed pieces (`text`, `json`)."""

    __slots__ = ("block", "json", "kind", "text")

    def __init__(self, block: dict[str, Any]) -> None:
        self.block = block
        self.kind = str(block.get("type", ""))
        self.text, self.json = StringIO(), StringIO()


def finish_calls(drafts: Iterable[Draft], new_id: Callable[[], str], *, cut: bool) -> tuple[ToolCall, ...]:
    """Return the calls, in order, with unique, non-empty ids.

    cut: the reply hit a limit; calls with incomplete arguments are omitted, because they cannot be run.
    """
    calls: list[ToolCall] = []
    taken: set[str] = set()
    for draft in drafts:
        given = draft.block.get("input")
        whole = msgspec.json.encode(given).decode() if isinstance(given, Mapping) else "{}"
        arguments = draft.json.getvalue().strip() or whole
        if cut and not is_json_object(arguments):
            continue
        told = draft.block.get("id")
        call_id = told if isinstance(told, str) and told and told not in taken else new_id()
        taken.add(call_id)
        calls.append(ToolCall(id=call_id, name=str(draft.block["name"]), arguments=arguments))
    return tuple(calls)


def read_input(text: str) -> Any:
    """Return the input of a tool that ran on the server, or {} if it is incomplete."""
    try:
        return msgspec.json.decode(text)
    except NOT_READABLE:
        return {}
