"""Undo and redo of what was changed in a chat's view: R-361, R-516, R-545."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.adapters.base import CompactionDone
from codecompanion.errors import InputError
from codecompanion.events import Compacted, ContextItems, Meter, Notice, Restored, ViewMarks
from codecompanion.history import ChangeUndone, MessageAdded, ViewChanged
from codecompanion.messages import Message
from codecompanion.requests import Pin, RedoChange, UndoChange
from codecompanion.session.state import State
from codecompanion.session.undo import Rest, rest_of
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.moments import BLOCK
from tests.unit.session.test_turn import stored_view

READ = '{"path": "a.txt"}'
KEEP_ALL = {"context_management": {"compaction": {"trigger": False, "min_token_savings": 100}}, "on_compact": "stop"}
EDITS = {"context_management": {"editing": {"trigger": 500, "keep_cycles": 1}, "compaction": {"trigger": False}}}


def reader() -> ScriptedAdapter:
    """Return a model that reads a file once for every message of the user's, and can summarise."""
    numbers = iter(range(1000))

    def answer(request):
        if request.purpose == "summary":
            return says(nine_sections("SUMMARY"))
        if request.messages[-1].role == "tool":
            return says("done")
        return calls((f"c{next(numbers)}", "read_file", READ))

    return ScriptedAdapter("s", answer)


async def talked(bench: Bench, number: int = 3, first: int = 1):
    """Open a chat and say something a few times."""
    (bench.root / "a.txt").write_text("word " * 2000)
    session = await bench.open()
    await say(bench, session, number, first)
    return session


async def say(bench: Bench, session, number: int = 1, first: int = 50):
    for i in range(number):
        session.submit(submit(f"question {first + i}", first + i))
        await bench.idle(session)


async def ask(session, request):
    return await asyncio.wait_for(session.edits.carry_out(request), 5)


def undo(change_id: str = "") -> UndoChange:
    return UndoChange(chat="chat-1", change_id=change_id)


def redo() -> RedoChange:
    return RedoChange(chat="chat-1")


def cleared(session) -> int:
    return sum(message.edited for message in session.log.view.messages)


async def test_an_undone_edit_leaves_the_view_as_it_was(tmp_path):
    """R-545: byte for byte, in the store as in memory, and the meter knows at once."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    assert cleared(session) == 2
    originals = {e.payload.message.id: e.payload.message for e in await session.log.events()
                 if isinstance(e.payload, MessageAdded)}  # fmt: skip
    said = ""
    while cleared(session):
        said = await ask(session, undo())
    assert said == "Undid: 1 tool result restored."
    assert list(session.log.view.messages) == list(originals.values())
    assert stored_view(bench) == session.log.view
    assert bench.of(ViewMarks)[-1].cleared == ()
    assert bench.of(Meter)[-1].tokens == session.control.measured().tokens
    with pytest.raises(InputError, match="Nothing to undo"):
        await ask(session, undo())


async def test_redo_brings_the_change_back_and_a_new_one_ends_that(tmp_path):
    """R-545."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    session.compact("")
    await bench.idle(session)
    compacted = session.log.view
    await ask(session, undo())
    assert "SUMMARY" not in " ".join(m.text for m in session.log.view.messages)
    assert "messages compacted" in await ask(session, redo())
    assert session.log.view.messages == compacted.messages
    await ask(session, undo())
    await ask(session, Pin(chat="chat-1", text="use tabs"))
    with pytest.raises(InputError, match="Nothing to redo"):
        await ask(session, redo())


async def test_what_joined_since_stays_behind_what_came_back(tmp_path):
    """R-545: an undo takes back the change, never what was said."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    before = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    kept = len(session.log.view.messages)
    await say(bench, session)
    joined = session.log.view.messages[kept:]
    await ask(session, undo())
    assert session.log.view.messages == (*before, *joined)


async def test_only_the_newest_change_is_offered(tmp_path):
    """R-545: a summary of a summary needs the first one undone last."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    views = [session.log.view.messages]
    for number in (60, 70):
        session.compact("")
        await bench.idle(session)
        await say(bench, session, 2, number)
        views.append(session.log.view.messages)
    first, second = (e.payload for e in await session.log.events() if isinstance(e.payload, ViewChanged))
    with pytest.raises(InputError, match="Only the newest change"):
        await ask(session, undo(first.change_id))
    await ask(session, undo(second.change_id))
    assert session.log.view.messages[: len(views[1]) - 8] == views[1][: len(views[1]) - 8]
    await ask(session, undo(first.change_id))
    assert session.log.view.messages[: len(views[0])] == views[0]
    assert not any(message.tag == "compact_summary" for message in session.log.view.messages)


