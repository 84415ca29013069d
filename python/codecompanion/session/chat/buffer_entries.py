"""Turns a log into the buffer's entries, in order: one per message, card and mark.

The same log always yields the same entries.

This is a projection of the log alone. Messages that left the view are shown too, with a mark
(`session.history.messages_out_of_view`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from codecompanion.context.change import why_edited
from codecompanion.context.policy.policy import Card
from codecompanion.formats.cutting import cut_for_preview
from codecompanion.model import history
from codecompanion.model.messages import (
    GATHERED_TAG,
    GO_ON_TAG,
    SUMMARY_TAG,
    UPDATE_TAG,
    Message,
    ReasoningPart,
    is_typed_by_user,
)
from codecompanion.placeholders import kept_percent
from codecompanion.session.attachments.attached import CHANGE_TAGS
from codecompanion.session.codebase.shown_code import body_of_gathered, size_of_gathered, title_of_gathered
from codecompanion.session.history.messages_out_of_view import pages, removed_kinds, summary_ids
from codecompanion.session.history.recorded_title import recorded_title
from codecompanion.session.history.undo import undone_ids
from codecompanion.session.message_context.resolve_mentions import body_of_mentioned
from codecompanion.session.tool_calls.tool_round import UNANSWERED, change_event
from codecompanion.session.window.too_large import NOT_SENT
from codecompanion.summary_frame import bare_summary
from codecompanion.wire.events import Entry, FileChange, Severity

FIRST_PIECE, PIECE = 60, 100
_DRAWN = frozenset((
    history.MessageAdded, history.PolicyEvent, history.ChatCreated, history.ModelSet, history.ViewChanged,
    history.ChatForked, history.TurnEnded,
))  # fmt: skip
"""The event types that `_Drawing` handles; about half of a log's events are of other types."""
ASKED_TO_GO_ON = "Asked the model to continue its reply."
"""Shown in place of the message that asks the model to continue its reply."""
_OLD_MARK = " · not saved"
"""The end of an unsaved change's summary in older logs, which is now drawn from the change's state."""
_ASKED = ("user", "updated", "gathered", "mentioned")
CLOSED = "Neovim or its Python process was closed."
"""Shown at the end of an interrupted turn if a call was waiting for approval, as the call's line says."""
INTERRUPTED = "Interrupted: Neovim or its Python process closed before the reply was complete."


class Before(msgspec.Struct, frozen=True):
    """The state before the first of the given events: the number of messages the user has typed, and the model."""

    typed: int = 0
    adapter: str = ""
    model: str = ""


def entries(events: Sequence[history.LogEvent], before: Before = Before()) -> list[Entry]:  # noqa: B008 - frozen
    """Return the entries of a log, in order; attachments are shown in the context block instead.

    If `events` lacks the beginning of the log, `before` is the state at that point (`newest_entries`).
    """
    undone = undone_ids(events)
    drawing = _Drawing(events, frozenset(undone), removed_kinds(events, undone), before)
    page, unseen = pages(events, undone)
    for place, event in enumerate(events):
        drawing.take(event.payload, is_old=place <= page, is_page=place == page, unseen=unseen)
    return _with_state(events, drawing.shown)


def _with_state(events: Sequence[history.LogEvent], shown: list[Entry]) -> list[Entry]:
    """Return the entries with the reverted and the unsaved file changes marked."""
    from codecompanion.session.files.change_list import changes_of  # not needed at startup

    changes = {change.id: change for change in changes_of(events) if change.reverted or change.is_unsaved}
    if not changes:
        return shown

    def now(shown: FileChange) -> FileChange:
        change = changes.get(shown.change_id)
        if change is None:
            return shown
        return msgspec.structs.replace(shown, reverted=change.reverted, unsaved=change.is_unsaved)

    replace = msgspec.structs.replace
    return [
        replace(entry, change=entry.change and now(entry.change), changes=tuple(map(now, entry.changes)))
        if entry.change is not None or entry.changes
        else entry
        for entry in shown
    ]


