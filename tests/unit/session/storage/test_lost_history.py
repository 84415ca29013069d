"""A database deleted, emptied or replaced while chats are open: detected, reported, rebuilt."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codecompanion.context.summary_text.recall_keys import read_span, without_keys
from codecompanion.model.history import ChatCreated, MessageAdded, TurnEnded, TurnStarted
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message, Usage
from codecompanion.model.view import project
from codecompanion.session.storage import lost_history
from codecompanion.session.storage.from_checkpoint import restore_chat
from codecompanion.session.storage.lost_history import LostHistory
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.store.damage.salvage import kept_files
from codecompanion.store.lease import FileLock
from codecompanion.store.opening import open_store
from codecompanion.wire.events import ApprovalRequested, Notice
from codecompanion.wire.requests import Approve, OpenChat, Snapshot
from tests.unit.session.compaction.test_effects import kept
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import talk

Chats = dict[str, Any]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file that replaces the lost one be used at the first check."""
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.0)


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
async def host(tmp_path: Path, told: list[str]):
    """Return a function that makes a host with a real file, a chat in it, and its surroundings."""
    stores = []

    async def make(*replies: Any, chat: str = "chat-1") -> tuple[Bench, Any, Path]:
        store = open_store(tmp_path / "data", report=lambda problem: told.append(str(problem)))
        stores.append(store)
        bench = kept(tmp_path, ScriptedAdapter("s", replies), store=store)
        session = await bench.open(chat)
        running: set[asyncio.Task[None]] = set()
        LostHistory(bench.services, {chat: session}, lambda work: running.add(asyncio.ensure_future(work)))
        bench.running = running  # type: ignore[attr-defined]
        return bench, session, tmp_path / "data" / "sessions.db"

    yield make
    for store in stores:
        store.close()


def truncate(bench: Bench, path: Path) -> None:
    """Empty the file so that nothing in it can be read, as after `: > sessions.db`."""
    writer = bench.store._database.writer
    with bench.store._database.write_lock:
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        path.write_bytes(b"")
        writer.execute("PRAGMA shrink_memory")


def stored(path: Path, chat: str = "chat-1") -> list[Any]:
    """Return the events of the chat in the file, as seen by another process."""
    other = open_store(path.parent)
    try:
        assert other.check() == []
        return other.load_events(chat)
    finally:
        other.close()


async def settled(bench: Bench) -> None:
    """Wait until the chats are notified and the others are restored."""
    await bench.until(lambda: bool(bench.running) and all(task.done() for task in bench.running))  # type: ignore[attr-defined]
    for task in bench.running:  # type: ignore[attr-defined]
        task.result()


def notices(bench: Bench, chat: str = "chat-1") -> list[str]:
    return [event.text for event in bench.of(Notice) if event.chat == chat]


ANSWER = says("answer " * 40, Usage(input_tokens=30, output_tokens=5))


async def test_an_emptied_file_gets_the_open_chat_again(host, told):
    """The model's view is stored again, with later messages; the chat reports the parts that are lost."""
    bench, session, path = await host(ANSWER, ANSWER)
    await talk(bench, session, 1)
    spent = bench.store.spent()
    truncate(bench, path)
    session.submit(submit("question 1", 2))
    await bench.idle(session)
    await settled(bench)
    events = stored(path)
    assert project(events).messages == session.log.view.messages
    assert [m.text for m in session.log.view.messages if m.role == "user"] == ["question 0", "question 1"]
    assert [e.seq for e in events] == sorted({e.seq for e in events})
    assert told == ["Chat history emptied; 1 chat rebuilt; see :CodeCompanionRestore"]
    (said,) = notices(bench)
    assert said.startswith("The chat history file was emptied while open. Stored again: the 2 messages the model sees.")
    assert "Lost: " in said
    assert ":CodeCompanionRestore" in said
    assert bench.store.spent().usd >= 0 <= spent.usd


