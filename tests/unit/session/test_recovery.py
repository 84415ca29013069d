"""Refused requests and truncated replies: R-507, R-535, R-542; lessons 1, 2, 29, 48."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from codecompanion.adapters.base import (
    AdapterSettings,
    Finished,
    ReasoningDelta,
    ReasoningDone,
    RetryScheduled,
    TextDelta,
)
from codecompanion.context.compaction_notes import NO_MODEL
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.engine.doctor import examine
from codecompanion.errors import ContextOverflow, EncryptedRefused, Overloaded, RequestRejected, ServerLoading
from codecompanion.model.messages import GO_ON_TAG, Message, ReasoningPart, Usage
from codecompanion.placeholders import SUMMARY_PREFIX
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.state import State
from codecompanion.session.window import window_watch
from codecompanion.wire.events import (
    Compacted,
    CompactionFailed,
    CompactionStarted,
    Meter,
    Notice,
    Retrying,
    TurnFinished,
)
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit
from tests.unit.session.test_native_compaction import USAGE, compacts_and_says, talk

LONG = "words and more words " * 400


def too_long(prompt: int = 0, limit: int = 0) -> Reply:
    return (ContextOverflow("s: the request is too long for the model.", prompt, limit),)


def sizes(adapter: ScriptedAdapter) -> list[int]:
    return [sum(len(m.text) for m in r.messages) for r in adapter.requests if r.purpose == "chat"]


async def test_a_request_that_is_too_long_is_shrunk_and_sent_again(tmp_path):
    """R-535, lesson 29: the chat is compacted, then it is sent once more; the user sees the summary and the answer."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long(), says("THE SUMMARY"), says("answered")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    texts = [without_span(m.text) for m in session.log.view.messages]
    assert texts == [SUMMARY_PREFIX + "THE SUMMARY", "question 2", "answered"]
    _, refused, again = sizes(adapter)
    assert again < refused
    assert bench.of(TurnFinished)[-1].reason == "done"
    assert bench.of(Compacted)[0].trigger == "reactive"


async def test_a_request_over_the_window_is_not_left_to_the_provider(tmp_path):
    """R-535: the provider would refuse before it compacts, so the chat is shrunk here, without a useless request."""
    told = Usage(input_tokens=70_000, output_tokens=40_000)
    adapter = ScriptedAdapter("s", [says(LONG, told), says("THE SUMMARY"), says("answered")], native=True)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert [request.purpose for request in adapter.requests] == ["chat", "summary", "chat"]
    texts = [without_span(m.text) for m in session.log.view.messages]
    assert texts == [SUMMARY_PREFIX + "THE SUMMARY", "question 2", "answered"]
    assert bench.of(Compacted)[0].trigger == "reactive"
    assert bench.of(TurnFinished)[-1].reason == "done"


@pytest.mark.parametrize("summary", [(Overloaded("s: overloaded"),), (ContextOverflow("s: too long"),), says("")])
async def test_the_last_tier_asks_no_model(tmp_path, summary):
    """R-535, lessons 1, 48: a summariser that fails the same way cannot block the chat."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long(), summary, says("answered")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.log.view.messages[-1].text == "answered"
    assert "question 1" in session.log.view.messages[0].text
    [compacted] = bench.of(Compacted)
    assert compacted.summariser.startswith(NO_MODEL)
    assert len(bench.of(CompactionStarted)) == 1
    assert not bench.of(CompactionFailed)


async def test_with_nothing_left_to_remove_there_is_one_clear_sentence(tmp_path):
    """R-535: the chat is intact and usable."""
    adapter = ScriptedAdapter("s", [too_long(), says("fine")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    [ended] = bench.of(TurnFinished)
    assert ended.reason == "failed"
    assert "Nothing more can be removed" in ended.error
    assert [m.text for m in session.log.view.messages] == ["question 1"]
    await talk(bench, session, 1, first=2)
    assert session.log.view.messages[-1].text == "fine"


@pytest.mark.parametrize("off", [{"enabled": False}, {"compaction": {"trigger": False}}])
async def test_disabled_compaction_stays_off(tmp_path, off):
    """Lesson 13: a refusal is reported with a remedy."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long()])
    bench = Bench(tmp_path, adapter, settings={"context_management": off})
    session = await bench.open()
    await talk(bench, session, 2)
    assert bench.of(TurnFinished)[-1].error.endswith("Automatic compaction is off: /compact makes room.")
    assert not bench.of(CompactionStarted)
    assert len(session.log.view.messages) == 3


