"""Deleting a chat removes all of its data and leaves other chats untouched."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from threading import Event

import pytest

from codecompanion.errors import LeaseHeld
from codecompanion.model.history import ChatForked, EventPayload, MessageAdded, TitleSet, UsageReported
from codecompanion.model.messages import ImagePart, Message, TextPart, Usage
from codecompanion.store.log import deletion
from codecompanion.store.log.totals import Spent
from codecompanion.store.store import Store
from tests.patience import PATIENCE_S
from tests.unit.store.conftest import CREATED, Desk, Start, said


def age(desk: Desk) -> None:
    """Make every blob older than the desk's clock requires."""
    for path in (desk.folder / "blobs").iterdir():
        os.utime(path, (0, 0))


def spent(usd: float) -> UsageReported:
    return UsageReported(
        message_id="m", adapter="a", model="m", usage=Usage(5, 1), estimated_prompt_tokens=5, cost_usd=usd
    )


def picture(sha256: str) -> MessageAdded:
    return MessageAdded(message=Message(id="p", role="user", tag="image", content=(ImagePart(sha256=sha256),)))


def test_a_deleted_chat_is_gone_and_the_others_are_complete(desk: Desk) -> None:
    """Its events, totals, draft and search entries are gone; the index stays valid, and a reused row finds its text."""
    store = desk.open()
    kept = store.append("kept", [CREATED, said("a needle of mine")]).result()
    store.append("gone", [CREATED, said("a needle of theirs"), said("more words")]).result()
    store.save_draft("gone", "draft")
    assert store.delete("gone").result() == 3
    assert [info.id for info in store.list_sessions()] == ["kept"]
    assert store.load_events("gone") == []
    assert store.load_draft("gone") == ""
    assert [hit.chat_id for hit in store.search("needle")] == ["kept"]
    store.append("new", [CREATED, said("quite other")]).result()
    assert store.search("theirs") == []
    assert store.load_events("kept") == kept
    store.close()
    with sqlite3.connect(desk.path) as connection:
        connection.execute("INSERT INTO message_text(message_text) VALUES ('integrity-check')")
    connection.close()
    assert b"theirs" not in desk.path.read_bytes()


@pytest.mark.parametrize("order", [("a", "b", "c"), ("b", "a", "c"), ("c", "b", "a"), ("b", "c", "a")])
def test_branches_share_an_index_entry_until_the_last_of_them_is_deleted(desk: Desk, order: tuple[str, ...]) -> None:
    """A fork adds no index entries; after any deletion the others are found, and reused rows are not."""
    store = desk.open()
    store.append("a", [CREATED, said("a needle", number=1), said("another needle ofThread", number=2)]).result()
    store.fork("a", "b", 3, (), [ChatForked(from_chat="a", family="a")]).result()
    store.fork("b", "c", 2, (), [ChatForked(from_chat="b", family="a")]).result()
    with store._reading() as connection:
        assert connection.execute("SELECT count(*) FROM message_text_docsize").fetchone() == (2,)
    left = {"a": 2, "b": 2, "c": 1}
    while order:
        found = [hit.chat_id for hit in store.search("needle")]
        assert {chat: found.count(chat) for chat in found} == left
        assert {hit.chat_id for hit in store.search("thread")} == left.keys() - {"c"}
        assert {hit.snippet for hit in store.search("needle", order[0])} <= {"a «needle»", "another «needle» ofThread"}
        store.delete(order[0]).result()
        del left[order[0]]
        order = order[1:]
        store.append("new", [CREATED, *(said("other words") for _ in range(4))]).result()
    assert store.search("needle") == []
    store.close()
    with sqlite3.connect(desk.path) as connection:
        assert connection.execute("SELECT count(*) FROM shared_text").fetchone() == (0,)
        connection.execute("INSERT INTO message_text(message_text) VALUES ('integrity-check')")
        assert connection.execute("SELECT count(*) FROM message_inner").fetchone() == (0,)
    connection.close()
    assert b"needle" not in desk.path.read_bytes()


def test_contents_are_deleted_with_the_last_chat_that_uses_them(desk: Desk) -> None:
    """A picture shared by two chats outlives the first; a whole result that only one chat has is deleted with it."""
    store = desk.open()
    shared, own = store.put_blob(b"shared picture"), store.put_blob(b"own result")
    result = MessageAdded(message=Message(id="t", role="tool", tool_call_id="c", content="head", blob=own))
    store.append("a", [CREATED, picture(shared), result]).result()
    store.append("b", [CREATED, picture(shared)]).result()
    age(desk)
    store.delete("a").result()
    store.close()
    assert [path.name for path in (desk.folder / "blobs").iterdir()] == [shared]
    store = desk.open()
    store.delete("b").result()
    store.close()
    assert list((desk.folder / "blobs").iterdir()) == []


def test_recently_stored_content_waits_for_the_next_deletion(desk: Desk) -> None:
    """Another Neovim stores a picture before it logs it; until then, no event refers to it."""
    store = desk.open()
    desk.now = 1_800_000_000.0
    fresh = store.put_blob(b"about to be logged")
    os.utime(desk.folder / "blobs" / fresh, (desk.now, desk.now))
    store.append("a", [CREATED, said("x")]).result()
    store.append("b", [CREATED, said("y")]).result()
    store.delete("a").result()
    store.list_sessions()
    assert store.read_blob(fresh) == b"about to be logged"
    desk.now += 3_600
    store.delete("b").result()
    store.close()
    assert list((desk.folder / "blobs").iterdir()) == []