async def test_undo_and_redo_outlive_the_host(tmp_path):
    """R-545: both are read from the log alone."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench)
    session.compact("")
    await bench.idle(session)
    compacted = session.log.view.messages
    await ask(session, undo())
    full = session.log.view.messages
    again = await bench.resume()
    assert again.log.view.messages == full
    await ask(again, redo())
    third = await bench.resume()
    assert third.log.view.messages == compacted
    await ask(third, undo())
    assert third.log.view.messages == full
    shown = [entry for piece in bench.of(Restored) for entry in piece.entries if entry.kind == "compacted"]
    assert [entry.undone for entry in shown] == [True, False]


async def test_nothing_is_undone_while_a_turn_runs(tmp_path):
    """R-545: what is being sent cannot be changed; one sentence says so."""
    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one"), (gate, *says("two"))]))
    session = await bench.open()
    await say(bench, session)
    await ask(session, Pin(chat="chat-1", text="use tabs"))
    session.submit(submit("more", 60))
    await bench.until(lambda: session.state is State.STREAMING)
    with pytest.raises(InputError, match="Wait until the reply is complete, or stop it with q"):
        await ask(session, undo())
    gate.set()
    await bench.idle(session)
    await ask(session, undo())
    assert not any(message.pinned for message in session.log.view.messages)


async def test_two_undos_at_once_are_two_undos(tmp_path):
    """R-545: a key pressed twice is not refused."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await say(bench, session)
    before = session.log.view.messages
    for text in ("use tabs", "no emoji"):
        await ask(session, Pin(chat="chat-1", text=text))
    await asyncio.gather(ask(session, undo()), ask(session, undo()))
    assert session.log.view.messages == before


async def test_a_clear_can_be_undone(tmp_path):
    """R-545: the model sees it all again, and so does the user."""
    bench = Bench(tmp_path, reader())
    session = await talked(bench)
    before = session.log.view.messages
    await session.clear()
    assert session.log.view.messages == ()
    bench.events.clear()
    assert "Undid: 12 messages restored after /clear" in await ask(session, undo())
    assert session.log.view.messages == before
    drawn = [entry for piece in bench.of(Restored) for entry in piece.entries]
    assert len(drawn) == 9
    await ask(session, redo())
    assert session.log.view.messages == ()


async def test_a_detached_file_comes_back(tmp_path):
    """R-545; a newer version of a file that replaced an older one is nothing to undo."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    for version in ("old", "new"):
        await session.attach(Message(id=version, role="user", tag="file", path="f.txt", content=version))
    await session.detach(("new",))
    assert bench.of(ContextItems)[-1].items == ()
    assert "f.txt attached again" in await ask(session, undo())
    assert [item.label for item in bench.of(ContextItems)[-1].items] == ["f.txt"]
    assert [message.text for message in session.log.view.messages] == ["new"]
    with pytest.raises(InputError, match="Nothing to undo"):
        await ask(session, undo())


async def test_what_a_repair_has_touched_since_cannot_be_undone(tmp_path):
    """R-545: taking the first change back would leave the second one standing on nothing."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await say(bench, session)
    await ask(session, Pin(chat="chat-1"))
    bare = session.log.view.messages[-1]
    await session.log.write(ViewChanged(change_id="r", kind="repaired", replaced=(bare,)))
    with pytest.raises(InputError, match="repaired afterwards"):
        await ask(session, undo())


def test_a_rest_lasts_through_the_next_cycle():
    """R-545: from the log alone; an undone edit lets compactions rest, too, and redo ends it."""

    def log(*payloads):
        from codecompanion.history import LogEvent

        return [LogEvent(seq, 0.0, payload) for seq, payload in enumerate(payloads, 1)]

    said = MessageAdded(message=Message(id="m", role="user", content="x", cycle=4))
    edit, compaction = (ViewChanged(change_id=k, kind=k) for k in ("edited", "compacted"))
    undone = ChangeUndone(change_id="edited", by_user=True)
    rest = rest_of(log(said, edit, undone))
    assert rest.kinds(4) == rest.kinds(5) == {"context_edited", "context_compacted"}
    assert rest.kinds(6) == frozenset()
    assert rest_of(log(said, compaction, ChangeUndone(change_id="compacted", by_user=True))).kinds(5) == {
        "context_compacted"
    }
    back = ChangeUndone(change_id="edited", by_user=True, redone=True)
    assert rest_of(log(said, edit, undone, back)) == Rest()
    assert rest_of(log(said, compaction, ChangeUndone(change_id="compacted"))) == Rest()