async def test_a_loss_during_a_turn_loses_no_text(host, told):
    """A command by the model empties the file: the call, its result and the answer are stored once."""
    bench, session, path = await host()
    command = json.dumps({"command": f": > '{path}'"})
    bench.adapter._script = iter([calls(("c1", "run_command", command), text="Emptying."), says("Done.")])
    session.submit(submit("empty it"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.desk.answer(Approve(chat="chat-1", call_id="c1", decision="once"))
    await bench.idle(session)
    await settled(bench)
    events = stored(path)
    messages = project(events).messages
    assert messages == session.log.view.messages
    assert violations(messages) == []
    assert [m.role for m in messages] == ["user", "assistant", "tool", "assistant"]
    began = [e.payload.turn_id for e in events if isinstance(e.payload, TurnStarted)]
    ended = [e.payload.turn_id for e in events if isinstance(e.payload, TurnEnded)]
    assert began
    assert began[-1] == ended[-1] == session.turn.turn_id
    assert len(told) == 1
    await session.close()
    bench.store.release("chat-1").result()
    again = await open_stored(bench.services, OpenChat(chat="chat-1", snapshot=Snapshot(), resume="chat-1"))
    assert again.log.view.messages == messages
    assert not [e for e in bench.store.load_events("chat-1") if getattr(e.payload, "reason", "") == "interrupted"]


async def test_a_file_deleted_while_a_reply_streams_is_rewritten_completely(host, told):
    bench, session, path = await host()
    pause = asyncio.Event()
    (text, finished) = says("whole answer")
    bench.adapter._script = iter([(text, pause, finished)])
    session.submit(submit("hello"))
    await bench.until(lambda: any(getattr(e, "text", "") == "whole answer" for e in bench.events))
    for file in path.parent.glob("sessions.db*"):
        file.unlink()
    pause.set()
    await bench.idle(session)
    assert told == ["Chat history deleted while open; restored, nothing was lost"]
    assert project(stored(path)).messages == session.log.view.messages


async def test_an_idle_chat_is_notified_too(host, told):
    """The chat is notified immediately, not with the next message."""
    bench, session, path = await host(ANSWER)
    await talk(bench, session, 1)
    truncate(bench, path)
    await settled(bench)
    assert len(told) == len(notices(bench)) == 1
    assert project(stored(path)).messages == session.log.view.messages


async def test_a_backup_that_replaces_the_file_gets_the_missing_events(host, told, tmp_path):
    """The log of the open chat is read from the replaced file, which is still open: undo and all."""
    bench, session, path = await host(ANSWER, ANSWER, ANSWER)
    await talk(bench, session, 1)
    bench.store._writer.submit(lambda c: c.execute("SELECT 1").fetchone()).result()
    with bench.store._database.write_lock:
        bench.store._database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, tmp_path / "backup.db")
    session.submit(submit("question 1", 2))
    await bench.idle(session)
    before = bench.store.load_events("chat-1")
    (tmp_path / "backup.db").replace(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    session.submit(submit("question 2", 3))
    await bench.idle(session)
    await settled(bench)
    assert bench.store.load_events("chat-1")[: len(before)] == before
    assert project(stored(path)).messages == session.log.view.messages
    assert told[0].startswith("Chat history replaced; 1 chat rebuilt; ")
    assert notices(bench)[0].endswith("stored again in full; nothing is lost.")


@pytest.mark.parametrize("is_sound", [True, False])
async def test_a_file_copied_over_the_open_one_loses_nothing_of_the_open_chat(host, told, tmp_path, is_sound):
    """`cp other.db sessions.db` keeps the inode: the other file is used, or set aside if it cannot be."""
    bench, session, path = await host(ANSWER, ANSWER)
    await talk(bench, session, 1)
    other = open_store(tmp_path / "other")
    other.append("theirs", [MessageAdded(message=Message(id="t", role="user", content="from the backup"))]).result()
    other.close()
    content = (tmp_path / "other" / "sessions.db").read_bytes() if is_sound else b"garbage!" * 4_000
    path.write_bytes(content)
    session.submit(submit("question 1", 2))
    await bench.idle(session)
    await settled(bench)
    assert project(stored(path)).messages == session.log.view.messages
    assert [m.text for m in session.log.view.messages if m.role == "user"] == ["question 0", "question 1"]
    assert len(stored(path, "theirs")) == is_sound
    assert told == ["Chat history replaced; 1 chat rebuilt; see :CodeCompanionRestore"]
    assert notices(bench)[0].startswith("Another file was copied over the chat history. ")
    kept = [file.path.read_bytes() for file in kept_files(path)]
    assert kept == ([] if is_sound else [content])


async def test_a_file_with_another_history_of_the_chat_shows_the_models_view(host, tmp_path):
    """Two histories of one chat cannot both count: the running one does, the other stays in the log."""
    bench, session, path = await host(ANSWER, ANSWER)
    await talk(bench, session, 1)
    other = open_store(tmp_path / "other")
    elsewhere = kept(tmp_path, ScriptedAdapter("s", [says("another answer")]), store=other)
    await talk(elsewhere, await elsewhere.open(), 1)
    other.close()
    (tmp_path / "other" / "sessions.db").replace(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    session.submit(submit("question 1", 2))
    await bench.idle(session)
    assert project(stored(path)).messages == session.log.view.messages
    assert session.log.chain.undoable == ()


async def leave_two_others(bench):
    """Store two more chats that are no longer open."""
    for chat in ("chat-2", "chat-3"):
        another = await bench.open(chat)
        another.submit(submit("a question"))
        await bench.idle(another)
        await another.close()
        bench.store.release(chat).result()


async def test_other_chats_are_restored_from_their_checkpoints(host, told):
    """The sentence counts the chats without a checkpoint."""
    bench, session, path = await host(ANSWER, ANSWER, ANSWER)
    await talk(bench, session, 1)
    await leave_two_others(bench)
    bench.services.keeping.checkpoints.delete("chat-3")
    before = [m.text for m in project(bench.store.load_events("chat-2")).messages]
    truncate(bench, path)
    session.log._store.save_draft("chat-1", "typing").result()
    await settled(bench)
    assert [m.text for m in project(stored(path, "chat-2")).messages] == before
    assert stored(path, "chat-3") == []
    assert notices(bench, "")[-1].startswith("Chat history: 1 chat restored from checkpoints, ")
    assert "lost" in notices(bench, "")[-1]
    with pytest.raises(Exception, match="nothing was restored"):
        await restore_chat(bench.services, "chat-3", "")


async def test_a_chat_that_cannot_be_restored_does_not_stop_the_others(host, monkeypatch):
    """The sentence counts the chat, whatever the reason."""
    bench, session, path = await host(ANSWER, ANSWER, ANSWER)
    await talk(bench, session, 1)
    await leave_two_others(bench)
    broken: list[str] = []

    async def restore(services, chat, cwd):
        if not broken:
            broken.append(chat)
            raise OSError("Input/output error")
        return await restore_chat(services, chat, cwd)

    monkeypatch.setattr("codecompanion.session.storage.from_checkpoint.restore_chat", restore)
    truncate(bench, path)
    session.log._store.save_draft("chat-1", "typing").result()
    await settled(bench)
    assert len(broken) == sum(not stored(path, chat) for chat in ("chat-2", "chat-3")) == 1
    told = notices(bench, "")[-1]
    assert "1 chat restored from checkpoints, 1 unreadable" in told
    assert told in bench.store.incidents


async def test_recall_keys_are_those_of_the_new_log(host):
    """A summary must not name a key that returns nothing, or the wrong message."""
    bench, session, path = await host(ANSWER, ANSWER, ANSWER)
    await talk(bench, session, 1)
    session.log.has_removed = True
    truncate(bench, path)
    session.submit(submit("question 1", 2))
    await bench.idle(session)
    await settled(bench)
    assert session.log.keys == {
        e.payload.message.id: f"r{e.seq}" for e in stored(path) if isinstance(e.payload, MessageAdded)
    }
    assert not session.log.has_removed


async def test_an_older_summary_names_no_keys_of_the_lost_log(host):
    """R-516: `recall r2 to r5` in a summary returned nothing, or a wrong message, once the log was rewritten."""
    bench, session, path = await host(*[says("answer " * 400)] * 3, says("THE SUMMARY"), ANSWER, ANSWER)
    await talk(bench, session, 3)
    session.compact("")
    await bench.idle(session)
    (summary,) = [m.text for m in session.log.view.messages if m.tag == "compact_summary"]
    assert read_span(summary) is not None
    truncate(bench, path)
    session.submit(submit("question 9", 9))
    await bench.idle(session)
    await settled(bench)
    assert project(stored(path)).messages == session.log.view.messages
    (summary,) = [m.text for m in session.log.view.messages if m.tag == "compact_summary"]
    assert without_keys(summary) == summary
    assert "SUMMARY" in summary


ANOTHER_HOST = """
import sys
from pathlib import Path
from codecompanion.model.view import project
from codecompanion.store.opening import open_store
from codecompanion.store import writer_thread
from codecompanion.store.damage import lost_file
from codecompanion.store.damage.rebuild import LiveChat
writer_thread.LOOK_EVERY_S = writer_thread.SETTLE_S = lost_file.SETTLE_S = 0.1
store = open_store(Path(sys.argv[1]))
store.acquire("chat-2").result()
live = LiveChat("chat-2", project(store.load_events("chat-2")))
store.watch_over(lambda: [live], lambda loss: print(loss.rebuilt[0].extent, flush=True))
print("open", flush=True)
sys.stdin.read()
store.close()
"""


async def test_a_chat_of_a_hanging_host_is_left_to_it(host, tmp_path):
    """However long it hangs, its chat is not restored: it has undo, the trace and newer messages than a checkpoint."""
    bench, session, path = await host(ANSWER, ANSWER, ANSWER)
    await talk(bench, session, 1)
    await leave_two_others(bench)
    before = bench.store.load_events("chat-2")
    with running_host(path.parent) as process:
        assert process.stdout.readline() == "open\n"
        process.send_signal(signal.SIGSTOP)
        other = open_store(tmp_path / "other")
        other.append("theirs", [MessageAdded(message=Message(id="t", role="user", content="their words"))]).result()
        other.close()
        (tmp_path / "other" / "sessions.db").replace(path)
        session.submit(submit("question 1", 2))
        await bench.idle(session)
        await settled(bench)
        assert bench.store.load_events("chat-2") == []
        assert bench.store.load_events("chat-3")
        assert notices(bench, "") == ["Chat history: 1 chat restored from checkpoints"]
        process.send_signal(signal.SIGCONT)
        assert await asyncio.to_thread(process.stdout.readline) == "whole\n"
        assert bench.store.load_events("chat-2") == before


@contextlib.contextmanager
def running_host(folder: Path):
    """Run another host that has chat-2 open; the block's end stops it."""
    process = subprocess.Popen(
        [sys.executable, "-c", ANOTHER_HOST, str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(lost_history.__file__).parents[3])},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_spending_still_counts_if_it_can_be_read(host, tmp_path):
    """R-358: a budget must not restart from zero because a file was lost."""
    bench, session, path = await host(ANSWER, ANSWER)
    await talk(bench, session, 1)
    spent = bench.store.spent("chat-1")
    assert spent.usd > 0
    empty = open_store(tmp_path / "empty")
    empty.close()
    (tmp_path / "empty" / "sessions.db").replace(path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert bench.store.spent("chat-1") == spent


async def test_two_hosts_store_their_chats_in_one_new_file(host, tmp_path):
    """The first to notice creates the file, the other uses it; each chat still belongs to its host."""
    first, one, path = await host(ANSWER, ANSWER)
    second, two, _ = await host(ANSWER, ANSWER, chat="chat-2")
    for bench, session in ((first, one), (second, two)):
        session.submit(submit("question 0"))
        await bench.idle(session)
    truncate(first, path)
    with second.store._database.write_lock:
        second.store._database.writer.execute("PRAGMA shrink_memory")
    for bench, session in ((first, one), (second, two)):
        session.submit(submit("question 1", 2))
        await bench.idle(session)
    for _, session in ((first, one), (second, two)):
        events = stored(path, session.chat_id)
        assert project(events).messages == session.log.view.messages
        assert sum(isinstance(event.payload, ChatCreated) for event in events) == 1
    assert second.store.foreign_lease("chat-1") is not None
    assert first.store.foreign_lease("chat-2") is not None


async def test_a_second_host_restores_the_remaining_chats(host, monkeypatch):
    """If a Neovim is killed during the restore, another host completes it; lost chats are not counted twice."""
    monkeypatch.setattr(lost_history, "LOOK_EVERY_S", 0.01)
    bench, session, path = await host(ANSWER, ANSWER)
    await talk(bench, session, 1)
    another = await bench.open("chat-2")
    another.submit(submit("a question"))
    await bench.idle(another)
    await another.close()
    bench.store.release("chat-2").result()
    other = FileLock(path.parent / "rebuilding.lock")
    tries: list[Path] = []

    def lock(where: Path, timeout_s: float) -> FileLock:
        tries.append(where)
        return FileLock(where, timeout_s)

    monkeypatch.setattr(lost_history, "FileLock", lock)
    truncate(bench, path)
    session.log._store.save_draft("chat-1", "typing").result()
    await bench.until(lambda: len(tries) > 1)
    assert bench.store.load_events("chat-2") == []
    other.release()
    await settled(bench)
    assert bench.store.load_events("chat-2")
    assert notices(bench, "") == ["Chat history: 1 chat restored from checkpoints"]
