"""Sources of a summary besides the view: the originals of cleared results."""

from __future__ import annotations

import asyncio

from codecompanion.errors import StoreError
from tests.unit.session.fakes import Bench
from tests.unit.session.history.test_undo import EDITS, reader, talked


async def test_the_originals_of_cleared_results_are_read_when_a_ledger_is_due(tmp_path, monkeypatch):
    """Each original is read once, by its position in the log, so a long chat costs no more."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    sources, messages = session.control.sources, session.log.view.messages
    gone = [message for message in messages if message.edited]
    ranges, load = [], bench.store.load_events
    monkeypatch.setattr(
        bench.store,
        "load_events",
        lambda chat, since=0, until=0: (ranges.append(until - since), load(chat, since, until))[1],
    )
    await sources.read(session.control.policy, due=False)
    assert [sources.original(message) for message in messages] == list(messages)
    for _ in range(2):
        await sources.read(session.control.policy, due=True)
        assert ranges == [1] * len(gone)
        assert gone
        read = [session.control.shaper.env().original(message) for message in messages]
        text = (tmp_path / "a.txt").read_text()
        assert all(text in message.text.replace("1\t", "", 1) for message in read if message.id in {m.id for m in gone})
        assert [m for m in read if m.id not in {g.id for g in gone}] == [m for m in messages if not m.edited]


async def test_an_unreadable_log_leaves_the_placeholders(tmp_path, monkeypatch):
    """The ledger has less to report; the compaction continues."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)

    await session.control.sources.read(session.control.policy, due=False)

    def fail(*_: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(bench.store, "load_events", fail)
    await asyncio.wait_for(session.control.sources.read(session.control.policy, due=True), 5)
    gone = [message for message in session.log.view.messages if message.edited]
    assert [session.control.sources.original(message) for message in gone] == gone
