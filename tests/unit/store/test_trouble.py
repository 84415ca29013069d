"""Full disk, read-only folders, older and newer files, damaged contents: a sentence, nothing lost."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import StoreCorrupt, StoreUnavailable
from codecompanion.model.history import LogEvent
from codecompanion.store.log.migrations import MIGRATIONS, migrate
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.log.totals import Spent
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store

from .conftest import CREATED, Desk, Start, fill, said


def test_a_newer_file_is_refused_unchanged_with_advice(desk: Desk) -> None:
    """An older plugin must not write a format it does not know."""
    fill(desk, chats=1)
    with sqlite3.connect(desk.path) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    before = desk.path.read_bytes()
    newest = len(MIGRATIONS)
    known = rf"newer CodeCompanion \(format {newest + 1}; this one reads up to {newest}\)\. Update"
    with pytest.raises(StoreUnavailable, match=known):
        desk.open()
    assert desk.path.read_bytes() == before


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_a_file_of_every_older_version_is_migrated(desk: Desk, version: int) -> None:
    """Version 0 is an empty file; each version has a chat in its own format."""
    desk.folder.mkdir()
    with sqlite3.connect(desk.path, isolation_level=None) as connection:
        migrate(connection, "fixture", MIGRATIONS[:version])
        if version >= 1:
            connection.execute(
                "INSERT INTO events(chat_id, seq, turn, ts, type, payload) "
                "VALUES ('c', 1, '', 5.0, 'message_added', ?)",
                (b'{"type":"message_added","message":{"id":"m0","role":"user","content":"old"}}',),
            )
            connection.executemany(
                "INSERT INTO events(chat_id, seq, turn, ts, type, payload) "
                "VALUES ('c', ?, '', 5.0, 'usage_reported', ?)",
                [
                    (2, b'{"type":"usage_reported","message_id":"m0","adapter":"a","model":"m","usage":{},'
                        b'"estimated_prompt_tokens":1,"cost_usd":0.25}'),
                    (3, b'{"type":"usage_reported","message_id":"m0","adapter":"a","model":"m","usage":{},'
                        b'"estimated_prompt_tokens":1}'),
                    (4, b"damaged"),
                ],
            )  # fmt: skip
            connection.execute(
                "INSERT INTO chats(chat_id, title, cwd, adapter, model, created, updated, messages, last_seq) "
                "VALUES ('c', 'Old', '/work', 'a', 'm', 5.0, 5.0, 1, 4)"
            )
        if version >= 3:
            connection.execute("UPDATE chats SET cost_usd = 0.25, unpriced = 2")
        if version >= 2:
            connection.execute("INSERT INTO calibration(adapter, model, ratio, weight, extra, updated) "
                               "VALUES ('a', 'm', 1.5, 9, 3.5, 5.0)")  # fmt: skip
        if version >= 4:
            connection.execute("UPDATE chats SET first_question = 'old', last_question = 'old'")
    connection.close()
    store = desk.open()
    if version >= 1:
        assert store.spent("c") == store.spent() == Spent(0.25, 2)
        assert store.load_events("c")[0] == LogEvent(1, 5.0, said("old"))
        stored = store.find_session("c")
        assert stored is not None
        assert (stored.title, stored.first_question, stored.last_question) == ("Old", "old", "old")
    # Of an older version: a calibration for the old counting does not apply to the new one.
    known = [Calibration("a", "m", 1.5, 9, extra=3.5, updated=5.0, above=1.0, below=1.0, figures=0)]
    assert store.load_calibration() == (known if version >= 2 else [])
    assert store.append("c", [said("new")]).result()[0].seq == (5 if version >= 1 else 1)


def test_a_failing_migration_leaves_the_file_at_its_version(desk: Desk) -> None:
    """Each step is one transaction."""
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


def test_a_new_file_is_created_in_one_transaction(tmp_path: Path) -> None:
    """Each transaction waits for the disk four times, and a user's first chat would wait for all of them."""
    connection, commits = sqlite3.connect(tmp_path / "new.db", isolation_level=None), list[str]()
    connection.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
    assert migrate(connection, "new", MIGRATIONS) == len(MIGRATIONS)
    assert len(commits) == 1
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
    connection.close()


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
@pytest.mark.parametrize(
    ("what", "advice"),
    [
        ("parent", "permission denied; make the folder writable"),
        ("folder", "permission denied; make the folder writable"),
        ("file", "the file is read-only; make it and its folder writable"),
    ],
)
def test_an_unwritable_place_is_reported_with_path_and_advice(start: Start, desk: Desk, what: str, advice: str) -> None:
    """Read-only parent, folder or file: one sentence, and the caller can continue in memory."""
    if what == "file" and os.geteuid() != 0:
        pytest.skip("the file must belong to another user, which only root can arrange: its owner may write it again")
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders cannot be entered by another user
        desk.folder = Path(place) / "data"
        if what != "parent":
            fill(desk, chats=1)
            for file in [*desk.folder.iterdir(), desk.folder / "opening.lock"]:
                file.chmod(0o777 if file.is_dir() else 0o666)
            desk.path.chmod(0o444)
            if what == "folder":
                (desk.folder / "opening.lock").unlink()
            desk.folder.chmod(0o777 if what == "file" else 0o555)
        Path(place).chmod(0o555)
        answer = start(AS_NOBODY).communicate()[0]
        Path(place).chmod(0o755)
        if desk.folder.exists():
            desk.folder.chmod(0o755)
    assert answer.startswith(f"{advice} (cannot use "), answer
    assert str(desk.folder) in answer


