"""Switching the model during a turn: which model is asked, and which one a report calibrates (R-542; lessons 4, 7)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import UNSET

from codecompanion.adapters.base import AdapterSettings, Finished, RetryScheduled, TextDelta
from codecompanion.errors import ConfigError, ContextOverflow, ModelNotFound, Overloaded
from codecompanion.model.history import ModelSet, RequestSent, UsageReported
from codecompanion.model.messages import GO_ON_TAG, Usage
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.state import State
from codecompanion.wire.events import Meter, Mistakes, ModelChanged, ReplyStarted, Retrying, TurnFinished
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

BIG = Usage(input_tokens=50_000, output_tokens=100)
LONG = Usage(input_tokens=4_000, output_tokens=40_000)
READ = ("c1", "read_file", '{"path": "a.txt"}')


def bench_of(tmp_path, first, other, window=100_000):
    bench = Bench(tmp_path, first)
    bench.services.adapters.add(other, AdapterSettings(name=other.name, kind="offline", context_window=window))
    return bench


async def ask(bench, session, text, number=1):
    session.submit(submit(text, number))
    await bench.idle(session)


async def test_a_report_belongs_to_the_model_that_wrote_the_reply(tmp_path):
    """If the model changes while a reply arrives, the new model neither learns from the report nor uses its count."""
    gate = asyncio.Event()
    first = ScriptedAdapter("first", [(TextDelta("Hel"), gate, TextDelta("lo"), Finished("stop", (), BIG))])
    other = ScriptedAdapter("other", [says("hi", Usage(input_tokens=300, output_tokens=2))])
    bench = bench_of(tmp_path, first, other)
    session = await bench.open()
    session.submit(submit("one"))
    await bench.until(lambda: bool(bench.of(Meter)) and bool(first.requests))
    await session.use_model("other", "")
    before = session.meter.calibration
    gate.set()
    await bench.idle(session)
    [report] = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, UsageReported)]
    assert (report.adapter, report.model) == ("first", "scripted-1")
    assert session.meter.calibration == before
    assert ("other", "scripted-1") not in bench.services.calibrations
    assert bench.of(Meter)[-1].tokens < 10_000
    await ask(bench, session, "two", 2)
    assert [m.text for m in other.requests[0].messages[1:]] == ["one", "Hello", "two"]


async def test_a_model_chosen_during_the_preparation_gets_its_own_request(tmp_path):
    """Lesson 4: the window checked is that of the model that gets the request."""
    gate = asyncio.Event()
    first = ScriptedAdapter("first", [says("word " * 40_000, LONG), (gate, Overloaded("first: overloaded"))])
    other = ScriptedAdapter("other", [says("THE SUMMARY"), says("answered")])
    bench = bench_of(tmp_path, first, other, window=20_000)
    session = await bench.open()
    session.use_overrides({"compaction": {"trigger": 40_000}})
    await ask(bench, session, "question 1")
    session.submit(submit("question 2", 2))
    await bench.until(lambda: len(first.requests) == 2)
    await session.use_model("other", "")
    gate.set()
    await bench.idle(session)
    assert [request.purpose for request in other.requests] == ["summary", "chat"]
    assert session.log.view.messages[-1].text == "answered"


async def test_a_function_with_an_invalid_result_does_not_affect_the_others(tmp_path):
    """R-502: each result of a configured function counts separately, and the invalid one is named."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []), window=20_000)
    session = await bench.open()
    with pytest.raises(ConfigError, match=r"context_management.editing.trigger: 1 would mean"):
        session.use_overrides({"editing": {"trigger": 1}, "compaction": {"trigger": "50%"}})
    assert [stage.trigger.at for stage in session.control.policy.stages][-1] == 0.5
    session.use_overrides({})
    assert [stage.trigger.at for stage in session.control.policy.stages][-1] == 0.85


async def test_an_invalid_result_disables_the_policy_that_reads_it_in_this_chat(tmp_path):
    """R-347: the header line shows this; another policy runs until a result is valid."""
    bench = Bench(tmp_path, ScriptedAdapter("first", []), window=20_000)
    session = await bench.open()
    await choose_policy(session, "cowork")
    with pytest.raises(ConfigError, match="Policy cowork is stopped; codecompanion is used instead"):
        session.use_overrides({"compaction": {"trigger": -1}})
    assert session.control.policy.name == "codecompanion"
    assert (bench.of(Meter)[-1].stopped, bench.of(Meter)[-1].stopped_by) == ("cowork", "compaction.trigger")
    (listed,) = [sentence for sentence in bench.services.failures if "Policy cowork is stopped" in sentence]
    await choose_policy(session, "cowork strict")
    assert bench.of(Meter)[-1].stopped == "cowork strict"
    await choose_policy(session, "codecompanion strict")
    assert session.control.policy.name == "codecompanion strict"
    assert bench.of(Meter)[-1].stopped is UNSET
    await choose_policy(session, "cowork")
    session.use_overrides({}, ["interactions.chat.opts.context_management.compaction.trigger: the function failed"])
    assert bench.of(Meter)[-1].stopped_by == "compaction.trigger"
    session.use_overrides({"compaction": {"trigger": 0.5}})
    assert session.control.policy.name == "cowork"
    assert bench.of(Meter)[-1].stopped is UNSET
    assert listed not in bench.services.failures
    assert bench.of(Mistakes)[-1].failures == tuple(bench.services.failures) == ()


