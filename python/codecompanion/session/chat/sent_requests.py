"""Requests as they were sent, read from the log: what the model saw at any point (R-328)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.shape_request import with_packets
from codecompanion.errors import InputError, StoreError
from codecompanion.formats.typed import read_json
from codecompanion.model.cycles import turn_name
from codecompanion.model.history import LogEvent, RequestSent
from codecompanion.model.messages import Message, ToolSpec
from codecompanion.model.view import View, project
from codecompanion.session.chat.inspection import describe_rows
from codecompanion.session.window.context_control import ContextControl

NOT_RECORDED = "The system prompt and the tools of this request were not recorded; those of today are shown."


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it was sent: `number` of `count`; `note` says what is not known of it."""

    request: ChatRequest
    sent: RequestSent
    view: View
    number: int
    count: int
    note: str = ""


def read_sent(
    events: Sequence[LogEvent], number: int, control: ContextControl, read_blob: Callable[[str], bytes]
) -> SentRequest:
    """Return a request of the chat; the first one has the number 1, the newest also −1.

    Raises:
        InputError: there is no request with this number.
    """
    places = [place for place, event in enumerate(events) if _is_of_chat(event)]
    count = len(places)
    if not count:
        raise InputError("Nothing was sent in this chat yet.")
    number = count if number == -1 else number
    if not 1 <= number <= count:
        raise InputError(f"This chat has no request {number}; expected 1 to {count}.")
    logged = [event.payload for event in events if isinstance(event.payload, RequestSent) and _is_of_chat(event)]
    sent, view = logged[number - 1], project(events[: places[number - 1]])
    replaced, packets = _shaped(logged[:number])
    messages = tuple(replaced.get(message.id, message) for message in view.messages)
    messages = with_packets(messages, {message.cycle or 0: message for message in packets.values()})
    system, tools, note = control.system_message, control.specs, NOT_RECORDED
    if sent.prompt:
        try:
            text = read_blob(sent.prompt).decode("utf-8", "surrogatepass")
            system = Message(id="system", role="system", content=text)
            tools, note = read_json(read_blob(sent.tools), type=tuple[ToolSpec, ...]), ""
        except StoreError:
            note = NOT_RECORDED
    request = ChatRequest(
        messages=(system, *messages),
        tools=tools,
        model=sent.model,
        max_output_tokens=sent.max_output_tokens,
        chat_id=control.chat_id,
        compact_at=sent.compact_at,
    )
    return SentRequest(request, sent, view, number, count, note)


def _is_of_chat(event: LogEvent) -> bool:
    return isinstance(event.payload, RequestSent) and event.payload.purpose == "chat"


def _shaped(requests: Sequence[RequestSent]) -> tuple[dict[str, Message], dict[str, Message]]:
    """Return what the last of these requests had in place of messages, and its packets, by id."""
    replaced, packets = dict[str, Message](), dict[str, Message]()
    for shaping in (sent.shaped for sent in requests):
        if shaping is None:
            continue
        if shaping.whole:
            replaced, packets = {}, {}
        for gone in shaping.dropped:
            replaced.pop(gone, None)
            packets.pop(gone, None)
        replaced |= {message.id: message for message in shaping.replaced}
        packets |= {message.id: message for message in shaping.packets}
    return replaced, packets


def inspect_sent(found: SentRequest, control: ContextControl) -> dict[str, Any]:
    """Return `{rows, total, window, request, requests, turn, note}`: a row for each message of a sent request."""
    sent, messages = found.sent, found.request.messages
    return {
        "rows": describe_rows(control, messages, found.request.tools, found.view.cycle, sent.estimated_tokens),
        "total": sent.estimated_tokens,
        "window": sent.limits.get("window", 0),
        "request": found.number,
        "requests": found.count,
        "turn": next((turn_name(m.cycle) for m in reversed(messages) if m.cycle), ""),
        "note": found.note,
    }


def show(request: ChatRequest, item: str, body: bytes, title: str) -> dict[str, Any]:
    """Return `{title, text, filetype, state}`: a message of the request, or without `item` its body.

    Raises:
        InputError: the request has no message with that id.
    """
    if not item:
        text = msgspec.json.format(body, indent=2).decode("utf-8", "surrogatepass")
        return {"title": title, "text": text, "filetype": "json", "state": ""}
    if item == "tools":
        text = msgspec.json.format(msgspec.json.encode(request.tools), indent=2).decode()
        return {"title": "Tools", "text": text, "filetype": "json", "state": ""}
    message = next((one for one in request.messages if one.id == item), None)
    if message is None:
        raise InputError(f"{title} has no message with the id {item!r}.")
    return {"title": message.path or message.role, "text": message.text, "filetype": "text", "state": ""}
