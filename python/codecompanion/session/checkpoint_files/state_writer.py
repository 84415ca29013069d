"""Writes a chat's snapshot and checkpoint files in a thread: reads new events, builds files, hides keys.

The snapshot is written first, so that it is never older than its checkpoint (R-474). The cost of a write does not grow
with the chat: the conversation is stored in increments (`conversation_file`), and larger writes (the first one, or one
after an edit in the middle) yield to other threads. The writer never touches the running chat: it receives values and a
store that any thread may read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec

from codecompanion.context.checkpoints.evidence_packet import build_packet, newest_meaningful
from codecompanion.context.checkpoints.snapshot import Tally, build_checkpoint, build_snapshot, read_tally
from codecompanion.context.server_side import changes_that_inserted, live_blocks
from codecompanion.context.work import Messages
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import (
    Checkpoint,
    EvidencePacket,
    FilesState,
    Kind,
    Snapshot,
    StructuredSummary,
    SummarySource,
)
from codecompanion.model.fold import grown_from
from codecompanion.model.history import ChangeUndone, LogEvent
from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.model.view import project
from codecompanion.session.checkpoint_files.conversation_file import ConversationFile
from codecompanion.session.checkpoint_files.throttle import Throttle
from codecompanion.store.files.checkpoints import REACHED, CheckpointFiles
from codecompanion.store.files.conversations import KEY, Place
from codecompanion.store.store import Store

if TYPE_CHECKING:
    from codecompanion.context.checkpoints.precedence import RestoredState

_BULKY = ("conversationHistory", "evidencePacket", KEY)
_BATCH = 250
"""Number of log entries read per batch."""


class Wanted(msgspec.Struct):
    """A requested write: its purpose, and the current state of the chat.

    `removed`: the messages that a compaction will remove.
    """

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


class StateWriter(msgspec.Struct):
    """Writes the files of one chat. Only one call may run at a time; all calls block."""

    chat_id: str
    store: Store
    files: CheckpointFiles
    redact: Callable[[str], str]
    keys_known: Callable[[], int]
    opened_at: int
    """The number of the last log entry when the chat was opened."""
    tally: Tally = msgspec.field(default_factory=Tally)
    periodic_at: int = 0
    """The number of meaningful messages at the last periodic checkpoint, or when the chat was opened."""
    is_awaited: bool = False
    """Whether a caller is waiting for the current write; otherwise it runs slowly."""
    _unknown: Mapping[str, Any] | None = None
    _periodic_hash: str = ""
    _completed_at: int = 0
    _view: Messages = ()
    """The view that was processed last."""
    _readable: Messages = ()
    """The same view without a provider's own compaction."""
    _standing: Message | None = None
    """The summary message in that view."""
    _packet: tuple[Messages, EvidencePacket] | None = None
    """The evidence of the next checkpoint, and the messages it covers."""
    _conversation: ConversationFile = cast("ConversationFile", None)  # set in `__post_init__`

    def __post_init__(self) -> None:
        self._conversation = ConversationFile(self.chat_id, self.files, self.redact, self.keys_known)

    @property
    def has_grown(self) -> bool:
        """Return whether the log has grown since the chat was opened or its completion checkpoint was written."""
        return self.tally.last_change > max(self.opened_at, self._completed_at)

    def catch_up(self) -> None:
        """Read new log events; the first call also reads those from before the chat was opened.

        Raises:
            StoreError: the log cannot be read.
        """
        throttle, newest = self._throttle(), self.store.last_seq(self.chat_id)
        for since in range(self.tally.last_seq, newest, _BATCH):
            events = self.store.load_events(self.chat_id, since, since + _BATCH)
            old = [event for event in events if event.seq <= self.opened_at]
            if old:
                read_tally(self.tally, old)
                self.periodic_at = self.tally.meaningful
            read_tally(self.tally, events)
            throttle()

    def prepare(self, messages: Messages, removed: Messages) -> None:
        """Do most of the work of a checkpoint before a removal: store the conversation and collect the evidence.

        Raises:
            StoreError: the conversation could not be stored; everything stored before still exists.
        """
        self.catch_up()
        self._look_at(messages)
        if self._readable:
            self._store(self._readable)
            self._packet = None  # frees the old packet before the new one is built
            covered = tuple(map(self._conversation.redacted, removed))
            self._packet = covered, build_packet(covered, self.chat_id, 0, pause=self._throttle())

    def forget_prepared(self) -> None:
        """Drop the evidence for a removal that does not happen; the stored conversation stays."""
        self._packet = None

    def _take_packet(self, covered: Messages, now_ms: int) -> EvidencePacket:
        """Return the evidence packet for these messages, using the prepared packet if it matches."""
        prepared, self._packet = self._packet, None
        if prepared is not None and prepared[0] == covered:
            return msgspec.structs.replace(prepared[1], generated_at=now_ms)
        return build_packet(covered, self.chat_id, now_ms, pause=self._throttle())

    def save(self, wanted: Wanted) -> int | None:
        """Write the snapshot and the checkpoint; return the total size in bytes, or None if there was nothing to write.

        Raises:
            StoreError: the files could not be written; everything stored before still exists.
        """
        self.catch_up()
        now_ms = round(wanted.now * 1000)
        self._look_at(wanted.messages)
        messages, redacted = self._readable, self._conversation.redacted
        standing = redacted(self._standing) if self._standing is not None else None
        snapshot = build_snapshot(
            self.tally,
            len(messages),
            standing,
            self.chat_id,
            now_ms,
            pending=wanted.pending,
            last_flush=wanted.last_flush,
        )
        if snapshot is None:
            return None
        place = self._store(messages)
        covered = tuple(map(redacted, wanted.removed or newest_meaningful(messages)))
        packet = self._take_packet(covered, now_ms)
        if wanted.kind == "periodic":
            if packet.span_hash == self._last_periodic_hash():
                return None
            self._periodic_hash = packet.span_hash
        checkpoint = build_checkpoint(
            snapshot,
            wanted.kind,
            wanted.id,
            self._summary(wanted, standing),
            packet,
            trigger=wanted.trigger,
            source_event_id=wanted.source_event_id,
            meaningful=self.tally.meaningful,
        )
        return self._write(snapshot, checkpoint, place)

    def adopt(self, state: RestoredState, checkpoint_id: str, now: float) -> None:
        """Write a restored state as the newest checkpoint of the chat, in V2, including unknown fields (R-476).

        Raises:
            StoreError: the checkpoint could not be written.
        """
        self._unknown = _without_bulk(state.raw)
        self.tally.last_seq = max(self.tally.last_seq, self.store.last_seq(self.chat_id))
        self.tally.files = dict(state.snapshot.files.read)
        snapshot = msgspec.structs.replace(
            state.snapshot,
            chat_id=self.chat_id,
            timestamp=state.snapshot.timestamp or round(now * 1000),
            message_count=len(state.messages),
            conversation_history=(),
            files=FilesState(),
        )
        from codecompanion.context.checkpoints.structured_summary import parse_summary  # not needed at startup

        summary = parse_summary(snapshot.transcript.explicit_chat_summary_block, "snapshot")
        place = self._store(state.messages)
        covered = tuple(map(self._conversation.redacted, newest_meaningful(state.messages)))
        packet = build_packet(covered, self.chat_id, round(now * 1000))
        checkpoint = build_checkpoint(snapshot, "snapshot", checkpoint_id, summary, packet, trigger="restored")
        self._write(snapshot, checkpoint, place)

    def _store(self, messages: Messages) -> Place:
        """Store new messages and newly read files; return their place in the conversation file."""
        fresh, self.tally.fresh_files = self.tally.fresh_files, {}
        try:
            return self._conversation.write(messages, self.tally.files, fresh, self._throttle())
        except BaseException:
            self.tally.fresh_files = {**fresh, **self.tally.fresh_files}
            raise

    def _throttle(self) -> Throttle:
        return Throttle(lambda: self.is_awaited)

    def _write(self, snapshot: Snapshot, checkpoint: Checkpoint, place: Place) -> int:
        is_kept = checkpoint.checkpoint_kind != "snapshot"
        unknown = self._unknown_keys()
        size = self.files.save_snapshot(self.chat_id, self._clean(payloads.write(snapshot, unknown), place))
        raw = self._clean(payloads.write(checkpoint, unknown), place)
        self.files.save_checkpoint(self.chat_id, raw, keep=is_kept)
        if is_kept:
            self.files.append_spans(self.chat_id, raw["evidencePacket"]["spans"])
        if checkpoint.checkpoint_kind == "completion":
            self._completed_at = self.tally.last_seq
        return size + self._conversation.size

    def _unknown_keys(self) -> Mapping[str, Any]:
        """Return the fields, other than the large ones, that were in the chat's newest file before our first write."""
        if self._unknown is None:
            self._unknown = _without_bulk(self.files.newest(self.chat_id) or {})
        return self._unknown

    def _last_periodic_hash(self) -> str:
        """Return the hash of the newest periodic checkpoint, even one written before the chat was opened (R-470)."""
        if not self._periodic_hash:
            stored = self.files.list_checkpoints(self.chat_id)
            newest = next((one.id for one in stored if one.kind == "periodic"), None)
            if newest is not None:
                raw = self.files.payloads_of(self.chat_id, newest.partition("/")[2])[0].raw or {}
                self._periodic_hash = str(raw.get("dedupeHash") or "")
        return self._periodic_hash

    def _summary(self, wanted: Wanted, standing: Message | None) -> StructuredSummary:
        """Return the checkpoint's summary: the given one, else the one in the view, else one from the last answer."""
        sources: dict[Kind, SummarySource] = {"pre_compaction": "compaction_summary", "completion": "completion"}
        from codecompanion.context.checkpoints.structured_summary import parse_summary  # not needed at startup

        if wanted.summary.strip():
            return parse_summary(self.redact(wanted.summary), sources.get(wanted.kind, "snapshot"))
        if standing is not None and standing.text:
            return parse_summary(standing.text, "compaction_summary")
        return parse_summary(self.redact(self.tally.last_assistant), "fallback")

    def _look_at(self, messages: Messages) -> None:
        """Process the view; if messages were only appended, process only these."""
        grown = grown_from(self._view, messages)
        new = messages[grown:]
        if live_blocks(new) or not grown:
            new = self._readable = self._without_blocks(messages)
        else:
            self._readable += new
        standing = next((message for message in reversed(new) if message.tag == SUMMARY_TAG), None)
        self._standing = standing or (self._standing if grown else None)
        self._view = messages

    def _without_blocks(self, messages: Messages) -> Messages:
        """Return the view without the provider's own compactions.

        The messages that these replaced are only in the log.
        """
        blocks = live_blocks(messages)
        if not blocks:
            return messages
        events = self.store.load_events(self.chat_id)
        undone = changes_that_inserted(events, frozenset(message.id for message in blocks))
        last = events[-1].seq
        return project([*events, *(LogEvent(last, 0.0, ChangeUndone(change_id=change)) for change in undone)]).messages

    def _clean(self, raw: dict[str, Any], place: Place) -> dict[str, Any]:
        """Return the payload with keys hidden, and with a reference in place of the conversation."""
        clean = {key: value if key in _BULKY else _redact_all(value, self.redact) for key, value in raw.items()}
        del clean["conversationHistory"]
        clean.pop(REACHED, None)
        return {REACHED: self.tally.last_seq, **clean, KEY: msgspec.to_builtins(place)}


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
