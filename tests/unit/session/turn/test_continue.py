"""The next request after regenerating, continuing or attaching something (R-528, R-540, R-551; lessons 37, 39)."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.adapters.base import CompactionBegun, CompactionDone, Finished, TextDelta
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.errors import InputError, Overloaded
from codecompanion.model.history import TurnEnded
from codecompanion.model.messages import GO_ON_TAG, Message, Usage
from codecompanion.placeholders import SUMMARY_PREFIX
from codecompanion.session.chat.buffer_entries import ASKED_TO_GO_ON, entries
from codecompanion.session.state import State
from codecompanion.session.turn.incomplete_reply import check_incomplete
from codecompanion.wire.events import ContextItems, Meter, Notice, TurnFinished
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.test_native_compaction import BLOCK, compacts_and_says, native, talk
from tests.unit.session.test_recovery import LONG, too_long

RULES = Message(id="rules-1", role="user", tag="rules", path="AGENTS.md", content="Use tabs.")
FILE = Message(id="file-1", role="user", tag="file", path="a.txt", content="A")
HALF = (TextDelta("half"), Finished("length"))
READ = ("c1", "read_file", '{"path": "a.txt"}')
STOP = {"on_compact": "stop"}


def texts(session):
    return [m.text for m in session.log.view.messages]


async def test_regenerating_after_a_providers_compaction_keeps_it(tmp_path):
    """R-540, R-003: rules are not a question; the history is not discarded for them."""
    adapter = native(says("one"), says("again"), compactions=[CompactionDone(BLOCK)])
    bench = Bench(tmp_path, adapter, settings={"on_compact": "ask"})
    session = await bench.open()
    await session.attach(RULES)
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert any("Send a message to continue" in notice.text for notice in bench.of(Notice))
    await session.regenerate(session.snapshot)
    await bench.idle(session)
    assert session.log.view.messages[1].compaction is not None
    assert session.log.view.messages[-1].text == "again"
    assert adapter.requests[-1].messages[-1].role == "user"


async def test_regenerating_removes_the_whole_reply(tmp_path):
    """A continued reply is one reply; later attachments are not a question but belong to the answer."""
    adapter = ScriptedAdapter("s", [HALF, says("whole"), says("again")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    await session.attach(FILE)
    await session.regenerate(session.snapshot)
    await bench.idle(session)
    assert texts(session) == ["question 1", "A", "again"]


async def test_regenerating_needs_a_question(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    session = await bench.open()
    await session.attach(RULES)
    with pytest.raises(InputError, match="Nothing to regenerate"):
        await session.regenerate(session.snapshot)
    with pytest.raises(InputError, match="send a message"):
        session.continue_reply(session.snapshot)
    assert session.state is State.IDLE


async def test_continuing_can_be_retried(tmp_path):
    """Lesson 39: the first try may fail; the prompt is sent once, and the error disappears when the answer arrives."""
    adapter = ScriptedAdapter("s", [HALF, (Overloaded("s: busy"),), says(" whole")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert session.log.view.messages[-1].tag == GO_ON_TAG
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert [m.tag for m in session.log.view.messages] == [None, None, GO_ON_TAG, None]
    assert texts(session)[-1] == " whole"
    events = await session.log.events()
    shown = [(entry.kind, entry.text) for entry in entries(events)]
    assert shown[2:] == [("note", ASKED_TO_GO_ON), ("reply", " whole")], "what the model reads has a line"
    assert "s: busy" in [e.payload.error for e in events if isinstance(e.payload, TurnEnded)], "the log keeps it"
    assert [n.text for n in bench.of(Notice)].count(ASKED_TO_GO_ON) == 1


async def test_a_stopped_loop_can_be_continued(tmp_path):
    """R-336: the model has its results and no answer yet; it needs no prompt."""
    (tmp_path / "a.txt").write_text("content")
    adapter = ScriptedAdapter("s", [calls(READ), says("done")])
    bench = Bench(tmp_path, adapter, settings={"max_provider_requests_per_turn": 1})
    session = await bench.open()
    await talk(bench, session, 1)
    assert bench.of(TurnFinished)[-1].reason == "limit"
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert [m.role for m in session.log.view.messages] == ["user", "assistant", "tool", "assistant"]


async def test_a_complete_reply_is_not_continued(tmp_path):
    """The model would read that it was interrupted; only truncated replies have more to come."""
    adapter = ScriptedAdapter("s", [says("whole"), HALF, says("rest")])
    bench = Bench(tmp_path, adapter, settings={"max_output_continuations": 0})
    session = await bench.open()
    await talk(bench, session, 1)
    with pytest.raises(InputError, match="The last reply is complete"):
        await check_incomplete(session.log)
    session.submit(submit("more", 9))
    await bench.idle(session)
    await check_incomplete(session.log)
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    with pytest.raises(InputError, match="The last reply is complete"):
        await check_incomplete(session.log)


async def test_a_failed_question_can_be_retried_by_continuing(tmp_path):
    adapter = ScriptedAdapter("s", [(Overloaded("s: busy"),), says("answer")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert texts(session) == ["question 1", "answer"]


@pytest.mark.parametrize("is_native", [True, False])
async def test_an_attachment_in_a_loop_does_not_end_its_question(tmp_path, is_native):
    """R-551: the user's words survive a compaction during the work, even after an attachment."""
    (tmp_path / "a.txt").write_text(LONG)
    gate = asyncio.Event()
    if is_native:
        adapter = native((gate, *calls(READ)), compacts_and_says("done"))
    else:
        adapter = ScriptedAdapter("s", [(gate, *calls(READ)), too_long(), says("done")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("the question"))
    await bench.until(lambda: session.state is State.STREAMING)
    await session.attach(FILE)
    gate.set()
    await bench.idle(session)
    assert texts(session)[-1] == "done"
    assert any(text.endswith("the question") for text in texts(session))
    assert any("left out" in m.text for m in session.log.view.messages if m.role == "tool") is not is_native


async def test_a_compacted_continuation_still_ends_in_the_users_words(tmp_path):
    """R-536, R-551: with a pause after the compaction the next request must not end in the provider's block."""
    paused = (CompactionBegun(), CompactionDone(BLOCK), Finished("compacted"))
    adapter = native(HALF, paused, says("rest"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert [m.role for m in adapter.requests[-1].messages] == ["system", "assistant", "user"]
    assert "question 1" in adapter.requests[-1].messages[-1].text
    assert texts(session)[-1] == "rest"


async def test_a_reply_that_filled_the_window_continues_from_the_users_words(tmp_path):
    """R-535, R-551: its beginning is summarised; the question is not."""
    full = (TextDelta("half"), Finished("window"))
    adapter = ScriptedAdapter("s", [says(LONG), full, says("SUMMARY"), says("whole")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    summary, question, half, asked, reply = session.log.view.messages
    assert without_span(summary.text) == SUMMARY_PREFIX + "SUMMARY"
    assert (question.text, half.text, reply.text) == ("question 2", "half", "whole")
    assert asked.tag == GO_ON_TAG


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(96_000, 3_999), "The reply ended because the context window is full; /continue continues it."),
        (Usage(50_000, 4_096), "The reply ended at the model's output limit; /continue continues it."),
        (None, "The reply ended at the model's output limit; /continue continues it."),
    ],
)
async def test_the_limit_that_ended_a_reply_is_named(tmp_path, usage, said):
    """Local servers use one name for a full window and their output limit; the figures distinguish them."""
    adapter = ScriptedAdapter("s", [(TextDelta("half"), Finished("length", usage=usage))])
    bench = Bench(tmp_path, adapter, window=100_000, settings={"max_output_continuations": 0})
    session = await bench.open()
    await talk(bench, session, 1)
    assert [notice.text for notice in bench.of(Notice) if "ended" in notice.text] == [said]


async def test_attachments_are_shown_as_they_are_after_a_compaction(tmp_path):
    """The context block never lists text that the model no longer sees."""
    adapter = native(says("one"), compacts_and_says("two"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(FILE)
    await talk(bench, session, 2)
    assert "file-1" not in [m.id for m in session.log.view.messages]
    assert bench.of(ContextItems)[-1].items == ()


async def test_after_our_own_compaction_the_attachments_are_shown_too(tmp_path):
    adapter = ScriptedAdapter("s", [says(LONG), too_long(), says("SUMMARY"), says("two")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(FILE)
    await talk(bench, session, 2)
    assert bench.of(ContextItems)[-1].items == ()


@pytest.mark.parametrize("wish", ["ask", "stop"])
@pytest.mark.parametrize("way", ["pause", "again"])
async def test_after_a_providers_compaction_the_chat_also_waits_if_configured(tmp_path, wish, way):
    """R-528, R-536, lesson 12: `on_compact` applies whichever way the provider compacts."""
    large = Usage(input_tokens=90_000, output_tokens=5)
    done = CompactionDone(BLOCK)
    if way == "pause":
        adapter = native(says("one"), says("two"), (CompactionBegun(), done, Finished("compacted")), says("answer"))
    else:
        adapter = native(says("one"), says("two", large), says("answer"), compactions=[done] * 2)
    bench = Bench(tmp_path, adapter, settings={"on_compact": wish})
    session = await bench.open()
    await talk(bench, session, 1)
    if way == "again":
        session.compact("")
        await bench.idle(session)
    await talk(bench, session, 2, first=2)
    assert texts(session) == ["", "question 3"]
    assert "on_compact" in bench.of(TurnFinished)[-1].error
    await session.regenerate(session.snapshot)
    await bench.idle(session)
    assert texts(session) == ["", "question 3", "answer"]


async def test_switching_back_uses_the_former_calibration(tmp_path):
    """Lesson 4: a model's reports in this chat are kept while another one answers."""
    adapter = ScriptedAdapter("s", [says("one", Usage(input_tokens=7_000, output_tokens=10))])
    bench = Bench(tmp_path, adapter, ScriptedAdapter("other", []))
    session = await bench.open()
    await talk(bench, session, 1)
    await session.use_model("other", "")
    assert bench.of(Meter)[-1].tokens < 5_000
    await session.use_model("s", "")
    meter = bench.of(Meter)[-1]
    assert (meter.tokens, meter.exact) == (7_010, True)


async def test_after_a_manual_compaction_of_a_complete_reply_nothing_is_called_truncated(tmp_path):
    """R-528 [decided]: the prompt to continue says that a summary replaced the history, which is true."""
    adapter = native(says("one"), says("gone on"), compactions=[CompactionDone(BLOCK)])
    bench = Bench(tmp_path, adapter, settings={"on_compact": "submit"})
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    [asked] = [m for m in adapter.requests[-1].messages if m.tag == GO_ON_TAG]
    assert "A summary has replaced" in asked.text
    assert "last reply ended" not in asked.text


@pytest.mark.parametrize("failed", [False, True])
async def test_auto_continues_with_a_pending_question_and_waits_in_an_idle_chat(tmp_path, failed):
    """R-528 [decided]: an unanswered question was blocked by the compaction; an idle chat waits."""
    replies = [
        says("long " * 2000),
        *([[Overloaded("busy")]] if failed else [says("two")]),
        says("SUMMARY"),
        says("end"),
    ]
    adapter = ScriptedAdapter("s", replies)
    bench = Bench(tmp_path, adapter, settings={"on_compact": "auto"})
    session = await bench.open()
    await talk(bench, session, 2)
    before = len(adapter.requests)
    session.compact("")
    await bench.idle(session)
    assert [r.purpose for r in adapter.requests[before:]] == (["summary", "chat"] if failed else ["summary"])
    assert (texts(session)[-1] == "end") is failed


async def test_a_compaction_requested_during_a_reply_is_reported_as_queued(tmp_path):
    """R-533: it cannot run yet; the user reads that it will."""
    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [(gate, *says("one"))]))
    session = await bench.open()
    session.submit(submit("question"))
    await bench.until(lambda: session.state is State.STREAMING)
    session.compact("")
    said = bench.of(Notice)[-1].text
    assert said == "/compact is queued: it runs before the next request, or when the reply ends."
    assert len(said) <= 80
    gate.set()
    await bench.idle(session)
