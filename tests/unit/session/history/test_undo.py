"""Undo and redo of changes to a chat's view: R-361, R-516, R-545."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.adapters.base import CompactionDone
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import InputError
from codecompanion.model import history
from codecompanion.model.history import (
    ChangeUndone,
    EventPayload,
    LogEvent,
    MessageAdded,
    PauseEnded,
    PolicySet,
    ViewChanged,
)
from codecompanion.model.messages import Message
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.history import undo as undo_module
from codecompanion.session.history.undo import Pauses, answer_turn, chain_of, pauses_of
from codecompanion.session.state import State
from codecompanion.wire.events import (
    Compacted,
    CompactionFailed,
    ContextItems,
    Meter,
    Notice,
    Restored,
    ViewMarks,
)
from codecompanion.wire.requests import Pin, RedoChange, UndoChange
from tests.patience import PATIENCE_S
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.moments import BLOCK
from tests.unit.session.turn.test_turn import stored_view

COUNT = MessageCounter()
READ = '{"path": "a.txt"}'
KEEP_ALL = {"context_management": {"compaction": {"trigger": False, "min_token_savings": 100}}, "on_compact": "stop"}
EDITS = {"context_management": {"editing": {"trigger": 500, "keep_cycles": 1}, "compaction": {"trigger": False}}}


def reader() -> ScriptedAdapter:
    """Return a model that reads a file once per user message, and can summarise."""
    numbers = iter(range(1000))

    def answer(request):
        if request.purpose == "summary":
            return says(nine_sections("SUMMARY"))
        if request.messages[-1].role == "tool":
            return says("done")
        return calls((f"c{next(numbers)}", "read_file", READ))

    return ScriptedAdapter("s", answer)


async def talked(bench: Bench, number: int = 3, first: int = 1):
    """Open a chat and send a few messages."""
    (bench.root / "a.txt").write_text("word " * 2000)
    session = await bench.open()
    await say(bench, session, number, first)
    return session


async def say(bench: Bench, session, number: int = 1, first: int = 50):
    for i in range(number):
        session.submit(submit(f"question {first + i}", first + i))
        await bench.idle(session)


async def ask(session, request):
    return await asyncio.wait_for(session.edits.carry_out(request), PATIENCE_S)


def undo(change_id: str = "") -> UndoChange:
    return UndoChange(chat="chat-1", change_id=change_id)


def redo() -> RedoChange:
    return RedoChange(chat="chat-1")


def cleared(session) -> int:
    return sum(message.edited for message in session.log.view.messages)


async def test_an_undone_edit_leaves_the_view_as_it_was(tmp_path):
    """R-545: the view is restored byte for byte, in the store and in memory, and the meter is updated immediately."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    assert cleared(session) == 2
    originals = {e.payload.message.id: e.payload.message for e in await session.log.events()
                 if isinstance(e.payload, MessageAdded)}  # fmt: skip
    said = ""
    while cleared(session):
        said = await ask(session, undo())
    assert said == "Undone: 1 tool result restored."
    assert list(session.log.view.messages) == list(originals.values())
    assert stored_view(bench) == session.log.view
    assert bench.of(ViewMarks)[-1].cleared == ()
    assert bench.of(Meter)[-1].tokens == session.control.measured().tokens
    with pytest.raises(InputError, match="Nothing to undo"):
        await ask(session, undo())


async def test_redo_reapplies_the_change_until_a_new_one(tmp_path):
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


async def test_newer_messages_stay_after_the_restored_ones(tmp_path):
    """R-545: an undo reverts the change, never messages."""
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


async def test_only_the_newest_change_can_be_undone(tmp_path):
    """R-545: with a summary of a summary the first one must be undone last."""
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


async def test_undo_and_redo_survive_the_host(tmp_path):
    """R-545: both are rebuilt from the log alone."""
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


async def test_undo_is_refused_during_a_turn(tmp_path):
    """R-545: a request in flight cannot be changed; one sentence explains it."""
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


