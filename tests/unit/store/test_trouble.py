"""Full disk, read-only folders, newer files, damaged files: a sentence for the user, nothing lost (issue 2, 4)."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import StoreCorrupt, StoreUnavailable
from codecompanion.history import LogEvent
from codecompanion.store import Store, open_store
from codecompanion.store.migrations import MIGRATIONS, migrate
from codecompanion.store.salvage import finish_swap

from .conftest import CREATED, Desk, Start, said

PAGE = 4096


def fill(desk: Desk, chats: int = 4, messages: int = 60) -> dict[str, list[LogEvent]]:
    """Write a database of a few hundred pages and close it; returns what is in it."""
    store = desk.open()
    for chat in range(chats):
        for number in range(messages):
            store.append(f"chat{chat}", [said(f"{chat} {number} " + "lorem ipsum " * 150)])
    store.save_draft("chat0", "draft")
    store.save_calibration("openai", "x", 1.5, 2).result()
    expected = {f"chat{chat}": store.load_events(f"chat{chat}") for chat in range(chats)}
    store.close()
    assert not desk.path.with_name("sessions.db-wal").exists()
    return expected


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def page_of_events(path: Path) -> int:
    """Return the offset of a leaf page in the middle of the table of events."""
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY pageno"
        ).fetchall()
    connection.close()
    assert root
    return int(pages[len(pages) // 2][0] - 1) * PAGE


def kept_files(desk: Desk) -> list[Path]:
    return sorted(file for file in desk.folder.iterdir() if ".damaged-" in file.name and not file.name.endswith("-wal"))


def test_a_lost_header_costs_nothing_and_the_damaged_file_is_kept(desk: Desk) -> None:
    """The first page is lent from a fresh database; every event, draft and calibration comes back."""
    expected = fill(desk)
    overwrite(desk.path, 0, b"garbage!" * (PAGE // 8))
    damaged = desk.path.read_bytes()
    store = desk.open()
    assert {chat: store.load_events(chat) for chat in expected} == expected
    assert store.load_draft("chat0") == "draft"
    assert store.load_calibration()[0].ratio == 1.5
    assert {info.messages for info in store.list_sessions()} == {60}
    assert len(store.search("lorem", limit=500)) == 240
    (kept,) = kept_files(desk)
    assert kept.read_bytes() == damaged
    (report,) = desk.reports
    assert isinstance(report, StoreCorrupt)
    assert str(kept) in str(report)
    assert "240 entries of 4 chats were saved, nothing was found missing" in str(report)
    assert store.append("chat0", [said("goes on")]).result()[0].seq == 61


@pytest.mark.parametrize("junk", [b"\0" * PAGE, b"\xff" * PAGE, os.urandom(PAGE)], ids=["zeros", "ones", "noise"])
def test_a_damaged_page_in_the_middle_costs_only_its_entries(desk: Desk, junk: bytes) -> None:
    """Met while reading: the rest is shown and the user told; the next start repairs the file."""
    expected = fill(desk)
    overwrite(desk.path, page_of_events(desk.path), junk)
    store = desk.open()
    seen = {chat: store.load_events(chat) for chat in expected}
    missing = sum(map(len, expected.values())) - sum(map(len, seen.values()))
    assert 0 < missing < 12
    for chat, events in seen.items():
        assert [event for event in expected[chat] if event in events] == events
    assert all("damaged entries of this chat were left out" in str(report) for report in desk.reports)
    assert desk.reports
    store.close()
    desk.reports.clear()
    repaired = desk.open()
    assert {chat: repaired.load_events(chat) for chat in expected} == seen
    (report,) = desk.reports
    assert f"{240 - missing} entries of 4 chats were saved, {missing} could not be read" in str(report)
    assert len(kept_files(desk)) == 1
    assert repaired.check() == []
    new = repaired.append("chat0", [said("goes on")]).result()[0]
    assert new.seq > expected["chat0"][-1].seq - 12
    repaired.close()
    desk.reports.clear()
    assert desk.open().load_events("chat0")[-1] == new
    assert desk.reports == []


def test_a_lost_page_above_all_others_hides_nothing(desk: Desk) -> None:
    """The root of the table of events: every row below it is found on its own page."""
    expected = fill(desk)
    with sqlite3.connect(desk.path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
    connection.close()
    overwrite(desk.path, (root - 1) * PAGE, b"\0" * PAGE)
    store = desk.open()
    assert {chat: store.load_events(chat) for chat in expected} == expected
    assert "240 entries of 4 chats were saved, nothing was found missing" in str(desk.reports[-1])
    assert store.list_sessions()[0].messages == 60


@pytest.mark.parametrize("junk", [b"\0" * PAGE, os.urandom(PAGE)], ids=["zeros", "noise"])
def test_any_single_damaged_page_leaves_a_working_store_after_two_starts(desk: Desk, junk: bytes) -> None:
    """Every 7th page in turn: at most the entries of that page are gone, and all of the store works again."""
    expected = fill(desk, chats=2, messages=30)
    sound = desk.path.read_bytes()
    desk.close()
    for page in range(0, len(sound) // PAGE, 7):
        shutil.rmtree(desk.folder)
        desk.folder.mkdir()
        desk.path.write_bytes(sound[: page * PAGE] + junk + sound[(page + 1) * PAGE :])
        for _ in range(2):
            store = desk.open()
            for use in (
                lambda store=store: [store.load_events(chat) for chat in expected],
                lambda store=store: store.search("lorem"),
                lambda store=store: store.append("chat1", [said("goes on")]).result(),
                lambda store=store: store.list_sessions(),
            ):
                with contextlib.suppress(StoreCorrupt):
                    use()
            store.close()
        store = desk.open()
        for chat, events in expected.items():
            found = store.load_events(chat)
            assert len([event for event in events if event in found]) > len(events) - 12, f"page {page}"
        store.append("chat1", [said("penguin")]).result()
        assert len(store.search("penguin")) == 1, f"page {page}"
        assert store.check() == [], f"page {page}"
        store.close()


def test_a_truncated_file_gives_back_what_it_still_holds(desk: Desk) -> None:
    """A copy that was cut off: the events in its first part are saved."""
    expected = fill(desk)
    size = desk.path.stat().st_size
    with desk.path.open("r+b") as file:
        file.truncate(size * 6 // 10 // PAGE * PAGE + 100)
    store = desk.open()
    saved = {chat: store.load_events(chat) for chat in expected}
    assert sum(map(len, saved.values())) > 60, desk.reports
    for chat, events in saved.items():
        assert [event for event in expected[chat] if event in events] == events
    assert len(desk.reports) == 1
    assert kept_files(desk)[0].stat().st_size > size // 2


def test_a_file_that_is_no_database_at_all_is_kept_and_a_new_one_begun(desk: Desk) -> None:
    """Somebody's text file under our name is not ours to delete."""
    desk.folder.mkdir()
    desk.path.write_text("dear diary " * 1000)
    store = desk.open()
    store.append("c", [said("hi")]).result()
    assert kept_files(desk)[0].read_text().startswith("dear diary")
    assert "nothing in it could be read" in str(desk.reports[0])


