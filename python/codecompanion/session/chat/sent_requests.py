"""Reads requests from the log as they were sent: the model's input at that time (R-328)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.selection.select_window import first_pending
from codecompanion.context.shape_request import with_packets
from codecompanion.errors import InputError, StoreError
from codecompanion.formats.typed import read_json
from codecompanion.model.cycles import turn_name
from codecompanion.model.history import LogEvent, RequestSent, UsageReported
from codecompanion.model.messages import Message, ToolSpec
from codecompanion.model.view import View, project, with_messages
from codecompanion.session.chat.inspection import describe_message, describe_rows
from codecompanion.session.window.context_control import ContextControl

NOT_RECORDED = "The system prompt and the tools of this request were not recorded; the current ones are shown."
TEXT_NOT_RECORDED = "The text of this request was not recorded."


class SentRequest(msgspec.Struct, frozen=True):
    """A request as it was sent, number `number` of `count`; `note` lists the unknown parts.

    `tokens` is the provider's figure if `is_exact`, else the estimate.
    """

    request: ChatRequest
    sent: RequestSent
    view: View
    number: int
    count: int
    tokens: int
    is_exact: bool
    note: str = ""


def read_sent(
    events: Sequence[LogEvent], number: int, control: ContextControl, read_blob: Callable[[str], bytes]
) -> SentRequest:
    """Return a request of the chat, possibly a summary request; numbers start at 1, and −1 is the newest request.

    Raises:
        InputError: the number is out of range.
    """
    places = [place for place, event in enumerate(events) if isinstance(event.payload, RequestSent)]
    count = len(places)
    if not count:
        raise InputError("Nothing has been sent yet.")
    number = count if number == -1 else number
    if not 1 <= number <= count:
        raise InputError(f"This chat has no request {number}; expected 1 to {count}.")
    logged = [event.payload for event in events if isinstance(event.payload, RequestSent)]
    sent, view = logged[number - 1], project(events[: places[number - 1]])
    reported = _reported_tokens(events[places[number - 1] :], sent.request_id)
    size = (reported or sent.estimated_tokens, reported > 0)
    if sent.purpose == "summary" and not sent.in_place:
        request, note = _for_summary(sent, read_blob)
        return SentRequest(request, sent, view, number, count, *size, note)
    if sent.in_place:
        # The unanswered question is not part of it; system prompt and tools are those of the last request.
        view = with_messages(view, view.messages[: first_pending(view.messages)])
        order, note = _for_summary(sent, read_blob)
        chat = next((one for one in reversed(logged[:number]) if one.purpose == "chat"), sent)
        request, missing = _for_chat(chat, view, logged[:number], control, read_blob)
        request = msgspec.structs.replace(
            request,
            messages=(*request.messages, *order.messages),
            model=sent.model,
            max_output_tokens=sent.max_output_tokens,
            purpose="summary",
            compact_at=0,
        )
        return SentRequest(request, sent, view, number, count, *size, note or missing)
    request, note = _for_chat(sent, view, logged[:number], control, read_blob)
    return SentRequest(request, sent, view, number, count, *size, note)


def _for_chat(
    sent: RequestSent,
    view: View,
    logged: Sequence[RequestSent],
    control: ContextControl,
    read_blob: Callable[[str], bytes],
) -> tuple[ChatRequest, str]:
    """Return a chat request, the last of those `logged`, and a note if a part of it is unknown."""
    replaced, packets = _shaped(logged)
    messages = tuple(replaced.get(message.id, message) for message in view.messages)
    messages = with_packets(messages, {message.cycle or 0: message for message in packets.values()})
    system, tools, note = control.system_message, control.specs, NOT_RECORDED
    if sent.prompt and sent.purpose == "chat":
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
    return request, note


def _reported_tokens(events: Sequence[LogEvent], request_id: str) -> int:
    """Return the prompt tokens that the provider reported for a request, or 0 if it reported none."""
    for event in events:
        report = event.payload
        if request_id and isinstance(report, UsageReported) and report.request_id == request_id:
            passes = (report.usage, *report.other_passes)
            return next((usage.prompt_tokens for usage in passes if usage.prompt_tokens), 0)
    return 0


def _for_summary(sent: RequestSent, read_blob: Callable[[str], bytes]) -> tuple[ChatRequest, str]:
    """Return a summary request, and a note if its text is unknown."""
    text, note = "", TEXT_NOT_RECORDED
    if sent.prompt:
        try:
            text, note = read_blob(sent.prompt).decode("utf-8", "surrogatepass"), ""
        except StoreError:
            note = TEXT_NOT_RECORDED
    message = Message(
        id="summary-prompt", role="user", content=text, tokens=0 if sent.in_place else sent.estimated_tokens
    )
    request = ChatRequest(
        messages=(message,),
        model=sent.model,
        max_output_tokens=sent.max_output_tokens,
        purpose="summary",
    )
    return request, note


def _shaped(requests: Sequence[RequestSent]) -> tuple[dict[str, Message], dict[str, Message]]:
    """Return the message replacements and packets in force for the last of these requests, by id."""
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
    """Return `{rows, total, exact, window, request, requests, turn, asked, note}`, with one row for each message sent.

    `turn` is the name of the request's turn; a summary request has none, and `asked` gives its purpose.
    """
    sent, messages = found.sent, found.request.messages
    if sent.purpose == "summary" and not sent.in_place:
        rows = [describe_message(messages[0], found.tokens)]
    else:
        rows = describe_rows(control, messages, found.request.tools, found.view.cycle, found.tokens)
    return {
        "rows": rows,
        "total": found.tokens,
        "exact": found.is_exact,
        "window": sent.limits.get("window", 0),
        "request": found.number,
        "requests": found.count,
        "turn": next((turn_name(m.cycle) for m in reversed(messages) if m.cycle), ""),
        "asked": (sent.asked or "summary") if sent.purpose == "summary" else "",
        "note": found.note,
    }


def show(request: ChatRequest, item: str, body: bytes, title: str) -> dict[str, Any]:
    """Return `{title, text, filetype, state}` for a message of the request or, without `item`, for the request body.

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
