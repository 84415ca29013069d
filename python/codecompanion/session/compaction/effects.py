"""Runs the effects that a policy lists (`checkpoint`, `snapshot`, `memory_flush`, `daily_log`), and writes checkpoints.

If the `checkpoint_every_messages` setting is on, every chat gets checkpoints, including those for compactions, whatever
its policy lists; if it is off, only the policy's own effects run. `before` runs, and is durable, before a change is
logged (R-472); `after` runs after the change. Periodic and completion checkpoints (R-464…R-466) and the snapshot after
each turn are written in the background. A failed write does not end the turn: it is reported once, as a notice and as
the event `checkpoint_failed`. The contents are defined by `context.checkpoints.snapshot`,
`context.checkpoints.evidence_packet` and `store`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.context.checkpoints.snapshot import is_periodic_due, is_worth_completing
from codecompanion.context.named_events import Occasion, events_of
from codecompanion.context.policy.policy import PolicyEventName
from codecompanion.context.stage_report import StageReport
from codecompanion.context.work import LastFlush, Messages
from codecompanion.errors import CodeCompanionError, StoreError
from codecompanion.model.checkpoint import Kind
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import Message, Source, is_typed_by_user
from codecompanion.session.checkpoint_files.state_writer import StateWriter, Wanted
from codecompanion.session.compaction.announcer import tell
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.provenance.memory_sources import MemorySources
from codecompanion.session.services import Keeping
from codecompanion.session.trust.folders import folder_of
from codecompanion.store.files.memory_files import MemoryKind, looks_sensitive, why_refused
from codecompanion.store.files.memory_places import mark_of
from codecompanion.store.store import Store
from codecompanion.wire.events import Event, Notice, Severity

_log = logging.getLogger(__name__)
CHECKPOINT, SNAPSHOT, MEMORY_FLUSH, DAILY_LOG = "checkpoint", "snapshot", "memory_flush", "daily_log"


class EffectRunner(msgspec.Struct):
    """Runs the effects of one chat. If `keeping` is None, nothing is stored outside the database."""

    chat_id: str
    log: ChatLog
    store: Store
    keeping: Keeping | None
    emit: Callable[[Event], None]
    clock: Callable[[], float]
    new_id: Callable[[], str]
    every_messages: Callable[[], int] = lambda: 0
    """Number of messages between periodic checkpoints (R-464); 0 = only those that a policy's stages request."""
    root: Callable[[], Path] = Path
    """Returns the workspace, whose daily log may be written."""
    queued: Callable[[], Sequence[str]] = tuple
    """Returns the queued messages."""
    outside: Callable[[Sequence[Message]], Sequence[Source]] = lambda messages: ()
    """Returns the sources of the summarised messages that narrow grants; a memory written from these messages inherits
    them.
    """
    last_flush: LastFlush = msgspec.field(default_factory=LastFlush)
    _writer: StateWriter | None = None
    _boundaries: int = 0
    """The number of requests since the chat was opened."""
    _order: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    _following: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Ensures that the effects after one change run before those after the next."""
    _running: set[asyncio.Task[None]] = msgspec.field(default_factory=set)
    _told_failure: bool = False
    _told_memory: bool = False
    _told_flush: bool = False
    _is_removal_coming: bool = False

    def __post_init__(self) -> None:
        """Record the end of the log when the chat is opened, because earlier messages do not count as new."""
        if self.keeping is not None:
            kept = self.keeping
            opened_at = self.log.view.last_seq
            self._writer = StateWriter(
                self.chat_id, self.store, kept.checkpoints, kept.redact, kept.keys_known, opened_at
            )
        self.last_flush = LastFlush(is_off=self.keeping is None or not self.keeping.remembers)

    # ---- effects listed by a policy

    def prepare_soon(self, names: Sequence[str], subject: Sequence[Message]) -> None:
        """Prepare in the background the checkpoint to be written before these messages are removed (R-472)."""
        if (CHECKPOINT in names or self._is_on) and self._writer is not None:
            self._is_removal_coming = True
            gone = {message.id for message in subject}
            messages = self.log.view.messages
            self._soon(self._prepare(messages, tuple(message for message in messages if message.id in gone)))

    def forget_prepared(self) -> None:
        """Drop everything prepared for a removal that will not happen, even if it is still being prepared."""
        self._is_removal_coming = False
        if self._writer is not None:
            self._writer.forget_prepared()

    async def before(self, names: Sequence[str], report: StageReport, change: ViewChanged) -> None:
        """Run the effects that must be durable before the change is logged (R-472). Never fails."""
        if report.work is not None:
            await self.before_removal(names, change, report.work.summary, report.event)

    async def before_removal(self, names: Sequence[str], change: ViewChanged, summary: str, trigger: str) -> None:
        """Run the effects before a removal.

        Also called for a provider's own compaction, which none of our stages made.
        """
        if not change.removed or not (CHECKPOINT in names or self._is_on):
            return
        gone = frozenset(change.removed)
        removed = tuple(message for message in self.log.view.messages if message.id in gone)
        wanted = self._wanted("pre_compaction", trigger, removed=removed, source_event_id=change.change_id)
        wanted.summary = summary
        with self._awaiting():
            await self._save(wanted)

    async def after(self, names: Sequence[str], report: StageReport) -> None:
        """Run the effects after a change, or after a flush that changed nothing. Never fails."""
        await self._after(names, report, self._wanted("snapshot", report.event))

    async def _after(self, names: Sequence[str], report: StageReport, snapshot: Wanted) -> None:
        if report.work is None:
            return
        async with self._following:
            if MEMORY_FLUSH in names or DAILY_LOG in names:
                await self._remember(names, report, report.work.summary)
            if SNAPSHOT in names or self._keeps(report):
                await self._save(snapshot)

    def flush_failed(self, report: StageReport) -> None:
        """Wait as long as after a successful flush before the next one, and tell the user once (R-446)."""
        self.last_flush = LastFlush(at=self.clock(), tokens=report.before.tokens)
        if not self._told_flush:
            self._told_flush = True
            text = f"Memory not updated: {report.detail.rstrip('.')}. The chat continues."
            self.emit(Notice(chat=self.chat_id, level=Severity.WARN, text=text))

    def after_soon(self, names: Sequence[str], report: StageReport) -> None:
        """Run `after` in the background, with a snapshot of the chat as it is now."""
        if names or self._keeps(report):
            self._soon(self._after(names, report, self._wanted("snapshot", report.event)))

    # ---- effects of every chat

    def boundary(self) -> None:
        """Write a periodic checkpoint in the background if one is due (R-464); called at each request boundary."""
        if self._is_on and not self._running and self._may_be_due():
            self._soon(self._write_when_due(or_snapshot=False))

    def turn_ended(self) -> None:
        """Save the chat's state in the background: a periodic checkpoint if one is due, otherwise a snapshot."""
        if self._is_on:
            self._soon(self._write_when_due(or_snapshot=True))

    async def close(self) -> None:
        """Finish running effects; write a completion checkpoint if the chat was active (R-466)."""
        with self._awaiting():
            await self._close()

    async def _close(self) -> None:
        await self.settled()
        writer = self._writer
        if not self._is_on or writer is None:
            return
        async with self._order:
            await self._guarded(asyncio.to_thread(writer.catch_up))
        if writer.has_grown and is_worth_completing(writer.tally):
            wanted = self._wanted("completion", "chat_closed")
            wanted.summary = writer.tally.last_assistant
            await self._save(wanted)

    async def settled(self) -> None:
        """Wait until no effect is running in the background."""
        while self._running:
            await asyncio.wait(set(self._running))

    # ---- inside

    @contextlib.contextmanager
    def _awaiting(self) -> Iterator[None]:
        """Speed up current and future writes while the caller waits for them."""
        if self._writer is not None:
            self._writer.is_awaited = True
        try:
            yield
        finally:
            if self._writer is not None:
                self._writer.is_awaited = False

    @property
    def _is_on(self) -> bool:
        return self.keeping is not None and self.every_messages() > 0

    def _keeps(self, report: StageReport) -> bool:
        """Return whether the chat's state is saved after this stage even if the stage does not list that effect."""
        return self._is_on and report.stage.event == "context_compacted"

    def _wanted(
        self, kind: Kind, trigger: str, *, removed: Sequence[Message] = (), source_event_id: str = ""
    ) -> Wanted:
        return Wanted(
            kind=kind,
            trigger=trigger,
            messages=self.log.view.messages,
            now=self.clock(),
            id=self.new_id(),
            removed=tuple(removed),
            source_event_id=source_event_id,
            pending=tuple(self.queued()),
            last_flush=(round(self.last_flush.at * 1000), self.last_flush.tokens),
        )

    def _may_be_due(self) -> bool:
        """Return whether the log may have grown enough for a periodic checkpoint, without reading it.

        The log of a stored chat is first read at its second request or after its first turn, because reading a long log
        would delay the first request.
        """
        writer = self._writer
        if writer is None:
            return False
        self._boundaries += 1
        if writer.opened_at and not writer.tally.last_seq:
            return self._boundaries > 1
        most = writer.tally.meaningful + self.log.view.last_seq - writer.tally.last_seq
        return is_periodic_due(writer.periodic_at, most, self.every_messages())

    async def _write_when_due(self, *, or_snapshot: bool) -> None:
        writer = self._writer
        if writer is None:
            return
        async with self._order:
            await self._guarded(asyncio.to_thread(writer.catch_up))
        if is_periodic_due(writer.periodic_at, writer.tally.meaningful, self.every_messages()):
            writer.periodic_at = writer.tally.meaningful
            await self._save(self._wanted("periodic", "message_added"))
        elif or_snapshot and writer.has_grown:
            await self._save(self._wanted("snapshot", "turn_ended"))

    async def _prepare(self, messages: Messages, removed: Messages) -> None:
        writer = self._writer
        if writer is None:
            return
        async with self._order:
            try:
                await asyncio.to_thread(writer.prepare, messages, removed)
            except StoreError as error:  # writing the checkpoint fails the same way and reports it
                _log.debug("a checkpoint could not be prepared: %s", error)
            if not self._is_removal_coming:
                writer.forget_prepared()

    async def _save(self, wanted: Wanted) -> None:
        writer = self._writer
        if writer is None:
            return
        async with self._order:
            size = await self._guarded(asyncio.to_thread(writer.save, wanted))
        if size is None:
            return
        self._told_failure = False
        if wanted.kind != "snapshot" or wanted.trigger != "turn_ended":
            more = {"messageCount": len(wanted.messages), "checkpointKind": wanted.kind, "estimatedSizeBytes": size}
            await self._announce("conversation_snapshot", Occasion(more=more))

    async def _guarded(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of `work`, or None if it failed; the chat then continues, and the user sees one notice."""
        try:
            return await work
        except StoreError as error:
            await self._announce("checkpoint_failed", Occasion(reason=str(error)))
            if not self._told_failure:
                self._told_failure = True
                text = f"Checkpoint not written: {error}. The chat continues; its history is in the database."
                self.emit(Notice(chat=self.chat_id, level=Severity.WARN, text=text))
            return None

    async def _remember(self, names: Sequence[str], report: StageReport, summary: str) -> None:
        """Write the summary to the memory and the daily log (R-446…R-449); a failure is reported to the user once."""
        keeping = self.keeping
        if keeping is None or not keeping.remembers or not summary.strip() or report.work is None:
            return
        is_flush = report.event == "memory_flushed"
        if is_flush:
            self.last_flush = LastFlush(at=self.clock(), tokens=report.before.tokens)
        said = [message.text for message in report.work.removed if is_typed_by_user(message)]
        refused = why_refused([summary, *said], keeping.exclusions)
        if refused:
            _log.debug("nothing is remembered: %s", refused)
            return
        try:
            from codecompanion.context.summary_text.recall_keys import without_keys  # not needed at startup

            targets = await asyncio.to_thread(
                self._write_memory,
                keeping,
                names,
                is_flush,
                keeping.redact(without_keys(summary)),
                self.outside(report.work.removed),
            )
        except CodeCompanionError as error:
            _log.warning("the memory could not be written: %s", error)
            if not self._told_memory:
                self._told_memory = True
                text = f"Memory not written: {error}. The chat keeps the summary."
                self.emit(Notice(chat=self.chat_id, level=Severity.WARN, text=text))
            return
        self._told_memory = False
        if targets:
            kind = "pre_compaction" if is_flush else "compaction"
            await self._announce("memory_flushed", Occasion(kind=kind, targets=tuple(targets), text=summary))

    def _write_memory(
        self, keeping: Keeping, names: Sequence[str], is_flush: bool, summary: str, sources: Sequence[Source]
    ) -> list[str]:
        """Write to the listed targets; return the targets that were written."""
        targets: list[str] = []
        now = self.clock()
        # Private content must not reach the workspace, where it may be committed.
        private = looks_sensitive(summary)
        if MEMORY_FLUSH in names:
            title = self._writer.tally.title if self._writer else ""
            kind: MemoryKind = "flush" if is_flush else "summary"
            of, project = MemorySources(keeping.memories.places.memory_dir), mark_of(folder_of(self.root()))
            keeping.memories.save(
                kind, title, summary, self.chat_id, now, project, lambda path: of.before_file(path, sources)
            )
            targets.append("memory")
        if DAILY_LOG in names and not private:
            from codecompanion.context.checkpoints.structured_summary import parse_summary  # not needed at startup

            found = parse_summary(summary, "compaction_summary")
            sections = (
                ("Decisions", found.decisions),
                ("Open Loops", found.open_loops),
                ("Next Actions", found.next_actions),
            )
            if keeping.memories.append_to_daily_log(self.root(), sections, now):
                targets.append("daily_log")
        return targets

    async def _announce(self, name: PolicyEventName, occasion: Occasion) -> None:
        """Log a named event and send it to the editor; if it cannot be stored, only send it."""
        named = events_of((name,), occasion)
        try:
            await self.log.write(*named)
        except StoreError as error:
            _log.warning("%s could not be logged: %s", name, error)
        tell(self.emit, self.chat_id, named)

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"effects {self.chat_id}")
        self._running.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("an effect failed", exc_info=task.exception())