def test_a_writer_does_not_wait_for_the_check_of_all_contents(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tens of thousands of contents used to block the writer for over a second; writes run between two slices."""
    monkeypatch.setattr(deletion, "SLICE", 10)
    store = desk.open()
    store.append("a", [CREATED, said("x")]).result()
    store.append("b", [CREATED, said("y")]).result()
    for number in range(95):
        store.put_blob(str(number).encode())
    age(desk)
    left: list[int] = []
    written = Event()

    def write(_: object) -> None:
        store.append("b", [said("z")]).add_done_callback(count)

    def count(_: object) -> None:
        left.append(len(list((desk.folder / "blobs").iterdir())))
        written.set()

    store.delete("a").add_done_callback(write)
    assert written.wait(PATIENCE_S)
    store.close()
    assert left[0] >= 75
    assert list((desk.folder / "blobs").iterdir()) == []


def test_a_chat_of_another_host_is_refused(desk: Desk, start: Start) -> None:
    """A lease is honoured: nothing is deleted, and the error names the owner."""
    store = desk.open()
    store.append("a", [CREATED, said("x")]).result()
    other = start("store = open_store(folder)\nstore.acquire('a').result()\ntell('held')\nsys.stdin.read()")
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(LeaseHeld, match="open in another Neovim"):
        store.delete("a").result()
    assert len(store.load_events("a")) == 2


def test_the_costs_of_a_deleted_chat_still_count_for_the_total_budget(store: Store) -> None:
    """R-358: deleting chats must not bypass a budget."""
    store.append("a", [CREATED, spent(0.5)]).result()
    store.append("b", [CREATED, spent(0.25)]).result()
    store.delete("a").result()
    assert (store.spent(), store.spent("a")) == (Spent(0.75), Spent())


def test_a_row_of_the_picker_has_the_displayed_fields(store: Store) -> None:
    """The first and last question are on one line of limited length; they come from the totals, so no log is read."""
    turn: list[EventPayload] = [CREATED, said("First\n question", number=1), said("answer", "assistant", 2)]
    last = MessageAdded(message=Message(id="q", role="user", content=(TextPart("the last " + "x" * 500),)))
    store.append("a", [*turn, TitleSet(title="First question"), last, picture("0" * 64)]).result()
    (info,) = store.list_sessions()
    assert (info.first_question, info.messages, info.created) == ("First question", 3, info.updated)
    assert info.last_question.startswith("the last xxx")
    assert len(info.last_question) == 160


def test_renaming_does_not_make_a_chat_newer(store: Store) -> None:
    store.append("a", [CREATED, said("x")]).result()
    store.append("b", [CREATED, said("y")]).result()
    store.append("a", [TitleSet(title="Mine", by_user=True)]).result()
    assert [info.id for info in store.list_sessions()] == ["b", "a"]
    assert store.find_session("a").title == "Mine"  # type: ignore[union-attr]


def test_a_branch_did_not_pay_for_its_copied_part(desk: Desk) -> None:
    """Calls before `ChatForked` were paid for in the other chat; also after a salvage, which counts again."""
    store = desk.open()
    forked = ChatForked(from_chat="a", family="root", at_message="m")
    store.append("b", [CREATED, said("x"), spent(0.5), forked, spent(0.25)]).result()
    assert store.spent("b") == Spent(0.25)
    info = store.find_session("b")
    assert info is not None
    assert (info.forked_from, info.family) == ("a", "root")
    assert [one.id for one in store.list_family("root")] == ["b"]
    store.close()
    content = bytearray(desk.path.read_bytes())
    content[:100] = b"\0" * 100
    desk.path.write_bytes(content)
    assert desk.open().spent("b") == Spent(0.25)


def test_an_older_file_gets_its_previews_and_uses(desk: Desk) -> None:
    """Version 3 → 4: they are read from the logs once, whatever is damaged there."""
    blob = hashlib.sha256(b"x").hexdigest()
    store = desk.open()
    store.append("a", [CREATED, said("one"), picture(blob), said("two")]).result()
    store.close()
    with sqlite3.connect(desk.path, isolation_level=None) as connection:
        for column in ("first_question", "last_question", "forked_from", "family", "purpose"):
            connection.execute(f"ALTER TABLE chats DROP COLUMN {column}")
        for column in ("above", "below", "figures", "framing", "framed"):
            connection.execute(f"ALTER TABLE calibration DROP COLUMN {column}")
        connection.execute("DROP TABLE blob_uses")
        for table in ("deleted_spending", "shared_text", "message_inner", "inner_missing"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 3")
        message = {"type": "message_added", "message": {"id": "s", "role": "user", "content": "lone \udcff one"}}
        rows = [(5, json.dumps(message).encode()), (6, b"damaged")]
        connection.executemany(
            "INSERT INTO events(chat_id, seq, turn, ts, type, payload) VALUES ('a', ?, '', 1.0, 'message_added', ?)",
            rows,
        )
        connection.execute("UPDATE chats SET last_seq = 6")
    connection.close()
    store = desk.open()
    info = store.find_session("a")
    assert info is not None
    assert (info.first_question, info.last_question) == ("one", "lone ? one")
    store.close()
    with sqlite3.connect(desk.path) as connection:
        assert connection.execute("SELECT * FROM blob_uses").fetchall() == [(blob, "a")]
    connection.close()
