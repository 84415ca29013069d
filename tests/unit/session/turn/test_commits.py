"""The number of commits between a submit and its request: one, with the message in it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model.history import MessageAdded, RequestSent, ToolRan, TurnStarted
from codecompanion.store.opening import open_store
from codecompanion.store.writer_thread import Writer
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

READS = [(f"c{number}", "read_file", f'{{"path": "{number}.txt"}}') for number in range(3)]


class Disk:
    """Counts the committed groups and blocks those after the `allowed` ones until `free` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.allowed, self.free, self.groups = 10**6, threading.Event(), 0
        self._room = threading.Condition()
        write = Writer._write

        def held(writer, group):
            with self._room:
                assert self._room.wait_for(lambda: self.groups < self.allowed or self.free.is_set(), PATIENCE_S)
                self.groups += 1
            return write(writer, group)

        monkeypatch.setattr(Writer, "_write", held)

    def allow(self, more: int) -> None:
        with self._room:
            self.allowed = self.groups + more
            self._room.notify_all()

    def release(self) -> None:
        self.free.set()
        with self._room:
            self._room.notify_all()


@pytest.mark.parametrize("policy", ["codecompanion", "adaptive"])
async def test_there_is_one_commit_between_a_message_and_its_request(tmp_path, monkeypatch, policy):
    """Turn and message are one transaction; the record of the sent request is written while it is being answered."""
    store = open_store(tmp_path / "store")
    wait = asyncio.Event()
    adapter = ScriptedAdapter("offline", [says("One."), [wait, *says("Two.")]])
    bench = Bench(tmp_path, adapter, store=store, settings={"policy": policy})
    disk = Disk(monkeypatch)
    session = await bench.open()
    session.submit(submit("first"))
    await bench.idle(session)
    await asyncio.to_thread(store._writer.submit(lambda connection: None).result)
    disk.allow(1)
    session.submit(submit("second", 2))
    await bench.until(lambda: len(adapter.requests) == 2)
    stored = [event.payload for event in store.load_events(session.chat_id)]
    assert stored[-1].message.text == "second"
    assert isinstance(stored[-2], TurnStarted)
    disk.release()
    wait.set()
    await bench.idle(session)
    kinds = [type(event.payload) for event in store.load_events(session.chat_id)]
    began = len(kinds) - kinds[::-1].index(TurnStarted) - 1
    assert kinds[began : began + 4] == [TurnStarted, MessageAdded, RequestSent, MessageAdded]
    store.close()


async def test_an_agent_step_waits_for_its_reply_and_its_results(tmp_path, monkeypatch):
    """There are two commits: one for the calls before they run, one for all results of a round before they are sent."""
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("text\n")
    store = open_store(tmp_path / "store")
    wait = asyncio.Event()
    adapter = ScriptedAdapter("offline", [[wait, *calls(*READS)], says("Done.")])
    bench = Bench(tmp_path, adapter, store=store)
    disk = Disk(monkeypatch)
    session = await bench.open()
    session.submit(submit("read"))
    await bench.until(lambda: len(adapter.requests) == 1)
    await session.log.settled()
    await asyncio.to_thread(store._writer.submit(lambda connection: None).result)
    disk.allow(2)
    wait.set()
    await bench.until(lambda: len(adapter.requests) == 2)
    stored = [event.payload for event in store.load_events(session.chat_id)]
    assert [type(payload) for payload in stored[-6:]] == [MessageAdded, ToolRan] * 3
    disk.release()
    await bench.idle(session)
    store.close()


async def test_a_turn_that_could_not_be_stored_does_not_begin_later(tmp_path, monkeypatch):
    """Otherwise the log would have a turn without an end."""
    adapter = ScriptedAdapter("offline", [says("Two.")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    append, full = bench.store.append, [True]

    def refuse(chat_id, payloads):
        if not full[0]:
            return append(chat_id, payloads)
        refused = Future()
        refused.set_exception(StoreUnavailable("the disk is full"))
        return refused

    monkeypatch.setattr(bench.store, "append", refuse)
    session.submit(submit("first"))
    await bench.idle(session)
    full[0] = False
    session.submit(submit("second", 2))
    await bench.idle(session)
    kinds = [type(event.payload) for event in bench.store.load_events(session.chat_id)]
    assert kinds.count(TurnStarted) == 1
    assert len(adapter.requests) == 1
