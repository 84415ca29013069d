"""A database deleted, emptied or replaced while open: detected by the next write, reported, continued."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.errors import StoreError
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.store.damage import lost_file
from codecompanion.store.damage.rebuild import LiveChat, Loss
from codecompanion.store.lease import is_locked
from codecompanion.store.log.migrations import MIGRATIONS, migrate
from codecompanion.store.log.scratch import Calibration
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from tests.patience import PATIENCE_S
from tests.unit.store.conftest import sound


def said(text: str) -> MessageAdded:
    return MessageAdded(message=Message(id=text, role="user", content=text))


def texts(store: Store, chat: str = "c") -> list[str]:
    return [event.payload.message.text for event in store.load_events(chat)]  # type: ignore[union-attr]


@pytest.fixture
def told() -> list[StoreError]:
    return []


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file in place of the lost one be used at the first check, and a failure be retried with the next write."""
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.0)
    monkeypatch.setattr("codecompanion.store.writer_thread.SETTLE_S", 0.0)
    monkeypatch.setattr("codecompanion.store.writer_thread.RETRY_S", 0.0)


@pytest.fixture
def store(tmp_path: Path, told: list[StoreError]):
    store = open_store(tmp_path, report=told.append)
    yield store
    store.close()


def test_a_deleted_database_is_rewritten_completely(tmp_path: Path, store: Store, told: list[StoreError]) -> None:
    """SQLite's still open copy of a deleted file would be lost with the process."""
    store.append("c", [said("one"), said("two")]).result()
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    store.append("c", [said("three")]).result()
    assert [str(problem) for problem in told] == ["Chat history deleted while open; restored, nothing was lost"]
    assert texts(store) == ["one", "two", "three"]
    assert (tmp_path / "sessions.db").stat().st_mode & 0o777 == 0o600
    store.append("c", [said("four")]).result()
    assert len(told) == 1
    store.close()
    again = open_store(tmp_path)
    assert texts(again) == ["one", "two", "three", "four"]
    assert again.check() == []
    again.close()


def test_a_deleted_folder_is_recreated(tmp_path: Path, told: list[StoreError]) -> None:
    store = open_store(tmp_path / "data", report=told.append)
    store.append("c", [said("one")]).result()
    shutil.rmtree(tmp_path / "data")
    store.append("c", [said("two")]).result()
    assert "nothing was lost" in str(told[0])
    store.close()
    again = open_store(tmp_path / "data")
    assert texts(again) == ["one", "two"]
    again.close()


def test_an_emptied_database_is_started_over_and_the_remedy_named(
    tmp_path: Path, store: Store, told: list[StoreError]
) -> None:
    """R-478: checkpoints are separate files; the sentence says how to restore them."""
    store.append("c", [said("one")]).result()
    store._database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (tmp_path / "sessions.db").write_bytes(b"")
    store.append("c", [said("two")]).result()
    assert len(told) == 1
    assert str(told[0]).startswith("Chat history emptied")
    assert "two" in texts(store)
    if "nothing was lost" in str(told[0]):
        assert texts(store) == ["one", "two"]
    else:
        assert ":CodeCompanionRestore" in str(told[0])
    assert store.check() == []


def test_a_file_in_its_place_is_used_and_reported(tmp_path: Path, store: Store, told: list[StoreError]) -> None:
    """A backup that was copied back counts from the next write on."""
    other = open_store(tmp_path / "other")
    other.append("c", [said("from the backup")]).result()
    other.close()
    store.append("c", [said("one")]).result()
    (tmp_path / "other" / "sessions.db").replace(tmp_path / "sessions.db")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"sessions.db{suffix}").unlink(missing_ok=True)
    store.append("c", [said("two")]).result()
    assert texts(store) == ["from the backup", "two"]
    assert ":CodeCompanionRestore" in str(told[0])


