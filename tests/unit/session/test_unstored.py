"""Replies and results that the store rejects, and broken replies: lessons 36, 39, 47."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from codecompanion.adapters.base import TextDelta, ToolCallStarted
from codecompanion.errors import StoreUnavailable, StreamCut
from codecompanion.model.history import MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.wire.events import Notice, TurnFinished
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import READ, stored_view


async def unstored(tmp_path, monkeypatch, *replies):
    """Return a chat whose first reply was shown but could not be stored; then there is space again."""
    bench = Bench(tmp_path, ScriptedAdapter("s", replies))
    session = await bench.open()
    append = type(bench.store).append

    def full(store, chat_id, payloads):
        if not any(isinstance(payload, MessageAdded) and payload.message.role == "assistant" for payload in payloads):
            return append(store, chat_id, payloads)
        future: Future = Future()
        future.set_exception(StoreUnavailable("the disk is full"))
        return future

    with monkeypatch.context() as patch:
        patch.setattr(type(bench.store), "append", full)
        session.submit(submit("q", 1))
        await bench.idle(session)
    return bench, session


@pytest.mark.parametrize("reply", ["text", "text and calls"])
async def test_a_reply_that_could_not_be_stored_is_stored_with_the_next_message(tmp_path, monkeypatch, reply):
    """Lesson 36: the shown text is not lost; a call in it was not run and does not count."""
    first = calls(READ, text="shown") if reply == "text and calls" else says("shown")
    bench, session = await unstored(tmp_path, monkeypatch, first, says("second"))
    [ended] = bench.of(TurnFinished)
    what = {"text": "The reply is not stored yet"}
    called = "No tool was run, because the calls could not be stored"
    assert ended.error == f"{what.get(reply, called)}: the disk is full"
    session.submit(submit("r", 2))
    await bench.idle(session)
    view = session.log.view.messages
    assert [(m.text, m.cut) for m in view if m.role == "assistant"] == [
        ("shown", reply == "text and calls"),
        ("second", False),
    ]
    assert violations(view) == []
    assert stored_view(bench).messages == view


@pytest.mark.parametrize("reply", ["text", "text and calls"])
async def test_a_stop_while_a_reply_is_stored_does_not_lose_it(tmp_path, monkeypatch, reply):
    """The store rejects the reply after the stop: it is stored with the next events."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(READ, text="shown") if reply != "text" else says("shown")]))
    session = await bench.open()
    append, hanging = type(bench.store).append, Future[Any]()

    def slow(store, chat_id, payloads):
        said = [payload for payload in payloads if isinstance(payload, MessageAdded)]
        if said and said[-1].message.role == "assistant":
            monkeypatch.undo()
            handed.set()
            return hanging
        return append(store, chat_id, payloads)

    handed = asyncio.Event()
    monkeypatch.setattr(type(bench.store), "append", slow)
    session.submit(submit("q", 1))
    await handed.wait()
    session.cancel()
    await asyncio.sleep(0)
    hanging.set_exception(StoreUnavailable("the database is locked"))
    await bench.idle(session)
    view = session.log.view.messages
    assert [(m.role, m.text, m.cut) for m in view] == [("user", "q", False), ("assistant", "shown", reply != "text")]
    assert violations(view) == []
    assert stored_view(bench).messages == view
    assert bench.of(TurnFinished)[-1].reason == "stopped"


@pytest.mark.parametrize("how", ["regenerate", "go on", "compact", "close", "clear"])
async def test_an_unstored_reply_is_stored_before_anything_else(tmp_path, monkeypatch, how):
    """The user's next action relates to the reply in the buffer."""
    bench, session = await unstored(tmp_path, monkeypatch, says("shown"), says("second"), says("third"))
    match how:
        case "regenerate":
            await session.regenerate(session.snapshot)
        case "go on":
            session.continue_reply(session.snapshot)
        case "compact":
            session.compact("")
        case "close":
            await session.close()
        case "clear":
            await session.clear()
    await bench.idle(session)
    view = session.log.view.messages
    said = [message.text for message in view if message.role == "assistant"]
    expected = {"regenerate": ["second"], "go on": ["shown", "second"], "close": ["shown"], "clear": []}
    assert how == "compact" or said == expected[how]
    logged = [e.payload.message.text for e in bench.store.load_events("chat-1") if isinstance(e.payload, MessageAdded)]
    assert logged[:2] == ["q", "shown"]
    assert violations(view) == []
    assert stored_view(bench).messages == view


async def test_a_broken_reply_reports_the_parts_that_were_kept(tmp_path):
    """Lesson 39: nothing of an incomplete tool call is kept."""
    cut = StreamCut("s: the connection was lost.")
    bench = Bench(tmp_path, ScriptedAdapter("s", [[TextDelta("half"), cut], [ToolCallStarted("read_file"), cut]]))
    session = await bench.open()
    for number in (1, 2):
        session.submit(submit(f"m{number}", number))
        await bench.idle(session)
    assert [end.error for end in bench.of(TurnFinished)] == [
        "s: the connection was lost. The partial reply is kept; /continue continues it.",
        "s: the connection was lost.",
    ]


async def test_a_long_result_that_cannot_be_stored_whole_is_kept_in_part(tmp_path, monkeypatch):
    """Lesson 47: the model gets its head and tail, the user is notified, and the turn continues."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {i} of the long file" for i in range(1900)))
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(READ), says("ok")]), tools={"max_result_chars": 2000})
    session = await bench.open()

    def full(store, content):
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(type(bench.store), "put_blob", full)
    session.submit(submit("go"))
    await bench.idle(session)
    result = session.log.view.messages[2]
    assert (result.blob, len(result.text) <= 2000) == ("", True)
    assert "They could not be stored either" in result.text
    assert "stored:" not in result.text
    assert [n.text for n in bench.of(Notice)] == ["Only the start and end of a long result are kept: the disk is full"]
    assert bench.of(TurnFinished)[0].reason == "done"
