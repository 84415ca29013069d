"""Detects chats that are missing from the database (emptied, replaced or outdated) but still have checkpoints.

Each checkpoint records the last entry of its chat's log. A chat whose log is missing or ends earlier has lost messages,
whatever the cause: it is listed with the number of restorable messages, and one key restores it. Only the first bytes
of one file per chat are read. Deleting a chat deletes its checkpoints first, so a deleted chat is never reported as
missing.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import logging
import sqlite3
from collections.abc import Sequence

import msgspec

from codecompanion.errors import CodeCompanionError, StoreError
from codecompanion.formats.plural import counted
from codecompanion.model.history import Insertion, LogEvent, MessageAdded, PolicyEvent, ViewChanged
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.store.durable_files import write_whole
from codecompanion.store.files.checkpoints import CheckpointFiles, file_name
from codecompanion.store.lease import REBUILDING, FileLock
from codecompanion.store.store import Store, durable
from codecompanion.wire.events import Notice, Severity

_log = logging.getLogger(__name__)
_TOLD = "missing.told"
_NAMED = 3
TURN_S = 30.0


class MissingChat(msgspec.Struct, frozen=True):
    """A chat whose newest checkpoint has more messages than the database. `time`: the checkpoint's, in ms since 1970.

    `messages`: the number in the checkpoint. `lost`: the number missing from the database; -1 = the log exists but ends
    earlier.
    """

    chat: str
    title: str
    time: int
    messages: int
    lost: int


class Missing(msgspec.Struct, frozen=True):
    """The text above the list of chats ("" for none), and the missing chats, newest first."""

    text: str = ""
    chats: tuple[MissingChat, ...] = ()


class MissingChats:
    """Finds, reports and restores the missing chats of one host."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._is_told = False
        self._order = asyncio.Lock()

    async def look(self) -> Missing:
        """Return the chats that are missing now."""
        services = self._services
        if services.keeping is None:
            return Missing()
        try:
            again = await durable(services.store.restore_totals())
            if again:
                _log.warning("recounted damaged totals of chats: %s", ", ".join(again))
            chats = await asyncio.to_thread(find_missing, services.store, services.keeping.checkpoints)
        except StoreError as error:  # the writer reports it
            _log.warning("search for missing chats failed: %s", error)
            return Missing(str(error))
        return Missing(sentence_of(chats, services.store), tuple(chats))

    async def tell(self, session: Session) -> None:
        """Report the missing chats in the first chat of this host; the same set of chats is reported only once."""
        if self._is_told:
            return
        self._is_told = True
        missing = await self.look()
        is_news = bool(missing.chats) and await asyncio.to_thread(self._is_news, missing.chats)
        if is_news:
            key = ":CodeCompanion resume restores them from checkpoints."
            told = f"{missing.text} ({_names(missing.chats)}). {key}"
            session.emit(Notice(chat=session.chat_id, level=Severity.WARN, text=told, until_restored=True))

    async def restore_all(self) -> str:
        """Restore every missing chat; return a sentence with the result."""
        async with self._order:
            path = self._services.store.path
            try:
                turn = await asyncio.to_thread(FileLock, path.with_name(REBUILDING), TURN_S) if path else None
            except (sqlite3.Error, OSError):
                return "Another Neovim is restoring chats; try again in a moment."
            try:
                back, failed = await self._restore((await self.look()).chats)
            finally:
                if turn is not None:
                    turn.release()
        if not back and not failed:
            return "No chat is missing."
        text = f"{counted(back, 'chat')} restored from checkpoints."
        return f"{text} Not restored: {'; '.join(failed[:_NAMED])}" if failed else text

    async def _restore(self, chats: Sequence[MissingChat]) -> tuple[int, list[str]]:
        """Restore the chats; return the number of restored chats and the errors of the others.

        The caller holds the lock.
        """
        back, failed = 0, list[str]()
        from codecompanion.session.storage.from_checkpoint import restore_chat  # not needed at startup

        for one in chats:
            try:
                if one.lost < 0:
                    await catch_up(self._services, one.chat)
                else:
                    await restore_chat(self._services, one.chat, "")
                back += 1
            except CodeCompanionError as error:
                _log.warning("chat %s was not restored: %s", one.chat, error)
                failed.append(f"“{one.title or one.chat}”: {error}")
        return back, failed

    def _is_news(self, chats: Sequence[MissingChat]) -> bool:
        """Return whether these chats have not been reported yet, and record that they have."""
        path = self._services.store.path
        if path is None:
            return True
        told = path.with_name(_TOLD)
        names = hashlib.sha256("\n".join(sorted(f"{one.chat} {one.lost < 0}" for one in chats)).encode()).hexdigest()
        try:
            if told.exists() and told.read_text() == names:
                return False
            write_whole(told, names.encode(), flush=False)
        except (OSError, UnicodeDecodeError) as error:
            _log.warning("%s: %s", told, error)
        return True