def test_while_no_new_file_can_be_created_the_old_one_stays_in_use(
    tmp_path: Path, store: Store, told: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This is reported once. A full disk must not turn a deleted file into an empty one."""
    store.append("c", [said("one")]).result()
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    with monkeypatch.context() as full:

        def refuse(path: Path) -> None:
            raise OSError(28, "No space left on device", str(path))

        full.setattr("codecompanion.store.damage.lost_file.create_private_file", refuse)
        store.append("c", [said("two")]).result()
        assert texts(store) == ["one", "two"]
    assert [str(problem) for problem in told] == [
        "Chat history deleted while open; cannot restore it: the disk is full; free some space and try again"
        f" (cannot use {tmp_path / 'sessions.db.renewed'})"
    ]
    store.append("c", [said("three")]).result()
    assert texts(store) == ["one", "two", "three"]
    assert (tmp_path / "sessions.db").exists()


def another(folder: Path, *said_there: str) -> Path:
    """Return a complete file left by another Neovim."""
    other = open_store(folder)
    other.append("theirs", [said(text) for text in said_there]).result()
    other.close()
    return folder / "sessions.db"


def test_a_backup_moved_over_the_file_does_not_get_the_lost_files_log(
    tmp_path: Path, store: Store, told: list[StoreError]
) -> None:
    """`mv backup.db sessions.db`: SQLite would add the -wal that lies there, and both files would be damaged."""
    backup = another(tmp_path / "other", *(f"from the backup {i} " * 20 for i in range(50)))
    for i in range(200):
        store.append("c", [said(f"text {i} " * 50)]).result()
    os.link(tmp_path / "sessions.db", tmp_path / "kept.db")
    backup.replace(tmp_path / "sessions.db")
    store.append("c", [said("one")]).result()
    assert store.check() == []
    assert len(texts(store, "theirs")) == 50
    assert texts(store) == ["one"]
    assert len(told) == 1
    store.close()
    assert sound(tmp_path / "sessions.db")
    kept = sqlite3.connect(tmp_path / "kept.db")  # the lost file, by its other name
    assert kept.execute("SELECT count(*) FROM events").fetchone() == (200,)
    kept.close()


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 1000)


def half(path: Path) -> None:
    whole = another(path.parent / "half", *(f"text {i} " * 100 for i in range(100))).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def newer(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()


@pytest.mark.parametrize("make", [garbage, half, newer])
def test_an_unusable_file_is_left_alone_and_reported_once(
    tmp_path: Path, store: Store, told: list[StoreError], make: Callable[[Path], None]
) -> None:
    store.append("c", [said("one")]).result()
    make(tmp_path / "new.db")
    before = (tmp_path / "new.db").read_bytes()
    (tmp_path / "new.db").replace(tmp_path / "sessions.db")
    for text in ("two", "three"):
        store.append("c", [said(text)]).result()
    assert texts(store) == ["one", "two", "three"]
    assert (tmp_path / "sessions.db").read_bytes() == before
    assert len(told) == 1
    assert str(told[0]).startswith("Chat history replaced by an unusable file while open. Delete ")
    (tmp_path / "sessions.db").unlink()
    assert texts(store) == ["one", "two", "three"]
    assert str(told[1]) == "Chat history deleted while open; restored, nothing was lost"
    assert sound(tmp_path / "sessions.db")


def test_an_empty_file_in_its_place_is_filled(tmp_path: Path, store: Store, told: list[StoreError]) -> None:
    store.append("c", [said("one")]).result()
    (tmp_path / "sessions.db").unlink()
    (tmp_path / "sessions.db").touch()
    store.append("c", [said("two")]).result()
    assert [str(problem) for problem in told] == ["Chat history emptied while open; restored, nothing was lost"]
    assert texts(store) == ["one", "two"]


def test_an_older_file_in_its_place_is_migrated(tmp_path: Path, store: Store) -> None:
    store.append("c", [said("one")]).result()
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    migrate(old, "old", MIGRATIONS[:2])
    names = [row[1] for row in old.execute("PRAGMA table_info(chats)")]
    row = ["old chat" if name == "chat_id" else 0 for name in names]
    places = ",".join("?" * len(row))
    old.execute(f"INSERT INTO chats VALUES ({places})", row)  # noqa: S608 - question marks
    old.close()
    (tmp_path / "old.db").replace(tmp_path / "sessions.db")
    store.append("c", [said("two")]).result()
    assert texts(store) == ["two"]
    assert store.check() == []


def test_a_file_being_copied_is_awaited(
    tmp_path: Path, store: Store, told: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """During `cp backup.db sessions.db`, not a byte of the half-written copy is changed."""
    monkeypatch.setattr(
        "codecompanion.store.damage.lost_file.SETTLE_S", 2.0
    )  # a slow machine may pause between two pieces, too
    monkeypatch.setattr("codecompanion.store.writer_thread.SETTLE_S", 0.1)
    whole = another(tmp_path / "other", *(f"text {i} " * 100 for i in range(100))).read_bytes()
    store.append("c", [said("one")]).result()
    path = tmp_path / "sessions.db"
    path.unlink()
    with path.open("wb", buffering=0) as copy:
        for part in (whole[:0], whole[:8192], whole[8192:]):
            copy.write(part)
            assert texts(store) == ["one"]
            time.sleep(0.15)
    assert path.read_bytes() == whole
    assert told == []
    end = time.monotonic() + PATIENCE_S
    while not told and time.monotonic() < end:
        store.knows("c")
        time.sleep(0.05)
    assert len(texts(store, "theirs")) == 100
    assert len(told) == 1


def test_messages_during_a_copy_are_in_it_after_the_end(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are stored even if Neovim exits before the new file was checked a second time."""
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.1)
    monkeypatch.setattr("codecompanion.store.writer_thread.SETTLE_S", 0.15)
    events = store.append("c", [said("one")]).result()
    losses: list[Loss] = []
    store.watch_over(lambda: [LiveChat("c", project(events))], losses.append)
    another(tmp_path / "other", "from the backup").replace(tmp_path / "sessions.db")
    store.append("c", [said("two")]).result()
    assert losses == []
    store.close()
    again = open_store(tmp_path)
    assert texts(again) == ["one", "two"]
    again.close()


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_file_that_appears_during_a_renewal_is_not_overwritten(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The user may put a backup there while a large file is copied and checked."""
    backup = another(tmp_path / "other", "precious")
    store.append("c", [said("one")]).result()
    make = lost_file.FileWatch._make

    def slow(self: lost_file.FileWatch, fresh: Path, path: Path) -> bool:
        saved = make(self, fresh, path)
        backup.rename(path)
        return saved

    monkeypatch.setattr(lost_file.FileWatch, "_make", slow)
    (tmp_path / "sessions.db").unlink() if how == "deleted" else (tmp_path / "sessions.db").write_bytes(b"")
    store.append("d", [said("two")]).exception()
    assert texts(store, "theirs") == ["precious"]
    assert not (tmp_path / "sessions.db.renewed").exists()


def test_a_failed_renewal_is_not_retried_with_every_read(
    tmp_path: Path, store: Store, told: list[StoreError], monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def fail(*_: object) -> None:
        tries.append(1)
        raise OSError(28, "No space left on device")

    store.append("c", [said("one")]).result()
    monkeypatch.setattr(store._writer, "_retry_s", 60.0)
    monkeypatch.setattr(lost_file.FileWatch, "_make", fail)
    (tmp_path / "sessions.db").unlink()
    for _ in range(5):
        assert texts(store) == ["one"]
    assert len(tries) == len(told) == 1


def test_a_folder_replaced_by_a_file_is_reported(tmp_path: Path, told: list[StoreError]) -> None:
    store = open_store(tmp_path / "data", report=told.append)
    store.append("c", [said("one")]).result()
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "data").write_text("in the way")
    store.append("c", [said("two")]).result()
    assert len(told) == 1
    (tmp_path / "data").unlink()
    store.append("c", [said("three")]).result()
    assert "nothing was lost" in str(told[1])
    store.close()


def test_a_deleted_owner_lock_is_locked_again(tmp_path: Path) -> None:
    """Otherwise another Neovim would consider this one dead, and take its chats."""
    store = open_store(tmp_path / "data")
    store.acquire("c").result()
    shutil.rmtree(tmp_path / "data")
    store.append("c", [said("one")]).result()
    assert is_locked(tmp_path / "data" / "owners" / f"{store._owner.id}.lock")
    store.close()


@pytest.mark.parametrize("where", ["live", "loss", "rebuild"])
def test_after_any_failure_of_a_renewal_the_writer_continues(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """A chat that waits for an answer from the store must get one."""

    def fail(*_: object) -> list[LiveChat]:
        raise ValueError("a bug")

    store.append("c", [said("one")]).result()
    store.watch_over(fail if where == "live" else tuple, fail if where == "loss" else lambda loss: None)
    if where == "rebuild":
        monkeypatch.setattr("codecompanion.store.damage.rebuild.rebuild", fail)
    another(tmp_path / "other", "theirs").replace(tmp_path / "sessions.db")
    for text in ("two", "three"):
        store.append("c", [said(text)]).result(10)
    assert texts(store)[-2:] == ["two", "three"]


def test_a_write_that_fails_is_an_error_for_its_caller(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(store._writer, "_write", fail)
        with pytest.raises(StoreError, match="a bug"):
            store.append("c", [said("one")]).result(10)
    store.append("c", [said("two")]).result(10)
    assert texts(store) == ["two"]


def test_changes_during_a_settling_copy_are_carried_over(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drafts, grants, learned values and a chat closed in the meantime are kept; revoked grants stay revoked."""
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 60.0)
    monkeypatch.setattr("codecompanion.store.writer_thread.SETTLE_S", 0.0)
    other = open_store(tmp_path / "other")
    other.append("c", [said("one")]).result()
    for kind in ("revoked", "older"):
        other.save_grants("c", kind).result()
    other.save_draft("theirs", "their draft").result()
    other.close()
    store.acquire("c").result()
    store.append("c", [said("one")]).result()
    store.save_grants("c", "granted").result()
    store.save_draft("elsewhere", "older than the loss").result()
    losses: list[Loss] = []
    store.watch_over(lambda: [LiveChat("c", project(store._renewal._newest["c"]))], losses.append)
    (tmp_path / "other" / "sessions.db").replace(tmp_path / "sessions.db")
    store.save_draft("c", "typed meanwhile").result()
    store.save_grants("c", "").result()
    store.save_draft("never sent", "typed in a new chat").result()
    store.save_calibration(Calibration("openai", "x", 1.5, 2)).result()
    store.acquire("closed").result()
    store.append("closed", [said("two"), said("three")]).result()
    store.release("closed").result()
    assert losses == []
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.0)
    assert texts(store) == ["one"]
    assert len(losses) == 1
    assert texts(store, "closed") == ["two", "three"]
    assert store.foreign_lease("closed") is None
    assert (store.load_draft("c"), store.load_grants("c")) == ("typed meanwhile", "")
    assert store.load_draft("never sent") == "typed in a new chat"
    assert (store.load_draft("theirs"), store.load_draft("elsewhere")) == ("their draft", "")
    assert [learned.model for learned in store.load_calibration()] == ["x"]
    store.close()
    again = open_store(tmp_path)
    again.acquire("closed").result()
    again.close()
