"""Branches: edit and resend, `/fork`, the tree of branches."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from codecompanion.errors import InputError
from codecompanion.model.history import MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message, Usage, is_typed_by_user
from codecompanion.model.view import project
from codecompanion.session.actions.cost_reports import Reports
from codecompanion.session.actions.forking import fork, list_branches
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.session.storage.stored_chats import delete, rename
from codecompanion.store.log.totals import Spent
from codecompanion.store.opening import open_store
from codecompanion.wire.events import ChatOpened, Restored, TitleChanged
from codecompanion.wire.requests import ForkChat, OpenChat, Pin, ShowCost, Snapshot
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit
from tests.unit.session.history.test_undo import EDITS, KEEP_ALL, ask, reader, say, talked, undo
from tests.unit.store.conftest import Desk, Start, desk, start

__all__ = ["Desk", "Start", "desk", "start"]
CHAT = "chat-1"
USAGE = Usage(1000, 10)


def chatter() -> ScriptedAdapter:
    return ScriptedAdapter("s", lambda request: says(f"answer to {request.messages[-1].text}"))


def request(at: str = "", title: str = "", draft: str = "", to: str = "branch", chat: str = CHAT) -> ForkChat:
    return ForkChat(chat=chat, fork=to, at=at, title=title, draft=draft)


def typed(bench: Bench, chat: str = CHAT) -> list[Message]:
    said = [e.payload.message for e in bench.store.load_events(chat) if isinstance(e.payload, MessageAdded)]
    return [message for message in said if is_typed_by_user(message)]


async def opened(bench: Bench, chat: str = "branch"):
    session = await open_stored(bench.services, OpenChat(chat=chat, snapshot=Snapshot(), resume=chat))
    assert session is not None
    return session


def texts(session) -> list[str]:
    return [message.text for message in session.log.view.messages]


async def test_a_branch_excludes_the_edited_message_and_all_after_it(tmp_path: Path) -> None:
    """The model gets the messages before it, then the new text; the old chat keeps everything."""
    bench = Bench(tmp_path, chatter())
    session = await talked(bench)
    before = bench.store.load_events(CHAT)
    assert await fork(bench.services, request(typed(bench)[1].id, draft="better 2")) == "branch"
    branch = await opened(bench)
    assert bench.of(ChatOpened)[-1].draft == "better 2"
    assert texts(branch) == ["question 1", "answer to question 1"]
    branch.submit(submit("better 2", 1))
    await bench.idle(branch)
    assert [m.text for m in bench.adapter.requests[-1].messages if m.role != "system"] == [
        "question 1", "answer to question 1", "better 2",
    ]  # fmt: skip
    assert [m.cycle for m in typed(bench, "branch")] == [1, 2]
    assert bench.store.load_draft("branch") == ""
    assert bench.store.load_events(CHAT) == before
    assert texts(session)[-1] == "answer to question 3"


@pytest.mark.parametrize("settings", [EDITS, KEEP_ALL])
async def test_every_message_can_be_edited_after_any_later_change(tmp_path: Path, settings) -> None:
    """After edits, compactions, pins and undos the branch is the chat as it was before the message, and valid."""
    bench = Bench(tmp_path, reader(), settings=settings)
    session = await talked(bench, 3)
    await ask(session, Pin(chat=CHAT, text="use tabs"))
    await say(bench, session, 2, 60)
    session.compact("")
    await bench.idle(session)
    await say(bench, session, 2, 70)
    await ask(session, undo())
    await say(bench, session, 1, 80)
    events = bench.store.load_events(CHAT)
    for number, message in enumerate(typed(bench)):
        to = f"branch-{number}"
        await fork(bench.services, request(message.id, to=to))
        place = events.index(next(e for e in events if getattr(e.payload, "message", None) == message))
        stored = bench.store.load_events(to)
        assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
        assert project(stored).messages == project(events[:place]).messages
        assert violations(project(stored).messages) == []
        branch = await opened(bench, to)
        assert branch.log.chain.undoable == tuple(change for change in branch.log.chain.undoable if change.change_id)
        await say(bench, branch, 1, 90)
        assert violations(branch.log.view.messages) == []
        assert project(bench.store.load_events(to)) == branch.log.view


async def test_a_branch_of_the_whole_chat_reads_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are copied inside the database, and the totals equal those of the other chat."""
    bench = Bench(tmp_path, chatter())
    await talked(bench)
    with monkeypatch.context() as unread:
        unread.setattr(bench.store, "load_events", None)
        unread.setattr("codecompanion.store.log.copying.from_bytes", None)
        await fork(bench.services, request())
    source, branch = bench.store.find_session(CHAT), bench.store.find_session("branch")
    assert source is not None
    assert branch is not None
    assert (branch.messages, branch.first_question, branch.last_question, branch.cwd) == (
        source.messages, source.first_question, source.last_question, source.cwd,
    )  # fmt: skip
    assert [event.seq for event in bench.store.load_events("branch")][-1] == bench.store.last_seq("branch")


