"""`/fetch`: attaches the readable text of a web page, as data, never as instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from codecompanion.formats.addresses import parts_of
from codecompanion.formats.plural import counted
from codecompanion.model.messages import Message
from codecompanion.session.attachments.attached import document_attachment, text_attachment
from codecompanion.session.tool_calls.audited import record
from codecompanion.web.fetching import Fetched, Fetcher
from codecompanion.web.page_cache import PageCache
from codecompanion.web.page_text import Page, page_of

if TYPE_CHECKING:
    from codecompanion.session.chat.chat import Chat

MAX_CHARS = 200_000
"""Maximum number of characters of a page, about 50,000 tokens; longer pages are truncated, with a note in the text."""
CHARS_PER_TOKEN = 3
"""Assumed characters per token; low, so that a page truncated to the available tokens fits."""
_MIN_CHARS = 1_000
_CUT = "\n\n[cut here: {left} of {all} characters]\n"


async def attach_page(
    chat: Chat, url: str, *, again: bool = False, make_fetcher: Callable[[str], Fetcher] = Fetcher
) -> str:
    """Attach the page at a URL; return a sentence about it. `again`: fetch the page even if the cached copy is fresh.

    Raises:
        InputError: fetching is not allowed or failed; nothing was attached.
    """
    services = chat.services
    address = parts_of(url).geturl()
    cache = PageCache(services.pages_dir)
    kept = None if again else await asyncio.to_thread(cache.find, address)
    if kept is None:
        record(services, event="ran", kind="fetch", chat=chat.chat_id, address=address, grant="the user's /fetch")
    fetched = kept.page if kept else await make_fetcher(services.proxy).fetch(address)
    page = await asyncio.to_thread(page_of, fetched)
    if kept is None:
        await asyncio.to_thread(cache.keep, address, fetched)
    message, how_much = await _attachment(chat, address, fetched, page)
    await chat.attach(message)
    minutes = 0 if kept is None else int((services.clock() - kept.time) // 60)
    age = f", fetched {counted(minutes, 'minute')} ago (/fetch --again for a new copy)" if minutes > 0 else ""
    return f"Attached {address}: {how_much}{age}."


async def _attachment(chat: Chat, address: str, fetched: Fetched, page: Page) -> tuple[Message, str]:
    token = chat.services.new_token()
    if page.pdf is not None:
        message, _ = await asyncio.to_thread(document_attachment, address, page.pdf, token)
        await asyncio.to_thread(chat.services.store.put_blob, page.pdf)
        return message, "a PDF"
    room = chat.control.fitting.room_for_code("") * CHARS_PER_TOKEN
    text, most = page.text, max(_MIN_CHARS, min(MAX_CHARS, room))
    how_much = f"{len(text):,} characters"
    if len(text) > most:
        how_much = f"the first {most:,} of {how_much}"
        text = text[:most] + _CUT.format(left=f"{most:,}", all=f"{len(page.text):,}")
    head = [f"Title: {page.title}"] if page.title else []
    head += [f"Found at: {fetched.url}"] if fetched.url != address else []
    return text_attachment("page", address, "\n".join((*head, "", text) if head else (text,)), token), how_much
