"""A long stored chat shows its newest blocks before its log is read, then the rest, and never other content."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import msgspec
import pytest

from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import (
    ChangeUndone,
    CompactionStarted,
    LogEvent,
    MessageAdded,
    ModelSet,
    PolicySet,
    TitleSet,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import Message
from codecompanion.session.chat.buffer_entries import FIRST_PIECE, entries
from codecompanion.store.log import event_rows as log_events
from codecompanion.store.log.tail_state import TailState, read_state, save_state
from codecompanion.store.log.totals import read_totals, save_totals
from codecompanion.store.opening import open_store
from codecompanion.wire.events import ChatOpened, ContextItems, Notice, Redrawn, Restored, ViewMarks
from tests.patience import PATIENCE_S
from tests.unit.session.chat.test_newest_entries import a_log
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

TURNS = 200
READ = log_events.from_bytes


@pytest.fixture
def bench(tmp_path):
    store = open_store(tmp_path / "store")
    yield Bench(tmp_path, ScriptedAdapter("s", lambda request: says("more")), store=store)
    store.close()


async def store_turns(bench, turns=TURNS, *more):
    await bench.store.log("chat-1", *(event.payload for event in a_log(turns)), *more)


def change(bench, run):
    """Change the file like another program."""
    with contextlib.closing(sqlite3.connect(bench.store.path)) as connection, connection:
        run(connection)


def drawn(bench):
    """Return the final blocks of the editor."""
    events = bench.events
    redrawn = [at for at, event in enumerate(events) if isinstance(event, Redrawn)]
    pieces = [event for event in events[redrawn[-1] if redrawn else 0 :] if isinstance(event, Restored)]
    assert [piece.first for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [piece.last for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    return [entry for piece in reversed(pieces) for entry in piece.entries]


async def told(bench):
    """Open the chat; return whether its newest blocks came first, after comparing everything with the log."""
    bench.events.clear()
    session = await bench.resume()
    assert drawn(bench) == entries(bench.store.load_events("chat-1"))
    kinds = [type(event) for event in bench.events]
    assert kinds.index(ChatOpened) < kinds.index(Restored)
    await session.close()
    return kinds.index(Restored) < kinds.index(ViewMarks)


async def reads_before_the_first_piece(bench, monkeypatch):
    count, at_first = [0], []

    def counted(stored):
        count[0] += 1
        return READ(stored)

    take = bench.services.emit

    def emit(event):
        if isinstance(event, Restored):
            at_first.append(count[0])
        take(event)

    monkeypatch.setattr(log_events, "from_bytes", counted)
    bench.services.emit = emit
    session = await bench.resume()
    bench.services.emit = take
    await session.close()
    return at_first[0]


async def test_reads_before_the_first_blocks_do_not_grow_with_the_chat(bench, monkeypatch):
    reads = []
    for _ in range(3):
        await store_turns(bench, 200)
        reads.append(await reads_before_the_first_piece(bench, monkeypatch))
    assert reads == [reads[0]] * 3
    assert FIRST_PIECE < reads[0] <= 400


async def test_the_newest_blocks_come_first_and_the_rest_above_them(bench):
    await store_turns(bench)
    assert await told(bench)
    first = bench.of(Restored)[0]
    assert len(first.entries) == FIRST_PIECE
    assert not bench.of(Redrawn)
    assert len(bench.of(ChatOpened)) == 1


async def test_a_chat_of_ordinary_length_is_read_whole(bench):
    await store_turns(bench, 20)
    assert not await told(bench)
    assert [type(event) for event in bench.events].index(ContextItems) < 2


async def test_the_first_question_sees_the_whole_view(bench):
    await store_turns(bench)
    session = await bench.resume()
    session.submit(submit("and now?"))
    await bench.idle(session)
    assert len(bench.adapter.requests[-1].messages) > 3 * TURNS
    await session.close()


async def test_a_file_of_an_older_version_is_read_whole_once(bench):
    await store_turns(bench)
    change(bench, lambda connection: connection.execute("DELETE FROM tail_state"))
    assert not await told(bench)
    assert await told(bench)


async def test_events_appended_by_an_older_version_are_included(bench):
    """An older version does not update the stored blocks: `covers_seq` shows how far they go."""
    await store_turns(bench)

    def append(connection):
        totals = read_totals(connection, "chat-1")
        story = [event for event in a_log(3) if event.seq > 1]
        for event in [*story, LogEvent(len(story) + 2, 1.0, ModelSet(adapter="s", model="other"))]:
            totals.count(event.payload, 1.0)
            payload = event.payload
            if isinstance(payload, MessageAdded):
                payload = MessageAdded(message=msgspec.structs.replace(payload.message, id="x" + payload.message.id))
            log_events.insert_event(connection, "chat-1", LogEvent(totals.last_seq, 1.0, payload))
        save_totals(connection, "chat-1", totals)

    change(bench, append)
    assert await told(bench)
    assert not bench.of(Redrawn)
    assert bench.of(ChatOpened)[0].model == "other"
    assert drawn(bench)[-3].number == TURNS + 3


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tail_state SET sum = sum + 1",
        "UPDATE tail_state SET covers_seq = covers_seq - 1",
        "UPDATE tail_state SET state = x'7b7d'",
        "UPDATE tail_state SET state = 7",
    ],
)
async def test_a_damaged_row_is_ignored_and_rewritten(bench, damage):
    await store_turns(bench)
    change(bench, lambda connection: connection.execute(damage))
    assert not await told(bench)
    assert await told(bench)


async def test_blocks_that_contradict_the_log_are_redrawn(bench):
    """An intact but wrong row: no code writes one, but the final display never depends on it."""
    await store_turns(bench)
    right = []

    def falsify(connection):
        right.append(read_state(connection, "chat-1"))
        save_state(connection, "chat-1", msgspec.structs.replace(right[0], typed=7))

    change(bench, falsify)
    await told(bench)
    assert len(bench.of(Redrawn)) == 1
    async with asyncio.timeout(PATIENCE_S):  # this write is not awaited
        while right[-1] != right[0] or len(right) == 1:
            await asyncio.sleep(0.005)
            change(bench, lambda connection: right.append(read_state(connection, "chat-1")))
    await told(bench)
    assert not bench.of(Redrawn)


async def test_an_interrupted_chat_is_repaired_before_it_is_shown(bench):
    await store_turns(bench, TURNS, TurnStarted(turn_id="cut", cycle=9_000))
    assert not await told(bench)
    assert drawn(bench)[-1].ended == "interrupted"
    assert await told(bench)


async def test_a_compaction_interrupted_long_ago_is_repaired_and_nothing_shown_twice(bench):
    """The first blocks do not know about it; its repair is not a block of the buffer."""
    began = CompactionStarted(compaction_id="c", trigger="manual", summariser="s", tokens_before=1)
    turns = [event.payload for event in a_log(TURNS)]
    await bench.store.log("chat-1", *turns[:61], began, *turns[61:])
    assert await told(bench)
    assert [notice.text for notice in bench.of(Notice) if "interrupted" in notice.text]


async def test_a_damaged_end_causes_a_full_read(bench):
    await store_turns(bench)
    change(bench, lambda connection: connection.execute("UPDATE events SET payload = x'7b' WHERE seq = 1150"))
    assert not await told(bench)


async def test_a_chat_ending_in_a_card_or_an_undone_change_is_shown_as_in_its_log(bench):
    await store_turns(bench)
    messages = [e.payload.message for e in bench.store.load_events("chat-1") if isinstance(e.payload, MessageAdded)]
    card = ViewChanged(
        change_id="card", kind="compacted", removed=tuple(message.id for message in messages[:-2]),
        report=ChangeReport(before=messages[-2].id, summary="summary"),
    )  # fmt: skip
    await bench.store.log("chat-1", card)
    assert await told(bench)
    assert bench.of(Restored)[0].entries[-4].kind == "compacted"
    await bench.store.log("chat-1", ChangeUndone(change_id="card", by_user=True))
    assert await told(bench)
    assert bench.of(Restored)[0].entries[-4].undone


async def test_a_chat_open_in_another_neovim_is_shown_the_same_way(bench, tmp_path):
    await store_turns(bench)
    theirs = open_store(tmp_path / "store")
    theirs.acquire("chat-1").result()
    bench.events.clear()
    assert await bench.resume() is None
    assert drawn(bench) == entries(bench.store.load_events("chat-1"))
    assert bench.events.index(bench.of(Restored)[0]) < bench.events.index(bench.of(ViewMarks)[0])
    assert bench.of(ChatOpened)[0].read_only
    theirs.close()


async def test_configuration_warnings_are_shown_once(bench):
    await store_turns(bench, TURNS, PolicySet(policy="gone"), TitleSet(title="named", by_user=True))
    await told(bench)
    assert len([n for n in bench.of(Notice) if "is no longer configured" in n.text]) == 1
    assert bench.of(ChatOpened)[0].title == "named"


async def test_one_huge_block_at_the_end_is_shown(bench):
    huge = Message(id="huge", role="user", content="line\n" * 50_000, turn_id="h", cycle=9_000)
    await store_turns(bench, TURNS, TurnStarted(turn_id="h", cycle=9_000), MessageAdded(message=huge))
    session = await bench.resume()  # mends the turn
    await session.close()
    assert await told(bench)
    assert bench.of(Restored)[0].entries[-2].text == huge.text


async def test_the_row_is_written_with_the_events_it_covers(bench):
    await store_turns(bench, 3)
    events = bench.store.load_events("chat-1")
    found = []
    change(bench, lambda connection: found.append(read_state(connection, "chat-1")))
    assert found == [TailState().after(events)]
