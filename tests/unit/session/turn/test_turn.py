"""The agent loop: R-336, R-508…R-520, R-528…R-532, R-543, R-544, R-551; lessons 16, 28, 36…41."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future

import pytest

from codecompanion.adapters.base import AdapterSettings, Finished, PromptRead, TextDelta
from codecompanion.adapters.speed import Speed
from codecompanion.context.summary_text.recall_keys import without_span
from codecompanion.errors import InputError, NetworkFailed, RequestRejected, StoreUnavailable, StreamCut
from codecompanion.model import history
from codecompanion.model.history import ViewChanged
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message, Usage
from codecompanion.model.view import project
from codecompanion.placeholders import CANCELLED_BY_USER, INTERRUPTED, NOT_ANSWERED, SUMMARY_PREFIX, TOOL_RESULT_CLEARED
from codecompanion.reports.markdown import tokens_text
from codecompanion.session.actions.forecast_compaction import NOT_SMALLER, forecast
from codecompanion.session.actions.preview_compaction import preview
from codecompanion.session.chat import streamed_reply
from codecompanion.session.compaction import compaction
from codecompanion.session.state import State
from codecompanion.wire import events
from codecompanion.wire.events import (
    ApprovalRequested,
    Compacted,
    CompactionFailed,
    CompactionStarted,
    ContextEdited,
    MessageSent,
    Meter,
    Notice,
    Queued,
    ReplyFinished,
    Restored,
    SubmitFailed,
    ToolFinished,
    TurnFinished,
)
from codecompanion.wire.requests import Approve
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

READ = ("c1", "read_file", '{"path": "a.txt"}')


def roles(session):
    return [message.role for message in session.log.view.messages]


def stored_view(bench, chat="chat-1"):
    return project(bench.store.load_events(chat))


async def test_the_meter_moves_while_a_reply_arrives(tmp_path, monkeypatch):
    """Otherwise a filling window would be seen only after the reply; the count is an estimate until the server's."""
    monkeypatch.setattr(streamed_reply, "SECOND", 0.0)
    said = [TextDelta(text="a word or two, " * 40)] * 3
    bench = Bench(tmp_path, ScriptedAdapter("s", [(*said, Finished("stop", (), Usage(500, 480)))]))
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    first = next(i for i, event in enumerate(bench.events) if isinstance(event, events.Text))
    end = next(i for i, event in enumerate(bench.events) if isinstance(event, ReplyFinished))
    before = next(event for event in reversed(bench.events[:first]) if isinstance(event, Meter))
    moving = [event for event in bench.events[first:end] if isinstance(event, Meter)]
    sizes = [event.tokens for event in moving]
    assert sizes == sorted(set(sizes))
    assert len(sizes) == 3
    assert sizes[0] > before.tokens + 100
    assert [event.ratio for event in moving] == [event.tokens / event.window for event in moving]
    assert not any(event.exact for event in moving)
    after = next(event for event in bench.events[end:] if isinstance(event, Meter))
    assert after.exact


