"""Unexpected behaviour of a provider's own compaction: R-534…R-543; lessons 5, 18, 40, 48."""

from __future__ import annotations

import asyncio

from codecompanion.adapters.base import CompactionBegun, CompactionDone, Finished, RetryScheduled, TextDelta
from codecompanion.context.server_side import live_blocks
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.errors import ContextOverflow, Overloaded
from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import CompactionPart, Message, Usage
from codecompanion.placeholders import SUMMARY_PREFIX
from codecompanion.session.window import fit_check
from codecompanion.wire.events import Compacted, CompactionFailed, CompactionStarted, Notice, Retrying
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.test_native_compaction import BLOCK, native, talk
from tests.unit.session.test_recovery import LONG, attach_much

SEALED = CompactionPart(origin="scripted@s", encrypted='[{"type":"compaction","encrypted_content":"x"}]', tokens=50)
LARGE = Usage(input_tokens=90_000, output_tokens=5)


def texts(session):
    return [m.text for m in session.log.view.messages]


def told(bench):
    return [type(e) for e in bench.events if isinstance(e, CompactionStarted | Compacted | CompactionFailed)]


async def test_our_compaction_summarises_the_messages_not_an_encrypted_block(tmp_path):
    """R-542: only the provider can read the block; our summary must cover the messages it replaced."""
    reply = (CompactionDone(SEALED), TextDelta("two " * 60), Finished("stop"))
    adapter = native(says("one " * 60), reply, says("SUMMARY"), says("went on"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert not session.control.native.compacts_on_demand
    session.compact("", go_on=True)
    await bench.idle(session)
    assert list(map(without_span, texts(session))) == [SUMMARY_PREFIX + "SUMMARY", "went on"]
    [request] = [r for r in adapter.requests if r.purpose == "summary"]
    assert "question 1" in request.messages[0].text


async def test_a_chat_too_long_for_the_providers_compaction_is_compacted_here(tmp_path):
    """R-540, lesson 48: `/compact` is the remedy for a full window, so it must not need room in it."""
    adapter = native(says(LONG), says("SUMMARY"), says("went on"), compactions=[ContextOverflow("s: too long.")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("keep names", go_on=True)
    await bench.idle(session)
    assert list(map(without_span, texts(session))) == [SUMMARY_PREFIX + "SUMMARY", "went on"]
    assert "keep names" in adapter.requests[1].messages[0].text
    assert told(bench) == [CompactionStarted, CompactionFailed, CompactionStarted, Compacted]


async def test_a_compaction_on_demand_waits_visibly_for_a_server_that_loads(tmp_path):
    """Its time limit begins when the server answers."""
    look = RetryScheduled("s: loading", 1, 1000, "loading", "s is loading the model")
    adapter = native(says(LONG), says("went on"), compactions=[look, look, CompactionDone(BLOCK)])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert [event.waiting for event in bench.of(Retrying)] == ["s is loading the model"] * 2
    assert told(bench) == [CompactionStarted, Compacted]


async def test_two_compactions_in_one_reply_are_two(tmp_path):
    """R-537, R-543: each has its start, its end and its change; only the last block stays live."""
    second = CompactionPart(origin="scripted@s", encrypted='[{"type":"compaction","content":"T"}]', text="T")
    reply = (CompactionBegun(), CompactionDone(BLOCK), TextDelta("a"), CompactionBegun(), CompactionDone(second),
             CompactionBegun(), CompactionDone(None), TextDelta("b"),
             Finished("stop", (), Usage(input_tokens=400, output_tokens=20)))  # fmt: skip
    bench = Bench(tmp_path, native(says("one"), reply))
    session = await bench.open()
    await talk(bench, session, 2)
    assert told(bench) == [
        CompactionStarted,
        Compacted,
        CompactionStarted,
        Compacted,
        CompactionStarted,
        CompactionFailed,
    ]
    [live] = live_blocks(session.log.view.messages)
    assert live.compaction == second
    changes = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, ViewChanged)]
    assert len({change.change_id for change in changes}) == 2
    assert 0 < session.control.measured().tokens < 1000


async def test_a_question_above_the_threshold_is_not_compacted_at_every_step(tmp_path):
    """R-532, R-551, lesson 5: it stays in the user's words, so each of these compactions would change nothing."""
    (tmp_path / "a.txt").write_text("content")
    numbers = iter(range(100))

    def answers(request):
        number = next(numbers)
        read = calls((f"c{number}", "read_file", f'{{"path": "a.txt", "line": {number + 1}}}'), usage=LARGE)
        reply = read if number < 12 else says("done", LARGE)
        return (CompactionBegun(), CompactionDone(BLOCK), *reply) if 0 < request.compact_at <= 90_000 else reply

    adapter = ScriptedAdapter("s", answers, native=True)
    bench = Bench(
        tmp_path, adapter, window=200_000, settings={"context_management": {"compaction": {"trigger": 60_000}}}
    )
    session = await bench.open()
    session.submit(submit("word " * 80_000))
    await bench.idle(session)
    assert texts(session)[-1] == "done"
    assert adapter.requests[0].compact_at == 0
    assert len(bench.of(Compacted)) == 3
    assert any("Automatic compaction is paused" in notice.text for notice in bench.of(Notice))
    assert session.control.native.compact_at


async def test_a_stop_for_a_compaction_that_never_comes_does_not_loop(tmp_path):
    """Lesson 40: after two in a row the compaction is done here."""
    adapter = ScriptedAdapter("s", lambda request: (CompactionBegun(), CompactionDone(None), Finished("compacted"))
                              if request.compact_at else says("answer"), native=True)  # fmt: skip
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert texts(session) == ["question 1", "answer", "question 2", "answer"]
    assert len(adapter.requests) == 4


async def test_after_a_compaction_on_demand_no_provider_is_blamed(tmp_path):
    """Anthropic does not compact automatically after a requested one; an overloaded provider does not turn it off."""
    adapter = native(says("one"), *[says("more", LARGE)] * 5,
                     compactions=[CompactionDone(BLOCK), *[Overloaded("s: overloaded.")] * 5])  # fmt: skip
    bench = Bench(tmp_path, adapter, settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    await talk(bench, session, 5, first=2)
    assert session.control.native.compact_at
    [rest] = [notice.text for notice in bench.of(Notice)]
    assert "Automatic compaction is paused" in rest
    assert "overloaded" not in rest
    assert "overloaded" in bench.of(CompactionFailed)[-1].reason, "it is right above"
    assert len(adapter.compacted) == 4


async def test_useless_compactions_on_demand_are_paused_too(tmp_path):
    """R-532, lesson 5: rules above the trigger must not cause a paid compaction before every request."""
    adapter = ScriptedAdapter("s", lambda request: says("more", LARGE), native=True,
                              compactions=[CompactionDone(BLOCK)] * 20)  # fmt: skip
    bench = Bench(tmp_path, adapter, settings={"on_compact": "submit"})
    session = await bench.open()
    rules = Message(id="r", role="user", tag="rules", path="AGENTS.md", content="word " * 85_000)
    await session.attach(rules)
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    await talk(bench, session, 5, first=2)
    assert len(adapter.compacted) <= 5
    assert any("system prompt and tools alone" in notice.text for notice in bench.of(Notice))


async def test_a_compaction_that_was_never_requested_is_not_reported_missing(tmp_path):
    """If nothing can be summarised, no message says so before every request."""
    adapter = ScriptedAdapter("s", lambda request: says("more", LARGE), native=True,
                              compactions=[CompactionDone(BLOCK)] * 20)  # fmt: skip
    bench = Bench(tmp_path, adapter, settings={"on_compact": "stop"})
    session = await bench.open()
    await session.attach(Message(id="r", role="user", tag="rules", path="AGENTS.md", content="word " * 85_000))
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    await talk(bench, session, 1, first=2)
    assert not any("nothing to summarise" in notice.text for notice in bench.of(Notice))


async def test_a_hanging_count_is_awaited_once(tmp_path, monkeypatch):
    """Lesson 18: the estimate decides, and the next request does not wait that long again."""
    monkeypatch.setattr(fit_check, "COUNT_LIMIT_S", 0.01)
    adapter = ScriptedAdapter("s", lambda request: says("ok"), counts=[1])
    asked = []

    async def hangs(request, on_wait):
        asked.append(request)
        await asyncio.Event().wait()

    adapter.count_tokens = hangs
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 62_000))
    for number in range(3):
        session.submit(submit("q", number))
        await bench.idle(session)
    assert len(asked) == 1
    assert session.log.view.messages[-1].text == "ok"


async def test_a_guessed_window_is_reported_once_per_adapter(tmp_path):
    """R-506: another endpoint's model of the same name is a separate guess."""
    one, two = (ScriptedAdapter(name, lambda request: says("ok")) for name in ("one", "two"))
    bench = Bench(tmp_path, one, two, window=0)
    session = await bench.open()
    await attach_much(session)
    await talk(bench, session, 2)
    for name in ("two", "one"):
        await session.use_model(name, "")
        await session.attach(Message(id="g", role="user", tag="selection", path="b", content="word " * 22_000))
        await talk(bench, session, 2, first=3)
    assert len([notice for notice in bench.of(Notice) if "is unknown" in notice.text]) == 2


async def test_a_compaction_cut_off_names_its_cause(tmp_path):
    """R-543, R-544: a stop by the user is not a failure of the provider."""
    gate = asyncio.Event()
    adapter = native(says("one"), (CompactionBegun(), gate, CompactionDone(BLOCK), Finished("stop")))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.submit(submit("two", 2))
    await bench.until(lambda: bool(bench.of(CompactionStarted)))
    session.cancel()
    await bench.idle(session)
    [failed] = bench.of(CompactionFailed)
    assert failed.cancelled
    assert failed.reason == "Compaction stopped. Nothing was changed."
