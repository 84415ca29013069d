"""Restoring a chat: lessons 35, 36, 49; R-543; architecture.md."""

from __future__ import annotations

import asyncio
import threading

import pytest

from codecompanion.errors import InputError
from codecompanion.model.history import (
    ChatCreated,
    CompactionFailed,
    CompactionStarted,
    MessageAdded,
    TurnEnded,
    TurnStarted,
)
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message, ToolCall, Usage
from codecompanion.model.view import project
from codecompanion.placeholders import INTERRUPTED
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.chat.buffer_entries import FIRST_PIECE, entries, pieces
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.storage import open_stored
from codecompanion.wire.events import ChatOpened, Entry, Meter, Notice, Restored, ViewMarks
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

CREATED = ChatCreated(adapter="s", model="m", policy="codecompanion", cwd="")


def added(message_id, role, content="", **fields):
    return MessageAdded(message=Message(id=message_id, role=role, content=content, cycle=1, turn_id="t", **fields))


async def write(bench, *payloads):
    await bench.store.log("chat-1", *payloads)


async def test_a_chat_is_restored_as_it_was(tmp_path):
    """Lesson 36: all of it is restored, including the last answer (lesson 49)."""
    (tmp_path / "a.txt").write_text("A")
    adapter = ScriptedAdapter("s", [calls(("c", "read_file", '{"path": "a.txt"}')), says("done"), says("more")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("read it"))
    await bench.idle(session)
    before = session.log.view
    bench.events.clear()
    again = await bench.resume()
    assert again.log.view.messages == before.messages
    shown = [entry for piece in bench.of(Restored) for entry in piece.entries]
    assert [entry.kind for entry in shown] == ["user", "tool", "reply"]
    assert shown[1].title.startswith("read_file a.txt")
    assert shown[2].text == "done"
    assert bench.of(ChatOpened)[0].resumed
    again.submit(submit("and?", 2))
    await bench.idle(again)
    assert again.log.view.messages[-1].text == "more"
    assert again.log.view.cycle == 2


async def test_a_chat_that_cannot_be_rendered_in_advance_still_opens(tmp_path, monkeypatch):
    """It can be read and forked; the error appears when a message is sent."""
    adapter = ScriptedAdapter("s", [says("hello")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)

    def broken(request):
        raise KeyError("a bug of ours")

    monkeypatch.setattr(adapter, "render", broken, raising=False)
    again = await bench.resume()
    assert [message.text for message in again.log.view.messages] == ["hi", "hello"]


async def test_the_meter_of_a_resumed_chat_is_exact(tmp_path):
    """R-505: the reports are in the log; an estimate of everything would be far off."""
    usage = Usage(input_tokens=9000, output_tokens=500)
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("hello", usage)]))
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    bench.events.clear()
    await bench.resume()
    assert [(meter.tokens, meter.exact) for meter in bench.of(Meter)][-1] == (9500, True)


async def test_calls_left_open_by_a_crash_are_completed(tmp_path):
    """Lesson 35: the repair is logged, so it happens once."""
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    asked = added("a", "assistant", tool_calls=(ToolCall("c1", "read_file", "{}"),))
    await write(
        bench,
        CREATED,
        TurnStarted(turn_id="t", cycle=1),
        added("u", "user", "q"),
        asked,
    )
    session = await bench.resume()
    assert session.log.view.messages[-1].text == INTERRUPTED
    assert violations(session.log.view.messages) == []
    number = len(bench.store.load_events("chat-1"))
    await bench.resume()
    assert len(bench.store.load_events("chat-1")) == number


async def test_a_partially_received_reply_is_kept_and_marked(tmp_path):
    """Lesson 36: kill -9 during a stream loses at most one second."""
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    await write(bench, CREATED, TurnStarted(turn_id="t", cycle=1), added("u", "user", "q"))
    bench.store.save_partial("chat-1", "half an ans").result()
    session = await bench.resume()
    assert session.log.view.messages[-1].text == "half an ans"
    assert session.log.view.messages[-1].cut
    payloads = [event.payload for event in bench.store.load_events("chat-1")]
    assert payloads[-1] == TurnEnded(turn_id="t", reason="interrupted")


async def test_a_reply_rescued_after_a_crash_is_counted_like_any_other(tmp_path):
    """Seen: 0 tokens in the list of the next request, and the rows around it absorbed its share."""
    half = "This is a sentence of a long answer. " * 20
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    await write(bench, CREATED, TurnStarted(turn_id="t", cycle=1), added("u", "user", half, tokens=200))
    bench.store.save_partial("chat-1", half).result()
    session = await bench.resume()
    shown = inspect(session.control, session.log)
    asked, rescued = (row["tokens"] for row in shown["rows"] if row["role"] in ("user", "assistant"))
    assert 0.7 * asked < rescued < 1.4 * asked
    assert sum(row["tokens"] for row in shown["rows"]) == shown["total"]


async def test_a_compaction_without_an_end_gets_one(tmp_path):
    """Design, Crash: exactly one end per started compaction."""
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    began = CompactionStarted(compaction_id="k", trigger="proactive", summariser="m", tokens_before=9)
    await write(bench, CREATED, added("u", "user", "q"), began)
    await bench.resume()
    ends = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, CompactionFailed)]
    assert [(end.compaction_id, end.reason) for end in ends] == [("k", "interrupted")]