class _Drawing:
    """Builds the entries of a log one after another, and keeps the state needed to draw the next entry."""

    def __init__(
        self, events: Sequence[history.LogEvent], undone: frozenset[str], gone: dict[str, str], before: Before
    ) -> None:
        self.shown: list[Entry] = []
        self._undone, self._gone = undone, gone
        self._cleared, self._pinned = _marked(events, undone)
        self._ran = {
            event.payload.message_id: event.payload for event in events if isinstance(event.payload, history.ToolRan)
        }
        self._calls: dict[str, tuple[str, str, str]] = {}
        self._code: list[Entry] = []
        """The context of the next question, which is shown below the question but sent before it."""
        self._below: list[Entry] = []
        """Sentences shown below the next message (R-213)."""
        self._said: tuple[Entry, ...] = ()
        """The sentences below the newest message."""
        self._changes: list[FileChange] = []
        """File changes by the tools of this turn."""
        self._adapter, self._model = before.adapter, before.model
        self._typed = before.typed
        self._turn: str | None = ""
        """The turn whose replies were drawn last, or None if the next reply starts with its own header."""

    def take(self, payload: history.EventPayload, *, is_old: bool, is_page: bool, unseen: frozenset[str]) -> None:
        """Process one event.

        `is_old`: the event is not newer than the last `/clear`; `is_page`: the event is that `/clear`; old `unseen`
        messages are skipped.
        """
        if type(payload) not in _DRAWN:
            return
        if isinstance(payload, history.TurnEnded):
            self._end_changes()
        match payload:
            case history.MessageAdded(message=message):
                self._typed += is_typed_by_user(message)
                for call in message.tool_calls:
                    self._calls[call.id] = (call.name, recorded_title(call), message.id)
                if message.role == "assistant":
                    self._forget_failures()
                if not (is_old and message.id in unseen):
                    self.shown += self._message_entries(message)
                elif is_typed_by_user(message):
                    self._code, self._below = [], []
            case history.PolicyEvent(name="code_gathered", fields=fields):
                self._code = [
                    msgspec.structs.replace(entry, duration_ms=int(fields.get("duration_ms", 0)))
                    if entry.kind == "gathered"
                    else entry
                    for entry in self._code
                ]
            case history.PolicyEvent(name="told_below_message", fields=fields):
                self._below.append(Entry(kind="note", text=str(fields.get("text", ""))))
            case history.ChatCreated(adapter=adapter, model=model) | history.ModelSet(adapter=adapter, model=model):
                self._adapter, self._model, self._turn = adapter, model, None
            case history.ViewChanged(kind="cleared") as change if is_old and is_page:
                self.shown.append(Entry(kind="cleared", change_id=change.change_id))
            case history.ViewChanged() as change if not is_old:
                self._add_change(change)
            case history.ChatForked(from_title=title) if not is_old:
                note = f"Forked from “{title or 'New chat'}” · /fork list: all branches"
                self.shown.append(Entry(kind="note", text=note))
            case history.PolicyEvent(name="session_restored", fields=fields) if not is_old:
                self.shown.append(Entry(kind="note", text=str(fields.get("note", ""))))
            case history.TurnEnded(reason="failed" | "limit", error=error) if error and not is_old:
                is_failure = payload.reason == "failed" or error.startswith(NOT_SENT)
                level = Severity.ERROR if is_failure else Severity.WARN
                self.shown.append(Entry(kind="note", text=error, level=level, ended=payload.reason))
            case history.TurnEnded(reason="stopped") if not is_old:
                self.shown.append(Entry(kind="note", text="Stopped.", ended="stopped"))
            case history.TurnEnded(reason="interrupted") if not is_old:
                told = CLOSED if self._waited() else INTERRUPTED
                self.shown.append(Entry(kind="note", text=told, level=Severity.WARN, ended="interrupted"))
            case _:
                pass

    def _waited(self) -> bool:
        """Return whether a tool call of the newest turn was still waiting for approval when the turn ended."""
        turn = takewhile(lambda entry: entry.kind != "user", reversed(self.shown))
        return any(entry.kind == "tool" and entry.summary == UNANSWERED for entry in turn)

    def _forget_failures(self) -> None:
        """Remove the notes about failed attempts at a question that now has an answer."""
        at = len(self.shown)
        while at and self.shown[at - 1].kind == "note":
            at -= 1
        self.shown[at:] = [note for note in self.shown[at:] if not note.ended and not note.text.startswith(NOT_SENT)]

    def _end_changes(self) -> None:
        """Add a list of the changed files at the end of a turn, if more than one file was changed."""
        if len({change.path for change in self._changes}) > 1:
            self.shown.append(Entry(kind="changed", changes=tuple(self._changes)))
        self._changes = []

    def _add_change(self, change: history.ViewChanged) -> None:
        at = len(self.shown)
        before = change.report.before
        if change.kind == "compacted" and before is not None:
            first = (place for place, entry in enumerate(self.shown) if before and entry.message_id == before)
            at = next(first, at)
        while change.kind == "compacted" and before is None and at and self._is_asked(self.shown[at - 1]):
            at -= 1  # unanswered messages survive a compaction, so they stay below its card
        gone = next((self._gone[i] for i in summary_ids(change) if i in self._gone), "")
        self.shown[at:at] = _change_entries(change, change.change_id in self._undone, gone)

    def _is_asked(self, entry: Entry) -> bool:
        return entry.kind in _ASKED or any(entry is said for said in self._said)

    def _message_entries(self, message: Message) -> Iterator[Entry]:
        common: dict[str, Any] = {
            "message_id": message.id,
            "cleared": message.id in self._cleared,
            "kept_percent": self._cleared.get(message.id, ()),
            "pinned": message.id in self._pinned,
            "gone": self._gone.get(message.id, ""),
        }
        adapter, model = self._adapter, self._model
        if is_typed_by_user(message):
            yield Entry(kind="user", text=message.text, tokens=message.tokens, number=self._typed, **common)
            yield from self._code
            yield from self._below
            self._said = tuple(self._below)
            self._code, self._below = [], []
        elif message.tag == GATHERED_TAG:
            title, body = title_of_gathered(message), body_of_gathered(message)
            size = size_of_gathered(message, message.tokens)
            self._code.append(Entry(kind="gathered", title=title, text=body, tokens=size, **common))
        elif message.tag == UPDATE_TAG:
            # not needed at startup
            from codecompanion.session.attachments.update_text import body_of_update, title_of_update

            title, body = title_of_update(message), body_of_update(message)
            self._code.append(Entry(kind="updated", title=title, text=body, tokens=message.tokens, **common))
        elif message.mentioned is not None:
            title, body = message.mentioned.title, body_of_mentioned(message)
            self._code.append(Entry(kind="mentioned", title=title, text=body, tokens=message.tokens, **common))
        elif message.tag == GO_ON_TAG:
            yield Entry(kind="note", text=ASKED_TO_GO_ON)
        elif message.tag in CHANGE_TAGS:
            from codecompanion.session.files.revert_note import sentence_for_user  # not needed at startup

            if sentence := sentence_for_user(message):
                yield Entry(kind="note", text=sentence)
        elif message.tag == SUMMARY_TAG:
            # A chat restored from a checkpoint begins with a summary; other summaries are drawn with their change.
            text = bare_summary(message.text)
            from codecompanion.session.history.card_sections import card_sections  # not needed at startup

            yield Entry(kind="compacted", text=text, sections=card_sections(text), summary_ids=(message.id,), **common)
        elif message.role == "assistant":
            common |= {"adapter": adapter, "model": model}
            reasoning = "" if isinstance(message.content, str) else _reasoning(message)
            if reasoning:
                yield Entry(kind="reasoning", text=reasoning, opens=self._opens(message), **common)
            text = message.text
            if text.strip() or not message.tool_calls:
                yield Entry(kind="reply", text=text, cut=message.cut, opens=self._opens(message), **common)
        elif message.role == "tool":
            yield self._tool_entry(message, common)

    def _opens(self, message: Message) -> bool:
        """Return whether this message begins the model's part of a turn; later entries continue it."""
        opens, self._turn = message.turn_id != self._turn, message.turn_id
        return opens

    def _tool_entry(self, message: Message, common: dict[str, Any]) -> Entry:
        call_id = message.tool_call_id or ""
        record = self._ran.get(message.id)
        name, title, reply_id = self._calls.get(call_id, ("tool", "tool", ""))
        change = change_event(record.change) if record else None
        if change is not None:
            self._changes.append(change)
        return Entry(
            kind="tool",
            text=record.change.diff if record and record.change else cut_for_preview(message.text),
            call_id=call_id,
            name=record.name if record else name,
            title=record.title if record else title,
            summary=record.summary.removesuffix(_OLD_MARK) if record else ("interrupted" if message.is_error else ""),
            status=record.status if record else ("cancelled" if message.is_error else "ok"),
            adapter=self._adapter,
            model=self._model,
            tokens=message.tokens,
            duration_ms=record.duration_ms if record else 0,
            change=change,
            reply_id=reply_id,
            opens=self._opens(message),
            **common,
        )


