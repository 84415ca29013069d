"""Chats missing from the database but not from the checkpoints are listed and restored."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.history import LogEvent, MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message
from codecompanion.session.storage.missing_chats import MissingChats, align, find_missing, gaps
from codecompanion.store.opening import open_store
from codecompanion.wire.events import Notice
from tests.unit.session.compaction.test_effects import kept
from tests.unit.session.fakes import Bench, ScriptedAdapter, says
from tests.unit.session.turn.test_turn import talk


def bench_of(folder: Path, *replies: Any) -> Bench:
    bench = kept(folder, ScriptedAdapter("s", replies), store=open_store(folder / "data"))
    numbers = iter(range(1_000))
    run = len(list(folder.iterdir()))
    bench.services.new_token = lambda: f"t{run}-{next(numbers)}"
    return bench


async def chat_of(bench: Bench, turns: int) -> list[str]:
    session = await bench.open()
    await talk(bench, session, turns)
    await session.close()
    bench.store.close()
    return [message.text for message in session.log.view.messages]


def texts(session: Any) -> list[str]:
    return [message.text for message in session.log.view.messages]


async def test_a_deleted_chat_is_not_missing(tmp_path: Path) -> None:
    from codecompanion.session.storage.stored_chats import delete

    await chat_of(bench_of(tmp_path, says("one")), 1)
    bench = bench_of(tmp_path)
    await delete(bench.services, "chat-1", {})
    assert (await MissingChats(bench.services).look()).text == ""
    bench.store.close()


async def test_an_emptied_history_reports_its_chats_once_and_restores_them(tmp_path: Path) -> None:
    """The list reports it each time, a chat only once; restored chats are no longer missing."""
    said = await chat_of(bench_of(tmp_path, says("one"), says("two")), 2)
    (tmp_path / "data" / "sessions.db").write_bytes(b"")
    bench = bench_of(tmp_path)
    [checkpoint] = find_missing(bench.store, bench.services.keeping.checkpoints)
    for again in range(2):
        bench.events.clear()
        session = await bench.open(f"new-{again}")
        await MissingChats(bench.services).tell(session)
        told = [event.text for event in bench.of(Notice) if "missing from the history" in event.text]
        assert len(told) == 1 - again, told
        assert all(event.until_restored for event in bench.of(Notice) if event.text in told)
    missing = MissingChats(bench.services)
    found = await missing.look()
    assert found.text == "1 chat with 4 messages missing from the history"
    assert [(one.chat, one.messages, one.lost) for one in found.chats] == [("chat-1", 4, 4)]
    assert await missing.restore_all() == "1 chat restored from checkpoints."
    assert (await missing.look()).text == ""
    info = bench.store.find_session("chat-1")
    assert info is not None
    assert round(info.updated * 1000) == checkpoint.time, "a restored chat is as old as its checkpoint"
    back = await bench.resume("chat-1")
    assert back is not None
    assert texts(back) == said
    assert violations(back.log.view.messages) == []
    bench.store.close()


async def test_an_older_copy_is_updated_when_the_chat_is_opened(tmp_path: Path) -> None:
    """The missing messages are added from the checkpoint, and the chat is then complete."""
    await chat_of(bench_of(tmp_path, says("one")), 1)
    old = (tmp_path / "data" / "sessions.db").read_bytes()
    bench = bench_of(tmp_path, says("two"), says("three"))
    session = await bench.resume("chat-1")
    assert session is not None
    await talk(bench, session, 2)
    await session.close()
    bench.store.close()
    said = texts(session)
    (tmp_path / "data" / "sessions.db").write_bytes(old)
    bench = bench_of(tmp_path)
    missing = MissingChats(bench.services)
    assert (await missing.look()).text == "1 chat older than its checkpoint"
    again = await bench.resume("chat-1")
    assert again is not None
    assert texts(again) == said
    assert any("was older than its checkpoint: 4 messages" in event.text for event in bench.of(Notice))
    assert (await missing.look()).chats == ()
    assert bench.store.find_session("chat-1").messages == 6  # type: ignore[union-attr]
    bench.store.close()


@pytest.mark.parametrize("where", ["text", "time", "sum"])
async def test_a_flipped_bit_is_reported_and_the_text_taken_from_the_checkpoint(tmp_path: Path, where: str) -> None:
    """This includes a flipped bit that leaves valid JSON; the log is valid afterwards."""
    said = await chat_of(bench_of(tmp_path, says("reply one"), says("two")), 2)
    with sqlite3.connect(tmp_path / "data" / "sessions.db") as connection:
        changes = {
            "text": "payload = CAST(replace(CAST(payload AS TEXT), 'reply one', 'reply onf') AS BLOB)",
            "time": "ts = ts + 0.5",
            "sum": "sum = sum + 1",
        }
        (seq,) = connection.execute("SELECT seq FROM events WHERE CAST(payload AS TEXT) LIKE '%reply one%'").fetchone()
        connection.execute(f"UPDATE events SET {changes[where]} WHERE seq = ?", (seq,))  # noqa: S608 - a constant
    connection.close()
    bench = bench_of(tmp_path)
    session = await bench.resume()
    assert session is not None
    assert texts(session) == said
    told = [event.text for event in bench.of(Notice) if "damaged" in event.text]
    assert len(told) == 1
    assert told[0].startswith("1 damaged message taken from the checkpoint of ")
    assert bench.store.read_log("chat-1")[1] == []
    bench.store.close()


def added(seq: int, name: str) -> LogEvent:
    return LogEvent(seq, 1.0, MessageAdded(message=Message(id=name, role="user", content=name)))


def test_messages_are_aligned_with_their_former_entries() -> None:
    """They are aligned by the messages before and after them; where none is missing, none is inserted."""
    whole = [Message(id=name, role="user", content=name) for name in "abcdef"]
    events = [added(1, "a"), added(4, "d"), added(9, "f")]
    assert gaps(events) == [2, 3, 5, 6, 7, 8]
    found = align(events, [2, 3, 6], whole)
    assert {seq: message.id for seq, message in found.items()} == {2: "b", 3: "c", 6: "e"}
    assert align(events, [], whole) == {}


async def test_a_damaged_title_hides_neither_the_chat_nor_the_list(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 once turned the whole list into an error; the row is recounted from the log."""
    said = await chat_of(bench_of(tmp_path, says("one")), 1)
    with sqlite3.connect(tmp_path / "data" / "sessions.db") as connection:
        connection.execute("UPDATE chats SET title = CAST(x'61a062' AS TEXT)")
    connection.close()
    bench = bench_of(tmp_path)
    assert [info.id for info in bench.store.list_sessions()] == ["chat-1"]
    assert (await MissingChats(bench.services).look()).text == ""
    assert [info.title for info in bench.store.list_sessions()] == ["question 0"]
    back = await bench.resume("chat-1")
    assert back is not None
    assert texts(back) == said
    bench.store.close()


async def test_a_chat_with_a_damaged_newest_checkpoint_is_still_listed(tmp_path: Path) -> None:
    """It is restored from its snapshot."""
    said = await chat_of(bench_of(tmp_path, says("one")), 1)
    (tmp_path / "data" / "sessions.db").write_bytes(b"")
    folder = tmp_path / "state" / "transcripts" / "checkpoints"
    for path in [folder / "chat-1.json", *(folder / "chat-1").glob("*.json")]:
        content = bytearray(path.read_bytes())
        content[-9] ^= 1
        path.write_bytes(content)
    bench = bench_of(tmp_path)
    missing = MissingChats(bench.services)
    assert (await missing.look()).text.startswith("1 chat with ")
    assert await missing.restore_all() == "1 chat restored from checkpoints."
    back = await bench.resume("chat-1")
    assert back is not None
    assert texts(back) == said
    bench.store.close()
