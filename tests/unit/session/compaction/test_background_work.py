"""Background work during a summary: it is awaited afterwards, then runs at full speed, and ends with a stop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from codecompanion.adapters.base import Finished, TextDelta
from codecompanion.context.grounding import known_names
from codecompanion.session.checkpoint_files import state_writer
from codecompanion.session.compaction import compaction
from codecompanion.session.compaction.background_work import BackgroundWork
from tests.patience import PATIENCE_S
from tests.unit.session.compaction.test_effects import STOP, SUMMARY, kept, open_with
from tests.unit.session.fakes import ScriptedAdapter, says
from tests.unit.session.turn.test_turn import talk


async def test_the_reading_runs_beside_the_loop_and_is_awaited():
    goes_on, steps = threading.Event(), []

    def work(pause) -> None:
        steps.append(threading.current_thread() is threading.main_thread())
        goes_on.wait(PATIENCE_S)
        pause()
        steps.append("end")

    reading = BackgroundWork(work)
    await asyncio.sleep(0)
    goes_on.set()
    await reading.finish()
    assert steps == [False, "end"]


async def test_a_stop_ends_the_reading_at_its_next_step():
    begun = threading.Event()

    def work(pause) -> None:
        begun.set()
        while True:
            pause()

    reading = BackgroundWork(work)
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    await asyncio.wait_for(reading.stop(), PATIENCE_S)


async def test_an_exception_in_the_reading_is_not_swallowed():
    def work(pause) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await BackgroundWork(work).finish()


async def test_the_work_after_a_summary_is_prepared_during_it(tmp_path, monkeypatch):
    """Names read, conversation stored, evidence collected; none of it is repeated afterwards."""
    monkeypatch.setattr(compaction, "BESIDE_LOOP_TOKENS", 0)
    split, packets, after = [], [], asyncio.Event()
    texts_of, build = known_names._texts_of, state_writer.build_packet
    monkeypatch.setattr(known_names, "_texts_of", lambda message: (split.append(message.id), texts_of(message))[1])

    def built(covered, *given, **named):
        packets.append(len(covered))
        return build(covered, *given, **named)

    monkeypatch.setattr(state_writer, "build_packet", built)

    def reply(request):
        if request.purpose == "summary":
            return (TextDelta(SUMMARY), after, Finished("stop", (), None))
        return says("word " * 1500)

    bench = kept(tmp_path, ScriptedAdapter("s", reply), settings=STOP)
    session = await open_with(bench)
    await talk(bench, session, 4)
    await session.effects.settled()
    split.clear()
    packets.clear()
    view = session.log.view.messages
    session.compact("")
    await bench.until(lambda: len(split) == len(view) and packets)
    await session.effects.settled()
    assert (len(split), packets) == (len(view), [len(view)])
    after.set()
    await bench.idle(session)
    assert session.log.compactions == 1
    assert len(split) == len(view), "a message was read again"
    assert packets.count(len(view)) == 1, "the evidence was collected again"
    await session.effects.settled()
    assert not bench.bugs


async def test_a_stopped_compaction_ends_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "BESIDE_LOOP_TOKENS", 0)
    never = asyncio.Event()

    def reply(request):
        return (never,) if request.purpose == "summary" else says("word " * 1500)

    bench = kept(tmp_path, ScriptedAdapter("s", reply), settings=STOP)
    session = await open_with(bench)
    await talk(bench, session, 3)
    view = session.log.view.messages
    session.compact("")
    await bench.until(lambda: any(request.purpose == "summary" for request in bench.adapter.requests))
    await session.stop()
    await bench.idle(session)
    await session.effects.settled()
    assert session.log.view.messages == view
    assert not bench.bugs


@pytest.mark.parametrize("ending", ["refused", "stopped"])
async def test_a_compaction_that_changes_nothing_keeps_no_evidence(tmp_path, monkeypatch, ending):
    """The text prepared for its checkpoint takes memory and is never used."""
    packets, asked = [], asyncio.Event()
    build = state_writer.build_packet

    def built(covered, *given, **named):
        packets.append(build(covered, *given, **named))
        return packets[-1]

    monkeypatch.setattr(state_writer, "build_packet", built)

    def reply(request):
        if request.purpose == "summary":
            asked.set()
            return (asyncio.Event(),) if ending == "stopped" else says("I cannot help with that.")
        return says("word " * 1500)

    bench = kept(tmp_path, ScriptedAdapter("s", reply), settings=STOP)
    session = await open_with(bench)
    await talk(bench, session, 3)
    await session.effects.settled()
    packets.clear()
    view = session.log.view.messages
    session.compact("")
    await asyncio.wait_for(asked.wait(), PATIENCE_S)
    if ending == "stopped":
        await bench.until(lambda: packets)
        await session.stop()
    await bench.idle(session)
    await session.effects.settled()
    assert session.log.view.messages == view
    assert packets
    assert session.effects._writer._packet is None
    assert not bench.bugs
