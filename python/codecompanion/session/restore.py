"""Bring a stored chat back: repair what a crash left open, and tell the editor what to draw (lessons 35, 36, 49).

`repairs` gives the events that must be appended before anything else happens; `entries` projects the log to the
buffer. Both are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from codecompanion.context.policy_schema import Card
from codecompanion.events import Entry
from codecompanion.history import ChatCreated as Created
from codecompanion.history import (
    ChatForked,
    CompactionBegan,
    CompactionEnded,
    EventPayload,
    FileChangeBegan,
    FileChangeEnded,
    LogEvent,
    MessageAdded,
    ModelSet,
    PolicyEvent,
    PolicySet,
    ToolRan,
    TurnBegan,
    TurnEnded,
    View,
    ViewChanged,
    append,
    open_tool_calls,
)
from codecompanion.messages import SUMMARY_TAG, Message, ReasoningPart, is_typed_by_user
from codecompanion.placeholders import INTERRUPTED
from codecompanion.session.change_list import changes_of
from codecompanion.session.tool_round import preview, recorded_title, told_change
from codecompanion.session.undo import undone_ids
from codecompanion.summary_frame import bare_summary

FIRST_PIECE, PIECE = 60, 400


def repairs(
    events: Sequence[LogEvent], view: View, partial: str, new_id: Callable[[], str], now: float
) -> list[EventPayload]:
    """Return what an interrupted host could not write any more.

    A reply that was arriving is kept and marked as cut, open calls get an "interrupted" result, a compaction and a
    turn without an end get one. A log that ended well needs nothing.
    """
    found: list[EventPayload] = []
    turn = _open_turn(events)
    if partial.strip() and turn is not None:
        message = Message(
            id=new_id(), role="assistant", content=partial, cycle=turn.cycle, turn_id=turn.turn_id, cut=True, ts=now
        )
        if not view.open_calls:
            found.append(MessageAdded(message=message))
            view = append(view, message)
    for call in open_tool_calls(view):
        newest = next(message for message in reversed(view.messages) if message.tool_calls)
        result = Message(
            id=new_id(), role="tool", content=INTERRUPTED, tool_call_id=call.id, is_error=True,
            cycle=newest.cycle, turn_id=newest.turn_id, ts=now,
        )  # fmt: skip
        found.append(MessageAdded(message=result))
    ended = {e.payload.compaction_id for e in events if isinstance(e.payload, CompactionEnded)}
    ended |= {e.payload.change_id for e in events if isinstance(e.payload, ViewChanged)}
    for event in events:
        began = event.payload
        if isinstance(began, CompactionBegan) and began.compaction_id not in ended:
            found.append(CompactionEnded(compaction_id=began.compaction_id, reason="interrupted"))
            if began.failed_event:
                fields = {"reason": "interrupted", "estimated_request_tokens": began.tokens_before}
                named = PolicyEvent(name=began.failed_event, fields=fields, compaction_id=began.compaction_id)
                found.append(named)
    closed = {e.payload.change_id for e in events if isinstance(e.payload, FileChangeEnded)}
    for event in events:
        if isinstance(event.payload, FileChangeBegan) and event.payload.change_id not in closed:
            found.append(FileChangeEnded(change_id=event.payload.change_id, state="interrupted"))
    if turn is not None:
        found.append(TurnEnded(turn_id=turn.turn_id, reason="interrupted"))
    return found


def _open_turn(events: Sequence[LogEvent]) -> TurnBegan | None:
    """Return the turn that began last and never ended."""
    for event in reversed(events):
        if isinstance(event.payload, TurnEnded):
            return None
        if isinstance(event.payload, TurnBegan):
            return event.payload
    return None


def model_of(events: Sequence[LogEvent]) -> tuple[str, str]:
    """Return the adapter and model the chat used last."""
    for event in reversed(events):
        if isinstance(event.payload, ModelSet | Created):
            return event.payload.adapter, event.payload.model
    return "", ""


def policy_of(events: Sequence[LogEvent]) -> str:
    """Return the policy the chat chose last, "" when it follows the configuration."""
    return next((event.payload.policy for event in reversed(events) if isinstance(event.payload, PolicySet)), "")


def entries(events: Sequence[LogEvent]) -> list[Entry]:
    """Return what the buffer shows of a log, in order; attachments are in the context block instead."""
    undone = frozenset(undone_ids(events))
    cleared, pinned = _marked(events, undone)
    ran = {event.payload.message_id: event.payload for event in events if isinstance(event.payload, ToolRan)}
    names: dict[str, tuple[str, str]] = {}
    adapter, model = "", ""
    shown: list[Entry] = []
    for event in events:
        match event.payload:
            case Created(adapter=adapter, model=model) | ModelSet(adapter=adapter, model=model):
                pass
            case MessageAdded(message=message):
                for call in message.tool_calls:
                    names[call.id] = (call.name, recorded_title(call))
                for entry in _message_entries(message, adapter, model, ran, names):
                    marked = msgspec.structs.replace(entry, cleared=message.id in cleared, pinned=message.id in pinned)
                    shown.append(marked)
            case ViewChanged(kind="cleared", change_id=change_id):
                if change_id not in undone:
                    shown = [Entry(kind="cleared", change_id=change_id)]
            case ViewChanged(kind="regenerated"):
                shown.append(Entry(kind="again"))
            case ViewChanged() as change:
                at = len(shown)
                while change.kind == "compacted" and at > 0 and shown[at - 1].kind == "user":
                    at -= 1  # what was not answered yet has survived it: it stands below, as it was drawn
                shown[at:at] = _change_entries(change, change.change_id in undone)
            case ChatForked(from_title=title):
                shown.append(Entry(kind="note", text=f"Forked from “{title or 'untitled'}” · /fork list: all branches"))
            case PolicyEvent(name="session_restored", fields=fields):
                shown.append(Entry(kind="note", text=str(fields.get("note", ""))))
            case _:
                pass
    return _with_reverted(events, shown)


def _with_reverted(events: Sequence[LogEvent], shown: list[Entry]) -> list[Entry]:
    """Return the entries, those marked whose changes of files do not count now."""
    reverted = {change.id for change in changes_of(events) if change.reverted}
    return [
        msgspec.structs.replace(entry, change=msgspec.structs.replace(entry.change, reverted=True))
        if entry.change is not None and entry.change.change_id in reverted
        else entry
        for entry in shown
    ]


def _marked(events: Sequence[LogEvent], undone: frozenset[str]) -> tuple[set[str], set[str]]:
    """Return the ids of messages that are cleared, and of those that are pinned, as the changes left them."""
    cleared: set[str] = set()
    pinned: set[str] = set()
    for event in events:
        if not isinstance(event.payload, ViewChanged) or event.payload.change_id in undone:
            continue
        for message in (*event.payload.replaced, *(insertion.message for insertion in event.payload.inserted)):
            (cleared.add if message.role == "tool" and message.edited else cleared.discard)(message.id)
            (pinned.add if message.pinned else pinned.discard)(message.id)
    return cleared, pinned


def _message_entries(
    message: Message, adapter: str, model: str, ran: dict[str, ToolRan], names: dict[str, tuple[str, str]]
) -> Iterator[Entry]:
    if is_typed_by_user(message):
        yield Entry(kind="user", text=message.text, message_id=message.id, tokens=message.tokens)
    elif message.tag == SUMMARY_TAG:
        # A chat restored from a checkpoint begins with it; elsewhere summaries come with the change that made them.
        yield Entry(kind="compacted", text=bare_summary(message.text), message_id=message.id)
    elif message.role == "assistant":
        reasoning = "" if isinstance(message.content, str) else _reasoning(message)
        if reasoning:
            yield Entry(kind="reasoning", text=reasoning, message_id=message.id, adapter=adapter, model=model)
        yield Entry(
            kind="reply", text=message.text, message_id=message.id, adapter=adapter, model=model, cut=message.cut
        )
    elif message.role == "tool":
        call_id = message.tool_call_id or ""
        record = ran.get(message.id)
        name, title = names.get(call_id, ("tool", "tool"))
        yield Entry(
            kind="tool",
            text=record.change.diff if record and record.change else preview(message.text),
            message_id=message.id,
            call_id=call_id,
            name=record.name if record else name,
            title=record.title if record else title,
            summary=record.summary if record else ("interrupted" if message.is_error else ""),
            status=record.status if record else ("cancelled" if message.is_error else "ok"),
            tokens=message.tokens,
            duration_ms=record.duration_ms if record else 0,
            change=told_change(record.change) if record else None,
        )


def _reasoning(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, ReasoningPart))


def _change_entries(change: ViewChanged, undone: bool) -> Iterator[Entry]:
    report = change.report
    if change.kind == "edited":
        yield Entry(
            kind="edited",
            messages=report.get("cleared", 0),
            tokens_before=change.tokens_before,
            tokens_after=change.tokens_after,
            change_id=change.change_id,
            undone=undone,
        )
    elif change.kind == "compacted":
        cycles = report.get("cycles", [0, 0])
        yield Entry(
            kind="compacted",
            text=report.get("summary", ""),
            messages=report.get("messages", 0),
            cycles=(cycles[0], cycles[1]),
            trigger=report.get("trigger", ""),
            summariser=report.get("summariser", ""),
            tokens_before=change.tokens_before,
            tokens_after=change.tokens_after,
            duration_ms=report.get("duration_ms", 0),
            title=report.get("title", Card().title),
            folded=report.get("folded", False),
            tier=report.get("tier", 0),
            counts=tuple(report.get("counts", (0, 0))),
            change_id=change.change_id,
            undone=undone,
        )


def pieces(shown: Sequence[Entry]) -> Iterator[tuple[tuple[Entry, ...], bool, bool]]:
    """Return (entries, first, last) from the newest to the oldest piece; the first one fills a screen."""
    end, first = len(shown), True
    while True:
        start = max(0, end - (FIRST_PIECE if first else PIECE))
        yield tuple(shown[start:end]), first, start == 0
        if start == 0:
            return
        end, first = start, False