def find_missing(store: Store, files: CheckpointFiles) -> list[MissingChat]:
    """Return the missing chats, newest first; reads the first bytes of one file per chat."""
    here = {file_name(chat): last for chat, last in store.newest_seqs().items()}
    found = []
    for name, newest_seq in files.newest_seqs().items():
        last = here.get(name)
        if last is not None and last >= newest_seq:
            continue
        entries = files.list_checkpoints(name)
        damaged = next((entry for entry in entries if entry.kind == "damaged"), None)
        best = next((entry for entry in entries if entry.messages), damaged)
        if best is None or (last is None and store.foreign_lease(best.chat) is not None):
            continue  # nothing to restore, or another Neovim has it open and will rewrite it
        lost = -1 if last is not None else best.messages
        found.append(MissingChat(best.chat, best.title, best.time, best.messages, lost))
    return sorted(found, key=lambda one: one.time, reverse=True)


async def catch_up(services: Services, chat: str) -> int:
    """Append the messages of the newest checkpoint that are missing at the end of the log; return their number.

    Raises: LeaseHeld: another Neovim has the chat open. InputError: the checkpoint cannot be read. StoreError: nothing
    was written.
    """
    keeping = services.keeping
    if keeping is None:
        return 0
    store = services.store
    newest_seq = await asyncio.to_thread(keeping.checkpoints.newest_seq_of, file_name(chat))
    since = await asyncio.to_thread(store.load_events, chat, newest_seq - 1) if newest_seq else []
    events = await asyncio.to_thread(store.load_events, chat) if newest_seq and not since else []
    if not events:
        return 0
    await asyncio.to_thread(keeping.checkpoints.keep_newest, chat)  # the next checkpoint overwrites it
    from codecompanion.session.storage.from_checkpoint import read_state, without_old_keys  # not needed at startup

    state = await asyncio.to_thread(read_state, keeping.checkpoints, chat, "", (), services.clock())
    old, new = project(events).messages, [without_old_keys(message) for message in state.messages]
    same = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one.id != other.id), None)
    kept = min(len(old), len(new)) if same is None else same
    added = new[kept:]
    note = f"Restored from the checkpoint of {_time(state.snapshot.timestamp)}: {counted(len(added), 'message')}."
    payloads: list[MessageAdded | ViewChanged | PolicyEvent] = [MessageAdded(message=one) for one in added]
    if kept < len(old):
        before = ["", *(message.id for message in new)]
        inserted = tuple(Insertion(message=one, after=before[at]) for at, one in enumerate(new) if at >= kept)
        removed = tuple(message.id for message in old[kept:])
        payloads = [ViewChanged(change_id=services.new_token(), kind="repaired", removed=removed, inserted=inserted)]
    payloads.append(PolicyEvent(name="session_restored", fields={"chat": chat, "note": note}))
    at = state.snapshot.timestamp / 1000 if state.snapshot.timestamp else None
    await durable(store.append(chat, payloads, after_seq=newest_seq, at=at))
    return len(added)