async def test_a_message_is_answered(tmp_path):
    adapter = ScriptedAdapter("s", [says("hello")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["hi", "hello"]
    assert bench.of(TurnFinished)[0].reason == "done"
    assert bench.of(MessageSent)[0].text == "hi"
    assert adapter.requests[0].messages[0].role == "system"
    assert stored_view(bench).messages == session.log.view.messages


async def test_tools_run_until_the_model_is_done(tmp_path):
    """R-508: the whole loop is one cycle."""
    (tmp_path / "a.txt").write_text("content of a")
    adapter = ScriptedAdapter("s", [calls(READ, ("c2", "read_file", '{"path": "b.txt"}')), says("done")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("read"))
    await bench.idle(session)
    assert roles(session) == ["user", "assistant", "tool", "tool", "assistant"]
    assert {m.cycle for m in session.log.view.messages} == {1}
    finished = bench.of(ToolFinished)
    assert [event.status for event in finished] == ["ok", "error"]
    assert "content of a" in adapter.requests[1].messages[3].text


async def test_every_message_opens_the_next_cycle(tmp_path):
    """R-509."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("1"), says("2")]))
    session = await bench.open()
    for number in (1, 2):
        session.submit(submit(f"m{number}", number))
        await bench.idle(session)
    assert [m.cycle for m in session.log.view.messages] == [1, 1, 2, 2]


async def test_attachments_belong_to_the_cycle_their_message_opens(tmp_path):
    """R-509: rules and files open no cycle of their own."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("1")]))
    session = await bench.open()
    await session.attach(Message(id="f", role="user", tag="file", path="f", content="F"))
    session.submit(submit("m"))
    await bench.idle(session)
    assert [m.cycle for m in session.log.view.messages] == [1, 1, 1]
    assert stored_view(bench).cycle == 1


async def test_a_submit_while_busy_is_queued_and_sent_once(tmp_path):
    """Lesson 16: it is sent at the next request boundary, inside the running turn."""
    gate = asyncio.Event()
    adapter = ScriptedAdapter("s", [(gate, *calls(READ)), says("both"), says("never")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("first", 1))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("second", 2))
    assert [event.submit_id for event in bench.of(Queued)] == [2]
    gate.set()
    await bench.idle(session)
    assert roles(session) == ["user", "assistant", "tool", "user", "assistant"]
    assert [event.submit_id for event in bench.of(MessageSent)] == [1, 2]
    assert len(adapter.requests) == 2
    assert violations(session.log.view.messages) == []


async def test_a_message_right_after_a_failed_turn_is_sent(tmp_path):
    """Only messages queued during the turn are returned: its end was reported, so the next message is a new turn."""

    class HastyUser(Bench):
        def _take(self, event):
            super()._take(event)
            if isinstance(event, TurnFinished) and event.reason == "failed":
                asyncio.get_running_loop().call_soon(session.submit, submit("second", 2))

    bench = HastyUser(tmp_path, ScriptedAdapter("s", [[RequestRejected("no")], says("here")]))
    session = await bench.open()
    session.submit(submit("first"))
    await bench.until(lambda: len(bench.of(TurnFinished)) == 2)
    assert bench.of(SubmitFailed) == []
    assert [message.text for message in session.log.view.messages] == ["first", "second", "here"]


async def test_a_message_queued_during_the_last_reply_starts_the_next_turn(tmp_path):
    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [(gate, *says("one")), says("two")]))
    session = await bench.open()
    session.submit(submit("first", 1))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("second", 2))
    gate.set()
    await bench.until(lambda: len(bench.of(TurnFinished)) == 2)
    assert [m.cycle for m in session.log.view.messages] == [1, 1, 2, 2]