async def test_an_overflow_of_the_previous_model_does_not_shrink_the_chat(tmp_path):
    """R-535: the next model has another window; nothing is learned about it, and nothing is removed."""
    gate = asyncio.Event()
    first = ScriptedAdapter("first", [says("a " * 4_000), (gate, ContextOverflow("first: too long", 60_000, 40_000))])
    other = ScriptedAdapter("other", [says("answered")])
    bench = bench_of(tmp_path, first, other)
    session = await bench.open()
    await ask(bench, session, "question 1")
    session.submit(submit("question 2", 2))
    await bench.until(lambda: len(first.requests) == 2)
    await session.use_model("other", "")
    gate.set()
    await bench.idle(session)
    assert len(other.requests[0].messages) == 4
    assert session.control.limits.context_window == 100_000
    assert bench.of(TurnFinished)[-1].reason == "done"


async def test_running_tools_report_to_the_next_model(tmp_path):
    """The calls and their results are sent to the next model."""
    (tmp_path / "a.txt").write_text("content")
    first, other = ScriptedAdapter("first", [calls(READ)]), ScriptedAdapter("other", [says("done")])
    bench = bench_of(tmp_path, first, other)
    session = await bench.open()
    session.submit(submit("read it"))
    await bench.until(lambda: bool(first.requests))
    await session.use_model("other", "")
    await bench.idle(session)
    roles = [message.role for message in other.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_reply_paused_by_the_previous_provider_is_continued_with_a_prompt(tmp_path):
    """Only the pausing provider can continue from an assistant message; others need a user message."""
    gate = asyncio.Event()
    first = ScriptedAdapter("first", [(TextDelta("I search"), gate, Finished("paused"))])
    other = ScriptedAdapter("other", [says("found")])
    bench = bench_of(tmp_path, first, other)
    session = await bench.open()
    session.submit(submit("search"))
    await bench.until(lambda: bool(first.requests))
    await session.use_model("other", "")
    gate.set()
    await bench.idle(session)
    last = other.requests[0].messages[-1]
    assert (last.role, last.tag) == ("user", GO_ON_TAG)


class Unnamed(ScriptedAdapter):
    """An adapter whose entry names no model; its endpoint lists `listed` after a check of a server that starts."""

    listed: str | Exception = "qwen3"

    def __init__(self, name, replies):
        super().__init__(name, replies)
        self.default_model = ""

    async def find_model(self, on_wait):
        on_wait(RetryScheduled("no connection", 1, 1_000, waiting="no server yet"))
        if isinstance(self.listed, Exception):
            raise self.listed
        return self.listed


async def test_the_first_request_of_an_entry_without_a_model_is_logged_with_the_model_that_is_listed(tmp_path):
    adapter = Unnamed("s", [says("Hello", Usage(input_tokens=300, output_tokens=2))])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await ask(bench, session, "one")
    assert adapter.requests[0].model == "qwen3"
    assert [event.waiting for event in bench.of(Retrying)] == ["no server yet"]
    assert [event.model for event in bench.of(ReplyStarted)] == [event.model for event in bench.of(ModelChanged)]
    logged = [event.payload for event in bench.store.load_events("chat-1")]
    named = [payload.model for payload in logged if isinstance(payload, RequestSent | UsageReported | ModelSet)]
    assert named == ["qwen3"] * 3


async def test_an_endpoint_that_lists_no_model_ends_the_turn(tmp_path):
    adapter = Unnamed("s", [])
    adapter.listed = ModelNotFound("s: the endpoint lists no model.")
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await ask(bench, session, "one")
    assert (bench.of(TurnFinished)[-1].reason, adapter.requests) == ("failed", [])
    assert [event.model for event in bench.of(ReplyStarted)] == [""]


async def test_a_model_chosen_while_the_endpoint_lists_none_yet_answers(tmp_path):
    adapter, other = Unnamed("s", []), ScriptedAdapter("other", [says("hi")])
    bench = bench_of(tmp_path, adapter, other)
    session = await bench.open()
    gate = asyncio.Event()

    async def find_model(on_wait):
        await gate.wait()
        return "qwen3"

    adapter.find_model = find_model
    session.submit(submit("one", 1))
    await bench.until(lambda: session.state is State.STREAMING)
    await session.use_model("other", "")
    gate.set()
    await bench.idle(session)
    assert (session.adapter_name, [m.text for m in other.requests[0].messages[1:]]) == ("other", ["one"])
