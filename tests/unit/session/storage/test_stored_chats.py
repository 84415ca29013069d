"""Titles, renaming and deleting of stored chats."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path

import pytest

from codecompanion.errors import InputError, StoreUnavailable
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.storage import stored_chats
from codecompanion.store.opening import open_store
from codecompanion.store.store import durable
from codecompanion.wire.events import ChatOpened, Redrawn, TitleChanged
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

LONG = "Why does foo() return nil on an empty table, and not an error as it says in the manual of the module?"


async def test_a_title_is_permanently_the_first_words_of_the_first_message(tmp_path: Path) -> None:
    """No model is asked; neither /clear nor another question changes it."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a"), says("b")]))
    session = await bench.open()
    session.submit(submit(LONG))
    await bench.idle(session)
    (told,) = bench.of(TitleChanged)
    assert told.title == "Why does foo() return nil on an empty table, and not an err…"
    await session.clear()
    session.submit(submit("Another question", 2))
    await bench.idle(session)
    assert bench.of(TitleChanged) == [told]
    assert bench.store.find_session("chat-1").title == told.title  # type: ignore[union-attr]


async def test_a_chat_can_be_named_while_open_and_later(tmp_path: Path) -> None:
    """The name is restored with the chat, and is never replaced by its first words."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a")]))
    session = await bench.open()
    assert await stored_chats.rename(bench.services, "chat-1", "  The\n parser ", session.log)
    session.submit(submit("hello"))
    await bench.idle(session)
    assert [event.title for event in bench.of(TitleChanged)] == ["The parser"]
    await session.close()
    assert "“Other”" in await stored_chats.rename(bench.services, "chat-1", "Other", None)
    await bench.resume()
    assert bench.of(ChatOpened)[-1].title == "Other"


async def test_bad_names_and_unknown_chats_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    with pytest.raises(InputError, match="at least one word"):
        await stored_chats.rename(bench.services, "chat-1", " \n ", None)
    for act in (stored_chats.rename(bench.services, "x", "t", None), stored_chats.delete(bench.services, "x", {})):
        with pytest.raises(InputError, match="No stored chat has the id 'x'"):
            await act


async def test_an_open_chat_is_not_deleted(tmp_path: Path) -> None:
    """Text on the screen must be in the store; a closed chat is deleted with a confirmation."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a")]))
    session = await bench.open()
    session.submit(submit("hello"))
    await bench.idle(session)
    with pytest.raises(InputError, match="close it before"):
        await stored_chats.delete(bench.services, "chat-1", {"chat-1": session})
    await session.close()
    assert await stored_chats.delete(bench.services, "chat-1", {}) == "Deleted: “hello”."
    assert bench.store.list_sessions() == []


async def test_a_deleted_chat_is_not_read_forever(tmp_path: Path) -> None:
    """Its log is gone although the session still lists it: drawing ends with a sentence."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a")]))
    session = await bench.open()
    session.submit(submit("hello"))
    await bench.idle(session)
    await durable(bench.store.delete("chat-1"))
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(InputError, match="was deleted"):
            await redraw(session)
    assert not bench.of(Redrawn)


async def test_a_failed_deletion_releases_the_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lease taken for the deletion would otherwise lock every other Neovim out of the chat."""
    folder = tmp_path / "data"
    store, other = open_store(folder), open_store(folder)
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a")]), store=store)
    session = await bench.open()
    session.submit(submit("hello"))
    await bench.idle(session)
    await session.close()
    await durable(store.release("chat-1"))

    def full(chat_id: str) -> Future[int]:
        failed: Future[int] = Future()
        failed.set_exception(StoreUnavailable("the disk is full"))
        return failed

    monkeypatch.setattr(store, "delete", full)
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await stored_chats.delete(bench.services, "chat-1", {})
    await durable(other.acquire("chat-1"))
    store.close()
    other.close()