async def test_an_empty_submit_is_refused(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    session = await bench.open()
    with pytest.raises(InputError, match="Nothing to send"):
        session.submit(submit("  \n"))


@pytest.mark.parametrize("where", ["streaming", "tools", "approval"])
async def test_stopping_leaves_a_valid_history(tmp_path, where):
    """Lesson 28: unanswered calls are completed as cancelled; the partial reply is kept and marked."""
    never = asyncio.Event()
    command = ("c1", "run_command", json.dumps({"command": "sleep 60"}))
    replies = {
        "streaming": [(TextDelta("half a "), never)],
        "tools": [calls(command, READ)],
        "approval": [calls(command, READ)],
    }
    bench = Bench(tmp_path, ScriptedAdapter("s", replies[where]), tools={"yolo": where != "approval"})
    session = await bench.open()
    session.submit(submit("go"))
    if where == "streaming":
        await bench.until(lambda: any(m for m in bench.events if type(m).__name__ == "Text"))
    elif where == "tools":
        await bench.until(lambda: session.state is State.RUNNING_TOOLS and "sleep" in str(bench.events[-1]))
    else:
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.cancel()
    session.cancel()
    await bench.idle(session)
    view = session.log.view
    assert violations(view.messages) == []
    assert view.open_calls == ()
    assert bench.of(TurnFinished)[-1].reason == "stopped"
    if where == "streaming":
        assert view.messages[-1].cut
        assert view.messages[-1].text == "half a "
    else:
        assert [m.text for m in view.messages if m.role == "tool"] == [CANCELLED_BY_USER] * 2
    assert stored_view(bench).messages == view.messages
    assert bench.bugs == []


async def test_stopping_before_the_first_step_returns_the_message(tmp_path):
    """Lesson 16: submit and stop at once; the chat must not stay busy forever."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("later")]))
    session = await bench.open()
    session.submit(submit("too fast"))
    session.cancel()
    await bench.idle(session)
    assert bench.of(SubmitFailed)[0].text == "too fast"
    stopping = next(n for n, event in enumerate(bench.events) if getattr(event, "state", "") == "cancelling")
    assert stopping < bench.events.index(bench.of(SubmitFailed)[0]), "who stopped is not told of an error"
    assert bench.of(TurnFinished)[-1].reason == "stopped"
    session.submit(submit("now", 2))
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["now", "later"]


async def test_a_compact_requested_during_a_turn_runs_at_the_next_boundary(tmp_path):
    """R-533."""
    gate = asyncio.Event()

    adapter = ScriptedAdapter("s", [says("words " * 900), (gate, *calls(READ)), says("SUMMARY"), says("done")])
    bench = Bench(tmp_path, adapter)
    (tmp_path / "a.txt").write_text("content " * 500)
    session = await bench.open()
    session.submit(submit("before"))
    await bench.idle(session)
    session.submit(submit("work", 2))
    await bench.until(lambda: session.state is State.STREAMING)
    session.compact("names")
    gate.set()
    await bench.idle(session)
    assert [r.purpose for r in adapter.requests] == ["chat", "chat", "summary", "chat"]
    roles = [(m.role, m.tag) for m in adapter.requests[3].messages[1:]]
    assert roles == [("user", "compact_summary"), ("user", None), ("assistant", None), ("tool", None)]
    assert adapter.requests[3].messages[2].text == "work"


async def test_cancel_all_in_an_approval_stops_the_turn(tmp_path):
    command = ("c1", "run_command", json.dumps({"command": "true"}))
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(command, READ)]), tools={"yolo": False})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.desk.answer(Approve(call_id="c1", decision="cancel"))
    await bench.idle(session)
    assert bench.of(TurnFinished)[-1].reason == "stopped"
    assert [m.text for m in session.log.view.messages if m.role == "tool"] == [CANCELLED_BY_USER] * 2


async def test_a_call_that_waited_for_approval_when_the_host_ends_is_not_answered(tmp_path):
    """The user cancelled nothing: user and model read the same cause, and the calls after it are interrupted."""
    command, read = ("c1", "run_command", json.dumps({"command": "true"})), ("c2", *READ[1:])
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(command, read)]), tools={"yolo": False})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    await session.close(host_ends=True)
    assert [m.text for m in session.log.view.messages if m.role == "tool"] == [NOT_ANSWERED, INTERRUPTED]
    bench.events.clear()
    await bench.resume()
    shown = [entry for piece in bench.of(Restored) for entry in piece.entries]
    assert [entry.summary for entry in shown if entry.kind == "tool"] == ["not answered", "interrupted"]
    assert [entry.text for entry in shown if entry.kind == "note"] == ["Neovim or its Python process was closed."]


async def test_a_call_that_ran_when_the_host_ends_is_interrupted(tmp_path):
    command = ("c1", "run_command", json.dumps({"command": "sleep 60"}))
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(command)]), tools={"yolo": False})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.until(lambda: session.state is State.RUNNING_TOOLS)
    await session.close(host_ends=True)
    assert [m.text for m in session.log.view.messages if m.role == "tool"] == [INTERRUPTED]


@pytest.mark.parametrize(("decision", "expected"), [("once", "ok"), ("always", "ok"), ("reject", "rejected")])
async def test_an_approval_is_asked_and_answered(tmp_path, decision, expected):
    run = json.dumps({"command": "echo hi"})
    replies = [calls(("c1", "run_command", run)), calls(("c2", "run_command", run)), says("ok")]
    adapter = ScriptedAdapter("s", replies)
    bench = Bench(tmp_path, adapter, tools={"yolo": False})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: len(bench.of(ApprovalRequested)) == 1)
    assert "echo hi" in bench.of(ApprovalRequested)[0].body
    session.desk.answer(Approve(call_id="c1", decision=decision, reason="not now"))
    if decision != "always":
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == 2)
        session.desk.answer(Approve(call_id="c2", decision=decision))
    await bench.idle(session)
    assert len(bench.of(ApprovalRequested)) == (1 if decision == "always" else 2)
    assert [event.status for event in bench.of(ToolFinished)] == [expected] * 2
    if decision == "reject":
        assert "not now" in adapter.requests[1].messages[-1].text


async def test_the_users_version_of_a_proposal_is_written_and_the_model_reads_the_difference(tmp_path):
    """The question carries both texts, the answer may carry a third one."""
    file = tmp_path / "a.txt"
    file.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    edit = ("c1", "insert_edit", json.dumps({"path": "a.txt", "old_text": "two", "new_text": "2\nzwei"}))
    adapter = ScriptedAdapter("s", [calls(edit), says("ok")])
    bench = Bench(tmp_path, adapter, tools={"yolo": False})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    asked = bench.of(ApprovalRequested)[0]
    assert (asked.path, asked.before, asked.after) == (str(file), "one\ntwo\nthree\n", "one\n2\nzwei\nthree\n")
    session.desk.answer(Approve(call_id="c1", decision="once", text="one\n2\nthree\nfour\n"))
    await bench.idle(session)
    assert file.read_bytes() == b"one\r\n2\r\nthree\r\nfour\r\n"
    told = adapter.requests[1].messages[-1].text
    assert "user edited your proposal" in told
    assert "-zwei\n" in told
    assert "+four\n" in told


async def test_answering_a_closed_approval_is_an_error(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    session = await bench.open()
    with pytest.raises(InputError, match="already answered"):
        session.desk.answer(Approve(call_id="c9", decision="once"))


async def test_a_failed_request_keeps_the_message_and_reports_one_sentence(tmp_path):
    """Lessons 37, 38: the next message is sent together with the previous one."""
    adapter = ScriptedAdapter("s", [(NetworkFailed("s: no connection."),), says("now")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("one", 1))
    await bench.idle(session)
    assert bench.of(TurnFinished)[0].reason == "failed"
    assert bench.of(TurnFinished)[0].error == "s: no connection."
    session.submit(submit("two", 2))
    await bench.idle(session)
    assert [m.text for m in adapter.requests[1].messages[1:]] == ["one", "two"]


async def test_an_unanswered_message_sent_again_is_one_message(tmp_path):
    """Lesson 36: a host killed between logging and reporting returns the text although it is stored."""
    adapter = ScriptedAdapter("s", [(NetworkFailed("s: no connection."),), says("now"), says("again")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    for number in (1, 2):
        session.submit(submit("one", number))
        await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["one", "now"]
    assert [event.submit_id for event in bench.of(MessageSent)] == [1, 2]
    session.submit(submit("one", 3))
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["one", "now", "one", "again"]


async def test_a_message_queued_twice_is_two_messages(tmp_path):
    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [(gate, *calls(READ)), says("done")]))
    session = await bench.open()
    session.submit(submit("go", 1))
    await bench.until(lambda: session.state is State.STREAMING)
    session.submit(submit("go on", 2))
    session.submit(submit("go on", 3))
    gate.set()
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages if m.role == "user"] == ["go", "go on", "go on"]


async def test_a_reply_cut_off_is_kept_and_marked(tmp_path):
    """Lesson 39."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [(TextDelta("half"), StreamCut("s: cut."))]))
    session = await bench.open()
    session.submit(submit("one"))
    await bench.idle(session)
    assert session.log.view.messages[-1].cut
    assert bench.of(ReplyFinished)[-1].stop == "cut"
    assert bench.of(TurnFinished)[-1].error == "s: cut. The partial reply is kept; /continue continues it."


async def test_a_reply_without_an_end_marker_is_not_an_answer(tmp_path):
    """Lesson 39."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [(TextDelta("half"),)]))
    session = await bench.open()
    session.submit(submit("one"))
    await bench.idle(session)
    assert bench.of(TurnFinished)[-1].reason == "failed"
    assert session.log.view.messages[-1].cut


async def test_a_turn_ends_after_its_last_allowed_request(tmp_path):
    """R-336."""
    (tmp_path / "a.txt").write_text("a")
    replies = [calls((f"c{i}", "read_file", json.dumps({"path": "a.txt", "start_line": i + 1}))) for i in range(9)]
    bench = Bench(tmp_path, ScriptedAdapter("s", replies), settings={"max_provider_requests_per_turn": 3})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    assert bench.of(TurnFinished)[-1].reason == "limit"
    assert "max_provider_requests_per_turn = 3" in bench.of(TurnFinished)[-1].error
    assert violations(session.log.view.messages) == []


async def test_a_repeated_call_ends_the_turn(tmp_path):
    """R-336: the limit is the same call four times within ten calls."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls((f"c{i}", *READ[1:])) for i in range(9)]))
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    assert len(bench.of(ToolFinished)) == 4
    assert bench.of(TurnFinished)[-1].reason == "limit"
    assert "read_file" in bench.of(TurnFinished)[-1].error


async def test_a_long_result_is_stored_whole_and_shown_in_part(tmp_path):
    """Lesson 47."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {i} of the long file" for i in range(1900)))
    adapter = ScriptedAdapter("s", [calls(READ), says("ok")])
    bench = Bench(tmp_path, adapter, tools={"max_result_chars": 2000})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    result = session.log.view.messages[2]
    assert len(result.text) <= 2000
    assert "line 1899" in bench.store.read_blob(result.blob).decode()
    assert f"stored:{result.blob}" in result.text
    assert len(bench.of(ToolFinished)[0].preview) < 6000


async def test_old_results_are_cleared_between_tool_rounds(tmp_path):
    """R-518: the policy runs before every request; the editor is notified."""
    (tmp_path / "a.txt").write_text("word " * 2000)
    replies = []
    for i in range(5):
        replies += [calls((f"c{i}", *READ[1:])), says("ok")]
    adapter = ScriptedAdapter("s", replies)
    bench = Bench(tmp_path, adapter, window=14_000)
    session = await bench.open()
    for i in range(5):
        session.submit(submit(f"m{i}", i + 1))
        await bench.idle(session)
    assert bench.of(ContextEdited)
    edited = bench.of(ContextEdited)[0]
    assert edited.tokens_after < edited.tokens_before
    assert any(m.text == TOOL_RESULT_CLEARED for m in adapter.requests[-1].messages)
    assert stored_view(bench).messages == session.log.view.messages


def long_chat(summary):
    """Return replies that fill a window with talk, and a summariser."""

    def reply(request):
        if request.purpose == "summary":
            return summary
        return says("word " * 1500)

    return ScriptedAdapter("s", reply)


SMALL = {"context_management": {"compaction": {"min_token_savings": 100}}}


async def talk(bench, session, number):
    for i in range(number):
        session.submit(submit(f"question {i}", i + 1))
        await bench.idle(session)


async def test_a_long_preparation_runs_beside_the_loop(tmp_path, monkeypatch):
    """Other chats do not wait for a long history being read; a short one is not worth a thread."""
    threads = []
    next_of = compaction._next_of

    def watched(*given):
        threads.append(threading.current_thread() is threading.main_thread())
        return next_of(*given)

    monkeypatch.setattr(compaction, "_next_of", watched)
    bench = Bench(tmp_path, long_chat(says("THE SUMMARY")), window=200_000)
    session = await bench.open()
    await talk(bench, session, 2)
    assert set(threads) == {True}
    threads.clear()
    monkeypatch.setattr(compaction, "BESIDE_LOOP_TOKENS", session.log.view.tokens)
    session.compact("")
    await bench.idle(session)
    assert session.log.compactions == 1
    assert set(threads) == {False}


async def test_a_stop_waits_for_the_work_in_the_thread(tmp_path, monkeypatch):
    """Lesson 41: nothing changes, and nothing continues without the user's knowledge."""
    runs, goes_on = threading.Event(), threading.Event()
    next_of = compaction._next_of

    def slow(*given):
        runs.set()
        goes_on.wait(PATIENCE_S)
        return next_of(*given)

    bench = Bench(tmp_path, long_chat(says("THE SUMMARY")), window=200_000)
    session = await bench.open()
    await talk(bench, session, 3)
    monkeypatch.setattr(compaction, "BESIDE_LOOP_TOKENS", 0)
    monkeypatch.setattr(compaction, "_next_of", slow)
    before = session.log.view.messages
    session.compact("")
    await bench.until(runs.is_set)
    session.cancel()
    goes_on.set()
    await bench.idle(session)
    assert session.log.view.messages == before
    assert not bench.bugs


async def test_the_chat_is_compacted_before_it_hits_the_window(tmp_path):
    """R-501, R-521, R-527, R-528, R-543: only the pending request is sent, after the summary."""
    adapter = long_chat(says("THE SUMMARY"))
    bench = Bench(tmp_path, adapter, window=12_000, settings=SMALL)
    session = await bench.open()
    await talk(bench, session, 8)
    compacted = bench.of(Compacted)[0]
    assert compacted.tokens_after < compacted.tokens_before
    assert [type(e) for e in bench.events if type(e) in (CompactionStarted, Compacted)][:2] == [
        CompactionStarted,
        Compacted,
    ]
    chat_requests = [r for r in adapter.requests if r.purpose == "chat"]
    assert len(chat_requests) == 8
    first_after = chat_requests[next(i for i, r in enumerate(chat_requests) if "THE SUMMARY" in r.messages[1].text)]
    assert first_after.messages[1].text.startswith(SUMMARY_PREFIX)
    assert first_after.messages[2].text.startswith("question")
    assert all(meter.tokens < 12_000 for meter in bench.of(Meter))
    assert stored_view(bench).messages == session.log.view.messages


async def test_the_meter_drops_at_once_after_a_compaction(tmp_path):
    """Lessons 8, 45: the meter shows an estimate, equal to the size that the compaction reported."""
    usage = Usage(input_tokens=10_000, output_tokens=4000)

    def reply(request):
        return says("SUMMARY") if request.purpose == "summary" else says("word " * 4000, usage)

    bench = Bench(tmp_path, ScriptedAdapter("s", reply), window=100_000, settings={"on_compact": "stop"})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    assert bench.of(Meter)[-1].exact
    before = bench.of(Meter)[-1].tokens
    session.compact("")
    await bench.idle(session)
    meter = bench.of(Meter)[-1]
    assert meter.tokens < before - 3000
    assert not meter.exact
    assert meter.tokens == bench.of(Compacted)[0].tokens_after


@pytest.mark.parametrize(("wish", "go_on"), [("auto", True), ("submit", False)])
async def test_after_a_manual_compaction_the_model_continues_if_configured(tmp_path, wish, go_on):
    """R-528, R-533: no new cycle opens (R-509)."""
    adapter = long_chat(says("SUMMARY"))
    bench = Bench(tmp_path, adapter, settings={"on_compact": wish})
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("keep names", go_on=go_on)
    await bench.idle(session)
    assert "keep names" in adapter.requests[1].messages[0].text
    assert len(adapter.requests) == 3
    assert without_span(session.log.view.messages[0].text) == SUMMARY_PREFIX + "SUMMARY"
    assert session.log.view.cycle == 1


async def test_a_compacted_idle_chat_waits_for_its_user(tmp_path):
    """R-528: there is no question, so nothing is answered."""
    adapter = long_chat(says("SUMMARY"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert [request.purpose for request in adapter.requests] == ["chat", "summary"]
    assert without_span(session.log.view.messages[-1].text) == SUMMARY_PREFIX + "SUMMARY"


async def test_the_forecast_of_a_compaction_is_close_to_its_result(tmp_path):
    """R-533: asked in advance; nothing is sent or changed; kept messages are counted."""
    adapter = long_chat(says("SUMMARY " * 60))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="r", role="user", tag="rules", path="AGENTS.md", content="Be brief."))
    assert forecast(session.control, session.log)["after"] == 0
    assert forecast(session.control, session.log)["why"]
    await talk(bench, session, 1)
    before = session.log.view
    found = forecast(session.control, session.log)
    assert session.log.view is before
    assert len(adapter.requests) == 1
    assert found["before"] == session.control.measured().tokens
    assert (found["pins"], found["rules"]) == (0, 1)
    session.compact("")
    await bench.idle(session)
    now = session.control.measured().tokens
    assert now < found["before"]
    assert abs(found["after"] - now) < 0.25 * found["before"]


async def test_the_forecast_says_that_a_summary_would_not_be_smaller(tmp_path):
    """R-533: a summary has a minimum length, which a short chat may not reach."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("Short.")]))
    session = await bench.open()
    await talk(bench, session, 1)
    found = forecast(session.control, session.log)
    assert found["why"] == NOT_SMALLER
    assert found["after"] == found["before"]
    assert f"If you run /compact now: nothing changes ({NOT_SMALLER})" in preview(session.control, session.log)["text"]


async def test_a_failing_summariser_changes_nothing(tmp_path):
    """R-529, R-530."""
    bench = Bench(tmp_path, long_chat((NetworkFailed("s: down."),)), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages == before
    assert bench.of(CompactionFailed)[0].reason == "Compaction failed: s: down. Nothing was changed."
    assert isinstance(bench.store.load_events("chat-1")[-1].payload, history.CompactionFailed)


async def test_a_refused_summary_written_without_a_model_is_reported_as_one_event(tmp_path):
    """Lesson 48. Seen: "Nothing was changed" and twice "Nothing was compacted" beside the new card."""
    bench = Bench(tmp_path, long_chat((RequestRejected("s: refused."),)), settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert [event.summariser for event in bench.of(Compacted)] == ["no model"]
    assert [(notice.text, notice.until_compacted) for notice in bench.of(Notice)] == [
        ("The summary was written without a model: s: refused.", True)
    ]


async def test_a_compaction_with_nothing_to_do_reports_that_once_for_all_stages(tmp_path):
    """A policy with two stages for `/compact` reports one reason."""
    bench = Bench(tmp_path, long_chat(says("SUMMARY")), settings={"on_compact": "stop", "policy": "codebuddy"})
    session = await bench.open()
    session.compact("")
    await bench.idle(session)
    assert len([notice for notice in bench.of(Notice) if "compacted" in notice.text]) == 1


async def test_useless_compactions_pause_after_three_tries(tmp_path):
    """R-532, lesson 40: there is no endless loop, and one sentence explains the pause."""
    adapter = long_chat((NetworkFailed("s: down."),))
    bench = Bench(tmp_path, adapter, window=60_000, settings=SMALL)
    session = await bench.open()
    await talk(bench, session, 40)
    # Each try may ask for several parts at a time.
    tries = [event for event in bench.of(CompactionStarted) if event.summariser != "no model"]
    notices = [n.text for n in bench.of(Notice) if "is paused" in n.text]
    assert 3 <= len(tries) <= 8
    assert len(notices) == 1
    assert "s: down" not in notices[0], "the failure right above it says why"
    assert all("s: down" in failed.reason for failed in bench.of(CompactionFailed))


async def test_a_repeatedly_failing_summariser_is_asked_less_and_less(tmp_path):
    """R-532, R-434: a policy that can summarise without a model asks the summariser a few times, not each time."""
    bench = Bench(tmp_path, long_chat((NetworkFailed("s: down."),)), window=12_000, settings={"policy": "cowork"})
    session = await bench.open()
    await talk(bench, session, 40)
    payloads = [event.payload for event in bench.store.load_events("chat-1")]
    written = [p for p in payloads if isinstance(p, ViewChanged) and p.kind == "compacted"]
    asked = [event for event in bench.of(CompactionStarted) if event.summariser != "no model"]
    told = [notice.text for notice in bench.of(Notice) if "without a model for now" in notice.text]
    assert len(written) >= 8
    assert 3 <= len(asked) <= len(written) // 2
    assert len(told) == 1


async def test_a_running_compaction_can_be_stopped(tmp_path):
    """R-544, lesson 41: it stops immediately, nothing has changed, and the chat is usable."""
    never = asyncio.Event()
    bench = Bench(tmp_path, long_chat((never,)))
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    session.compact("")
    await bench.until(lambda: bool(bench.of(CompactionStarted)))
    session.cancel()
    await bench.idle(session)
    assert bench.of(CompactionFailed)[0].cancelled
    assert session.log.view.messages == before
    session.submit(submit("still there?", 9))
    await bench.idle(session)
    assert session.log.view.messages[-1].role == "assistant"


async def test_the_progress_of_a_local_server_is_shown(tmp_path):
    """The status shows how much of the prompt has been read, until the reply streams."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [(PromptRead(0, 6100), PromptRead(2048, 6100), *says("Hi"))]))
    session = await bench.open()
    await talk(bench, session, 1)
    labels = [event.label for event in bench.of(events.State) if event.label]
    read = ["reading 6.1k tokens", "reading 2.0k of 6.1k tokens"]
    assert labels == ["waiting for the model", *read, "streaming"]


@pytest.mark.parametrize("tokens_per_s", [50, 2_000])
async def test_the_prompt_reading_time_of_a_local_server_is_shown_if_long(tmp_path, tokens_per_s):
    """The cached prompt and earlier replies are not read again."""
    adapter = ScriptedAdapter("s", [says("Hi " * 4_000), (PromptRead(0, 1100), *says("Ho"))])
    adapter.is_fast = Speed(float(tokens_per_s), 5.0)
    bench = Bench(tmp_path, adapter)
    bench.services.adapters.add(
        adapter, AdapterSettings(name="s", kind="offline", base_url="http://localhost:8080", local_server=True)
    )
    session = await bench.open()
    session.submit(submit("a question to begin with", 1))
    await bench.idle(session)
    session.submit(submit("word " * 1_000, 2))
    await bench.idle(session)
    labels = [event.label for event in bench.of(events.State) if event.label and event.label != "streaming"]
    whole = bench.of(events.Meter)[0].tokens
    long = [
        f"reading about {tokens_text(whole)} tokens, ≈ {round(whole / 50)} s",
        "reading about 1.1k tokens, ≈ 22 s",
    ]
    waiting = "waiting for the model"
    assert labels == (long if tokens_per_s == 50 else [waiting, waiting, "reading 1.1k tokens"])


async def test_a_hanging_summariser_is_given_up(tmp_path):
    """Lesson 18."""
    settings = {"compaction_timeout_s": 0.05, "on_compact": "stop"}
    bench = Bench(tmp_path, long_chat((asyncio.Event(),)), settings=settings)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert "did not answer within 0.05 s" in bench.of(CompactionFailed)[0].reason


async def test_a_message_typed_during_a_compaction_is_sent_once(tmp_path):
    """R-531, lesson 16: it waits, and is sent after the summary."""
    gate = asyncio.Event()
    adapter = long_chat((gate, *says("SUMMARY")))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.until(lambda: bool(bench.of(CompactionStarted)))
    session.submit(submit("meanwhile", 7))
    gate.set()
    await bench.idle(session)
    await bench.until(lambda: len(session.log.view.messages) == 3)
    assert [m.text[:9] for m in session.log.view.messages] == ["Below is ", "meanwhile", "word word"]
    assert sum(r.purpose == "chat" for r in adapter.requests) == 2


async def test_an_unknown_summary_adapter_is_a_failure_not_a_lock(tmp_path):
    """R-504."""
    settings = {"context_management": {"compaction": {"adapter": "nobody"}}, "on_compact": "stop"}
    bench = Bench(tmp_path, long_chat(says("x")), settings=settings)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert "nobody" in bench.of(CompactionFailed)[0].reason


async def test_another_adapter_writes_the_summary(tmp_path):
    """R-504: it also writes the summary of a manual compaction."""
    other = ScriptedAdapter("cheap", [says("CHEAP")])
    settings = {"context_management": {"compaction": {"adapter": "cheap"}}, "on_compact": "stop"}
    bench = Bench(tmp_path, long_chat(says("x")), other, settings=settings)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert without_span(session.log.view.messages[-1].text) == SUMMARY_PREFIX + "CHEAP"
    assert len(other.requests) == 1


async def test_switching_to_a_smaller_model_decides_again_before_sending(tmp_path):
    """Lesson 4."""
    big = long_chat(says("SUMMARY"))
    bench = Bench(tmp_path, big, settings=SMALL)
    small = ScriptedAdapter("small", big._replies)
    bench.services.adapters.add(small, AdapterSettings(name="small", kind="offline", context_window=6000))
    session = await bench.open()
    await talk(bench, session, 4)
    assert not bench.of(Compacted)
    await session.use_model("small", "")
    session.submit(submit("go on", 9))
    await bench.idle(session)
    assert bench.of(Compacted)
    sent = next(r for r in small.requests if r.purpose == "chat")
    assert len(sent.messages) == 3


async def test_an_unknown_window_is_assumed_and_reported_once(tmp_path):
    """R-506, lessons 30, 43: compaction is never silently off; the guess is reported once it matters for a request."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("a")), window=0)
    session = await bench.open()
    session.submit(submit("m1", 1))
    await bench.idle(session)
    assert not bench.of(Notice)
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 22_000))
    for number in (2, 3):
        session.submit(submit(f"m{number}", number))
        await bench.idle(session)
    said = [notice.text for notice in bench.of(Notice) if "unknown" in notice.text]
    assert len(said) == 1
    assert "32,000 tokens are assumed" in said[0]
    assert 'models = { ["scripted-1"] = { context_window = <its tokens> } }' in said[0]
    assert bench.of(Meter)[-1].compact_at == 27200


async def test_regenerate_answers_again(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("bad"), says("good")]))
    session = await bench.open()
    session.submit(submit("q"))
    await bench.idle(session)
    await session.regenerate(session.snapshot)
    await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["q", "good"]
    assert session.log.view.cycle == 1


async def test_clear_empties_the_view_and_keeps_the_log(tmp_path):
    """R-003."""
    never = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a"), (TextDelta("x"), never)]))
    session = await bench.open()
    session.submit(submit("q", 1))
    await bench.idle(session)
    session.submit(submit("r", 2))
    await bench.until(lambda: session.state is State.STREAMING)
    await session.clear()
    assert session.log.view.messages == ()
    texts = [e.payload.message.text for e in bench.store.load_events("chat-1") if hasattr(e.payload, "message")]
    assert texts[:3] == ["q", "a", "r"]


async def test_a_message_that_cannot_be_stored_returns_as_a_draft(tmp_path, monkeypatch):
    """Lesson 36: a message is not shown as sent unless it is durable."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("a")]))
    session = await bench.open()

    def full():
        future: Future = Future()
        future.set_exception(StoreUnavailable("the disk is full"))
        return future

    monkeypatch.setattr(type(bench.store), "append", lambda store, chat_id, payloads: full())
    session.submit(submit("precious"))
    await bench.idle(session)
    assert bench.of(MessageSent) == []
    [returned], [ended] = bench.of(SubmitFailed), bench.of(TurnFinished)
    assert returned.text == "precious"
    assert ended.error == "the disk is full. Your message is back in the input."
    assert returned.error == ended.error, "the same sentence twice is shown once"


async def test_usage_makes_the_meter_exact_and_calibrates_it(tmp_path):
    """R-505, lesson 7: cached input tokens count, reasoning tokens do not."""
    usage = Usage(input_tokens=500, cache_read_tokens=2500, output_tokens=40, reasoning_tokens=10)
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("hello", usage)]))
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    meter = bench.of(Meter)[-1]
    assert (meter.tokens, meter.exact) == (3000 + 30, True)
    (learned,) = bench.services.calibrations.values()
    assert learned == session.meter.calibration
    assert learned.extra > 0


async def test_the_model_sees_only_finished_replies(tmp_path):
    bench = Bench(
        tmp_path,
        ScriptedAdapter("s", [(TextDelta("a"), TextDelta("b"), Finished("length"))]),
        settings={"max_output_continuations": 0},
    )
    session = await bench.open()
    session.submit(submit("q"))
    await bench.idle(session)
    assert session.log.view.messages[-1].text == "ab"
    assert any("output limit" in n.text for n in bench.of(Notice))
