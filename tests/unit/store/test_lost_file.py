"""A database deleted, emptied or replaced while it is open: noticed by the next write, said, gone on with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from codecompanion.errors import StoreError
from codecompanion.history import MessageAdded
from codecompanion.messages import Message
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store


def said(text: str) -> MessageAdded:
    return MessageAdded(message=Message(id=text, role="user", content=text))


def texts(store: Store, chat: str = "c") -> list[str]:
    return [event.payload.message.text for event in store.load_events(chat)]  # type: ignore[union-attr]


@pytest.fixture
def told() -> list[StoreError]:
    return []


@pytest.fixture
def store(tmp_path: Path, told: list[StoreError]):
    store = open_store(tmp_path, report=told.append)
    yield store
    store.close()


def test_a_deleted_database_is_written_again_with_everything(
    tmp_path: Path, store: Store, told: list[StoreError]
) -> None:
    """What SQLite still holds of a deleted file would end with the process."""
    store.append("c", [said("one"), said("two")]).result()
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    store.append("c", [said("three")]).result()
    assert [str(problem) for problem in told] == ["Chat history deleted while open; written again, nothing is lost"]
    assert texts(store) == ["one", "two", "three"]
    assert (tmp_path / "sessions.db").stat().st_mode & 0o777 == 0o600
    store.append("c", [said("four")]).result()
    assert len(told) == 1
    store.close()
    again = open_store(tmp_path)
    assert texts(again) == ["one", "two", "three", "four"]
    assert again.check() == []
    again.close()


def test_a_deleted_folder_is_made_again(tmp_path: Path, told: list[StoreError]) -> None:
    store = open_store(tmp_path / "data", report=told.append)
    store.append("c", [said("one")]).result()
    shutil.rmtree(tmp_path / "data")
    store.append("c", [said("two")]).result()
    assert "nothing is lost" in str(told[0])
    store.close()
    again = open_store(tmp_path / "data")
    assert texts(again) == ["one", "two"]
    again.close()


def test_an_emptied_database_is_begun_anew_and_the_way_back_is_named(
    tmp_path: Path, store: Store, told: list[StoreError]
) -> None:
    """R-478: checkpoints are files of their own; the sentence says how they come back."""
    store.append("c", [said("one")]).result()
    store._database.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (tmp_path / "sessions.db").write_bytes(b"")
    store.append("c", [said("two")]).result()
    assert len(told) == 1
    assert str(told[0]).startswith("Chat history emptied while open; ")
    assert "two" in texts(store)
    if "nothing is lost" in str(told[0]):
        assert texts(store) == ["one", "two"]
    else:
        assert ":CodeCompanionRestore" in str(told[0])
    assert store.check() == []


def test_another_file_in_its_place_is_used_and_said(tmp_path: Path, store: Store, told: list[StoreError]) -> None:
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


def test_while_no_new_file_can_be_made_the_old_one_stays_in_use(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk must not turn a deleted file into an empty one."""
    store.append("c", [said("one")]).result()
    for file in tmp_path.glob("sessions.db*"):
        file.unlink()
    with monkeypatch.context() as full:

        def refuse(path: Path) -> None:
            raise OSError(28, "No space left on device", str(path))

        full.setattr("codecompanion.store.lost_file.create_private_file", refuse)
        store.append("c", [said("two")]).result()
    store.append("c", [said("three")]).result()
    assert texts(store) == ["one", "two", "three"]
    assert (tmp_path / "sessions.db").exists()
