"""Scenarios of the chat history: two Neovims, a clock that jumps, a file system that becomes read-only."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from codecompanion.errors import LeaseHeld, StoreUnavailable
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message
from codecompanion.session.storage.missing_chats import MissingChats
from codecompanion.store.opening import open_store
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.attacks.test_store import bench_of, texts_of
from tests.unit.session.fakes import says, submit

YEAR_S = 365 * 86_400.0


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.0)


async def test_two_neovims_bring_back_an_emptied_history_once(tmp_path: Path, tally: Tally) -> None:
    """Both press the key at the same moment: each chat exists once, with its text, and belongs to one Neovim."""
    truth = {}
    store = open_store(tmp_path / "data")
    bench = bench_of(tmp_path, store, *(says(f"answer {n}") for n in range(8)))
    for chat in ("aaa", "bbb"):
        session = await bench.open(chat)
        for number in range(4):
            session.submit(submit(f"{chat} question {number}", number + 1))
            await bench.idle(session)
        truth[chat] = texts_of(session)
        await session.close()
    store.close()
    held = tried = 0
    for _ in range(amount(3, full=30)):
        (tmp_path / "data" / "sessions.db").write_bytes(b"")
        stores = [open_store(tmp_path / "data") for _ in range(2)]
        hosts = [bench_of(tmp_path, one) for one in stores]
        await asyncio.gather(*(MissingChats(host.services).restore_all() for host in hosts))
        await MissingChats(hosts[0].services).restore_all()
        listed = sorted(info.id for info in stores[0].list_sessions())
        mine = await hosts[0].resume("aaa")
        theirs = await hosts[1].resume("aaa")
        refused = stores[1].append("aaa", [MessageAdded(message=Message(id="x", role="user", content="x"))])
        tried += 1
        held += (
            mine is not None
            and theirs is None  # it is only displayed
            and isinstance(refused.exception(), LeaseHeld)
            and texts_of(mine) == truth["aaa"]
            and listed == ["aaa", "bbb"]
        )
        if mine is not None:
            await mine.close()
        for one in stores:
            one.close()
    tally("history: two Neovims bring back the same chats", tried=tried, held=held)
    assert held == tried


async def test_a_clock_that_jumps_causes_no_loss_and_no_false_alarm(tmp_path: Path, tally: Tally) -> None:
    """If it jumps by a year in either direction between turns, the order is kept and the chat can be restored."""
    tried = held = 0
    for seed in range(amount(4, full=60)):
        rng, folder = random.Random(seed), tmp_path / str(seed)
        now = [1.7e9]

        def clock(now: list[float] = now, rng: random.Random = rng) -> float:
            now[0] = max(1.0, now[0] + rng.choice([-YEAR_S, -60.0, 0.0, 1.0, YEAR_S]))
            return now[0]

        store = open_store(folder / "data", clock)
        bench = bench_of(folder, store, *(says(f"answer {n}") for n in range(4)))
        bench.services.clock = clock
        session = await bench.open("aaa")
        for number in range(4):
            session.submit(submit(f"question {number}", number + 1))
            await bench.idle(session)
            await session.effects.settled()
        false_alarm = (await MissingChats(bench.services).look()).text
        truth = texts_of(session)
        await session.close()
        store.close()
        (folder / "data" / "sessions.db").write_bytes(b"")
        again = open_store(folder / "data", clock)
        bench = bench_of(folder, again)
        bench.services.clock = clock
        await MissingChats(bench.services).restore_all()
        back = await bench.resume("aaa")
        tried += 1
        held += not false_alarm and back is not None and texts_of(back) == truth
        if back is not None:
            await back.close()
        again.close()
    tally("history: a clock that jumps by years", tried=tried, held=held)
    assert held == tried


async def test_a_file_system_that_becomes_read_only_loses_no_message(tmp_path: Path, tally: Tally) -> None:
    """Unsaved messages are reported with the reason; once the file system is writable again the chat continues."""
    store = open_store(tmp_path / "data")
    bench = bench_of(tmp_path, store, says("one"), says("two"))
    session = await bench.open("aaa")
    session.submit(submit("before", 1))
    await bench.idle(session)
    kept = texts_of(session)
    with store._database.write_lock:
        store._database.writer.execute("PRAGMA query_only = ON")  # SQLite's error on such a file system
    with pytest.raises(StoreUnavailable, match="the file is read-only"):
        store.append("aaa", [MessageAdded(message=Message(id="x", role="user", content="meanwhile"))]).result()
    readable = [event.payload.message.text for event in store.load_events("aaa") if isinstance(
        event.payload, MessageAdded)]  # fmt: skip
    with store._database.write_lock:
        store._database.writer.execute("PRAGMA query_only = OFF")
    session.submit(submit("after", 2))
    await bench.idle(session)
    held = readable[-len(kept) :] == kept and texts_of(session)[-2:] == ["after", "two"]
    await session.close()
    store.close()
    tally("history: read-only for a while", tried=1, held=int(held))
    assert held
