"""Writes the open chats into the file that replaces a lost one, as soon as the writer notices the loss.

`rebuild.py` decides which events are lost and which are written again; this module has the state that a running store
keeps for that: its open chats, and the newest events of each.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from codecompanion.errors import StoreCorrupt, StoreError
from codecompanion.model.history import LogEvent
from codecompanion.store.damage.lost_file import FileWatch
from codecompanion.store.lease import Owner
from codecompanion.store.sqlite_connection import Database, explain, roll_back

if TYPE_CHECKING:
    from codecompanion.store.damage.rebuild import LiveChat, Loss, Noticed, Rebuilt, Remains


class Renewal:
    """Recovers one store from the loss of its file; `incidents` are messages about it for `:checkhealth`."""

    def __init__(
        self, database: Database, owner: Owner, clock: Callable[[], float], report: Callable[[StoreError], None]
    ) -> None:
        self.incidents: list[str] = []
        self._database, self._owner, self._clock, self._report = database, owner, clock, report
        self._newest: dict[str, list[LogEvent]] = {}
        self._noticed: Noticed | None = None
        self._live: Callable[[], Sequence[LiveChat]] = tuple
        self._on_loss: Callable[[Loss], None] = lambda loss: None

    def watch_over(self, live: Callable[[], Sequence[LiveChat]], on_loss: Callable[[Loss], None]) -> None:
        """Set the source of open chats to write after a loss of the file, and the callback for the loss.

        Both functions may be called from any thread, and must not use the store.
        """
        self._live, self._on_loss = live, on_loss

    def keep_newest(self, chat_id: str, written: Future[list[LogEvent]]) -> None:
        """Remember the newest events of a chat until its host has them in its view."""
        if written.exception() is None:
            self._newest[chat_id] = written.result()

    def forget(self, chat_id: str) -> None:
        """Forget a chat that was closed."""
        self._newest.pop(chat_id, None)

    def renew(self, watch: FileWatch) -> bool:
        """Switch to a good file with all recoverable content; the caller holds the write lock.

        Returns False if this method must be called again later.
        """
        from codecompanion.store.damage.rebuild import Loss, notice, read_remains, with_newest  # not needed at startup

        live = [with_newest(chat, self._newest.get(chat.chat_id, ())) for chat in self._live()]
        noticed = self._noticed = self._noticed or notice(self._database.writer, self._clock())

        def look_back(lost: sqlite3.Connection) -> Remains:
            self._owner.lock_again()
            return read_remains(lost, live, noticed)

        found = watch.renew(look_back)
        if found is None:
            return False
        self._noticed = None
        renewed, remains = found
        rebuilt = () if renewed.is_whole else self._rebuild(live, remains)
        loss = Loss(renewed, rebuilt, remains)
        self.incidents.append(loss.sentence())
        self._report(StoreCorrupt(loss.sentence()))
        self._on_loss(loss)
        return True

    def _rebuild(self, live: Sequence[LiveChat], remains: Remains) -> tuple[Rebuilt, ...]:
        connection = self._database.writer
        from codecompanion.store.damage.rebuild import Rebuilt, rebuild  # not needed at startup

        try:
            connection.execute("BEGIN IMMEDIATE")
            rebuilt = rebuild(connection, self._owner, live, remains, self._clock(), lambda: secrets.token_hex(6))
            connection.execute("COMMIT")
        except Exception as error:  # on any error the writer continues with the next job
            roll_back(connection)
            self._report(explain(error, self._database.path))
            return tuple(Rebuilt(chat.chat_id, "failed") for chat in live)
        return rebuilt
