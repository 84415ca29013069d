"""A chat's history on its way to the store, and the view that follows from it.

`write` returns once the events are durable; only then does the view contain them (R-003, lesson 36).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence

import msgspec

from codecompanion.errors import StoreError
from codecompanion.model.chosen_code import NOTHING_CHOSEN, chosen_after, chosen_in
from codecompanion.model.history import ChangeUndone, EventPayload, LogEvent, MessageAdded, TitleSet, ViewChanged
from codecompanion.model.live_files import NO_FILES, files_after, files_in
from codecompanion.model.messages import MEMORY_TAG, Message, is_typed_by_user
from codecompanion.model.view import View, apply, project
from codecompanion.session.history.gone import gone_from, take_out
from codecompanion.session.history.undo import (
    Chain,
    Rest,
    chain_after,
    chain_of,
    rest_of,
    takes_away,
    tools_chosen,
    undone_ids,
)
from codecompanion.store.store import Store


def recall_key(seq: int) -> str:
    """Return the key of the message that stands at this place in the log."""
    return f"r{seq}"


def _is_told(change: ViewChanged) -> bool:
    """Return whether the event that tells of the change names all it did; a card only names what left."""
    return change.kind in ("edited", "rules_reread") or (change.kind == "compacted" and not change.replaced)


class ChatLog:
    """The log of one chat and its projection."""

    def __init__(self, store: Store, chat_id: str, view: View | None = None) -> None:
        self._store, self.chat_id = store, chat_id
        self.view = view or View()
        self.changes = 0
        """How often the view was changed other than by a message at its end."""
        self.compactions = 0
        """How many of these changes were compactions."""
        self.has_removed = False
        """Whether anything was ever taken out of the view."""
        self.rest = Rest()
        """Which stages rest because the user undid what they did."""
        self.title = ""
        """What the chat is called, "" before its first message."""
        self.undone: tuple[str, ...] = ()
        """The changes that do not count now."""
        self.chain = Chain()
        """What can be undone and redone."""
        self.gone: dict[str, str] = {}
        """The messages that are not in the view any more, each with the kind of change that took it out."""
        self.untold = False
        """Whether messages left or joined the view in a way that no event of its own tells the editor."""
        self.keys: dict[str, str] = {}
        """Under which key `recall` gives a message back, by its id."""
        self.had_memory = False
        """Whether the memory was attached, also if it was removed since."""
        self.chosen = NOTHING_CHOSEN
        """Which code the user pinned, or left out of the next question."""
        self.files = NO_FILES
        """The attached files, by path, and what the model knows of each."""
        self.tools: tuple[str, ...] = ()
        """Which tools and groups were chosen, () = as configured."""
        self.typed = 0
        """How many messages of the user's the log has."""
        self._late: tuple[EventPayload, ...] = ()
        self._unawaited = set[asyncio.Task[None]]()
        self._order = asyncio.Lock()

    async def write(self, *payloads: EventPayload, on_failure: Callable[[], None] | None = None) -> Sequence[LogEvent]:
        """Append the payloads as one transaction and return them as events.

        A cancelled caller does not undo the write: what was handed to the store is applied to the view.

        What could not be written before (`write_later`) is written in front of them. `on_failure` is called when the
        store does not take them, also when the caller is cancelled and cannot hear of it.

        Raises:
            StoreError: nothing was written.
        """
        return await asyncio.shield(asyncio.ensure_future(self._write(payloads, on_failure)))

    async def write_beside(self, *payloads: EventPayload) -> None:
        """Append what is said beside the conversation: what waits to be written with a message goes on waiting.

        Raises:
            StoreError: nothing was written.
        """
        await asyncio.shield(asyncio.ensure_future(self._write(payloads, None, with_late=False)))

    def write_later(self, *payloads: EventPayload) -> None:
        """Write these in front of whatever is written next, and with it.

        They say nothing by themselves, or the store did not take them when it was their turn.
        """
        self._late += payloads

    def withdraw(self, payload: EventPayload) -> bool:
        """Do not write what was to be written later; return whether it was not written yet."""
        waits = any(late is payload for late in self._late)
        self._late = tuple(late for late in self._late if late is not payload)
        return waits

    def write_unawaited(self, *payloads: EventPayload) -> None:
        """Write these now; nobody waits for them, and what the store does not take goes in front of the next write."""

        async def write() -> None:
            with contextlib.suppress(StoreError):  # it is met again by the next write
                await self._write(payloads, lambda: self.write_later(*payloads))

        task = asyncio.ensure_future(write())
        self._unawaited.add(task)
        task.add_done_callback(self._unawaited.discard)

    async def write_rest(self) -> None:
        """Write what was to be written with something else, if it has not been.

        Raises:
            StoreError: nothing was written.
        """
        if self._late:
            await self.write()

    async def write_late(self) -> None:
        """Try once more what could not be written, before anything else is done; the user knows that it was not."""
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
                self.rest = self.rest.after(event.payload, self.view.cycle)
                self.chosen = chosen_after(self.chosen, event.payload)
                self.files = files_after(self.files, event.payload)
                if isinstance(event.payload, TitleSet):
                    self.title = event.payload.title
                if isinstance(event.payload, MessageAdded):
                    self.keys[event.payload.message.id] = recall_key(event.seq)
                    self.typed += is_typed_by_user(event.payload.message)
                    self.had_memory = self.had_memory or event.payload.message.tag == MEMORY_TAG
                if isinstance(event.payload, ViewChanged):
                    self.changes += 1
                    self.tools = self.tools if event.payload.tools is None else event.payload.tools
                    take_out(self.gone, event.payload)
                    self.untold = self.untold or not _is_told(event.payload)
                    self.compactions += event.payload.kind == "compacted"
                    self.has_removed = self.has_removed or takes_away(event.payload)
            return events[len(late) :]

    async def events(self) -> Sequence[LogEvent]:
        """Return the whole log, from the store."""
        return await asyncio.to_thread(self._store.load_events, self.chat_id)

    async def added(self, ids: Collection[str]) -> Sequence[Message]:
        """Return these messages as they were added, each read by its place in the log.

        Raises:
            StoreError: the log cannot be read.
        """
        places = [int(self.keys[name][1:]) for name in ids if name in self.keys]

        def read() -> list[LogEvent]:
            return [event for seq in places for event in self._store.load_events(self.chat_id, seq - 1, seq)]

        events = await asyncio.to_thread(read) if places else []
        return [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]

    def resume(self, events: Sequence[LogEvent]) -> None:
        """Take in what a stored log says besides its view."""
        self._read_keys(events)
        self.title = next((e.payload.title for e in reversed(events) if isinstance(e.payload, TitleSet)), "")
        self.typed = sum(isinstance(e.payload, MessageAdded) and is_typed_by_user(e.payload.message) for e in events)
        added = (e.payload.message for e in events if isinstance(e.payload, MessageAdded))
        self.had_memory = any(message.tag == MEMORY_TAG for message in added)
        self.chosen = chosen_in(events)
        self._read_undos(events)

    def _read_keys(self, events: Sequence[LogEvent]) -> None:
        self.has_removed = any(isinstance(e.payload, ViewChanged) and takes_away(e.payload) for e in events)
        self.keys = {e.payload.message.id: recall_key(e.seq) for e in events if isinstance(e.payload, MessageAdded)}

    def _read_undos(self, events: Sequence[LogEvent]) -> None:
        self.rest, self.undone, self.chain = rest_of(events), undone_ids(events), chain_of(events)
        self.gone = gone_from(events, self.undone)
        self.tools = tools_chosen(events, self.undone)
        self.files = files_in(events, self.undone)

    async def undo(self, change_ids: Sequence[str], *, by_user: bool = False) -> None:
        """Log that these changes no longer count, and project the view without them (R-542, R-545).

        Raises:
            StoreError: nothing was undone.
        """
        undone = [ChangeUndone(change_id=change_id, by_user=by_user) for change_id in change_ids]
        await asyncio.shield(asyncio.ensure_future(self._project_again(undone)))

    async def redo(self, change_id: str) -> None:
        """Log that a change the user undid counts again, and project the view with it (R-545).

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
        """Learn again what `recall` can give back: the stored log is another one than before (`lost_history`).

        Raises:
            StoreError: it cannot be read; no key counts.
        """
        async with self._order:
            self.keys, self.has_removed = {}, False
            self._read_keys(await self.events())

    async def rewrite(self, rewritten: Callable[[Message], Message]) -> None:
        """Show the messages as they were written into another log (`lost_history`)."""
        async with self._order:
            self.view = msgspec.structs.replace(self.view, messages=tuple(map(rewritten, self.view.messages)))

    def forget_changes(self) -> None:
        """Offer no undo any more: what it stood on is not stored (`lost_history`)."""
        self.undone, self.chain = (), Chain()

    async def settled(self) -> None:
        """Wait until everything handed to the store so far is in the view."""
        async with self._order:
            return