def test_a_full_disk_fails_the_append_and_nothing_else(desk: Desk) -> None:
    """Small writes that still fit succeed; after space was freed the same append succeeds."""
    store = desk.open()
    first = store.append("c", [CREATED, said("kept")]).result()
    pages = store._writer.submit(lambda db: db.execute("PRAGMA page_count").fetchone()[0]).result()
    store._writer.submit(lambda db: db.execute(f"PRAGMA max_page_count = {pages + 2}").fetchone()).result()
    futures = [store.append("c", [said("x" * 100_000)]), store.append("c", [said("small")])]
    with pytest.raises(StoreUnavailable, match=r"^the disk is full; free some space .*sessions\.db"):
        futures[0].result()
    first += futures[1].result()
    assert store.load_events("c") == first
    store._writer.submit(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone()).result()
    first += store.append("c", [said("x" * 100_000)]).result()
    assert store.load_events("c") == first
    assert store.check() == []


def test_files_that_may_not_grow_are_reported_and_durable_data_stays(desk: Desk, start: Start) -> None:
    """The operating system itself refuses to write (RLIMIT_FSIZE), in the log, a partial reply and a blob."""
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
                store.save_partial("c", "z" * 300_000).result()
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
    assert sentence.startswith("the disk ")
    assert "sessions.db" in sentence
    assert output[1] == "1"
    assert "blobs" in output[2]
    store = desk.open()
    assert len(store.load_events("c")) == int(durable) > 5
    assert list((desk.folder / "blobs").iterdir()) == []
    assert store.check() == []


@pytest.mark.parametrize(
    "damage", [lambda p: p.unlink(), lambda p: p.write_bytes(b"other"), lambda p: p.write_bytes(b"")]
)
def test_damaged_content_is_detected_and_repaired_by_storing_it_again(
    store: Store, desk: Desk, damage: Callable[[Path], object]
) -> None:
    """Reading a blob returns the content that its name hashes, or raises."""
    name = store.put_blob(b"a large result")
    assert store.put_blob(b"a large result") == name
    (file,) = (desk.folder / "blobs").iterdir()
    damage(file)
    with pytest.raises(StoreCorrupt, match=name[:12]):
        store.read_blob(name)
    assert store.put_blob(b"a large result") == name
    assert store.read_blob(name) == b"a large result"


def test_a_blob_name_cannot_leave_its_folder(store: Store) -> None:
    """Names come from the log, which may be damaged."""
    with pytest.raises(Exception, match="expected 64 hexadecimal digits"):
        store.read_blob("../sessions.db")


def test_a_file_in_place_of_the_data_folder_is_reported(tmp_path: Path) -> None:
    """The error is one sentence with the path."""
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreUnavailable, match=str(tmp_path / "data")):
        open_store(tmp_path / "data")