async def test_an_undone_edit_is_not_done_again_by_the_next_request(tmp_path):
    """R-545: editing rests through the next cycle, also in a host that was restarted; then it runs as before."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    assert cleared(session) == 2
    await ask(session, undo())
    await ask(session, undo())
    assert "Automatic editing and compaction are paused for your next message" in bench.of(Notice)[-1].text
    again = await bench.resume()
    await say(bench, again, 1, 60)
    assert cleared(again) == 0
    await say(bench, again, 1, 61)
    assert cleared(again) > 2


async def test_an_undone_compaction_rests_for_as_long_as_the_request_fits(tmp_path):
    """R-545: beyond the window there is no choice."""
    adapter = ScriptedAdapter("s", lambda r: says("SUMMARY" if r.purpose == "summary" else "word " * 1500))
    settings = {"context_management": {"compaction": {"trigger": 5000, "min_token_savings": 100}}}
    bench = Bench(tmp_path, adapter, window=20_000, settings=settings)
    session = await bench.open()
    for number in range(20):
        await say(bench, session, 1, number)
        if bench.of(Compacted):
            break
    await ask(session, undo())
    assert session.control.measured().tokens > 5000
    await say(bench, session, 1, 60)
    assert len(bench.of(Compacted)) == 1
    await ask(session, Pin(chat="chat-1", text="too much " * 12_000))
    await say(bench, session, 1, 61)
    assert len(bench.of(Compacted)) == 2


async def test_an_undone_compaction_of_the_provider_is_not_asked_for_again_at_once(tmp_path):
    """R-534, R-545: the provider would do it again in the very next reply."""
    compacts = (CompactionDone(BLOCK), *says("two"))
    replies = iter([says("one"), compacts, says("three"), says("four"), says("five")])
    adapter = ScriptedAdapter("s", lambda request: next(replies), native=True)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await say(bench, session, 2)
    full = await stored_messages(session)
    assert session.log.view.messages != tuple(full)
    await ask(session, undo())
    assert list(session.log.view.messages) == full
    await say(bench, session, 1, 60)
    assert adapter.requests[1].compact_at < adapter.requests[2].compact_at == 100_000
    await say(bench, session, 1, 61)
    assert adapter.requests[3].compact_at == adapter.requests[1].compact_at


async def stored_messages(session):
    return [e.payload.message for e in await session.log.events() if isinstance(e.payload, MessageAdded)]


async def test_another_providers_summary_is_shown_as_undone_and_cannot_be_redone(tmp_path):
    """R-542, R-545: the card must not say what does not hold any more."""
    compacts = (CompactionDone(BLOCK), *says("two"))
    replies = iter([says("one"), compacts])
    native = ScriptedAdapter("s", lambda request: next(replies), native=True)
    bench = Bench(tmp_path, native, ScriptedAdapter("other", lambda request: says("ok")))
    session = await bench.open()
    await say(bench, session, 2)
    change = next(e.payload for e in await session.log.events() if isinstance(e.payload, ViewChanged))
    await session.use_model("other", "")
    assert bench.of(ViewMarks)[-1].undone == (change.change_id,)
    for request, why in ((undo(), "Nothing to undo"), (redo(), "Nothing to redo")):
        with pytest.raises(InputError, match=why):
            await ask(session, request)
    again = await bench.resume()
    assert again is not None
    shown = [entry for piece in bench.of(Restored) for entry in piece.entries if entry.kind == "compacted"]
    assert [entry.undone for entry in shown] == [True]


async def test_a_users_undo_of_a_block_cannot_be_redone_with_another_provider(tmp_path):
    """R-542, R-545."""
    compacts = (CompactionDone(BLOCK), *says("two"))
    replies = iter([says("one"), compacts])
    native = ScriptedAdapter("s", lambda request: next(replies), native=True)
    bench = Bench(tmp_path, native, ScriptedAdapter("other", lambda request: says("ok")))
    session = await bench.open()
    await say(bench, session, 2)
    compacted = session.log.view.messages
    await ask(session, undo())
    await session.use_model("other", "")
    with pytest.raises(InputError, match="written by another provider"):
        await ask(session, redo())
    await session.use_model("s", "")
    await ask(session, redo())
    assert session.log.view.messages == compacted