async def test_a_compacted_chat_is_resumed_compacted(tmp_path):
    """R-543: the old turns are still shown, the view is the compacted one."""
    adapter = ScriptedAdapter("s", [says("long answer " * 200), says("SUMMARY")])
    bench = Bench(tmp_path, adapter, settings={"on_compact": "stop"})
    session = await bench.open()
    session.submit(submit("q"))
    await bench.idle(session)
    session.compact("")
    await bench.idle(session)
    bench.events.clear()
    again = await bench.resume()
    assert [m.tag for m in again.log.view.messages] == ["compact_summary"]
    shown = [entry for piece in bench.of(Restored) for entry in piece.entries]
    assert [entry.kind for entry in shown] == ["user", "reply", "compacted"]
    assert shown[2].text.startswith("SUMMARY\n")
    assert again.log.view.messages[0].text.endswith(shown[2].text)
    assert shown[2].messages == 2


async def test_a_chat_that_does_not_exist_is_an_error(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    with pytest.raises(InputError, match="No stored chat has the id 'nope'"):
        await bench.resume("nope")


async def test_a_missing_adapter_is_replaced_and_reported(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("offline", []))
    await write(bench, ChatCreated(adapter="gone", model="m", policy="p", cwd=""), added("u", "user", "q"))
    session = await bench.resume()
    assert session.adapter_name == "offline"
    assert "'gone' is no longer configured" in bench.of(Notice)[0].text


async def test_closing_the_host_during_a_turn_leaves_a_valid_log(tmp_path):
    never = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [(never,)]))
    session = await bench.open()
    session.submit(submit("q"))
    await bench.until(lambda: session.state.value == "streaming")
    await session.stop()
    assert isinstance(bench.store.load_events("chat-1")[-1].payload, TurnEnded)


def test_pieces_are_sent_newest_first_and_cover_everything():
    shown = [Entry(kind="user", text=str(i)) for i in range(1000)]
    made = list(pieces(shown))
    assert len(made[0][0]) == FIRST_PIECE
    assert [first for _, first, _ in made] == [True] + [False] * (len(made) - 1)
    assert [last for _, _, last in made] == [False] * (len(made) - 1) + [True]
    assert [entry for piece, _, _ in reversed(made) for entry in piece] == shown
    assert list(pieces([])) == [((), True, True)]


def test_entries_of_an_empty_log_are_empty():
    assert entries([]) == []
    assert project([]).messages == ()


async def test_the_view_is_rendered_before_the_first_turn(tmp_path):
    """Lesson 31: the first request of a resumed chat renders only new messages; the adapter has seen the rest."""
    adapter = ScriptedAdapter("s", [says("one"), says("two")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("first", 1))
    await bench.idle(session)
    await session.stop()
    rendered = []
    adapter.render = lambda request: rendered.append((request, threading.current_thread())) or b""
    again = await bench.resume()
    ((ahead, thread),) = rendered
    assert thread is not threading.main_thread(), "a stream in another chat goes on meanwhile"
    again.submit(submit("second", 2))
    await bench.idle(again)
    sent = adapter.requests[-1]
    assert [id(message) for message in sent.messages[: len(ahead.messages)]] == [id(m) for m in ahead.messages]
    assert len(sent.messages) == len(ahead.messages) + 1
    assert (sent.chat_id, sent.tools) == (ahead.chat_id, ahead.tools)


async def test_a_long_chat_is_not_counted_on_the_event_loop(tmp_path, monkeypatch):
    """The repairs, log facts, drawing and meter of a resumed chat are computed in a thread."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one", Usage(input_tokens=9, output_tokens=1))]))
    session = await bench.open()
    session.submit(submit("first", 1))
    await bench.idle(session)
    seen = []
    for module, name in (
        (open_stored, "project"), (open_stored, "repairs"), (open_stored, "restored"),
        (ChatLog, "resume"), (ContextMeter, "resume"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, beside_loop(getattr(module, name), seen))
    await bench.resume()
    assert set(seen) == {"project", "repairs", "restored", "resume"}


def beside_loop(function, seen):
    def watched(*given):
        assert threading.current_thread() is not threading.main_thread()
        seen.append(function.__name__)
        return function(*given)

    return watched


async def test_messages_are_drawn_before_reports_are_read(tmp_path, monkeypatch):
    """The reports of 10,000 messages take half a second; the meter appears once it is known."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one", Usage(input_tokens=9, output_tokens=1))]))
    session = await bench.open()
    session.submit(submit("first", 1))
    await bench.idle(session)
    bench.events.clear()
    drawn = []
    read = ContextMeter.resume
    monkeypatch.setattr(ContextMeter, "resume", lambda *given: (drawn.append(len(bench.of(Restored))), read(*given)))
    await bench.resume()
    assert drawn == [1]
    kinds = [type(event) for event in bench.events]
    assert kinds.index(ViewMarks) < kinds.index(Restored), "folds of what left the view are named by the marks"
    assert [meter.exact for meter in bench.of(Meter)] == [True]
