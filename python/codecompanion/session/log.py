"""A chat's history on its way to the store, and the view that follows from it.

`write` returns once the events are durable; only then does the view contain them (R-003, lesson 36).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from codecompanion.history import EventPayload, LogEvent, View, apply
from codecompanion.store.store import Store


class ChatLog:
    """The log of one chat and its projection."""

    def __init__(self, store: Store, chat_id: str, view: View | None = None) -> None:
        self._store, self.chat_id = store, chat_id
        self.view = view or View()
        self._order = asyncio.Lock()

    async def write(self, *payloads: EventPayload) -> Sequence[LogEvent]:
        """Append the payloads as one transaction and return them as events.

        A cancelled caller does not undo the write: what was handed to the store is applied to the view.

        Raises:
            StoreError: nothing was written.
        """
        return await asyncio.shield(asyncio.ensure_future(self._write(payloads)))

    async def _write(self, payloads: Sequence[EventPayload]) -> Sequence[LogEvent]:
        async with self._order:
            events = await asyncio.wrap_future(self._store.append(self.chat_id, payloads))
            for event in events:
                self.view = apply(self.view, event)
            return events

    async def settled(self) -> None:
        """Wait until everything handed to the store so far is in the view."""
        async with self._order:
            return