def test_what_only_the_write_ahead_log_holds_is_saved_too(desk: Desk, start: Start) -> None:
    """Killed before a checkpoint, then damaged: the WAL is read, and kept beside the damaged file."""
    process = start("""
        store = open_store(folder)
        for number in range(50):
            store.append("c", [said(f"{number}")]).result()
        tell("written")
        sys.stdin.read()
    """)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    (desk.folder / "sessions.db.suspect").touch()
    with (desk.folder / "sessions.db").open("ab") as file:
        file.write(b"x" * (3 * PAGE))
    wal = (desk.folder / "sessions.db-wal").read_bytes()
    assert wal
    store = desk.open()
    assert len(store.load_events("c")) == 50


def test_one_undecodable_row_is_left_out_and_reported_once_per_load(desk: Desk) -> None:
    """A single bad payload is never fatal."""
    fill(desk, chats=1, messages=5)
    with sqlite3.connect(desk.path) as connection:
        connection.execute("UPDATE events SET payload = x'00ff' WHERE seq = 3")
    connection.close()
    store = desk.open()
    assert [event.seq for event in store.load_events("chat0")] == [1, 2, 4, 5]
    assert [str(report) for report in desk.reports] == [
        "1 damaged entries of this chat were left out (numbers 3); the others are complete"
    ]