async def test_two_undos_in_a_row_undo_two_changes(tmp_path):
    """R-545: a double key press is not refused."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await say(bench, session)
    before = session.log.view.messages
    for text in ("use tabs", "no emoji"):
        await ask(session, Pin(chat="chat-1", text=text))
    await asyncio.gather(ask(session, undo()), ask(session, undo()))
    assert session.log.view.messages == before


async def test_a_clear_can_be_undone(tmp_path):
    """R-545: the model and the user see all messages again."""
    bench = Bench(tmp_path, reader())
    session = await talked(bench)
    before = session.log.view.messages
    await session.clear()
    assert session.log.view.messages == ()
    bench.events.clear()
    assert "Undone: 12 messages restored after /clear" in await ask(session, undo())
    assert session.log.view.messages == before
    drawn = [entry for piece in bench.of(Restored) for entry in piece.entries]
    assert len(drawn) == 9
    await ask(session, redo())
    assert session.log.view.messages == ()


async def test_a_detached_file_can_be_restored(tmp_path):
    """R-545; the replacement of a file by a newer version is not an undoable change."""
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


async def test_a_change_that_a_repair_modified_cannot_be_undone(tmp_path):
    """R-545: reverting the first change would leave the second without its base."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one")]))
    session = await bench.open()
    await say(bench, session)
    await ask(session, Pin(chat="chat-1"))
    bare = session.log.view.messages[-1]
    await session.log.write(ViewChanged(change_id="r", kind="repaired", replaced=(bare,)))
    with pytest.raises(InputError, match="repaired afterwards"):
        await ask(session, undo())


BY_HAND = history.CompactionStarted(compaction_id="k", trigger="manual", summariser="s", tokens_before=1)
SAID = MessageAdded(message=Message(id="m", role="user", content="x", cycle=4))
EDIT, COMPACTION, CLEARED, RESTORED = (
    ViewChanged(change_id=k, kind=k) for k in ("edited", "compacted", "cleared", "restored")
)
BOTH = frozenset({"context_edited", "context_compacted"})


def pauses_after(*payloads) -> Pauses:
    return pauses_of([LogEvent(seq, 0.0, payload) for seq, payload in enumerate(payloads, 1)])


def test_an_undone_change_stays_paused_until_the_user_resumes_it():
    """R-545: the pause is derived from the log alone; an undone edit also pauses compactions."""
    edit, compaction = (ChangeUndone(change_id=c.change_id, by_user=True) for c in (EDIT, COMPACTION))
    later = [MessageAdded(message=Message(id=f"m{n}", role="user", content="x", cycle=n)) for n in range(5, 40)]
    assert pauses_after(SAID, EDIT, edit, *later).paused == BOTH
    assert pauses_after(SAID, COMPACTION, compaction, *later).paused == {"context_compacted"}
    redone = ChangeUndone(change_id="edited", by_user=True, redone=True)
    for goes_on in (redone, CLEARED, PolicySet(policy="cowork"), PauseEnded()):
        assert pauses_after(SAID, EDIT, edit, goes_on) == Pauses(), goes_on
    assert pauses_after(SAID, EDIT, edit, BY_HAND).paused == BOTH, "one that begins has not succeeded"
    assert pauses_after(SAID, COMPACTION, ChangeUndone(change_id="compacted")) == Pauses()


def test_results_older_than_a_restored_one_are_not_cleared_in_the_next_cycle():
    """R-545: that is a partial undo of an edit; the chat is not paused."""
    pauses = pauses_after(SAID, RESTORED)
    assert pauses.paused == frozenset()
    assert pauses.kinds(4) == pauses.kinds(5) == BOTH
    assert pauses.kinds(6) == frozenset()


