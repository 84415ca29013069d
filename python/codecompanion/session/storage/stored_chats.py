"""Renames and deletes stored chats, whether or not they are open."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from codecompanion.errors import InputError, StoreError
from codecompanion.model.history import TitleSet
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.titles import given_title
from codecompanion.session.services import Services
from codecompanion.store.store import durable
from codecompanion.wire.events import TitleChanged


async def rename(services: Services, chat_id: str, title: str, log: ChatLog | None) -> str:
    """Rename the chat; `log` is its log if it is open. Return a sentence with the result.

    Raises:
        InputError: the title is empty, or the chat does not exist.
        LeaseHeld: another Neovim has the chat open.
    """
    given = given_title(title)
    if log is not None:
        await log.write_beside(TitleSet(title=given, by_user=True))
    else:
        await _must_be_stored(services, chat_id)
        await durable(services.store.append(chat_id, [TitleSet(title=given, by_user=True)]))
    services.emit(TitleChanged(chat=chat_id, title=given))
    return f"Title changed to “{given}”."


async def delete(services: Services, chat_id: str, open_chats: Mapping[str, object]) -> str:
    """Delete the chat permanently: events, checkpoints, and content that only it used.

    Return a sentence with the result.

    The checkpoints are deleted first, so that a chat can be deleted again if the host is killed halfway.

    Raises:
        InputError: the chat is open here, or does not exist.
        LeaseHeld: another Neovim has the chat open.
    """
    if chat_id in open_chats:
        raise InputError("This chat is open; close it before you delete it.")
    await _must_be_stored(services, chat_id)
    title = await asyncio.to_thread(_title, services, chat_id)
    await durable(services.store.acquire(chat_id))
    try:
        if services.keeping is not None:
            await asyncio.to_thread(services.keeping.checkpoints.delete, chat_id)
        await durable(services.store.delete(chat_id))
    except BaseException:
        with contextlib.suppress(StoreError):  # the original error is the one to report
            await durable(services.store.release(chat_id))
        raise
    return f"Deleted: {title}."


def _title(services: Services, chat_id: str) -> str:
    found = services.store.find_session(chat_id)
    return f"“{found.title if found and found.title else 'New chat'}”"


async def _must_be_stored(services: Services, chat_id: str) -> None:
    if not await asyncio.to_thread(services.store.knows, chat_id):
        raise InputError(f"No stored chat has the id {chat_id!r}")