def test_a_damaged_file_another_neovim_uses_is_not_taken_away_from_it(desk: Desk, start: Start) -> None:
    """Renaming it under a living host would lose that host's next messages."""
    process = start("store = open_store(folder)\ntell('open')\nsys.stdin.read()")
    assert process.stdout is not None
    process.stdout.readline()
    store_file = desk.path.read_bytes()
    desk.path.write_bytes(b"garbage!" * (len(store_file) // 8))
    (desk.folder / "sessions.db-wal").unlink(missing_ok=True)
    with pytest.raises(StoreCorrupt, match="close all other Neovims"):
        desk.open()
    assert kept_files(desk) == []


def test_an_interrupted_exchange_of_the_repaired_file_is_finished(desk: Desk) -> None:
    """Killed between the renames of a repair: the rebuilt file takes its place, the damaged one is kept."""
    expected = fill(desk, chats=1)
    shutil.copyfile(desk.path, desk.folder / "sessions.rebuilt")
    desk.path.unlink()
    (desk.folder / "sessions.db-wal").write_bytes(b"a log of the damaged file")
    assert desk.open().load_events("chat0") == expected["chat0"]
    assert not (desk.folder / "sessions.rebuilt").exists()
    assert finish_swap(desk.path, 0.0) is None


def test_a_newer_file_is_refused_untouched_with_advice(desk: Desk) -> None:
    """An older plugin must not write a format it does not know."""
    fill(desk, chats=1)
    with sqlite3.connect(desk.path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = desk.path.read_bytes()
    with pytest.raises(StoreUnavailable, match=r"newer CodeCompanion \(format 2, this one knows up to 1\); update"):
        desk.open()
    assert desk.path.read_bytes() == before


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_a_file_of_every_older_version_is_brought_up_to_date(desk: Desk, version: int) -> None:
    """Version 0 is an empty file; each version holds a chat in its own format."""
    desk.folder.mkdir()
    with sqlite3.connect(desk.path, isolation_level=None) as connection:
        migrate(connection, "fixture", MIGRATIONS[:version])
        if version >= 1:
            connection.execute(
                "INSERT INTO events(chat_id, seq, turn, ts, type, payload) "
                "VALUES ('c', 1, '', 5.0, 'message_added', ?)",
                (b'{"type":"message_added","message":{"id":"m0","role":"user","content":"old"}}',),
            )
            connection.execute("INSERT INTO chats VALUES ('c', 'Old', '/work', 'a', 'm', 5.0, 5.0, 1, 1)")
    connection.close()
    store = desk.open()
    if version >= 1:
        assert store.load_events("c") == [LogEvent(1, 5.0, said("old"))]
        assert store.find_session("c").title == "Old"  # type: ignore[union-attr]
    assert store.append("c", [said("new")]).result()[0].seq == (2 if version >= 1 else 1)


def test_a_failing_migration_leaves_the_file_at_its_version(desk: Desk) -> None:
    """One transaction per step."""
    fill(desk, chats=1)
    connection = sqlite3.connect(desk.path, isolation_level=None)
    broken = (*MIGRATIONS, ("CREATE TABLE extra(x)", "THIS IS NO SQL"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "x", broken)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'extra'").fetchone() is None
    connection.close()


AS_NOBODY = """
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
from codecompanion.errors import StoreUnavailable
try:
    open_store(folder)
    tell("opened")
except StoreUnavailable as error:
    tell(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
@pytest.mark.parametrize(
    ("what", "advice"),
    [
        ("parent", "permission was refused; make the folder writable"),
        ("folder", "permission was refused; make the folder writable"),
        ("file", "it is read-only; make the file and its folder writable"),
    ],
)
def test_what_cannot_be_written_is_said_with_path_and_advice(start: Start, desk: Desk, what: str, advice: str) -> None:
    """Read-only parent, folder or file: one sentence, and the caller can go on in memory."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders cannot be entered by another user
        desk.folder = Path(place) / "data"
        if what != "parent":
            fill(desk, chats=1)
            for file in [*desk.folder.iterdir(), desk.folder / "opening.lock"]:
                file.chmod(0o777 if file.is_dir() else 0o666)
            desk.folder.chmod(0o777 if what == "file" else 0o555)
            desk.path.chmod(0o444)
            if what == "folder":
                (desk.folder / "opening.lock").unlink()
        Path(place).chmod(0o555)
        answer = start(AS_NOBODY).communicate()[0]
        Path(place).chmod(0o755)
        if desk.folder.exists():
            desk.folder.chmod(0o755)
    assert answer.startswith("cannot use "), answer
    assert str(desk.folder) in answer
    assert advice in answer


def test_a_full_disk_fails_the_append_and_nothing_else(desk: Desk) -> None:
    """Small writes that still fit succeed; after space was freed the same append succeeds."""
    store = desk.open()
    first = store.append("c", [CREATED, said("kept")]).result()
    pages = store._writer.submit(lambda db: db.execute("PRAGMA page_count").fetchone()[0]).result()
    store._writer.submit(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()).result()
    futures = [store.append("c", [said("x" * 100_000)]), store.append("c", [said("small")])]
    with pytest.raises(StoreUnavailable, match=r"sessions\.db: the disk is full; free some space"):
        futures[0].result()
    first += futures[1].result()
    assert store.load_events("c") == first
    store._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone()).result()
    first += store.append("c", [said("x" * 100_000)]).result()
    assert store.load_events("c") == first
    assert store.check() == []


def test_files_that_may_not_grow_are_told_and_what_was_durable_stays(desk: Desk, start: Start) -> None:
    """The real thing: the operating system refuses to write (RLIMIT_FSIZE), in the log, a draft and a blob."""
    process = start("""
        from codecompanion.errors import StoreUnavailable
        said_so = []
        store = open_store(folder, report=lambda problem: said_so.append(str(problem)))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        durable = 0
        try:
            while True:
                store.append("c", [said("y" * 5_000)]).result()
                durable += 1
        except StoreUnavailable as error:
            tell(durable, error)
        for attempt in range(3):
            try:
                store.save_draft("c", "z" * 300_000).result()
            except StoreUnavailable:
                pass
        tell(len(said_so))
        try:
            store.put_blob(b"b" * 400_000)
        except StoreUnavailable as error:
            tell(error)
    """)
    output = process.communicate()[0].splitlines()
    durable, sentence = output[0].split(" ", 1)
    assert "sessions.db: the disk" in sentence
    assert output[1] == "1"
    assert "blobs" in output[2]
    store = desk.open()
    assert len(store.load_events("c")) == int(durable) > 5
    assert list((desk.folder / "blobs").iterdir()) == []
    assert store.check() == []


@pytest.mark.parametrize(
    "spoil", [lambda p: p.unlink(), lambda p: p.write_bytes(b"other"), lambda p: p.write_bytes(b"")]
)
def test_a_spoiled_content_is_noticed_and_mended_by_storing_it_again(
    store: Store, desk: Desk, spoil: Callable[[Path], object]
) -> None:
    """A blob is what its name says or an error."""
    name = store.put_blob(b"a large result")
    assert store.put_blob(b"a large result") == name
    (file,) = (desk.folder / "blobs").iterdir()
    spoil(file)
    with pytest.raises(StoreCorrupt, match=name[:12]):
        store.read_blob(name)
    assert store.put_blob(b"a large result") == name
    assert store.read_blob(name) == b"a large result"


def test_a_blob_name_cannot_leave_its_folder(store: Store) -> None:
    """Names come from the log, which may be damaged."""
    with pytest.raises(Exception, match="expected 64 hexadecimal digits"):
        store.read_blob("../sessions.db")


def test_a_data_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    """Bad input: a sentence with the path."""
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreUnavailable, match=str(tmp_path / "data")):
        open_store(tmp_path / "data")