async def test_an_attachment_that_is_too_large_is_named(tmp_path):
    """R-535: the user learns which attachment to detach."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [too_long()]))
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="file", path="big.json", content=LONG * 9))
    await talk(bench, session, 1)
    assert "big.json" in bench.of(TurnFinished)[0].error


async def test_a_second_refusal_is_final(tmp_path):
    """Lesson 29: the same request is never sent again and again."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long(), says("SUMMARY"), too_long()])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert bench.of(TurnFinished)[-1].reason == "failed"
    assert len(sizes(adapter)) == 3


async def test_sizes_in_a_refusal_are_learned(tmp_path):
    """R-506, lesson 30: the true window is used and reported, and the meter is right immediately."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long(60_000, 40_000), says("SUMMARY"), says("answered")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.control.limits.context_window == 40_000
    assert any("40,000 tokens, not 100,000" in notice.text for notice in bench.of(Notice))
    assert bench.of(Compacted)[0].tokens_before == 60_000
    assert bench.of(Meter)[-1].window == 40_000


async def test_a_window_smaller_than_the_fixed_part_is_not_learned(tmp_path):
    """No request would ever fit; the endpoint's figure means something else."""
    adapter = ScriptedAdapter("s", [too_long(0, 10), says("answered")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.control.limits.context_window == 100_000
    assert session.log.view.messages[-1].text == "answered"


async def test_a_refusal_with_an_absurd_figure_teaches_nothing(tmp_path):
    """Lesson 8: the model's other chats are not affected, and the next report corrects this one."""
    adapter = ScriptedAdapter("s", [says(LONG), too_long(9_000_000, 0), says("SUMMARY"), says("answered", USAGE)])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.log.view.messages[-1].text == "answered"
    assert session.meter.calibration.extra < 1_000
    assert bench.of(Meter)[-1].tokens == 420


async def test_a_refusal_in_a_tool_loop_keeps_the_question(tmp_path):
    """R-551, R-535."""
    (tmp_path / "a.txt").write_text(LONG)
    read = ("c1", "read_file", '{"path": "a.txt"}')
    adapter = ScriptedAdapter("s", [calls(read), too_long(), says("done")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    question, call, result, reply = session.log.view.messages
    assert question.text == "question 1"
    assert call.tool_calls[0].id == result.tool_call_id == "c1"
    assert "left out: the result is larger than the rest of the context window" in result.text
    assert reply.text == "done"


async def test_a_providers_own_compaction_does_not_hide_the_messages_it_replaced(tmp_path):
    """R-535, R-542: recovery summarises the log, not the block."""
    replies = [says(LONG), compacts_and_says("two " * 400, None), too_long(), says("SUMMARY"), says("three")]
    adapter = ScriptedAdapter("s", replies, native=True)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 3)
    texts = [without_span(m.text) for m in session.log.view.messages]
    assert texts == [SUMMARY_PREFIX + "SUMMARY", "question 3", "three"]
    [request] = [r for r in adapter.requests if r.purpose == "summary"]
    assert "question 1" in request.messages[0].text


async def test_room_is_left_for_the_rest_of_the_reply(tmp_path):
    """R-507, lesson 2: prompt and reply together never exceed the window."""
    adapter = ScriptedAdapter("s", [says("one", Usage(input_tokens=7_000, output_tokens=10)), says("two")])
    bench = Bench(tmp_path, adapter, window=10_000, settings={"context_management": {"enabled": False}})
    bench.services.settings.models["scripted-1"] = type(bench.services.lookup("s", "m"))(10_000, 4_000)
    session = await bench.open()
    await talk(bench, session, 2)
    reserves = [request.max_output_tokens for request in adapter.requests]
    assert reserves[0] == 4_000
    assert 2_800 < reserves[1] < 3_000


async def test_a_reply_at_the_output_limit_is_continued_once(tmp_path):
    """max_output_continuations: the default is 1; our prompt opens no cycle and is not a user message."""
    cut: Reply = (TextDelta("half"), Finished("length"))
    adapter = ScriptedAdapter("s", [cut, cut, says("end")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert [m.tag for m in session.log.view.messages] == [None, None, GO_ON_TAG, None]
    assert session.log.view.cycle == 1
    assert any("/continue" in notice.text for notice in bench.of(Notice))
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "end"
    assert session.log.view.messages[-2].tag == GO_ON_TAG


async def test_an_empty_answer_is_reported(tmp_path):
    """An empty buffer would look like a hanging chat."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [(Finished("stop"),)]))
    session = await bench.open()
    await talk(bench, session, 1)
    assert any("empty reply" in notice.text for notice in bench.of(Notice))


async def test_a_truncated_reply_can_be_continued(tmp_path):
    """Lesson 39."""
    adapter = ScriptedAdapter("s", [(TextDelta("half"), Overloaded("s: broke off")), says(" whole")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert session.log.view.messages[-1].cut
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages if m.role == "assistant"] == ["half", " whole"]


async def test_a_paused_reply_is_sent_back_unchanged(tmp_path):
    """Anthropic's pause_turn: the partial reply is the end of the next request."""
    adapter = ScriptedAdapter("s", [(TextDelta("part"), Finished("paused")), says("rest")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert adapter.requests[1].messages[-1].text == "part"
    assert [m.text for m in session.log.view.messages] == ["question 1", "part", "rest"]


async def test_nothing_joins_a_paused_reply(tmp_path):
    """Typed and queued messages wait until the reply is complete (lesson 16)."""
    gate = asyncio.Event()
    adapter = ScriptedAdapter("s", [says(LONG), (TextDelta("part"), gate, Finished("paused")), says("rest"),
                                    says("SUMMARY"), says("both")])  # fmt: skip
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.submit(submit("question 2", 2))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("question 3", 3))
    session.compact("")
    gate.set()
    await bench.idle(session)
    assert adapter.requests[2].messages[-1].text == "part"
    assert [r.purpose for r in adapter.requests] == ["chat", "chat", "chat", "summary", "chat"]
    assert [m.text for m in session.log.view.messages][-2:] == ["question 3", "both"]


async def test_a_provider_that_pauses_forever_is_given_up(tmp_path):
    adapter = ScriptedAdapter("s", lambda request: (TextDelta("."), Finished("paused")))
    bench = Bench(tmp_path, adapter, settings={"max_provider_requests_per_turn": -1})
    session = await bench.open()
    await talk(bench, session, 1)
    assert len(adapter.requests) == 17
    assert session.state is State.IDLE


async def test_a_reply_that_fills_the_window_continues_in_a_smaller_request(tmp_path):
    """R-535: Anthropic's model_context_window_exceeded."""
    full: Reply = (TextDelta("half"), Finished("window"))
    adapter = ScriptedAdapter("s", [says(LONG), full, says("SUMMARY"), says("whole")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.log.view.messages[-1].text == "whole"
    assert bench.of(Compacted)


async def test_reasoning_refused_by_the_provider_is_omitted(tmp_path):
    """Lesson 26: its readable text is still sent, and the log keeps everything."""
    sealed: Reply = (ReasoningDelta("hm", ""), ReasoningDone("scripted@s", "{}"), TextDelta("one"), Finished("stop"))
    adapter = ScriptedAdapter("s", [sealed, (EncryptedRefused("s: invalid_encrypted_content."),), says("two")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    [_, reply, _, _] = session.log.view.messages
    assert reply.content[0] == ReasoningPart("hm", "")
    assert session.log.view.messages[-1].text == "two"
    assert any("no longer sent" in notice.text for notice in bench.of(Notice))


async def test_a_block_refused_by_the_provider_is_replaced_by_the_full_history(tmp_path):
    """R-542: a block is refused when it belongs to another account, or its key has expired."""
    replies = [says("one"), compacts_and_says("two"), (EncryptedRefused("s: signature invalid."),), says("three")]
    adapter = ScriptedAdapter("s", replies, native=True)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 3)
    wanted = ["question 1", "one", "question 2", "two", "question 3", "three"]
    assert [m.text for m in session.log.view.messages] == wanted


async def test_an_unexplained_refusal_is_reported(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", [(EncryptedRefused("s: signature invalid."),)]))
    session = await bench.open()
    await talk(bench, session, 1)
    assert bench.of(TurnFinished)[0].error == "s: signature invalid."


@pytest.mark.parametrize(("counted", "compacts"), [(84_000, False), (86_000, True)])
async def test_the_providers_count_settles_a_close_decision(tmp_path, counted, compacts):
    """Near a trigger the estimate is uncertain: one count request settles it."""
    text = "word " * 78_000
    adapter = ScriptedAdapter("s", [says("SUMMARY"), says("ok")] if compacts else [says("ok")], counts=[counted] * 2)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content=text))
    session.submit(submit("q"))
    await bench.idle(session)
    assert len(adapter.counted) == 1
    assert not bench.bugs


async def test_an_unavailable_count_does_not_stop_the_request(tmp_path):
    adapter = ScriptedAdapter("s", [says("ok")], counts=[Overloaded("s: overloaded")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 62_000))
    session.submit(submit("q"))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "ok"
    assert len(adapter.counted) == 1


LOOK = RetryScheduled("s: loading", 1, 1000, "loading", "s is loading the model")


@pytest.mark.parametrize("answer", [84_000, ServerLoading("s: loading")])
async def test_a_count_waits_visibly_for_a_server_that_loads(tmp_path, answer):
    """The count waits as the message would; a server that never gets ready is waited for once, by the message."""
    adapter = ScriptedAdapter("s", lambda request: says("ok"), counts=[LOOK, LOOK, answer, LOOK, 84_000])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 78_000))
    for number in range(2):
        session.submit(submit("q", number))
        await bench.idle(session)
        assert [event.waiting for event in bench.of(Retrying)] == ["s is loading the model"] * 2
    assert len(adapter.counted) == (1 if isinstance(answer, int) else 2)
    assert not bench.bugs


async def test_a_summary_waits_visibly_for_a_server_that_loads(tmp_path):
    """The wait does not count as silence of the model: a compaction with several summaries has all its time left."""
    slow = msgspec.structs.replace(LOOK, wait_ms=10_000_000)
    adapter = ScriptedAdapter("s", [says("one " * 600), [slow, slow, *says("SUMMARY")]])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert [event.waiting for event in bench.of(Retrying)] == ["s is loading the model"] * 2
    assert bench.of(Compacted)


def told_of_guesses(bench: Bench) -> list[str]:
    return [notice.text for notice in bench.of(Notice) if "is unknown" in notice.text]


async def attach_much(session, words: int = 22_000) -> None:
    """Grow the chat until a guess of 32,000 tokens matters."""
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * words))


async def test_an_unknown_window_is_reported_with_the_setting_once_it_matters(tmp_path):
    """R-506, lesson 43: before the request it affects, with the assumed size and the setting."""
    told_then = []
    adapter = ScriptedAdapter("s", lambda request: told_then.append(told_of_guesses(bench)) or says("ok"))
    bench = Bench(tmp_path, adapter, window=0)
    session = await bench.open()
    await talk(bench, session, 3)
    assert told_then == [[]] * 3
    await attach_much(session)
    await talk(bench, session, 2, first=4)
    line = 'models = { ["scripted-1"] = { context_window = <its tokens> } }'
    wanted = f"The window of scripted-1 is unknown: 32,000 tokens are assumed. Set it in opts or setup(): {line}"
    assert told_then[3:] == [[wanted]] * 2
    assert all(meter.assumed for meter in bench.of(Meter))
    assert inspect(session.control, session.log)["guess"] == wanted
    chosen = msgspec.structs.replace(bench.services.settings.chat, adapter="s", model="")  # the endpoint names it
    bench.services.settings = msgspec.structs.replace(bench.services.settings, chat=chosen)
    assert wanted in [finding.text for finding in examine(bench.services)]
    adapter.default_model = ""
    [window] = [finding for finding in examine(bench.services) if finding.name == "context window"]
    assert "is unknown: 32,000 tokens are assumed." in window.text
    assert "setup()" not in window.text, "gd would name another option once the model is known"


async def test_another_chat_does_not_repeat_the_report_of_a_guess(tmp_path):
    """R-506: once per model and Neovim; a new chat, an edit in place and another chat share that."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("ok")), window=0)
    for name in ("one", "two"):
        session = await bench.open(name)
        await attach_much(session)
        await talk(bench, session, 2)
    assert len(told_of_guesses(bench)) == 1


async def test_the_suggested_setting_is_correct_for_any_name(tmp_path):
    """Without a model name the window belongs to the adapter; a name is quoted for Lua."""
    for name, model, line in (
        ("my-server", "", 'adapters = { http = { ["my-server"] = { opts = { context_window = <its tokens> } } } }'),
        ("s", 'a"b\\c', r'models = { ["a\"b\\c"] = { context_window = <its tokens> } }'),
    ):
        (tmp_path / name).mkdir()
        adapter = ScriptedAdapter(name, lambda request: says("ok"))
        adapter.default_model = model
        bench = Bench(tmp_path / name, adapter, window=0)
        session = await bench.open()
        assert session.control.window.guess.endswith(f"Set it in opts or setup(): {line}")


async def test_a_system_prompt_larger_than_the_guess_is_not_a_bug(tmp_path):
    """R-506: then the guess matters at once, and the endpoint is asked and the user notified first."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("ok")]), window=0, settings={"system_prompt": "word " * 40_000})
    session = await bench.open()
    await talk(bench, session, 1)
    assert not bench.bugs
    assert any("is unknown" in notice.text for notice in bench.of(Notice))


async def test_a_slow_model_list_does_not_delay_the_first_request(tmp_path, monkeypatch):
    """It is awaited only briefly while the guess does not matter yet."""
    monkeypatch.setattr(window_watch, "SHORT_WAIT_S", 0.01)
    adapter = Silent("s", [says("ok")])
    bench = Bench(tmp_path, adapter, window=0)
    session = await bench.open()
    await talk(bench, session, 1)
    assert session.log.view.messages[-1].text == "ok"
    assert session.control.window.is_a_guess


class Silent(ScriptedAdapter):
    """An endpoint whose model list never answers."""

    async def warm_up(self):
        await asyncio.Event().wait()


class Slow(ScriptedAdapter):
    """An endpoint that reports its window when asked, or once its model is loaded."""

    window = 0
    asked = 0

    def limits(self, model):
        return ModelLimits(self.window) if self.window else None

    async def warm_up(self):
        self.asked += 1
        self.window = 200_000


class Loading(Slow):
    """An endpoint that reports nothing before its model is loaded."""

    async def warm_up(self):
        self.asked += 1


async def test_a_guessed_window_does_not_compact_a_chat(tmp_path):
    """R-506, lesson 30: a long chat can be reopened and used before the endpoint has reported its windows."""
    adapter = Slow("s", lambda request: says("ok"))
    bench = Bench(tmp_path, adapter, window=0)
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 40_000))
    await talk(bench, session, 2)
    assert not bench.of(CompactionStarted)
    assert not bench.of(Notice)
    assert inspect(session.control, session.log)["guess"] == ""
    assert session.control.limits.context_window == 200_000
    assert adapter.asked == 1
    assert bench.of(Meter)[-1].window == 200_000


async def test_a_window_reported_with_the_first_reply_is_used(tmp_path):
    """R-506: Ollama knows it only once the model is loaded; until then it is a guess."""

    def loads(request):
        guesses.append(session.control.window.guess)
        assert bench.of(Meter)[-1].assumed
        adapter.window = 4_096
        return says("ok")

    guesses = []
    adapter = Loading("s", loads)
    bench = Bench(tmp_path, adapter, window=0)
    bench.services.adapters.add(adapter, AdapterSettings(name="s", kind="offline", limits_path="/api/ps"))
    session = await bench.open()
    await talk(bench, session, 1)
    assert (
        "is unknown: 32,000 tokens are assumed until s reports it. Set it in opts or setup(): models = " in guesses[0]
    )
    assert session.control.limits.context_window == bench.of(Meter)[-1].window == 4_096
    assert not bench.of(Meter)[-1].assumed
    await talk(bench, session, 1, first=2)
    assert guesses[1:] == [""]
    assert not bench.of(Notice)
    assert adapter.asked == 1


def refused(status: int = 400) -> Reply:
    error = RequestRejected("s: the provider refused the request (400). The provider says: bad request body.")
    error.status = status
    return (error,)


NEARLY_FULL = Usage(input_tokens=88_000, output_tokens=4_000)


@pytest.mark.parametrize("status", [400, 413, 422, 200])
async def test_a_refusal_near_the_window_counts_as_too_long_once(tmp_path, status):
    """R-535, R-451: no table has every server's error text, but the window is known. 200: an error inside the reply."""
    adapter = ScriptedAdapter("s", [says(LONG, NEARLY_FULL), refused(status), says("THE SUMMARY"), says("answered")])
    bench = Bench(tmp_path, adapter, settings={"context_management": {"compaction": {"trigger": 0.97}}})
    session = await bench.open()
    await talk(bench, session, 2)
    assert session.log.view.messages[-1].text == "answered"
    _, first, again = sizes(adapter)
    assert again < first
    assert any("nearly filled the window" in notice.text for notice in bench.of(Notice))


async def test_a_second_refusal_without_a_reason_is_reported_as_it_is(tmp_path):
    """Lesson 29: it is reported once, in the provider's own words."""
    adapter = ScriptedAdapter("s", [says(LONG, NEARLY_FULL), refused(), says("THE SUMMARY"), refused(), says("never")])
    bench = Bench(tmp_path, adapter, settings={"context_management": {"compaction": {"trigger": 0.97}}})
    session = await bench.open()
    await talk(bench, session, 2)
    assert "bad request body" in bench.of(TurnFinished)[-1].error
    assert len(sizes(adapter)) == 3


@pytest.mark.parametrize(("usage", "status"), [(USAGE, 400), (NEARLY_FULL, 403), (NEARLY_FULL, 0)])
async def test_a_different_refusal_changes_nothing(tmp_path, usage, status):
    """Far from the window, or with a different status, it is not an overflow."""
    adapter = ScriptedAdapter("s", [says(LONG, usage), refused(status), says("never")])
    bench = Bench(tmp_path, adapter, settings={"context_management": {"compaction": {"trigger": 0.97}}})
    session = await bench.open()
    await talk(bench, session, 2)
    assert len(adapter.requests) == 2
    assert bench.of(TurnFinished)[-1].reason == "failed"
    assert len(session.log.view.messages) == 3


@pytest.mark.parametrize("answer", [refused(), too_long()])
async def test_a_manual_compaction_does_not_need_the_refusing_provider(tmp_path, answer):
    """Lesson 48: the summary is then written from the log, and the user learns who wrote it."""
    adapter = ScriptedAdapter("s", [says(LONG), *[answer] * 6])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    [compacted] = bench.of(Compacted)
    assert compacted.summariser == NO_MODEL
    assert "question 1" in session.log.view.messages[0].text


async def test_a_manual_compaction_waits_for_a_busy_summariser(tmp_path):
    """R-530: an overloaded summariser leaves the chat unchanged; the next `/compact` may succeed."""
    adapter = ScriptedAdapter("s", [says(LONG), *[(Overloaded("s: overloaded"),)] * 6])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages == before
