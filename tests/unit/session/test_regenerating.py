"""A new answer replaces the old one, marked, and can be swapped for it again."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.errors import InputError
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.session.actions.forking import fork
from codecompanion.store.opening import open_store
from codecompanion.wire.events import Redrawn, Restored, ViewMarks
from codecompanion.wire.requests import Pin, RedoChange, RestoreMessage, Snapshot, UndoChange
from tests.unit.session.actions.test_forking import opened, request, typed
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.history.test_undo import ask, redo, undo

CHAT = "chat-1"


def author() -> ScriptedAdapter:
    """Return a model whose answers are numbered; every second one uses a tool first."""
    numbers = itertools.count(1)

    def answer(asked):
        if asked.messages[-1].role == "tool":
            return says(f"answer {next(numbers)}")
        number = next(numbers)
        return says(f"answer {number}") if number % 2 else calls((f"c{number}", "file_search", '{"query": "*"}'))

    return ScriptedAdapter("s", answer)


async def asked(tmp_path: Path, store=None):
    bench = Bench(tmp_path, author(), store=store)
    session = await bench.open()
    session.submit(submit("question"))
    await bench.idle(session)
    return bench, session


async def again(bench: Bench, session) -> None:
    await session.regenerate(Snapshot())
    await bench.idle(session)


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if message.text and message.role != "tool"]


async def test_undo_restores_the_old_answer_and_redo_the_new_one(tmp_path: Path) -> None:
    """Each answer is restored with its tool calls and results; store and memory agree at each step."""
    bench, session = await asked(tmp_path)
    views = [session.log.view.messages]
    for _ in range(3):
        await again(bench, session)
        views.append(session.log.view.messages)
    for view in reversed(views[:-1]):
        assert await ask(session, undo()) == "Undone: the previous reply restored."
        assert session.log.view.messages == view
        assert project(bench.store.load_events(CHAT)) == session.log.view
        assert violations(view) == []
    with pytest.raises(InputError):
        await ask(session, undo())
    for view in views[1:]:
        await ask(session, redo())
        assert session.log.view.messages == view
    assert project(bench.store.load_events(CHAT)) == session.log.view


async def test_the_replaced_answer_is_marked(tmp_path: Path) -> None:
    """Either of the two is marked by the ids of its messages, in a resumed chat too."""
    bench, session = await asked(tmp_path)
    old = session.log.view.messages[1:]
    await again(bench, session)
    new = session.log.view.messages[1:]
    (mark,) = bench.of(ViewMarks)[-1].replaced
    assert (mark.items, mark.undone) == (tuple(m.id for m in old), False)
    assert bench.of(ViewMarks)[-1].next_undo == mark.change_id
    await ask(session, undo())
    (mark,) = bench.of(ViewMarks)[-1].replaced
    assert (mark.items, mark.undone) == (tuple(m.id for m in new), True)
    await session.close()
    bench.events.clear()
    await bench.resume()
    assert bench.of(ViewMarks)[0].replaced == (mark,)
    assert bench.of(ViewMarks)[0].next_redo == mark.change_id
    shown = [entry for event in bench.of(Restored) for entry in event.entries]
    assert [entry.opens for entry in shown] == [False, True, True, False], "the new answer has a header of its own"


async def test_a_partly_restored_answer_is_no_longer_separate(tmp_path: Path) -> None:
    """It stays so when that part leaves the view again: a redraw folds like the incremental display (seed 648)."""
    bench, session = await asked(tmp_path)
    await again(bench, session)
    part = session.log.view.messages[-1].id
    await ask(session, undo())
    await ask(session, RestoreMessage(chat=CHAT, item=part))
    assert bench.of(ViewMarks)[-1].replaced == ()
    await session.context.remove("compacted", (part,))
    session.context.show_marks()
    assert bench.of(ViewMarks)[-1].replaced == ()
    await ask(session, undo())
    await ask(session, undo())
    assert len(bench.of(ViewMarks)[-1].replaced) == 1, "nothing of it is restored any more"


async def test_an_answer_is_settled_once_the_chat_continues(tmp_path: Path) -> None:
    """The next message replies to the answer, so undo no longer offers the swap, and the editor is notified at once."""
    bench, session = await asked(tmp_path)
    await again(bench, session)
    session.submit(submit("next question", 2))
    await bench.idle(session)
    assert bench.of(ViewMarks)[-1].next_undo == ""
    assert len(bench.of(ViewMarks)[-1].replaced) == 1
    with pytest.raises(InputError, match=r"[Nn]othing to undo"):
        await ask(session, undo())


async def test_continuing_after_an_undo_settles_it_too(tmp_path: Path) -> None:
    """After a question about the old answer, or its continuation, the new answer is no longer offered."""
    for step in ("ask", "continue"):
        bench, session = await asked(tmp_path)
        await again(bench, session)
        await ask(session, undo())
        if step == "ask":
            session.submit(submit("next question", 2))
        else:
            session.continue_reply(Snapshot())
        await bench.idle(session)
        view = session.log.view
        with pytest.raises(InputError, match=r"[Nn]othing to redo"):
            await ask(session, redo())
        assert texts(view.messages)[:2] == ["question", "answer 1"]
        assert project(bench.store.load_events(CHAT)) == view
        assert violations(view.messages) == []


async def test_a_message_sent_during_the_new_answer_settles_it(tmp_path: Path) -> None:
    """The message replies to the new answer, and an undo would leave it without one."""
    gate = asyncio.Event()
    adapter = ScriptedAdapter("s", [says("old"), (gate, *says("new")), says("to the second"), says("x")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    session.submit(submit("question"))
    await bench.idle(session)
    await session.regenerate(Snapshot())
    session.submit(submit("and another thing", 2))
    gate.set()
    await bench.idle(session)
    before = session.log.view
    with pytest.raises(InputError, match=r"[Nn]othing to undo"):
        await ask(session, undo())
    assert session.log.view == before


async def test_both_answers_survive_the_host(tmp_path: Path) -> None:
    """After a regenerate, an undo and a restart, the chat has the old answer; after a redo there, the new one."""
    store = open_store(tmp_path / "store")
    bench, session = await asked(tmp_path, store)
    old = session.log.view.messages
    await again(bench, session)
    new = session.log.view.messages
    await ask(session, undo())
    store.close()
    store = open_store(tmp_path / "store")
    bench = Bench(tmp_path, author(), store=store)
    resumed = await bench.resume()
    assert resumed is not None
    assert resumed.log.view.messages == old
    await ask(resumed, RedoChange(chat=CHAT))
    assert resumed.log.view.messages == new
    store.close()


async def test_a_branch_includes_both_answers(tmp_path: Path) -> None:
    bench, session = await asked(tmp_path)
    old = session.log.view.messages
    await again(bench, session)
    await fork(bench.services, request())
    branch = await opened(bench)
    await ask(branch, UndoChange(chat="branch"))
    assert branch.log.view.messages == old
    await fork(bench.services, request(typed(bench)[0].id, to="first"))
    assert (await opened(bench, "first")).log.view.messages == ()


async def test_a_cleared_chat_shows_it_and_is_restored_after_a_restart(tmp_path: Path) -> None:
    """One line replaces the chat and offers undo; it is the same after a resume, and undoing redraws everything."""
    bench, session = await asked(tmp_path)
    before = session.log.view.messages
    await session.clear()
    drawn = [entry for event in bench.of(Restored) for entry in event.entries]
    assert [entry.kind for entry in drawn] == ["cleared"]
    assert bench.of(ViewMarks)[-1].next_undo == drawn[0].change_id
    await session.close()
    bench.events.clear()
    resumed = await bench.resume()
    assert resumed is not None
    assert [entry.kind for event in bench.of(Restored) for entry in event.entries] == ["cleared"]
    bench.events.clear()
    await ask(resumed, undo())
    assert resumed.log.view.messages == before
    assert len(bench.of(Redrawn)) == 1
    assert [entry.kind for event in bench.of(Restored) for entry in event.entries] == ["user", "reply"]
    await ask(resumed, redo())
    assert [entry.kind for entry in bench.of(Restored)[-1].entries] == ["cleared"]


STEPS = ("ask", "again", "undo", "redo", "pin", "clear", "continue", "compact", "restart", "fork")


@pytest.mark.slow("random histories")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=14))
def test_any_order_of_answers_undos_and_branches_is_valid(steps: list[str]) -> None:
    """Store and memory project the same view, every call has its result, and a redo reverses an undo."""
    asyncio.run(_live(steps))


async def _live(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bench, session = await asked(Path(folder))
        chat = CHAT
        for number, step in enumerate(steps):
            before = session.log.view.messages
            try:
                match step:
                    case "ask":
                        session.submit(submit(f"question {number}", number + 2))
                    case "again":
                        await session.regenerate(Snapshot())
                    case "undo":
                        await ask(session, UndoChange(chat=chat))
                        undone = session.log.view.messages
                        await ask(session, RedoChange(chat=chat))
                        assert session.log.view.messages == before
                        await ask(session, UndoChange(chat=chat))
                        assert session.log.view.messages == undone
                    case "redo":
                        await ask(session, RedoChange(chat=chat))
                    case "pin":
                        await ask(session, Pin(chat=chat))
                    case "clear":
                        await session.clear()
                    case "continue":
                        session.continue_reply(Snapshot())
                    case "compact":
                        session.compact("")
                    case "restart":
                        await session.close()
                        session = await opened(bench, chat)
                        assert session.log.view.messages == before
                    case "fork":
                        chat = f"{chat}-{number}"
                        await fork(bench.services, request(to=chat, chat=session.chat_id))
                        session = await opened(bench, chat)
                        assert session.log.view.messages == before
            except InputError:
                assert session.log.view.messages == before
            await bench.idle(session)
            assert project(bench.store.load_events(chat)).messages == session.log.view.messages
            assert violations(session.log.view.messages) == []
        assert bench.bugs == []
