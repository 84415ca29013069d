"""The session around a compaction: R-004, R-518, R-528…R-533, R-543, R-544, R-551; lessons 12, 16, 36, 41."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.errors import StoreUnavailable
from codecompanion.model import history
from codecompanion.model.invariants import violations
from codecompanion.session.state import State
from codecompanion.wire.events import (
    Compacted,
    CompactionFailed,
    CompactionStarted,
    MessageSent,
    Notice,
    SubmitFailed,
    TurnFinished,
)
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import READ, SMALL, long_chat, stored_view, talk


@pytest.mark.parametrize("stop", ["cancel", "clear"])
async def test_a_stop_right_after_a_submit_leaves_a_usable_chat(tmp_path, stop):
    """R-544: before the turn's first step, or while its message is being stored; it is reported either way."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("hello")))
    session = await bench.open()
    session.submit(submit("hi"))
    if stop == "cancel":
        session.cancel()
    else:
        await asyncio.wait_for(session.clear(), PATIENCE_S)
    await asyncio.wait_for(bench.idle(session), PATIENCE_S)
    assert [e.text for e in [*bench.of(SubmitFailed), *bench.of(MessageSent)]] == ["hi"]
    session.submit(submit("again", 2))
    await asyncio.wait_for(bench.idle(session), PATIENCE_S)
    assert [m.text for m in session.log.view.messages] == ["again", "hello"]


@pytest.mark.parametrize("ticks", range(12))
async def test_a_message_is_either_sent_or_returned(tmp_path, ticks):
    """Lessons 16, 36: for a stop at any point, exactly one of the two happens."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("hello")))
    session = await bench.open()
    session.submit(submit("hi"))
    for _ in range(ticks):
        await asyncio.sleep(0)
    session.cancel()
    await asyncio.wait_for(bench.idle(session), PATIENCE_S)
    kept = [m.text for m in session.log.view.messages if m.role == "user"]
    assert len(kept) + len(bench.of(SubmitFailed)) == 1
    assert len(kept) == len(bench.of(MessageSent))


@pytest.mark.parametrize("ticks", range(0, 40, 2))
async def test_a_compaction_is_complete_or_absent(tmp_path, ticks):
    """R-530, R-544, lesson 41: for a stop at any point, the reported result matches the view."""
    bench = Bench(tmp_path, long_chat(says("SUMMARY")), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    session.compact("")
    for _ in range(ticks):
        await asyncio.sleep(0)
    session.cancel()
    await asyncio.wait_for(bench.idle(session), PATIENCE_S)
    landed = session.log.view.messages != before
    assert landed == bool(bench.of(Compacted))
    assert len(bench.of(CompactionStarted)) == len(bench.of(Compacted)) + len(bench.of(CompactionFailed))
    assert stored_view(bench).messages == session.log.view.messages


@pytest.mark.parametrize("wish", ["stop", "ask"])
async def test_an_automatic_compaction_continues_only_if_allowed(tmp_path, wish):
    """R-528, lesson 12: `on_compact` also applies to a compaction during the work."""
    adapter = long_chat(says("SUMMARY"))
    bench = Bench(tmp_path, adapter, window=12_000, settings={**SMALL, "on_compact": wish})
    session = await bench.open()
    for number in range(1, 20):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        if bench.of(Compacted):
            break
    asked = sum(request.purpose == "chat" for request in adapter.requests)
    assert bench.of(Compacted)
    assert session.log.view.messages[-1].text == f"question {number}"
    assert asked == number - 1
    assert "on_compact" in bench.of(TurnFinished)[-1].error
    await session.regenerate(session.snapshot)
    await bench.idle(session)
    assert session.log.view.messages[-1].role == "assistant"


async def test_editing_still_runs_after_a_compact_in_a_turn_did_nothing(tmp_path):
    """R-518: a `/compact` that is skipped or fails does not let a request be sent unmanaged."""
    (tmp_path / "a.txt").write_text("word " * 4000)
    gate = asyncio.Event()
    script = iter(range(100))

    def reply(request):
        if request.purpose == "summary":
            return says("")
        number = next(script)
        if number == 8:
            return (gate, *calls((f"c{number}", "read_file", '{"path": "a.txt"}')))
        return calls((f"c{number}", *READ[1:])) if number % 2 == 0 else says("done")

    bench = Bench(tmp_path, ScriptedAdapter("s", reply), settings={
        "context_management": {"editing": {"trigger": 100}, "compaction": {"trigger": False}}})  # fmt: skip
    session = await bench.open()
    for number in range(4):
        session.submit(submit(f"q{number}", number))
        await bench.idle(session)
    edited = [m for m in session.log.view.messages if m.edited]
    session.submit(submit("last", 9))
    await bench.until(lambda: session.state is State.STREAMING)
    session.compact("")
    gate.set()
    await bench.idle(session)
    assert violations(session.log.view.messages) == []
    assert len([m for m in session.log.view.messages if m.edited]) > len(edited)


@pytest.mark.parametrize("what", [history.CompactionStarted, history.ViewChanged])
async def test_a_failure_on_a_full_disk_is_reported_in_one_sentence(tmp_path, monkeypatch, what):
    bench = Bench(tmp_path, long_chat(says("SUMMARY")), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    write = session.log.write

    async def refuse(*payloads):
        if any(isinstance(payload, what) for payload in payloads):
            raise StoreUnavailable("the disk is full")
        return await write(*payloads)

    monkeypatch.setattr(session.log, "write", refuse)
    session.compact("")
    await bench.idle(session)
    told = [event.text for event in bench.of(Notice)] + [event.reason for event in bench.of(CompactionFailed)]
    told += [event.error for event in bench.of(TurnFinished) if event.error]
    assert [text for text in told if "disk" in text] == ["Compaction failed: the disk is full. Nothing was changed."]


async def test_a_compaction_that_cannot_be_stored_is_reported_as_failed(tmp_path, monkeypatch):
    """R-530, R-543: the editor does not wait for a missing end."""
    bench = Bench(tmp_path, long_chat(says("SUMMARY")), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    write = session.log.write

    async def refuse(*payloads):
        if any(isinstance(payload, history.ViewChanged) for payload in payloads):
            raise StoreUnavailable("the disk is full")
        return await write(*payloads)

    monkeypatch.setattr(session.log, "write", refuse)
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages == before
    assert "the disk is full" in bench.of(CompactionFailed)[0].reason
