"""Handles loss of the database while the host runs: open chats continue, others are restored from checkpoints.

The store detects the loss and first writes the open chats into the new file (`store.damage.rebuild`); this module
supplies their content, adds a notice to each chat, and restores the chats that are not open. One of the hosts that
share the file restores them in the background, one after the other.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codecompanion.errors import StoreError
from codecompanion.formats.plural import counted
from codecompanion.model.chosen_code import choice_event
from codecompanion.model.history import (
    ChatCreated,
    EventPayload,
    PolicyEvent,
    PolicySet,
    TitleSet,
    TurnEnded,
    TurnStarted,
)
from codecompanion.model.live_files import live_event
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.store.lease import REBUILDING, FileLock
from codecompanion.store.sqlite_connection import RESTORE
from codecompanion.store.writer_thread import LOOK_EVERY_S
from codecompanion.wire.events import Notice, Severity

if TYPE_CHECKING:
    from codecompanion.store.damage.lost_file import State as FileState
    from codecompanion.store.damage.rebuild import LiveChat, Loss, Rebuilt

_log = logging.getLogger(__name__)
_HAPPENED: Mapping[FileState, str] = {
    "deleted": "The chat history file was deleted while open.",
    "emptied": "The chat history file was emptied while open.",
    "overwritten": "Another file was copied over the chat history.",
    "replaced": "Another file replaced the chat history.",
    "sound": "The chat history file disappeared for a moment.",
}
_IN_TURN = frozenset({State.PREPARING, State.STREAMING, State.RUNNING_TOOLS, State.AWAITING_APPROVAL})
_NOT_KEPT = "Lost: cleared and summarised messages, undo, the trace"


class LostHistory:
    """Handles the loss of one host's database. Created on the engine's loop; the store calls it in threads."""

    def __init__(
        self,
        services: Services,
        chats: Mapping[str, Session],
        start: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._services, self._chats, self._start = services, chats, start
        self._loop = asyncio.get_running_loop()
        services.store.watch_over(self.live, self.on_loss)

    def live(self) -> list[LiveChat]:
        """Return this host's chats in their current state; the views are immutable, so any thread may read them."""
        return [_live_chat(session, self._services.new_token()) for session in list(self._chats.values())]

    def on_loss(self, loss: Loss) -> None:
        """Notify the chats, and restore those that are not open."""
        if not loss.renewed.is_whole:
            self._loop.call_soon_threadsafe(lambda: self._start(self._after(loss)))

    async def _after(self, loss: Loss) -> None:
        for rebuilt in loss.rebuilt:
            session = self._chats.get(rebuilt.chat_id)
            if session is not None:
                await self._refresh(session, rebuilt)
                text = f"{_HAPPENED[loss.renewed.state]} {_sentence(rebuilt)}"
                session.notice(Severity.WARN, text)
        await self._restore_missing(loss)

    async def _refresh(self, session: Session, rebuilt: Rebuilt) -> None:
        """Tell the chat that its undo history is lost, and which messages can still be recalled."""
        if rebuilt.extent == "view":
            session.log.forget_changes()
            from codecompanion.session.storage.from_checkpoint import without_old_keys  # not needed at startup

            await session.log.rewrite(without_old_keys)
            try:
                await session.log.read_keys()
            except StoreError as error:
                _log.warning("the keys of chat %s could not be read: %s", session.chat_id, error)
            session.show_meter()

    async def _restore_missing(self, loss: Loss) -> None:
        """Restore chats that have checkpoints but are not in the new file.

        Report how many were restored and how many are lost.
        """
        keeping, path = self._services.keeping, self._services.store.path
        if keeping is None or path is None:
            return
        turn, is_first = await self._take_turn(path.with_name(REBUILDING))
        try:
            stored = await asyncio.to_thread(keeping.checkpoints.list_checkpoints)
            back, failed = 0, 0
            from codecompanion.session.storage.from_checkpoint import restore_chat  # not needed at startup

            for chat in dict.fromkeys(entry.chat for entry in stored):
                if chat in self._chats or await asyncio.to_thread(self._is_stored_elsewhere, chat):
                    continue
                try:
                    await restore_chat(self._services, chat, "")
                    back += 1
                except Exception:  # one failure does not stop the others
                    _log.warning("chat %s was not restored", chat, exc_info=True)
                    failed += 1
            lost = await asyncio.to_thread(self._count_lost, loss) if is_first else 0
        finally:
            turn.release()
        text = _outcome(back, failed, lost)
        if text:
            self._services.store.incidents.append(text)
            self._services.emit(Notice(level=Severity.WARN, text=text))

    async def _take_turn(self, path: Path) -> tuple[FileLock, bool]:
        """Wait until no other Neovim is restoring chats; if that Neovim is killed, this host restores the rest.

        Return the lock, and whether this host is the first; otherwise another host has already reported the losses.
        """
        is_first = True
        while True:
            try:
                return await asyncio.to_thread(FileLock, path, 0.0), is_first
            except (sqlite3.Error, OSError):
                is_first = False
                await asyncio.sleep(LOOK_EVERY_S)

    def _count_lost(self, loss: Loss) -> int | None:
        """Return the number of lost chats that had messages, or None if it is no longer known."""
        if loss.renewed.state == "replaced":
            return 0  # the replacement file has the totals
        totals = loss.remains.totals
        if not totals:
            return None
        return sum(1 for chat, row in totals.items() if row.messages and not self._is_stored_elsewhere(chat))

    def _is_stored_elsewhere(self, chat: str) -> bool:
        """Return whether the chat is in the new file, or open in another host, which will write it.

        The other host will write the chat itself; its content is newer than the last checkpoint.
        """
        store = self._services.store
        return store.knows(chat) or store.foreign_lease(chat) is not None