async def test_an_undone_edit_is_not_repeated_automatically(tmp_path):
    """R-545: editing is paused, even after a restart, until a policy is chosen; the meter shows it."""
    bench = Bench(tmp_path, reader(), settings=EDITS)
    session = await talked(bench)
    assert cleared(session) == 2
    assert not bench.of(Meter)[-1].paused
    await ask(session, undo())
    await ask(session, undo())
    told = bench.of(Notice)[-1]
    assert told.text == "Editing and compaction are paused until you /compact, redo or choose a policy."
    assert len(told.text) <= 80
    assert told.while_paused, "the line goes once that is over"
    assert bench.of(Meter)[-1].paused
    await ask(session, redo())
    await ask(session, redo())
    assert not bench.of(Meter)[-1].paused
    await ask(session, undo())
    await ask(session, undo())
    assert bench.of(Meter)[-1].paused
    again = await bench.resume()
    await say(bench, again, 3, 60)
    assert cleared(again) == 0
    assert bench.of(Meter)[-1].paused
    await choose_policy(again, "")
    assert not bench.of(Meter)[-1].paused
    await say(bench, again, 1, 64)
    assert cleared(again) > 2


CAREFUL = {
    "careful": {
        "extends": "codecompanion",
        "stage": [
            {"id": "compaction", "event": "context_compacted", "like": "compaction", "manual_min_messages": 99,
             "manual": True},
        ],
    }
}  # fmt: skip


async def test_a_compact_with_nothing_to_do_still_ends_the_pause(tmp_path):
    """R-545: the user asked for it; it is logged, and the header no longer shows the pause."""
    bench = Bench(tmp_path, reader(), settings={**EDITS, "policies": CAREFUL, "policy": "careful"})
    session = await talked(bench)
    await ask(session, undo())
    await ask(session, undo())
    assert bench.of(Meter)[-1].paused
    view = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages == view
    first, then = (notice.text for notice in bench.of(Notice)[-2:])
    assert first == "Nothing was compacted: not enough messages (minimum 99)."
    assert then == "Editing and compaction are no longer paused."
    assert not bench.of(Meter)[-1].paused
    session.compact("")
    await bench.idle(session)
    assert bench.of(Notice)[-1].text == first, "said once"
    again = await bench.resume()
    assert not bench.of(Meter)[-1].paused
    await say(bench, again, 1, 60)
    assert cleared(again) > 2


async def test_a_failed_compact_does_not_end_the_pause(tmp_path):
    """R-545: nothing was compacted, so the pause continues, even after a restart."""
    down = iter([calls((f"c{n}", "read_file", READ)) if n % 2 else says("done") for n in range(1, 7)])
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: next(down, says(""))), settings=EDITS)
    session = await talked(bench)
    await ask(session, undo())
    assert bench.of(Meter)[-1].paused
    session.compact("")
    await bench.idle(session)
    assert len(bench.of(CompactionFailed)) == 1
    assert bench.of(Compacted) == []
    assert bench.of(Meter)[-1].paused
    assert not [notice for notice in bench.of(Notice) if "no longer paused" in notice.text]
    await bench.resume()
    assert bench.of(Meter)[-1].paused


async def test_an_undone_provider_compaction_is_not_requested_automatically(tmp_path):
    """R-534, R-545: the provider would repeat it in the very next reply."""
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
    await say(bench, session, 2, 60)
    assert [request.compact_at for request in adapter.requests[2:]] == [0, 0]
    await choose_policy(session, "")
    await say(bench, session, 1, 61)
    assert adapter.requests[4].compact_at == adapter.requests[1].compact_at > 0


async def stored_messages(session):
    return [e.payload.message for e in await session.log.events() if isinstance(e.payload, MessageAdded)]


async def test_another_providers_summary_is_shown_as_undone_and_cannot_be_redone(tmp_path):
    """R-542, R-545: the card must not show an outdated state."""
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


def test_the_changes_of_a_long_log_are_not_rescanned_for_each_message(monkeypatch):
    """This alone made resuming a chat of 10,000 messages with 500 edits take a second."""
    seen: list[ViewChanged] = []
    monkeypatch.setattr(undo_module, "answer_turn", lambda change: (seen.append(change), answer_turn(change))[1])
    payloads: list[EventPayload] = []
    for number in range(100):
        payloads.append(ViewChanged(change_id=f"e{number}", kind="edited"))
        payloads += (MessageAdded(message=Message(id=f"{number}-{i}", role="user", content="hi")) for i in range(20))
    chain = chain_of([LogEvent(seq, 0.0, payload) for seq, payload in enumerate(payloads, 1)])
    assert len(chain.undoable) == 100
    assert len(seen) <= 200
