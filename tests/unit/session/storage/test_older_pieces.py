"""A message sent early in a long stored chat is sent before the chat's older blocks are drawn."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.session.chat.buffer_entries import entries
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.storage import older_pieces
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.store.opening import open_store
from codecompanion.wire.events import Redrawn, Restored
from codecompanion.wire.requests import OpenChat, Snapshot
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit
from tests.unit.session.storage.test_first_piece import drawn, store_turns


@pytest.fixture
async def bench(tmp_path):
    """Yield a host with a long stored chat, and the gate that the reply waits for."""
    store, gate = open_store(tmp_path / "store"), asyncio.Event()
    made = Bench(tmp_path, ScriptedAdapter("s", lambda request: [gate, *says("more")]), store=store)
    made.gate = gate
    await store_turns(made)
    yield made
    store.close()


async def opened(bench):
    """Open the chat without waiting for its older blocks."""
    bench.events.clear()
    return await open_stored(bench.services, OpenChat(chat="chat-1", snapshot=Snapshot(), resume="chat-1"))


async def test_the_request_is_sent_before_the_older_blocks(bench):
    stored = entries(bench.store.load_events("chat-1"))
    session = await opened(bench)
    session.submit(submit("now"))
    await bench.until(lambda: bench.adapter.requests)
    assert len(bench.of(Restored)) == 1
    bench.gate.set()
    await bench.idle(session)
    await session.older
    assert drawn(bench) == stored
    await session.close()


async def test_older_blocks_do_not_wait_for_a_long_turn(bench, monkeypatch):
    monkeypatch.setattr(older_pieces, "TURN_LIMIT_S", 0.01)
    stored = entries(bench.store.load_events("chat-1"))
    session = await opened(bench)
    session.submit(submit("now"))
    await session.older
    assert session.task is not None
    assert drawn(bench) == stored
    bench.gate.set()
    await session.close()


async def test_a_chat_redrawn_in_between_has_no_block_twice(bench):
    session = await opened(bench)
    session.submit(submit("now"))
    await bench.until(lambda: bench.adapter.requests)
    await redraw(session)
    bench.gate.set()
    await bench.idle(session)
    await asyncio.wait({session.older})
    assert len(bench.of(Redrawn)) == 1
    assert session.older.cancelled()
    assert [entry.text for entry in drawn(bench)][-1] == "now"
    await session.close()


async def test_a_chat_closed_at_once_sends_no_more_blocks(bench):
    session = await opened(bench)
    await session.close()
    await asyncio.wait({session.older})
    assert session.older.cancelled()
    assert len(bench.of(Restored)) == 1
