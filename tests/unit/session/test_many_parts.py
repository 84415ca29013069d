"""A history summarised in parts: several at once, within one deadline; room for reasoning (R-120, R-433)."""

from __future__ import annotations

import asyncio

from codecompanion.adapters.base import Finished, ReasoningDelta, RetryScheduled, TextDelta
from codecompanion.context.work import SummaryRequest
from codecompanion.model.history import RequestSent
from codecompanion.session.compaction.summarise import ask_summary, summary_request
from codecompanion.session.state import State
from codecompanion.wire.events import Compacted, CompactionFailed
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


async def test_the_parts_of_a_long_history_are_written_in_parallel(tmp_path):
    """R-120: a hundred parts in sequence would take a hundred times as long."""
    second = asyncio.Event()

    class Waiting(ScriptedAdapter):
        """Answers about the first part once the second one is requested."""

        async def stream(self, request):
            asked = request.messages[0].text if request.purpose == "summary" else ""
            if "This is part 2 of" in asked:
                second.set()
            if "This is part 1 of" in asked:
                await second.wait()
            async for event in super().stream(request):
                yield event

    adapter = Waiting("s", lambda r: says("SUMMARY " * 10 if r.purpose == "summary" else "word " * 900))
    bench = Bench(
        tmp_path,
        adapter,
        settings={"policy": "codebuddy", "on_compact": "stop", "compaction_timeout_s": 5},
        window=20_000,
    )
    session = await bench.open()
    assert not session.control.shaper.env().writer_is_proven
    session.control.watch.writer_is_proven = True  # by a summary before this one
    for number in range(1, 21):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    session.compact("")
    await bench.idle(session)
    assert bench.of(Compacted), bench.events[-3:]
    assert second.is_set()
    assert {event.tier for event in bench.of(Compacted)} == {2}
    sent = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, RequestSent)]
    assert any(one.asked.startswith("summary, part 2 of ") for one in sent)
    assert session.control.shaper.env().writer_is_proven
    assert not bench.bugs


async def test_many_silent_calls_end_at_ten_times_the_limit_of_one(tmp_path, monkeypatch):
    """Lesson 18: each call is in time, but all together are not, so no more calls are made and nothing changes."""
    loop, skipped, given = asyncio.get_running_loop(), 0.0, []
    real_time = loop.time
    monkeypatch.setattr(loop, "time", lambda: real_time() + skipped)

    class Slow(ScriptedAdapter):
        """Takes four of the five seconds for every summary."""

        async def stream(self, request):
            nonlocal skipped
            skipped += 4.0 if request.purpose == "summary" else 0.0
            async for event in super().stream(request):
                yield event

    def without_end(preparation):
        """Request part after part, like a history that never gets short enough."""
        ask = next(preparation)
        while True:
            given.append((yield ask))
            if given[-1].error:
                try:
                    preparation.send(given[-1])
                except StopIteration as stop:
                    return stop.value

    adapter = Slow("s", lambda r: says("PART" if r.purpose == "summary" else "word " * 900))
    bench = Bench(tmp_path, adapter, settings={"compaction_timeout_s": 5})
    session = await bench.open()
    for number in range(1, 4):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    before, plan = session.log.view.messages, session.control.plans.compaction
    monkeypatch.setattr(session.control.plans, "compaction", lambda text: without_end(plan(text)))
    session.compact("")
    await bench.until(lambda: bench.of(CompactionFailed) and session.state is State.IDLE, limit_s=600)
    asked = [request for request in adapter.requests if request.purpose == "summary"]
    assert len(asked) == 13, "50 s at 4 s each: the last one begins in time and has 2 s left"
    assert given[-1].error == "the summariser wrote nothing for 50 s in total"
    (failed,) = bench.of(CompactionFailed)
    assert failed.reason == "Compaction failed: the summariser wrote nothing for 50 s in total. Nothing was changed."
    assert session.log.view.messages == before
    assert not bench.bugs


async def test_a_reasoning_model_gets_room_for_its_reasoning():
    """R-433: reasoning does not use up the room of the summary, as far as the window allows."""
    adapter = ScriptedAdapter("s", lambda r: (ReasoningDelta("hm " * 1000), TextDelta("text"), Finished("stop", ())))
    request = SummaryRequest(prompt="P", subject=(), max_output_tokens=500, room_tokens=2000)
    for known, limit in ((0, 500), (900, 1400), (9000, 2000)):
        reply = await ask_summary(adapter, summary_request("m", request, known), silence_s=5)
        assert adapter.requests[-1].max_output_tokens == limit
    assert reply.text == "text"
    assert reply.thinking_tokens == 1000


async def test_a_summary_that_streams_is_never_cut_off(monkeypatch):
    """A local model writes for minutes; only silence is limited, including silence after the first text."""
    loop = asyncio.get_running_loop()
    real_time, skipped = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real_time() + skipped)

    class Slow(ScriptedAdapter):
        """Takes four of the five seconds for every chunk, then is silent or done."""

        async def stream(self, request):
            nonlocal skipped
            for _ in range(50):
                skipped += 4.0
                await asyncio.sleep(0)
                yield TextDelta("x")
            if request.model == "hangs":
                skipped += 5.0
                await asyncio.Event().wait()
            yield Finished("stop", ())

    request = SummaryRequest(prompt="P", subject=(), max_output_tokens=500, room_tokens=2000)
    reply = await ask_summary(Slow("s", ""), summary_request("m", request), silence_s=5)
    assert (reply.text, reply.error) == ("x" * 50, "")
    reply = await ask_summary(Slow("s", ""), summary_request("hangs", request), silence_s=5)
    assert reply.error == "hangs wrote nothing for 5 s"


async def test_waiting_for_a_server_does_not_extend_the_limit_of_a_summary(monkeypatch):
    """Otherwise a server that never finishes loading would block a chat."""
    loop = asyncio.get_running_loop()
    real_time, skipped = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: real_time() + skipped)

    class Away(ScriptedAdapter):
        """Schedules twenty retries before it answers; the model `loads` gives a loading server as the reason."""

        async def stream(self, request):
            nonlocal skipped
            for _ in range(20):
                skipped += 2.0
                await asyncio.sleep(0)
                yield RetryScheduled("r", 1, 1000, waiting="s is loading" if request.model == "loads" else "")
            yield TextDelta("x")
            yield Finished("stop", ())

    request = SummaryRequest(prompt="P", subject=(), max_output_tokens=500, room_tokens=2000)
    reply = await ask_summary(Away("s", ""), summary_request("loads", request), silence_s=5)
    assert reply.error == "loads did not answer within 5 s"
    reply = await ask_summary(Away("s", ""), summary_request("retries", request), silence_s=5)
    assert reply.text == "x"
