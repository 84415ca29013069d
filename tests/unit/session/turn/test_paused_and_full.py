"""Compaction is paused and a request does not fit: the user is asked in the chat (R-545)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from codecompanion.adapters.base import Finished
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import ContextOverflow, InputError, RequestRejected
from codecompanion.model.messages import Usage
from codecompanion.session.chat.redraw import redraw
from codecompanion.session.state import State
from codecompanion.wire.events import (
    ApprovalClosed,
    ApprovalRequested,
    ChatOpened,
    Compacted,
    CompactionFailed,
    ContextEdited,
    MessageSent,
    Meter,
    Notice,
    Queued,
    SubmitFailed,
    TurnFinished,
)
from codecompanion.wire.requests import Approve, RedoChange, UndoChange
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

COUNT = MessageCounter()
SMALL = {"context_management": {"compaction": {"trigger": 5000, "min_token_savings": 100}}}
LONG = "word " * 6000
READ = ("c1", "read_file", '{"path": "a.txt"}')


def talker(reports: bool = False) -> ScriptedAdapter:
    """Return a model that gives long answers, and can summarise."""

    def answer(request):
        if request.purpose == "summary":
            return says(nine_sections("SUMMARY"))
        true = COUNT.count_messages(request.messages) + COUNT.tools(request.tools)
        return says("word " * 1500, Usage(true, 1500) if reports else None)

    return ScriptedAdapter("s", answer)


def asked(bench) -> list[ApprovalRequested]:
    return [question for question in bench.of(ApprovalRequested) if question.kind == "compact"]


async def answer(bench, session, decision, reason=""):
    question = asked(bench)[-1]
    session.desk.answer(Approve(chat="chat-1", call_id=question.call_id, decision=decision, reason=reason))
    await bench.idle(session)


async def say(bench, session, number, text=""):
    """Send a message; return once the turn is over, or asks."""
    before = len(asked(bench))
    session.submit(submit(text or f"question {number}", number))
    await bench.until(lambda: len(asked(bench)) > before or (session.state is State.IDLE and session.task is None))


async def paused(bench, session=None):
    """Return a chat that compacted itself and whose user undid that."""
    session = session or await bench.open()
    for number in range(20):
        await say(bench, session, number)
        if bench.of(Compacted):
            break
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    return session


async def full(bench, session):
    """Send messages until one does not fit; return its number."""
    for number in range(60, 80):
        await say(bench, session, number)
        if asked(bench):
            return number
    raise AssertionError("it always fitted")


def typed(session) -> list[str]:
    return [m.text for m in session.log.view.messages if m.role == "user" and not m.tag]


@pytest.mark.parametrize("reports", [False, True])
async def test_a_message_that_does_not_fit_is_asked_about_before_it_is_logged(tmp_path, reports):
    """With or without reported usage: nothing is sent, removed or logged until the answer."""
    adapter = talker(reports)
    bench = Bench(tmp_path, adapter, window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    (question,) = asked(bench)
    view, sent = session.log.view.messages, len(adapter.requests)
    assert question.title.endswith(" tokens, 19,000 fit")
    assert question.body.startswith("Compaction is paused because of your undo.\nNo: your message goes back")
    assert session.state is State.AWAITING_APPROVAL
    assert f"question {number}" not in typed(session)
    assert bench.of(Queued)[-1].submit_id == number, "it is not said to be on its way"
    await redraw(session)
    assert [again.call_id for again in asked(bench)] == [question.call_id] * 2
    assert (session.log.view.messages, len(adapter.requests)) == (view, sent)
    await answer(bench, session, "once")
    assert len(bench.of(Compacted)) == 2
    assert not bench.of(Meter)[-1].paused
    assert bench.of(ApprovalClosed)[-1].decision == "once"
    assert typed(session).count(f"question {number}") == 1
    assert session.log.view.messages[-1].text.startswith("word")
    with pytest.raises(InputError, match="already answered"):
        await answer(bench, session, "once")


@pytest.mark.parametrize("decision", ["reject", "cancel"])
async def test_a_no_returns_the_message_and_leaves_the_chat_unchanged(tmp_path, decision):
    bench = Bench(tmp_path, talker(), window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    view = session.log.view.messages
    await answer(bench, session, decision)
    (back,) = bench.of(SubmitFailed)
    assert (back.submit_id, back.text) == (number, f"question {number}")
    assert back.error.startswith("Not sent: ")
    assert back.error.endswith(" tokens, 19,000 fit. Your message is back in the input.")
    assert len(back.error) <= 80
    assert bench.of(TurnFinished)[-1].error == back.error
    assert session.log.view.messages == view
    assert bench.of(Meter)[-1].paused
    assert number not in [event.submit_id for event in bench.of(MessageSent)]
    await session.edits.carry_out(RedoChange(chat="chat-1"))
    await say(bench, session, 90)
    assert len(asked(bench)) == 1
    assert session.log.view.messages[-1].text.startswith("word"), "redoing made room, too"


async def test_compact_typed_during_the_question_is_a_yes_and_its_instructions_count(tmp_path):
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    session.compact("mind the tests")
    await bench.idle(session)
    assert "mind the tests" in adapter.requests[-2].messages[-1].text
    assert typed(session)[-1] == f"question {number}"
    assert not bench.of(Meter)[-1].paused


async def test_a_stop_during_the_question_returns_the_message(tmp_path):
    bench = Bench(tmp_path, talker(), window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    view = session.log.view.messages
    session.cancel()
    await bench.idle(session)
    assert [event.text for event in bench.of(SubmitFailed)] == [f"question {number}"]
    assert bench.of(ApprovalClosed)[-1].decision == "cancel"
    assert session.log.view.messages == view
    assert session.desk.questions == ()


async def test_a_host_that_exits_during_the_question_has_logged_nothing(tmp_path):
    """The question was not answered: the next host asks again once a message is sent."""
    bench = Bench(tmp_path, talker(), window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    view = session.log.view.messages
    again = await bench.resume()
    assert again.log.view.messages == view
    assert bench.of(ChatOpened)[-1].stored == ()
    await say(bench, again, number)
    assert len(asked(bench)) == 2
    await answer(bench, again, "once")
    assert typed(again).count(f"question {number}") == 1
    session.cancel()
    await bench.idle(session)


async def test_a_yes_counts_even_if_the_summariser_fails(tmp_path):
    """R-524: if no model can make it fit, code does, as the user wanted; the question appears once."""
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=20_000, settings=SMALL)
    session = await paused(bench)
    number = await full(bench, session)
    good = adapter._replies
    adapter._replies = lambda request: says("") if request.purpose == "summary" else good(request)
    await answer(bench, session, "once")
    assert len(bench.of(CompactionFailed)) == 1
    assert len(asked(bench)) == 1
    assert session.log.view.messages[-1].text.startswith("word")
    assert typed(session)[-1] == f"question {number}"


async def test_clearing_that_is_not_paused_makes_room_silently(tmp_path):
    """Only compaction was undone: if editing makes the message fit, it is sent, and no line calls it too large."""
    (tmp_path / "a.txt").write_text("word " * 3500)
    numbers = iter(range(1000))

    def reads(request):
        if request.purpose == "summary":
            return says(nine_sections("SUMMARY"))
        if "read" not in request.messages[-1].text:
            return says("done")
        return calls((f"c{next(numbers)}", *READ[1:]))

    bench = Bench(tmp_path, ScriptedAdapter("s", reads), window=20_000, settings=off("editing", "compaction"))
    session = await bench.open()
    for number in range(4):
        await say(bench, session, number, f"read it {number}")
    session.compact("")
    await bench.idle(session)
    await say(bench, session, 5, "short " * 3000)
    session.use_overrides({"editing": {"trigger": 14_000, "keep_cycles": 1}, "compaction": {"trigger": 17_000}})
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    assert session.control.measured().tokens > 20_000
    assert bench.of(Meter)[-1].paused
    told = bench.of(Notice)[-1].text
    assert told == "Compaction is paused until you /compact, redo or choose a policy."
    await say(bench, session, 6, "short")
    assert asked(bench) == []
    assert bench.of(ContextEdited)
    assert session.log.view.messages[-1].text == "done"
    assert bench.of(Meter)[-1].paused


def off(*stages):
    return {"context_management": {stage: {"trigger": False} for stage in stages}}


async def nearly_full(tmp_path, settings=SMALL):
    """Return a paused chat with little more room than for a short message."""
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=20_000, settings=settings)
    session = await paused(bench)
    while session.control.measured().tokens < 15_500:
        await say(bench, session, 50)
    return adapter, bench, session


async def looping(tmp_path, settings=SMALL):
    """Return a paused chat that asks in its next turn, because a tool result no longer fits."""
    (tmp_path / "a.txt").write_text("data " * 3000)
    adapter, bench, session = await nearly_full(tmp_path, settings)
    talk = adapter._replies

    def loops(request):
        if request.purpose == "summary":
            return talk(request)
        return says("done") if any(m.role == "tool" for m in request.messages) else calls(READ, text=LONG)

    adapter._replies = loops
    await say(bench, session, 60)
    return adapter, bench, session


@pytest.mark.parametrize("wish", ["auto", "stop"])
async def test_in_a_tool_loop_a_yes_continues(tmp_path, wish):
    """The loop is compacted and continues, even if compactions normally end a turn: this one was requested."""
    _, bench, session = await looping(tmp_path, {**SMALL, "on_compact": wish})
    (question,) = asked(bench)
    assert question.body.endswith("No: the turn ends here; /compact makes room and continues.")
    await answer(bench, session, "once")
    assert session.log.view.messages[-1].text == "done"
    assert bench.of(TurnFinished)[-1].reason == "done"
    assert not session.log.view.has_open_calls


async def test_in_a_tool_loop_a_no_ends_the_turn_and_compact_continues_it(tmp_path):
    """The tool results stay; a message that the model has answered does not return to the input."""
    adapter, bench, session = await looping(tmp_path)
    sent = len(adapter.requests)
    await answer(bench, session, "reject")
    said = bench.of(TurnFinished)[-1]
    assert said.error.startswith("Stopped: ")
    assert said.error.endswith("/compact makes room and continues.")
    assert len(said.error) <= 80
    assert len(adapter.requests) == sent
    assert session.log.view.messages[-1].role == "tool"
    assert bench.of(SubmitFailed) == []
    assert bench.of(Meter)[-1].paused
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "done"


async def test_a_message_typed_during_a_loop_is_asked_about_and_returned(tmp_path):
    """The queued message waits before it is logged; the answered messages stay."""
    gate = asyncio.Event()
    (tmp_path / "a.txt").write_text("data")
    adapter, bench, session = await nearly_full(tmp_path)
    talk = adapter._replies
    call = (gate, *calls(READ, text=LONG))
    adapter._replies = lambda request: call if request.messages[-1].role == "user" else talk(request)
    session.submit(submit("look", 60))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("long " * 3000, 61))
    gate.set()
    await bench.until(lambda: bool(asked(bench)))
    await answer(bench, session, "reject")
    assert [event.submit_id for event in bench.of(SubmitFailed)] == [61]
    assert typed(session)[-1] == "look"
    assert session.log.view.messages[-1].role == "tool"


async def test_a_message_typed_during_a_truncated_reply_is_asked_about(tmp_path):
    """The model is asked for the rest of its reply, and the message would be sent with that."""
    gate = asyncio.Event()
    adapter, bench, session = await nearly_full(tmp_path)
    talk = adapter._replies
    cut = tuple(replace(one, stop="length") if isinstance(one, Finished) else one for one in says("word " * 1500))
    first = iter([(gate, *cut)])
    adapter._replies = lambda request: talk(request) if request.purpose == "summary" else next(first, talk(request))
    session.submit(submit("look", 60))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("long " * 3000, 61))
    gate.set()
    await bench.until(lambda: bool(asked(bench)) or session.task is None)
    await answer(bench, session, "once")
    assert typed(session)[-1].startswith("long")
    assert session.log.view.messages[-1].text.startswith("word")


@pytest.mark.parametrize("decision", ["once", "reject"])
@pytest.mark.parametrize("refusal", [ContextOverflow("too long"), RequestRejected("no")])
async def test_a_request_the_provider_refuses_as_too_long_is_asked_about(tmp_path, refusal, decision):
    """R-535: the provider's count is the best one; the chat is not shrunk without the user's consent."""
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=20_000, settings=SMALL)
    session = await paused(bench)
    while session.control.measured().upper < 18_200:
        await say(bench, session, 50)
    view, talk = session.log.view.messages, adapter._replies
    refusal.status = 400
    refusals = iter([(refusal,)])
    adapter._replies = lambda request: talk(request) if request.purpose == "summary" else next(refusals, talk(request))
    await say(bench, session, 90)
    (question,) = asked(bench)
    assert question.title == "the model refused it as too long"
    assert session.log.view.messages[:-1] == view
    await answer(bench, session, decision)
    if decision == "reject":
        said = bench.of(TurnFinished)[-1]
        assert said.error == "Refused as too long; not sent again. /compact makes room and sends it."
        assert session.log.view.messages[:-1] == view
        session.compact("")
        await bench.idle(session)
    assert len(bench.of(Compacted)) == 2
    assert typed(session).count("question 90") == 1
    assert session.log.view.messages[-1].text.startswith("word")


async def test_an_undo_that_makes_it_too_large_reports_that_sending_asks(tmp_path):
    """During the pause one line reports the size of the request as sent, excluding text that editing still clears."""
    bench = Bench(tmp_path, talker(), window=20_000, settings=SMALL)
    session = await paused(bench)
    await full(bench, session)
    await answer(bench, session, "once")
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    told = bench.of(Notice)[-1]
    assert told.text.startswith("Paused: ")
    assert told.text.endswith(" tokens; only 19,000 fit. Sending asks whether to compact.")
    assert told.while_paused
    assert len(told.text) <= 80


async def test_with_an_assumed_window_nothing_is_asked_before_the_model_refuses(tmp_path):
    """R-506: an assumed limit blocks no message; the model's own does, and then the user is asked."""
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=0, settings=SMALL)
    session = await paused(bench)
    assert session.control.limits.source == "default"
    while session.control.measured().upper <= session.control.limits.context_window:
        await say(bench, session, 50, "word " * 4000)
    await say(bench, session, 51)
    assert not asked(bench)
    assert typed(session)[-1] == "question 51"
    refusals, talk = iter([(ContextOverflow("too long"),)]), adapter._replies
    adapter._replies = lambda request: talk(request) if request.purpose == "summary" else next(refusals, talk(request))
    await say(bench, session, 52)
    assert asked(bench)[-1].title == "the model refused it as too long"
