"""The log, the picker, drafts and calibration through the store's public interface (R-003, lessons 36 and 44)."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.errors import StoreUnavailable
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import (
    ChangeUndone,
    EventPayload,
    LogEvent,
    MessageAdded,
    ModelSet,
    RequestSent,
    TitleSet,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall
from codecompanion.store.log.scratch import Calibration, save_calibration
from codecompanion.store.opening import open_memory_store, open_store
from codecompanion.store.store import Store, durable
from codecompanion.store.writer_thread import CHECKPOINT_BYTES
from tests.patience import PATIENCE_S

from .conftest import CREATED, Desk, said

NASTY_TEXTS = [
    "",
    "plain",
    "ümläut 🎈 中文",
    "nul\0inside",
    "lone \udc80 and \ud800",
    "\u2028\r\n\t",
    "'; DROP TABLE events",
]


def test_events_are_read_back_equal_with_rising_numbers(desk: Desk) -> None:
    """R-003: the logged events are read back unchanged."""
    store = desk.open()
    written = store.append("c", [CREATED, said("hello")]).result()
    written += store.append("c", [said("hi", "assistant")]).result()
    store.close()
    assert [event.seq for event in written] == [1, 2, 3]
    assert desk.open().load_events("c") == written


@pytest.mark.parametrize("text", NASTY_TEXTS)
def test_any_text_survives_in_log_draft_and_partial(desk: Desk, text: str) -> None:
    """User text is never lost, including invalid UTF-8 (as lone surrogates)."""
    store = desk.open()
    store.append("c", [TitleSet(title=text), said(text, "tool")]).result()
    store.save_draft("c", text).result()
    store.save_partial("c", text).result()
    store.close()
    again = desk.open()
    event = again.load_events("c")[1].payload
    assert isinstance(event, MessageAdded)
    assert (event.message.content, again.load_draft("c"), again.load_partial("c")) == (text, text, text)
    assert desk.reports == []


def test_a_part_of_a_log_is_selected_by_its_numbers(store: Store) -> None:
    """`since` is exclusive, `until` is not."""
    store.append("c", [said(str(number)) for number in range(10)]).result()
    store.append("other", [said("not mine")]).result()
    whole = store.load_events("c")
    assert store.load_events("c", since=7) == whole[7:]
    assert store.load_events("c", 3, 7) == whole[3:7]
    assert store.load_events("c", 3, 99) == whole[3:]
    assert store.load_events("nobody") == []


def test_appends_of_many_threads_keep_the_order_of_each_chat(store: Store) -> None:
    """Group commit shares transactions, never the order within a chat."""

    def write(chat: str) -> None:
        for number in range(50):
            store.append(chat, [said(f"{chat} {number}")])

    threads = [threading.Thread(target=write, args=(f"chat{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.append("last", [said("end")]).result()
    for number in range(4):
        events = store.load_events(f"chat{number}")
        assert [event.seq for event in events] == list(range(1, 51))
        assert [event.payload.message.text for event in events] == [  # type: ignore[union-attr]
            f"chat{number} {position}" for position in range(50)
        ]


def test_a_failing_append_fails_alone_and_leaves_no_trace(store: Store) -> None:
    """All or nothing per append; its neighbours in the same transaction are kept."""

    class Unencodable(msgspec.Struct, frozen=True, tag="bad"):
        what: object

    gate = threading.Event()
    store._writer.submit(lambda _: gate.wait(PATIENCE_S))  # holds the writer, so that the next three form one group
    before = store.append("c", [said("before")])
    bad = store.append("c", [said("half"), Unencodable(object())])  # type: ignore[list-item]
    after = store.append("c", [said("after")])
    gate.set()
    assert [event.seq for event in before.result() + after.result()] == [1, 2]
    assert "Unencodable" in str(bad.exception()) or "object" in str(bad.exception())
    assert [event.payload for event in store.load_events("c")] == [said("before"), said("after")]


async def test_a_cancelled_wait_does_not_revert_the_append(store: Store) -> None:
    """A turn cancelled while it logs must not lose what it logged."""
    gate = threading.Event()
    store._writer.submit(lambda _: gate.wait(PATIENCE_S))
    task = asyncio.create_task(store.log("c", said("kept")))
    await asyncio.sleep(0)
    task.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.log("c", said("next"))
    assert [event.payload for event in store.load_events("c")] == [said("kept"), said("next")]


async def test_closing_writes_the_queue_and_then_refuses(desk: Desk) -> None:
    """`aclose` flushes; a late append gets an error instead of silence."""
    store = desk.open()
    futures = [store.append("c", [said(str(number))]) for number in range(20)]
    await store.aclose()
    assert all(future.done() for future in futures)
    with pytest.raises(StoreUnavailable, match="closed"):
        await durable(store.append("c", [said("late")]))
    assert len(desk.open().load_events("c")) == 20


def test_the_log_is_flushed_to_disk_with_every_commit_and_drafts_are_not(store: Store) -> None:
    """R-003 and lesson 36: `synchronous` FULL (2) for the log, also in a group with a draft; NORMAL (1) for drafts."""

    def synchronous(connection: sqlite3.Connection) -> tuple[int]:
        level: tuple[int] = connection.execute("PRAGMA synchronous").fetchone()
        return level

    assert store._writer.submit(synchronous).result() == (2,)
    store.save_draft("c", "d").result()
    assert store._writer.submit(synchronous, durable=False).result() == (1,)
    gate = threading.Event()
    store._writer.submit(lambda _: gate.wait(PATIENCE_S), durable=False)
    group = [store._writer.submit(synchronous, durable=False), store._writer.submit(synchronous)]
    gate.set()
    assert [future.result() for future in group] == [(2,), (2,)]


def test_our_folders_and_files_are_private(desk: Desk) -> None:
    """Lesson 44: chat text is readable by its owner only, also in a file that was not private."""
    desk.folder.mkdir(mode=0o700)
    desk.path.touch(mode=0o644)
    store = desk.open()
    store.append("c", [said("secret")]).result()
    store.put_blob(b"secret")
    modes = {file: stat.S_IMODE(file.stat().st_mode) for file in desk.folder.rglob("*")}
    assert {mode for file, mode in modes.items() if file.is_file()} == {0o600}, modes
    assert {mode for file, mode in modes.items() if file.is_dir()} == {0o700}, modes


def test_chats_with_one_title_and_question_differ_by_their_last_reply(store: Store) -> None:
    for chat, answer in (("one", "It is red."), ("two", "It is blue.")):
        replies = [said("Let me see.", "assistant"), said(answer, "assistant")]
        store.append(chat, [CREATED, said("why?"), *replies]).result()
    store.append("three", [CREATED, said("what?"), said("This.", "assistant")]).result()
    found = {info.id: (info.typed, info.last_reply) for info in store.list_sessions()}
    assert found == {"one": (1, "It is red."), "two": (1, "It is blue."), "three": (1, "")}


def test_a_listed_chat_has_the_beginnings_of_the_users_last_messages(store: Store) -> None:
    store.append("c", [CREATED, *(said(f"question {number} " + "x" * 200) for number in range(12))]).result()
    kept = store.list_sessions()[0].questions
    assert [one.split(" x")[0] for one in kept] == [f"question {number}" for number in range(2, 12)]
    assert {len(one) for one in kept} == {80}


def test_the_picker_lists_chats_with_messages_or_drafts_newest_first(store: Store) -> None:
    """A chat that was only opened is not listed; one with only a draft is not lost (lesson 36)."""
    store.append("old", [CREATED, said("hi"), said("hello", "assistant")]).result()
    store.append("empty", [CREATED, MessageAdded(message=Message(id="s", role="system", content="be kind"))]).result()
    store.append("drafted", [msgspec.structs.replace(CREATED, cwd="/else")]).result()
    store.save_draft("drafted", "unfinished").result()
    store.append("new", [CREATED, said("yo"), TitleSet(title="Title"), ModelSet(adapter="openai", model="x")]).result()
    listed = store.list_sessions()
    assert [info.id for info in listed] == ["new", "drafted", "old"]
    assert (listed[0].title, listed[0].adapter, listed[0].model, listed[0].messages) == ("Title", "openai", "x", 1)
    assert (listed[2].messages, listed[2].typed, listed[2].questions) == (2, 1, ("hi",))
    assert [info.draft for info in listed] == [False, True, False]
    assert [info.id for info in store.list_sessions(cwd="/work")] == ["new", "old"]
    assert [info.id for info in store.list_sessions(limit=1)] == ["new"]
    assert store.find_session("old") == listed[2]
    assert store.find_session("nobody") is None
    for chat_id, found in (("old", ["old"]), ("empty", ["empty"]), ("nobody", [])):
        assert [info.id for info in store.list_sessions(limit=1, chat_id=chat_id)] == found


def test_a_reply_clears_its_partial_and_a_message_its_draft(store: Store) -> None:
    """In one transaction: no crash can show a text twice, and no other draft is touched."""
    store.save_draft("c", "question\n").result()
    store.save_partial("c", "half an ans").result()
    store.append("c", [said("another question")]).result()
    assert (store.load_draft("c"), store.load_partial("c")) == ("question\n", "half an ans")
    store.append("c", [said("question")]).result()
    assert (store.load_draft("c"), store.load_partial("c")) == ("", "half an ans")
    store.append("c", [said("half an answer", "assistant")]).result()
    assert store.load_partial("c") == ""
    store.save_partial("c", "again").result()
    store.clear_partial("c").result()
    assert store.load_partial("c") == ""


def test_calibration_is_kept_per_adapter_and_model(desk: Desk) -> None:
    """The newest value counts, even after a restart."""
    store = desk.open()
    newest = Calibration("openai", "x", 1.25, 4, extra=300.5, above=2.5, below=0.5, figures=3)
    store.save_calibration(Calibration("openai", "x", 1.5, 3))
    store.save_calibration(newest)
    store.save_calibration(Calibration("offline", "y", 1.0, 1)).result()
    store.close()
    kept = [msgspec.structs.replace(one, updated=0.0) for one in desk.open().load_calibration()]
    assert kept == [Calibration("offline", "y", 1.0, 1), newest]


def test_a_damaged_calibration_row_is_ignored(desk: Desk) -> None:
    """SQLite allows text in a numeric column, and invalid UTF-8 in a text column."""
    store = desk.open()
    store.save_calibration(Calibration("openai", "x", 1.5, 3)).result()
    store.close()
    with sqlite3.connect(desk.path) as connection:
        for column in ("ratio", "weight", "extra", "updated", "above", "below", "figures", "framing", "framed"):
            damaged = msgspec.structs.replace(Calibration("a", column, 1.0, 3), **{column: "abc"})
            save_calibration(connection, damaged)
        connection.execute(
            "INSERT INTO calibration(adapter, model, ratio, weight, updated) VALUES (CAST(x'ff' AS TEXT), 'm', 1, 3, 0)"
        )
    connection.close()
    assert [(one.adapter, one.ratio) for one in desk.open().load_calibration()] == [("openai", 1.5), ("\ufffd", 1.0)]


def test_the_store_in_memory_works_the_same(tmp_path: Path) -> None:
    """The fallback for an unusable disk behaves like the real store."""
    store = open_memory_store()
    store.acquire("c").result()
    events = store.append("c", [CREATED, said("hello world")]).result()
    store.save_draft("c", "d").result()
    assert store.path is None
    assert store.load_events("c") == events
    assert store.load_draft("c") == "d"
    assert [hit.snippet for hit in store.search("wor")] == ["hello «world»"]
    assert store.read_blob(store.put_blob(b"x")) == b"x"
    assert store.list_sessions()[0].owned is False
    assert store.check() == []
    store.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sweep
def test_ten_thousand_messages_load_completely(desk: Desk) -> None:
    """10,000 messages of 1 kB, written in groups (bench/bench_store.py has the times)."""
    store = desk.open()
    text = "word " * 200
    futures = [
        store.append("c", [said(f"{number} {text}", number=number) for number in range(start, start + 500)])
        for start in range(0, 10_000, 500)
    ]
    futures[-1].result()
    events = store.load_events("c")
    assert [event.seq for event in events] == list(range(1, 10_001))
    assert store.load_events("c", 9_980) == events[-20:]


@pytest.mark.sweep
def test_the_write_ahead_log_is_checkpointed_while_the_store_is_open(desk: Desk) -> None:
    """A host that runs for weeks must not fill the disk with its WAL."""
    store = desk.open()
    for number in range(60):
        store.append("c", [said(f"{number} " * 50_000)]).result()
    store.save_draft("c", "end").result()
    wal = desk.path.with_name("sessions.db-wal").stat().st_size
    assert wal < 2.5 * CHECKPOINT_BYTES, wal
    assert len(store.load_events("c")) == 60


TEXT = st.text(st.characters(codec=None), max_size=30)
CALLS = st.lists(st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT), max_size=2).map(tuple)
PARTS = st.lists(
    st.builds(TextPart, TEXT) | st.builds(ReasoningPart, TEXT, TEXT) | st.builds(ImagePart, path=st.none() | TEXT),
    max_size=3,
).map(tuple)
MESSAGES = st.builds(
    Message,
    id=TEXT,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=TEXT | PARTS,
    tool_calls=CALLS,
    cycle=st.none() | st.integers(0, 99),
    tag=st.none() | TEXT,
    pinned=st.booleans(),
    turn_id=TEXT,
)
PAYLOADS: st.SearchStrategy[EventPayload] = st.one_of(
    st.builds(MessageAdded, message=MESSAGES),
    st.builds(TitleSet, title=TEXT),
    st.builds(TurnStarted, turn_id=TEXT, cycle=st.integers(1, 9)),
    st.builds(ChangeUndone, change_id=TEXT, redone=st.booleans()),
    st.builds(
        ViewChanged,
        change_id=TEXT,
        kind=st.sampled_from(["edited", "compacted"]),
        replaced=st.lists(MESSAGES, max_size=2).map(tuple),
        report=st.builds(
            ChangeReport, title=TEXT, cleared=st.integers(0, 2**53), names=st.lists(TEXT, max_size=2).map(tuple)
        ),
    ),
    st.builds(
        RequestSent,
        turn_id=TEXT,
        adapter=TEXT,
        model=TEXT,
        messages=st.integers(0, 9),
        estimated_tokens=st.integers(0, 9),
    ),
)
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(PAYLOADS, max_size=4)) | st.just("reopen"), max_size=12)


@pytest.mark.sweep
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_any_appends_are_read_back_equal_after_reopening(
    tmp_path_factory: pytest.TempPathFactory, steps: list[object]
) -> None:
    """R-003 for every payload and every text, surrogates and NUL included."""
    folder = tmp_path_factory.mktemp("any")
    store = open_store(folder)
    expected: dict[str, list[LogEvent]] = {"a": [], "b": [], "c": []}
    for step in steps:
        if isinstance(step, tuple):
            chat, payloads = step
            expected[chat] += store.append(chat, payloads).result()
            assert [event.payload for event in expected[chat][len(expected[chat]) - len(payloads) :]] == payloads
        else:
            store.close()
            store = open_store(folder)
    try:
        for chat, events in expected.items():
            assert store.load_events(chat) == events
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
    finally:
        store.close()