def _live_chat(session: Session, new_id: str) -> LiveChat:
    log, control, view = session.log, session.control, session.log.view
    opening: list[EventPayload] = [
        ChatCreated(
            adapter=control.adapter_name,
            model=control.model,
            policy=control.policy.name,
            cwd=session.snapshot.cwd,
            purpose=control.purpose,
        )
    ]
    if log.title:
        opening.append(TitleSet(title=log.title))
    if control.chosen_policy:
        opening.append(PolicySet(policy=control.chosen_policy))
    opening += [choice_event(piece, "pinned") for piece in log.chosen.pinned]
    text = f"Stored again after the chat history file was lost: {_messages(len(view.messages))}. {_NOT_KEPT}."
    closing: list[EventPayload] = [PolicyEvent(name="session_restored", fields={"chat": session.chat_id, "note": text})]
    closing += [live_event(file.path, file.live) for file in log.files.values()]
    turn = session.turn
    if turn is not None and session.state in _IN_TURN:
        closing.append(TurnStarted(turn_id=turn.turn_id, cycle=turn.cycle))
    elif view.cycle:
        closing += [TurnStarted(turn_id=new_id, cycle=view.cycle), TurnEnded(turn_id=new_id, reason="done")]
    from codecompanion.session.storage.from_checkpoint import without_old_keys  # not needed at startup
    from codecompanion.store.damage.rebuild import LiveChat  # not needed at startup

    return LiveChat(session.chat_id, view, tuple(opening), tuple(closing), without_old_keys)


def _messages(count: int) -> str:
    return f"the {counted(count, 'message')} the model sees"


def _sentence(rebuilt: Rebuilt) -> str:
    match rebuilt.extent:
        case "whole" | "there":
            return "This chat is stored again in full; nothing is lost."
        case "view":
            return (
                f"Stored again: {_messages(rebuilt.messages)}. {_NOT_KEPT}. :CodeCompanionRestore shows older states."
            )
        case "taken":
            return "Another Neovim has this chat open; new messages here are not stored. Close one of the two."
        case "failed":
            return f"This chat could not be stored again; it continues here. {RESTORE}"


def _outcome(back: int, failed: int, lost: int | None) -> str:
    """Return a sentence on the outcome for the chats that were not open, or "" if there were none."""
    parts = []
    if back:
        parts.append(f"{counted(back, 'chat')} restored from checkpoints")
    if failed:
        parts.append(f"{failed:,} unreadable")
    if lost:
        parts.append(f"{lost:,} lost")
    if lost is None:
        parts.append("chats without a checkpoint are lost")
    return f"Chat history: {', '.join(parts)}" if parts else ""
