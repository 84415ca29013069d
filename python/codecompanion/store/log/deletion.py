"""Deletes a chat: its events with their search index, its totals, drafts and lease, and blobs that only it used.

All rows are deleted in one transaction, and files afterwards: if the host is killed between the two, unused blobs
remain until the next deletion removes them. A blob younger than `YOUNG_S` is left for later, because another Neovim may
have stored it for an event that is not logged yet.
"""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from functools import partial

import msgspec

from codecompanion.errors import StoreError
from codecompanion.model.history import MessageAdded
from codecompanion.store.files.blobs import Blobs
from codecompanion.store.log.encoding import from_bytes, storable
from codecompanion.store.log.event_rows import is_searchable

YOUNG_S = 600.0
SLICE = 200
"""Number of blobs checked per slice; each check takes 24 µs (measured), during which other writes wait."""
SWEEP_S = 5.0
"""Maximum seconds that removing unused blobs may delay closing; the next deletion removes the rest."""
_UNINDEX = "INSERT INTO message_text(message_text, rowid, text) VALUES ('delete', ?, ?)"

# Selects text that no other chat has; a copy always has a larger id than its text, so new events never reuse an id in
# use.
_OWN_TEXTS = """
    SELECT COALESCE(text_id, events.id) AS text, payload
    FROM events LEFT JOIN shared_text ON shared_text.event_id = events.id
    WHERE chat_id = ?1 AND type = 'message_added'
        AND NOT EXISTS (SELECT 1 FROM events AS source WHERE source.id = shared_text.text_id AND source.chat_id <> ?1)
        AND NOT EXISTS (
            SELECT 1 FROM shared_text AS other JOIN events AS copy ON copy.id = other.event_id
            WHERE other.text_id = COALESCE(shared_text.text_id, events.id) AND copy.chat_id <> ?1
        )
"""

_FORGET_SHARED = "DELETE FROM shared_text WHERE event_id IN (SELECT id FROM events WHERE chat_id = ?)"

_KEEP_SPENDING = (
    "INSERT INTO deleted_spending(usd, unpriced) SELECT cost_usd, unpriced FROM chats "
    "WHERE chat_id = ? AND (cost_usd > 0 OR unpriced > 0)"
)
_DELETIONS = (
    "DELETE FROM chats WHERE chat_id = ?",
    "DELETE FROM scratch WHERE chat_id = ?",
    "DELETE FROM tail_state WHERE chat_id = ?",
    "DELETE FROM leases WHERE chat_id = ?",
    "DELETE FROM blob_uses WHERE chat_id = ?",
)


def delete_chat(connection: sqlite3.Connection, chat_id: str) -> int:
    """Delete the chat's rows inside the running transaction and return the number of events deleted."""
    # Overwrites freed pages, so deleted content cannot be read from the file or restored by `salvage`.
    connection.execute("PRAGMA secure_delete = ON")
    for text_id, stored in connection.execute(_OWN_TEXTS, (chat_id,)):
        connection.execute("DELETE FROM message_inner WHERE rowid = ?", (text_id,))
        with contextlib.suppress(msgspec.MsgspecError):  # a damaged row is not in the index
            payload = from_bytes(stored)
            if isinstance(payload, MessageAdded) and is_searchable(payload.message):
                connection.execute(_UNINDEX, (text_id, storable(payload.message.text)))
    connection.execute(_KEEP_SPENDING, (chat_id,))
    connection.execute(_FORGET_SHARED, (chat_id,))
    deleted = connection.execute("DELETE FROM events WHERE chat_id = ?", (chat_id,)).rowcount
    for statement in _DELETIONS:
        connection.execute(statement, (chat_id,))
    return deleted


def delete_unused_blobs(connection: sqlite3.Connection, blobs: Blobs, names: Iterable[str], now: float) -> int:
    """Delete those of the named blobs that no chat uses, and return the number deleted."""
    deleted = 0
    for name in names:
        used = connection.execute("SELECT 1 FROM blob_uses WHERE sha256 = ? LIMIT 1", (name,)).fetchone()
        if used is None and now - blobs.stored_at(name) > YOUNG_S:
            blobs.delete(name)
            deleted += 1
    return deleted


class Sweeper:
    """Removes unused blobs in batches, so that other writes can run between batches."""

    def __init__(
        self,
        blobs: Blobs,
        submit: Callable[[Callable[[sqlite3.Connection], int]], Future[int]],
        clock: Callable[[], float],
        report: Callable[[StoreError], None],
    ) -> None:
        self._blobs, self._submit, self._clock, self._report = blobs, submit, clock, report
        self._running: set[Future[None]] = set()

    def sweep_after(self, deletion: Future[int]) -> None:
        """Remove unused blobs once `deletion` has deleted the rows."""
        names, swept = self._blobs.names(), Future[None]()
        self._running.add(swept)
        deletion.add_done_callback(lambda done: self._sweep_next(done, names, swept))

    def wait(self) -> None:
        """Wait for running sweeps, at most `SWEEP_S` seconds."""
        wait(tuple(self._running), SWEEP_S)

    def _sweep_next(self, before: Future[int], names: Iterator[str], swept: Future[None]) -> None:
        """Delete the next batch of blobs (on the writer thread)."""
        some: tuple[str, ...] = ()
        if before.exception() is None:
            try:
                some = tuple(itertools.islice(names, SLICE))
            except OSError as error:
                self._report(StoreError(f"Unused content not deleted from the data folder: {error}"))
        if not some:
            self._running.discard(swept)
            return swept.set_result(None)
        work = partial(delete_unused_blobs, blobs=self._blobs, names=some, now=self._clock())
        self._submit(work).add_done_callback(lambda done: self._sweep_next(done, names, swept))
