"""Writes a chat's history to the store, and keeps the resulting view.

`write` returns once the events are durable; only then does the view contain them (R-003, lesson 36).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence

import msgspec

from codecompanion.errors import StoreError
from codecompanion.model.chosen_code import NOTHING_CHOSEN, chosen_after, chosen_in
from codecompanion.model.history import (
    ChangeUndone,
    EventPayload,
    LogEvent,
    MessageAdded,
    RequestSent,
    TitleSet,
    UsageReported,
    ViewChanged,
)
from codecompanion.model.live_files import NO_FILES, files_after, files_in
from codecompanion.model.messages import MEMORY_TAG, Message, is_typed_by_user
from codecompanion.model.view import View, apply, project
from codecompanion.session.history.messages_out_of_view import removed_kinds, take_out
from codecompanion.session.history.undo import (
    Chain,
    Pauses,
    chain_after,
    chain_of,
    pauses_of,
    removes_messages,
    tools_chosen,
    undone_ids,
)
from codecompanion.store.store import Store


def recall_key(seq: int) -> str:
    """Return the recall key of the message at this position in the log."""
    return f"r{seq}"


def _is_complete_event(change: ViewChanged) -> bool:
    """Return whether the change's own event describes it completely.

    A compaction card names only the removed messages.
    """
    return change.kind in ("edited", "rules_reread") or (change.kind == "compacted" and not change.replaced)


def _last_asked(events: Sequence[LogEvent]) -> tuple[str, str] | None:
    """Return the adapter and model of the last request for a reply, or None if there is none."""
    payloads = (event.payload for event in reversed(events))
    asked = next((p for p in payloads if isinstance(p, RequestSent) and p.purpose == "chat"), None)
    return None if asked is None else (asked.adapter, asked.model)


def _cached(events: Sequence[LogEvent]) -> set[tuple[str, str]]:
    """Return the adapters and models that reported cache use in these events."""
    reports = (event.payload for event in events if isinstance(event.payload, UsageReported))
    return {
        (report.adapter, report.model)
        for report in reports
        if any(usage.cache_read_tokens or usage.cache_write_tokens for usage in (report.usage, *report.other_passes))
    }


class ChatLog:
    """The log of one chat and its projection."""

    def __init__(self, store: Store, chat_id: str, view: View | None = None) -> None:
        self._store, self.chat_id = store, chat_id
        self.view = view or View()
        self.changes = 0
        """The number of changes to the view, not counting messages added at its end."""
        self.compactions = 0
        """The number of compactions among these changes."""
        self.has_removed = False
        """Whether a message was ever removed from the view."""
        self.pauses = Pauses()
        """The stages that are paused because the user undid their changes."""
        self.title = ""
        """The title of the chat, or "" before its first message."""
        self.undone: tuple[str, ...] = ()
        """The ids of the changes that are currently undone."""
        self.chain = Chain()
        """The changes that can be undone and redone."""
        self.gone: dict[str, str] = {}
        """The messages that left the view: message id → kind of the change that removed it."""
        self.untold = False
        """Whether messages left or joined the view without an event to the editor."""
        self.keys: dict[str, str] = {}
        """Message id → recall key of the message."""
        self.had_memory = False
        """Whether the memory was ever attached, even if it has been removed since."""
        self.chosen = NOTHING_CHOSEN
        """The code that the user has pinned or left out of the next question."""
        self.files = NO_FILES
        """The attached files by path, each with its text as known to the model."""
        self.tools: tuple[str, ...] = ()
        """The chosen tools and groups, () = as configured."""
        self.last_asked = ("", "")
        """The adapter and model of the last request for a reply, or two empty strings before the first."""
        self.cached = set[tuple[str, str]]()
        """The adapters and models that have reported cache use."""
        self.typed = 0
        """The number of messages typed by the user."""
        self._late: tuple[EventPayload, ...] = ()
        self._unawaited = set[asyncio.Task[None]]()
        self._order = asyncio.Lock()

    async def write(self, *payloads: EventPayload, on_failure: Callable[[], None] | None = None) -> Sequence[LogEvent]:
        """Append the payloads as one transaction and return them as events.

        Cancelling the caller does not undo the write: events passed to the store are applied to the view.

        Postponed payloads (`write_later`) are written before them. `on_failure` is called if the store fails, even if
        the caller is cancelled.

        Raises:
            StoreError: nothing was written.
        """
        return await asyncio.shield(asyncio.ensure_future(self._write(payloads, on_failure)))

    async def write_beside(self, *payloads: EventPayload) -> None:
        """Append payloads that are not part of the conversation; payloads waiting for a message keep waiting.

        Raises:
            StoreError: nothing was written.
        """
        await asyncio.shield(asyncio.ensure_future(self._write(payloads, None, with_late=False)))

    def write_later(self, *payloads: EventPayload) -> None:
        """Postpone these payloads: they are written before the next payloads, in the same transaction.

        Used for payloads that mean nothing on their own, or that could not be stored when they were due.
        """
        self._late += payloads

    def withdraw(self, payload: EventPayload) -> bool:
        """Cancel a postponed payload; return whether it was still unwritten."""
        waits = any(late is payload for late in self._late)
        self._late = tuple(late for late in self._late if late is not payload)
        return waits

    def write_unawaited(self, *payloads: EventPayload) -> None:
        """Write these payloads in the background; if the store fails, they are written before the next payloads."""

        async def write() -> None:
            with contextlib.suppress(StoreError):  # the next write reports it
                await self._write(payloads, lambda: self.write_later(*payloads))

        task = asyncio.ensure_future(write())
        self._unawaited.add(task)
        task.add_done_callback(self._unawaited.discard)

    async def write_rest(self) -> None:
        """Write the postponed payloads, if there are any.

        Raises:
            StoreError: nothing was written.
        """
        if self._late:
            await self.write()

    async def write_late(self) -> None:
        """Retry the postponed payloads, and ignore another failure, because the user already knows about it."""
        with contextlib.suppress(StoreError):
            await self.write_rest()

    async def _write(
        self, payloads: Sequence[EventPayload], on_failure: Callable[[], None] | None, *, with_late: bool = True
    ) -> Sequence[LogEvent]:
        async with self._order:
            late = self._late if with_late else ()
            try:
                events = await asyncio.wrap_future(self._store.append(self.chat_id, (*late, *payloads)))
            except StoreError:
                if on_failure is not None:
                    on_failure()
                raise
            self._late = self._late[len(late) :]
            for event in events:
                self.view = apply(self.view, event)
                self.chain = chain_after(self.chain, event.payload)
                self.pauses = self.pauses.after(event.payload, self.view.cycle)
                self.chosen = chosen_after(self.chosen, event.payload)
                self.files = files_after(self.files, event.payload)
                if isinstance(event.payload, TitleSet):
                    self.title = event.payload.title
                if isinstance(event.payload, MessageAdded):
                    self.keys[event.payload.message.id] = recall_key(event.seq)
                    self.typed += is_typed_by_user(event.payload.message)
                    self.had_memory = self.had_memory or event.payload.message.tag == MEMORY_TAG
                self.cached |= _cached([event])
                if isinstance(event.payload, RequestSent):
                    self.last_asked = _last_asked([event]) or self.last_asked
                if isinstance(event.payload, ViewChanged):
                    self.changes += 1
                    self.tools = self.tools if event.payload.tools is None else event.payload.tools
                    take_out(self.gone, event.payload)
                    self.untold = self.untold or not _is_complete_event(event.payload)
                    self.compactions += event.payload.kind == "compacted"
                    self.has_removed = self.has_removed or removes_messages(event.payload)
            return events[len(late) :]

    async def events(self) -> Sequence[LogEvent]:
        """Return the whole log, from the store."""
        return await asyncio.to_thread(self._store.load_events, self.chat_id)

    async def added(self, ids: Collection[str]) -> Sequence[Message]:
        """Return these messages as they were originally added; each is read by its position in the log.

        Raises:
            StoreError: the log cannot be read.
        """
        places = [int(self.keys[name][1:]) for name in ids if name in self.keys]

        def read() -> list[LogEvent]:
            return [event for seq in places for event in self._store.load_events(self.chat_id, seq - 1, seq)]

        events = await asyncio.to_thread(read) if places else []
        return [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]

    def resume(self, events: Sequence[LogEvent]) -> None:
        """Restore everything except the view from a stored log."""
        self._read_keys(events)
        self.title = next((e.payload.title for e in reversed(events) if isinstance(e.payload, TitleSet)), "")
        self.typed = sum(isinstance(e.payload, MessageAdded) and is_typed_by_user(e.payload.message) for e in events)
        added = (e.payload.message for e in events if isinstance(e.payload, MessageAdded))
        self.had_memory = any(message.tag == MEMORY_TAG for message in added)
        self.chosen = chosen_in(events)
        self.last_asked = _last_asked(events) or self.last_asked
        self.cached = _cached(events)
        self._read_undos(events)

    def _read_keys(self, events: Sequence[LogEvent]) -> None:
        self.has_removed = any(isinstance(e.payload, ViewChanged) and removes_messages(e.payload) for e in events)
        self.keys = {e.payload.message.id: recall_key(e.seq) for e in events if isinstance(e.payload, MessageAdded)}

    def _read_undos(self, events: Sequence[LogEvent]) -> None:
        self.pauses, self.undone, self.chain = pauses_of(events), undone_ids(events), chain_of(events)
        self.gone = removed_kinds(events, self.undone)
        self.tools = tools_chosen(events, self.undone)
        self.files = files_in(events, self.undone)

    async def undo(self, change_ids: Sequence[str], *, by_user: bool = False) -> None:
        """Log that these changes are undone, and project the view without them (R-542, R-545).

        Raises:
            StoreError: nothing was undone.
        """
        undone = [ChangeUndone(change_id=change_id, by_user=by_user) for change_id in change_ids]
        await asyncio.shield(asyncio.ensure_future(self._project_again(undone)))

    async def redo(self, change_id: str) -> None:
        """Log that an undone change is in effect again, and project the view with it (R-545).

        Raises:
            StoreError: nothing was redone.
        """
        redone = ChangeUndone(change_id=change_id, redone=True, by_user=True)
        await asyncio.shield(asyncio.ensure_future(self._project_again([redone])))

    async def _project_again(self, payloads: Sequence[ChangeUndone]) -> None:
        async with self._order:
            await asyncio.wrap_future(self._store.append(self.chat_id, payloads))
            events = await asyncio.to_thread(self._store.load_events, self.chat_id)
            self.view = await asyncio.to_thread(project, events)
            self._read_undos(events)
            self.changes += 1

    async def read_keys(self) -> None:
        """Read the recall keys again after the stored log has been replaced (`lost_history`).

        Raises:
            StoreError: the log cannot be read; no key is valid.
        """
        async with self._order:
            self.keys, self.has_removed = {}, False
            self._read_keys(await self.events())

    async def rewrite(self, rewritten: Callable[[Message], Message]) -> None:
        """Replace the view's messages by the versions written to a new log (`lost_history`)."""
        async with self._order:
            self.view = msgspec.structs.replace(self.view, messages=tuple(map(rewritten, self.view.messages)))

    def forget_changes(self) -> None:
        """Stop offering undo, because the changes it needs are not stored (`lost_history`)."""
        self.undone, self.chain = (), Chain()

    async def settled(self) -> None:
        """Wait until everything passed to the store so far is in the view."""
        async with self._order:
            return
