"""Indexes the inner words of messages stored by older versions, a few at a time in the background.

Until then these messages are found by the words of their text. The position is stored in the file, so another process
can continue the work, and two processes share it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from codecompanion.errors import StoreError
from codecompanion.store.log.encoding import from_bytes
from codecompanion.store.log.event_rows import index_inner

AT_ONCE = 20
MAX_BYTES = 200_000
"""Maximum bytes per step, which takes a few milliseconds; foreground writes run between steps."""
PAUSE_S = 0.02

Step = Callable[[sqlite3.Connection], bool]


def is_complete(connection: sqlite3.Connection) -> bool:
    """Return whether every message is in the index."""
    return connection.execute("SELECT 1 FROM inner_missing").fetchone() is None


def take_in_some(connection: sqlite3.Connection) -> bool:
    """Index the next rows, newest first, inside the running transaction; return whether they were the last."""
    row = connection.execute("SELECT below FROM inner_missing").fetchone()
    if row is None:
        return True
    rows = connection.execute(
        "SELECT id, COALESCE(text_id, id), chat_id, seq, CASE WHEN type = 'message_added' THEN payload END "
        "FROM events LEFT JOIN shared_text ON event_id = id WHERE id < ? ORDER BY id DESC LIMIT ?",
        (row[0], AT_ONCE),
    )
    size = 0
    for count, (last, text_id, chat_id, seq, stored) in enumerate(rows, 1):
        if stored is not None:
            with contextlib.suppress(msgspec.MsgspecError):  # a damaged row is not in the index
                index_inner(connection, text_id, chat_id, seq, from_bytes(stored))
            size += len(stored)
        if count == AT_ONCE or size > MAX_BYTES:
            connection.execute("UPDATE inner_missing SET below = ?", (last,))
            return False
    connection.execute("DELETE FROM inner_missing")
    return True


class Completion:
    """The thread that indexes an old file; `stop` ends it between two steps."""

    def __init__(self, submit: Callable[[Step], Future[bool]], *, is_needed: bool) -> None:
        """Start the thread if rows are missing from the index. `submit` queues a step for the writer."""
        self.ended: Future[None] = Future()
        self._submit = submit
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="codecompanion-index", daemon=True)
        if is_needed:
            self._thread.start()
        else:
            self.ended.set_result(None)

    def stop(self) -> None:
        """Stop the thread; the next process indexes the rest."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._submit(take_in_some).result():
                if self._stopped.wait(PAUSE_S):
                    break
        except StoreError:  # the disk is full or the file is damaged: the next write reports it
            self._stopped.set()
        self.ended.set_result(None)
