"""Builds a conversation from the events of the log (R-475): the last fallback of a restore (R-473, source 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codecompanion.formats.cutting import cut
from codecompanion.model.checkpoint import Span, UsageTotals
from codecompanion.model.history import LogEvent, MessageAdded, TitleSet, ToolRan, TurnEnded, UsageReported
from codecompanion.model.messages import Message, Source, is_typed_by_user
from codecompanion.model.provenance import UNKNOWN, made_of

ASSISTANT_CHARS, RESULT_CHARS = 500, 1000
HEADER = "This was rebuilt from the record of an earlier chat{title}. It is a record, not a request."
ACKNOWLEDGED = "I have read the record of the earlier chat and will continue from there."


def conversation_from_events(events: Sequence[LogEvent], now: float) -> tuple[Message, ...]:
    """Return the two messages of the fallback conversation, or () if the log has no content."""
    title = next((event.payload.title for event in reversed(events) if isinstance(event.payload, TitleSet)), "")
    said = [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]
    sources = made_of(said, frozenset(message.id for message in said))
    return _conversation(title, list(_event_lines(events)), now, sources)


def conversation_from_spans(spans: Sequence[Span], now: float) -> tuple[Message, ...]:
    """Return the fallback conversation built only from the stored spans, for when the database is missing (R-478)."""
    lines = []
    for span in spans:
        match span.type:
            case "user_message":
                lines.append(f"User: {_indented(span.text)}")
            case "assistant_message":
                lines.append(f"Assistant: {_indented(cut(span.text, ASSISTANT_CHARS))}")
            case "tool_result":
                lines.append(f"[Tool result: {_indented(cut(span.text, RESULT_CHARS))}]")
            case _:
                lines.append(f"System: {_indented(cut(span.text, ASSISTANT_CHARS))}")
    return _conversation("", lines, now, (UNKNOWN,))


def usage_from_events(events: Sequence[LogEvent]) -> UsageTotals:
    """Return the usage reported by the events, for payloads whose totals are zero (R-475)."""
    reports = [event.payload for event in events if isinstance(event.payload, UsageReported)]
    passes = [usage for report in reports for usage in (report.usage, *report.other_passes)]
    return UsageTotals(
        input_tokens=sum(usage.prompt_tokens for usage in passes),
        output_tokens=sum(usage.output_tokens for usage in passes),
        cost=sum(report.cost_usd or 0.0 for report in reports),
    )


def _conversation(title: str, lines: Sequence[str], now: float, sources: tuple[Source, ...]) -> tuple[Message, ...]:
    if not lines:
        return ()
    header = HEADER.format(title=f" ({title})" if title else "")
    text = "\n".join([header, "", *lines])
    told = Message(id="restored-events", role="user", content=text, cycle=1, ts=now, sources=sources)
    return told, Message(id="restored-reply", role="assistant", content=ACKNOWLEDGED, cycle=1, ts=now)


def _event_lines(events: Sequence[LogEvent]) -> Iterator[str]:
    names = {
        call.id: call.name
        for event in events
        if isinstance(event.payload, MessageAdded)
        for call in event.payload.message.tool_calls
    }
    for event in events:
        match event.payload:
            case MessageAdded(message=message):
                yield from _message_lines(message, names)
            case TurnEnded(error=error) if error:
                yield f"[Error: {_indented(error)}]"
            case ToolRan(status="error", title=tool):
                yield f"[Error: {_indented(tool)} failed]"
            case _:
                continue


def _message_lines(message: Message, names: dict[str, str]) -> Iterator[str]:
    text = message.text.strip()
    if message.role == "assistant":
        if text:
            yield f"Assistant: {_indented(cut(text, ASSISTANT_CHARS))}"
        yield from (f"[Used tool: {call.name}]" for call in message.tool_calls)
    elif message.role == "tool":
        name = names.get(message.tool_call_id or "", "tool")
        yield f"[Tool result from {name}: {_indented(cut(text, RESULT_CHARS))}]"
    elif text:
        role = "User" if is_typed_by_user(message) else "System"
        yield f"{role}: {_indented(text if role == 'User' else cut(text, ASSISTANT_CHARS))}"


def _indented(text: str) -> str:
    """Return the text with indented continuation lines, so that no line can pass for another speaker's."""
    return text.replace("\n", "\n  ")