async def test_undo_works_across_the_fork(tmp_path: Path) -> None:
    """Messages compacted before the fork are restored in the branch and stay compacted in the other chat."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    originals = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    compacted = session.log.view.messages
    await fork(bench.services, request())
    branch = await opened(bench)
    assert branch.log.view.messages == compacted
    await ask(branch, undo())
    assert branch.log.view.messages == originals
    assert session.log.view.messages == compacted


async def test_attachments_of_the_message_are_kept_and_new_ones_added(tmp_path: Path) -> None:
    """Attachments can be detached from the edited message; a newer file replaces the older one."""
    bench = Bench(tmp_path, chatter())
    session = await bench.open()
    services = bench.services
    await session.attach(text_attachment("file", "a.py", "old a", "a1"))
    await session.attach(text_attachment("file", "b.py", "b", "b1"))
    await say(bench, session, 1, 1)
    await session.attach(text_attachment("file", "later.py", "later", "l1"))
    await say(bench, session, 1, 2)
    await session.attach(text_attachment("file", "a.py", "new a", "a2"))
    await session.attach(text_attachment("file", "c.py", "c", "c1"))
    await session.detach(("b1",))
    await fork(services, request(typed(bench)[0].id))
    branch = await opened(bench)
    assert [m.id for m in branch.log.view.messages] == ["a2", "c1"]
    branch.submit(submit("again", 1))
    await bench.idle(branch)
    assert [m.cycle for m in branch.log.view.messages[-2:]] == [1, 1]


async def test_a_message_sent_during_a_turn_can_be_edited(tmp_path: Path) -> None:
    """The turn it was queued for ends in the branch at that point: nothing is left open or repaired."""
    gate = asyncio.Event()
    adapter = ScriptedAdapter("s", [(gate, *says("first")), says("second"), says("third")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("one", 1))
    await bench.until(lambda: len(adapter.requests) == 1)
    session.submit(submit("two", 2))
    gate.set()
    await bench.idle(session)
    await fork(bench.services, request(typed(bench)[1].id))
    branch = await opened(bench)
    assert texts(branch) == ["one", "first"]
    assert violations(branch.log.view.messages) == []


async def test_only_user_messages_can_be_edited(tmp_path: Path) -> None:
    bench = Bench(tmp_path, chatter())
    session = await talked(bench, 1)
    for wrong in (session.log.view.messages[-1].id, "nowhere"):
        with pytest.raises(InputError, match="Only your own messages"):
            await fork(bench.services, request(wrong))
    with pytest.raises(InputError, match="No stored chat"):
        await fork(bench.services, request(chat="nowhere"))
    assert [info.id for info in bench.store.list_sessions()] == [CHAT]


async def test_branches_get_titles(tmp_path: Path) -> None:
    """Titles are numbered like copies, given by the user, or, for an edited first message, taken from its new words."""
    bench = Bench(tmp_path, chatter())
    await talked(bench)
    await fork(bench.services, request(to="b"))
    await fork(bench.services, request(to="c", chat="b"))
    await fork(bench.services, request(to="d", title=" The  other way "))
    await fork(bench.services, request(typed(bench)[0].id, to="e"))
    found = {info.id: info.title for info in bench.store.list_sessions()}
    assert found == {CHAT: "question 1", "b": "question 1 (2)", "c": "question 1 (3)", "d": "The other way"}
    first = await opened(bench, "e")
    first.submit(submit("a new beginning", 1))
    await bench.idle(first)
    assert bench.of(TitleChanged)[-1].title == "a new beginning"
    await rename(bench.services, CHAT, "Mine", None)
    await fork(bench.services, request(typed(bench)[0].id, to="f"))
    assert (await opened(bench, "f")).log.title == "Mine (2)"


async def test_the_tree_of_branches_is_listed(tmp_path: Path) -> None:
    """The tree can be listed from any branch; deleting a branch keeps its own branches connected and intact."""
    bench = Bench(tmp_path, chatter())
    session = await talked(bench)
    for number, (to, source) in enumerate((("b", CHAT), ("c", "b"), ("d", CHAT), ("e", "b"))):
        bench.store._clock = lambda now=4e9 + number: now
        await fork(bench.services, request(to=to, chat=source))
    rows = await list_branches(bench.services, "c")
    assert [(row["id"], row["depth"], row["current"]) for row in rows] == [
        (CHAT, 0, False), ("b", 1, False), ("c", 2, True), ("e", 2, False), ("d", 1, False),
    ]  # fmt: skip
    await session.close()
    await delete(bench.services, "b", {})
    rows = await list_branches(bench.services, CHAT)
    assert [(row["id"], row["depth"]) for row in rows] == [(CHAT, 0), ("d", 1), ("c", 0), ("e", 0)]
    assert texts(await opened(bench, "c")) == texts(session)
    assert await list_branches(bench.services, "nowhere") == []


async def test_costs_before_the_fork_are_counted_once(tmp_path: Path) -> None:
    """`/cost`, the budgets and the totals of all chats count them once; the meter is as exact as before."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("a", usage=USAGE)))
    session = await talked(bench, 2)
    paid = bench.store.spent()
    assert paid.usd > 0
    await fork(bench.services, request())
    assert bench.store.spent() == paid
    assert bench.store.spent("branch") == Spent()
    branch = await opened(bench)
    assert branch.control.measured() == session.control.measured()
    show = Reports().show_cost(bench.services, ShowCost(chat="branch"))
    assert "A branch of “question 1”" in show["text"]
    assert "Nothing has been sent yet" in show["text"]
    await say(bench, branch, 1, 9)
    assert bench.store.spent("branch").usd == pytest.approx(paid.usd / 2)
    assert "1 request in 1 turn" in Reports().show_cost(bench.services, ShowCost(chat="branch"))["text"]


