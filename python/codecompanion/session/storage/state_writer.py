"""Writes one chat's snapshot and checkpoint files, in a thread: reads what is new of its log, builds, keeps keys out.

The snapshot is written first, so that it is never older than the checkpoint made with it (R-474). Nothing here
touches the running chat: it gets values and a store that any thread may read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from codecompanion.context.checkpoints.evidence import build_packet, newest_meaningful
from codecompanion.context.checkpoints.precedence import RestoredState
from codecompanion.context.checkpoints.snapshot import Tally, build_checkpoint, build_snapshot, read_tally
from codecompanion.context.checkpoints.stored_conversation import write_conversation
from codecompanion.context.checkpoints.structured_summary import parse_summary
from codecompanion.context.server_side import changes_that_inserted, live_blocks
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Checkpoint, Kind, Snapshot, StructuredSummary, SummarySource
from codecompanion.model.history import ChangeUndone, LogEvent, project
from codecompanion.model.messages import SUMMARY_TAG, Message, TextPart, ToolCall, with_changes
from codecompanion.store.checkpoints import CheckpointFiles
from codecompanion.store.store import Store

_BULKY = ("conversationHistory", "evidencePacket")


@dataclass(slots=True)
class Wanted:
    """One write: what for, and the chat as it stands. `removed` is what a compaction is about to take away."""

    kind: Kind
    trigger: str
    messages: tuple[Message, ...]
    now: float
    id: str
    removed: tuple[Message, ...] = ()
    summary: str = ""
    source_event_id: str = ""
    pending: tuple[str, ...] = ()
    last_flush: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class StateWriter:
    """The files of one chat. One call at a time; all of them block."""

    chat_id: str
    store: Store
    files: CheckpointFiles
    redact: Callable[[str], str]
    keys_known: Callable[[], int]
    opened_at: int
    """The last entry of the log when the chat was opened."""
    tally: Tally = field(default_factory=Tally)
    periodic_at: int = 0
    """So many meaningful messages there were at the last periodic checkpoint, or when the chat was opened."""
    _unknown: Mapping[str, Any] | None = None
    _periodic_hash: str = ""
    _completed_at: int = 0
    _keys_looked_for: int = 0
    _looked_through: dict[str, tuple[Message, Message]] = field(default_factory=dict)

    @property
    def has_grown(self) -> bool:
        """Return whether anything happened since the chat was opened, or completed."""
        return self.tally.last_change > max(self.opened_at, self._completed_at)

    def catch_up(self) -> None:
        """Take in what was logged since; the first time, also what was before the chat was opened.

        Raises:
            StoreError: the log cannot be read.
        """
        is_first = not self.tally.last_seq
        events = self.store.load_events(self.chat_id, self.tally.last_seq)
        if is_first:
            read_tally(self.tally, [event for event in events if event.seq <= self.opened_at])
            self.periodic_at = self.tally.meaningful
        read_tally(self.tally, events)

    def save(self, wanted: Wanted) -> int | None:
        """Write snapshot and checkpoint and return the size of the snapshot; None when there was nothing to write.

        Raises:
            StoreError: they could not be written; what was there before still is.
        """
        self.catch_up()
        now_ms = round(wanted.now * 1000)
        messages = tuple(self._redacted(message) for message in self._readable(wanted.messages))
        snapshot = build_snapshot(
            self.tally,
            messages,
            self.chat_id,
            now_ms,
            pending=wanted.pending,
            last_flush=wanted.last_flush,
        )
        if snapshot is None:
            return None
        covered = tuple(self._redacted(message) for message in wanted.removed) or newest_meaningful(messages)
        here = {message.id for message in messages}
        self._looked_through = {id: known for id, known in self._looked_through.items() if id in here}
        packet = build_packet(covered, self.chat_id, now_ms)
        if wanted.kind == "periodic":
            if packet.span_hash == self._last_periodic_hash():
                return None
            self._periodic_hash = packet.span_hash
        checkpoint = build_checkpoint(
            snapshot,
            wanted.kind,
            wanted.id,
            self._summary(wanted, messages),
            packet,
            trigger=wanted.trigger,
            source_event_id=wanted.source_event_id,
            meaningful=self.tally.meaningful,
        )
        return self._write(snapshot, checkpoint)

    def adopt(self, state: RestoredState, checkpoint_id: str, now: float) -> None:
        """Write a restored state as the newest checkpoint of the chat, in V2, with what nobody here knows (R-476).

        Raises:
            StoreError: it could not be written.
        """
        self._unknown = _without_bulk(state.raw)
        messages = tuple(self._redacted(message) for message in state.messages)
        snapshot = msgspec.structs.replace(
            state.snapshot,
            chat_id=self.chat_id,
            timestamp=state.snapshot.timestamp or round(now * 1000),
            message_count=len(messages),
            conversation_history=write_conversation(messages),
        )
        summary = parse_summary(snapshot.transcript.explicit_chat_summary_block, "snapshot")
        packet = build_packet(newest_meaningful(messages), self.chat_id, round(now * 1000))
        self._write(
            snapshot, build_checkpoint(snapshot, "snapshot", checkpoint_id, summary, packet, trigger="restored")
        )

    def _write(self, snapshot: Snapshot, checkpoint: Checkpoint) -> int:
        is_kept = checkpoint.checkpoint_kind != "snapshot"
        unknown = self._unknown_keys()
        size = self.files.save_snapshot(self.chat_id, self._clean(payloads.write(snapshot, unknown)))
        raw = self._clean(payloads.write(checkpoint, unknown))
        self.files.save_checkpoint(self.chat_id, raw, keep=is_kept)
        if is_kept:
            self.files.append_spans(self.chat_id, raw["evidencePacket"]["spans"])
        if checkpoint.checkpoint_kind == "completion":
            self._completed_at = self.tally.last_seq
        return size

    def _unknown_keys(self) -> Mapping[str, Any]:
        """Return what the file had before we wrote to it."""
        if self._unknown is None:
            self._unknown = _without_bulk(self.files.newest(self.chat_id) or {})
        return self._unknown

    def _last_periodic_hash(self) -> str:
        """Return the hash of the newest periodic checkpoint, also of one written before the chat was opened (R-470)."""
        if not self._periodic_hash:
            stored = self.files.list_checkpoints(self.chat_id)
            newest = next((one.id for one in stored if one.kind == "periodic"), None)
            if newest is not None:
                raw = self.files.payloads_of(self.chat_id, newest.partition("/")[2])[0].raw or {}
                self._periodic_hash = str(raw.get("dedupeHash") or "")
        return self._periodic_hash

    def _summary(self, wanted: Wanted, messages: tuple[Message, ...]) -> StructuredSummary:
        """Return the compact half: the summary at hand, else the one that stands in the view, else the last answer."""
        sources: dict[Kind, SummarySource] = {"pre_compaction": "compaction_summary", "completion": "completion"}
        if wanted.summary.strip():
            return parse_summary(self.redact(wanted.summary), sources.get(wanted.kind, "snapshot"))
        standing = next((message.text for message in reversed(messages) if message.tag == SUMMARY_TAG), "")
        if standing:
            return parse_summary(standing, "compaction_summary")
        return parse_summary(self.redact(self.tally.last_assistant), "fallback")

    def _readable(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the view without a provider's own compaction: what it stood for is not in it, and only in the log."""
        blocks = live_blocks(messages)
        if not blocks:
            return messages
        events = self.store.load_events(self.chat_id)
        undone = changes_that_inserted(events, frozenset(message.id for message in blocks))
        last = events[-1].seq
        return project([*events, *(LogEvent(last, 0.0, ChangeUndone(change_id=change)) for change in undone)]).messages

    def _redacted(self, message: Message) -> Message:
        """Return the message with keys hidden; looking for them costs most of a write, so it is done once each."""
        if self.keys_known() != self._keys_looked_for:
            self._looked_through, self._keys_looked_for = {}, self.keys_known()
        known = self._looked_through.get(message.id)
        if known is None or known[0] is not message:
            known = message, self._without_keys(message)
            self._looked_through[message.id] = known
        return known[1]

    def _without_keys(self, message: Message) -> Message:
        content = message.content
        if isinstance(content, str):
            content = self.redact(content)
        else:
            content = tuple(
                TextPart(self.redact(part.text), part.phase) if isinstance(part, TextPart) else part for part in content
            )
        calls = tuple(ToolCall(call.id, call.name, self.redact(call.arguments)) for call in message.tool_calls)
        return with_changes(message, content=content, tool_calls=calls, tokens=message.tokens)

    def _clean(self, raw: dict[str, Any]) -> dict[str, Any]:
        """Return the payload with keys hidden in every other text, too; messages and evidence are clean already."""
        return {key: value if key in _BULKY else _redact_all(value, self.redact) for key, value in raw.items()}


def _without_bulk(raw: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in _BULKY}


def _redact_all(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redact_all(inner, redact) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_redact_all(inner, redact) for inner in value]
    return value