def align(events: Sequence[LogEvent], missing: Sequence[int], messages: Sequence[Message]) -> dict[int, Message]:
    """Return {log entry number: message} for the checkpoint's messages that the log lacks.

    A message takes the first missing entry between its two neighbours.
    """
    seqs = {event.payload.message.id: event.seq for event in events if isinstance(event.payload, MessageAdded)}
    known = {*seqs, *_inserted(events)}
    free, found = sorted(missing), dict[int, Message]()
    after = 0
    for at, message in enumerate(messages):
        if message.id in known:
            after = max(after, seqs.get(message.id, 0))
            continue
        until = next((seqs[one.id] for one in messages[at + 1 :] if one.id in seqs), None)
        seq = next((one for one in free if one > after and (until is None or one < until)), None)
        if seq is not None:
            found[seq] = message
            free.remove(seq)
            after = seq
    return found


def gaps(events: Sequence[LogEvent]) -> list[int]:
    """Return the missing sequence numbers between the first and the last event."""
    there = {event.seq for event in events}
    return [seq for seq in range(min(there), max(there)) if seq not in there] if there else []


def _inserted(events: Sequence[LogEvent]) -> set[str]:
    changes = (event.payload for event in events if isinstance(event.payload, ViewChanged))
    return {one.id for change in changes for one in (*change.replaced, *(i.message for i in change.inserted))}


async def read_mended(services: Services, chat: str, *, may_write: bool) -> tuple[list[LogEvent], str]:
    """Return a chat's events and a notice ("" = none); replace damaged messages from its checkpoint."""
    store, keeping = services.store, services.keeping
    events, damaged = await asyncio.to_thread(store.read_log, chat)
    missing = sorted({*damaged, *gaps(events)})
    if not missing:
        return events, ""
    restored: dict[int, Message] = {}
    when = 0
    if keeping is not None and may_write:
        try:
            from codecompanion.session.storage.from_checkpoint import read_state  # not needed at startup

            state = await asyncio.to_thread(read_state, keeping.checkpoints, chat, "", (), services.clock())
            restored, when = align(events, missing, state.messages), state.snapshot.timestamp
            if restored:
                await durable(store.restore_messages(chat, restored))
                events, damaged = await asyncio.to_thread(store.read_log, chat)
        except CodeCompanionError as error:
            _log.warning("chat %s: damaged entries %s stay: %s", chat, missing, error)
            restored = {}
    parts = []
    if restored:
        parts.append(f"{counted(len(restored), 'damaged message')} taken from the checkpoint of {_time(when)}.")
    if damaged:
        text = counted(len(damaged), "damaged entry", "damaged entries")
        parts.append(f"{text} left out of this chat; :CodeCompanionRestore shows older states.")
    return events, " ".join(parts)


def sentence_of(chats: Sequence[MissingChat], store: Store) -> str:
    """Return the sentence above a list of missing chats, or "" if no chat is missing."""
    if not chats:
        return ""
    gone = [one for one in chats if one.lost >= 0]
    shorter = len(chats) - len(gone)
    parts = []
    if gone:
        count = counted(sum(one.lost for one in gone), "message")
        damaged = sum(1 for one in gone if not one.messages)
        which = f" ({damaged:,} with a damaged checkpoint)" if damaged else ""
        parts.append(f"{counted(len(gone), 'chat')} with {count} missing from the history{which}")
    if shorter:
        theirs = "its checkpoint" if shorter == 1 else "their checkpoints"
        parts.append(f"{counted(shorter, 'chat')} older than {theirs}")
    unusable = ", which cannot be read now" if store.path is None else ""
    return f"{' and '.join(parts)}{unusable}"


def _names(chats: Sequence[MissingChat]) -> str:
    named = [f"“{one.title or one.chat}” of {_time(one.time)}" for one in chats[:_NAMED]]
    return ", ".join(named) + (" …" if len(chats) > _NAMED else "")


def _time(ms: int) -> str:
    return f"{datetime.datetime.fromtimestamp(ms / 1000).astimezone():%Y-%m-%d %H:%M}"