def _marked(events: Sequence[history.LogEvent], undone: frozenset[str]) -> tuple[dict[str, tuple[int, ...]], set[str]]:
    """Return the cleared or cut messages by id, and the ids of the pinned messages, as of the end of the events.

    The value of a cut message is the percentage of it that is sent.
    """
    cleared: dict[str, tuple[int, ...]] = {}
    pinned: set[str] = set()
    for event in events:
        if not isinstance(event.payload, history.ViewChanged) or event.payload.change_id in undone:
            continue
        for message in (*event.payload.replaced, *(insertion.message for insertion in event.payload.inserted)):
            if message.edited or message.compacted or message.left_out:
                cleared[message.id] = (kept_percent(message),) if message.left_out else ()
            else:
                cleared.pop(message.id, None)
            (pinned.add if message.pinned else pinned.discard)(message.id)
    return cleared, pinned


def _reasoning(message: Message) -> str:
    return "".join(part.text for part in message.content if isinstance(part, ReasoningPart))


def _change_entries(change: history.ViewChanged, undone: bool, gone: str) -> Iterator[Entry]:
    report = change.report
    if change.kind == "edited":
        yield Entry(
            kind="edited",
            text=why_edited(change),
            messages=report.cleared or 0,
            code=report.code,
            kept_percent=report.cut,
            tokens_before=change.tokens_before,
            tokens_after=change.tokens_after,
            change_id=change.change_id,
            undone=undone,
        )
    elif change.kind == "compacted":
        from codecompanion.session.history.card_sections import card_sections  # not needed at startup

        yield Entry(
            kind="compacted",
            text=report.summary,
            sections=card_sections(report.summary),
            messages=report.messages or 0,
            cycles=report.cycles,
            trigger=report.trigger,
            summariser=report.summariser,
            tokens_before=change.tokens_before,
            tokens_after=change.tokens_after,
            duration_ms=report.duration_ms,
            title=report.title or Card().title,
            folded=report.folded,
            tier=report.tier,
            counts=report.counts,
            change_id=change.change_id,
            undone=undone,
            gone=gone,
            summary_ids=summary_ids(change),
        )


def pieces(shown: Sequence[Entry]) -> Iterator[tuple[tuple[Entry, ...], bool, bool]]:
    """Yield blocks of entries as (entries, is first, is last), from the newest to the oldest.

    The first block fills a screen.
    """
    end, first = len(shown), True
    while True:
        start = max(0, end - (FIRST_PIECE if first else PIECE))
        yield tuple(shown[start:end]), first, start == 0
        if start == 0:
            return
        end, first = start, False