async def test_the_buffer_shows_the_messages_of_the_branch(tmp_path: Path) -> None:
    """The buffer shows the model's view, with one line that names the branch's origin."""
    bench = Bench(tmp_path, chatter())
    await talked(bench)
    await fork(bench.services, request(typed(bench)[1].id))
    bench.events.clear()
    branch = await opened(bench)
    shown = [entry for event in reversed(bench.of(Restored)) for entry in event.entries]
    assert [entry.text for entry in shown if entry.kind != "note"] == texts(branch)
    assert "Forked from “question 1”" in shown[-1].text


async def test_a_repeated_request_makes_one_branch(tmp_path: Path) -> None:
    """If the host dies before the first answer arrives, the editor repeats the request with the same id."""
    bench = Bench(tmp_path, chatter())
    await talked(bench)
    message = typed(bench)[1].id
    assert await fork(bench.services, request(message, draft="x")) == "branch"
    events = bench.store.load_events("branch")
    assert await fork(bench.services, request(message, draft="y")) == "branch"
    assert bench.store.load_events("branch") == events
    assert bench.store.load_draft("branch") == "y"


async def test_messages_of_a_branch_are_found_by_search(tmp_path: Path) -> None:
    bench = Bench(tmp_path, chatter())
    await talked(bench)
    await fork(bench.services, request(typed(bench)[1].id))
    assert {hit.message_id for hit in bench.store.search("question", "branch")} == {
        message.id for message in project(bench.store.load_events("branch")).messages
    }
    assert bench.store.search("3", "branch") == []


FORK_FOREVER = """
from codecompanion.model.history import ChatForked
store = open_store(folder)
store.append("a", [said(f"{number}") for number in range(200)]).result()
tell("ready")
for number in range(10_000):
    store.fork("a", f"b{number}", 150, {3}, [ChatForked(from_chat="a", family="a")], "draft").result()
    tell("forked", number)
"""


@pytest.mark.parametrize("kill_after", [2, 5, 9])
def test_a_killed_host_leaves_no_branch_or_a_complete_one(desk: Desk, start: Start, kill_after: int) -> None:
    """A branch is stored with all rows, the totals, the draft and the search index, or not at all."""
    process = start(FORK_FOREVER)
    assert process.stdout is not None
    for _ in range(kill_after):
        process.stdout.readline()
    process.kill()
    process.stdout.read()
    store = open_store(desk.folder)
    branches = [info.id for info in store.list_sessions() if info.id != "a"]
    assert len(branches) >= kill_after - 1
    for branch in branches:
        assert len(store.load_events(branch)) == 150
        assert store.load_draft(branch) == "draft"
        assert store.find_session(branch).messages == 149  # type: ignore[union-attr]
        assert len(store.search("149", branch)) == 1
    store.close()
    with sqlite3.connect(desk.path) as connection:
        assert {row[0] for row in connection.execute("SELECT DISTINCT chat_id FROM events")} == {"a", *branches}
    connection.close()
