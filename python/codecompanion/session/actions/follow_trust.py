"""Applies trust decisions to running chats: attaches or detaches rules, and reports files that wait for trust.

A chat shows one line about files that wait for trust, which is repeated only when these files change, and disappears
when none are waiting. The line never blocks the chat.
"""

from __future__ import annotations

import asyncio
import logging

from codecompanion.errors import InputError
from codecompanion.session.chat.chat import Chat
from codecompanion.session.trust.folders import folder_of
from codecompanion.session.untrusted.waiting_files import (
    describe_waiting,
    digest_of,
    note_first_sight,
    provided_files,
    untrusted_files,
)
from codecompanion.wire.events import TrustWaits

_log = logging.getLogger(__name__)


async def show_waiting_files(chat: Chat) -> None:
    """Show which files in the chat's folder wait for trust, if the list has changed since it was last shown."""
    root, trust = chat.root(), chat.services.trust
    try:
        await note_first_sight(chat.services, root)
    except InputError as error:
        _log.warning("%s", error)  # the folder's files then wait for trust
    if chat.trust_applied < 0:
        chat.trust_applied = await asyncio.to_thread(trust.version)
    waiting = untrusted_files(await asyncio.to_thread(provided_files, chat.services, root))
    if trust.decisions().is_silenced(folder_of(root), digest_of(waiting)):
        waiting = []
    text = describe_waiting(waiting)
    if text != chat.trust_told:
        chat.trust_told = text
        chat.emit(TrustWaits(chat=chat.chat_id, waits=text, count=len(waiting)))


async def follow_trust(chat: Chat) -> None:
    """Attach rules that have become trusted; without a new decision this costs one file check."""
    if chat.trust_applied < 0 or chat.trust_applied == chat.services.trust.version():  # faster than a thread
        return
    await apply_trust(chat)


async def apply_trust(chat: Chat) -> None:
    """Attach rules that have become allowed, and show which files still wait."""
    chat.trust_applied = await asyncio.to_thread(chat.services.trust.version)
    await join_rules(chat)
    await show_waiting_files(chat)


async def join_rules(chat: Chat) -> None:
    """Attach rules that have become allowed; a new chat also gets the memory."""
    messages, _ = await chat.context.rules.autoload(chat.root())
    await chat.attach(*messages)
    if not chat.log.typed:
        from codecompanion.session.actions.join_memory import join_memory  # not needed at startup

        await join_memory(chat)
