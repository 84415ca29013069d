"""The owner of the log beside the database, after another file was copied or moved there."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from codecompanion.errors import StoreError
from codecompanion.model.view import project
from codecompanion.store import writer_thread as writer
from codecompanion.store.damage import lost_file, marks, salvage
from codecompanion.store.damage.rebuild import LiveChat, Loss
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from tests.unit.store.conftest import Desk, Start, said, sound

HOST = """
    from codecompanion.model.view import project
    from codecompanion.store import writer_thread
    from codecompanion.store.damage import lost_file
    from codecompanion.store.damage.rebuild import LiveChat
    writer_thread.LOOK_EVERY_S = writer_thread.SETTLE_S = lost_file.SETTLE_S = 0.1
    store = open_store(folder, report=lambda problem: tell(problem))
    store.acquire("open").result()
    for number in range(40):
        store.append("closed", [said(f"closed {number} " * 200)])
    events = store.append("open", [said("said before")]).result()
    store.watch_over(lambda: [LiveChat("open", project(events))], lambda loss: tell(loss.rebuilt[0].extent))
    tell("ready")
    sys.stdin.read()
    store.close()
"""


def texts(store: Store, chat: str) -> list[str]:
    return [event.payload.message.text for event in store.load_events(chat)]  # type: ignore[union-attr]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_file, "SETTLE_S", 0.0)
    monkeypatch.setattr(writer, "SETTLE_S", 0.0)
    monkeypatch.setattr(writer, "RETRY_S", 0.0)


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Return a complete database file with another history."""
    other = open_store(tmp_path / "other")
    for number in range(30):
        other.append("theirs", [said(f"from the backup {number} " * 100)])
    other.close()
    return tmp_path / "other" / "sessions.db"


@pytest.fixture
def host(desk: Desk, start: Start) -> subprocess.Popen[str]:
    """Another Neovim, with many events in its log that are not in the file yet."""
    process = start(HOST)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert (desk.folder / "sessions.db-wal").stat().st_size > 100_000
    return process


def watched(desk: Desk) -> tuple[Store, list[Loss]]:
    """Return an open store in which one chat is open and one closed; much of both is in the log only."""
    store = desk.open()
    for number in range(40):
        store.append("closed", [said(f"closed {number} " * 200)])
    events = store.append("open", [said("said before")]).result()
    losses: list[Loss] = []
    store.watch_over(lambda: [LiveChat("open", project(events))], losses.append)
    return store, losses


def test_a_file_copied_over_the_open_one_is_used_without_our_log(desk: Desk, backup: Path) -> None:
    """`cp backup.db sessions.db`: the same inode, so SQLite would keep using the log of the lost file."""
    store, losses = watched(desk)
    inode = desk.path.stat().st_ino
    shutil.copyfile(backup, desk.path)
    assert desk.path.stat().st_ino == inode
    store.append("new", [said("said after")]).result()
    assert [loss.renewed.state for loss in losses] == ["overwritten"]
    assert [str(report) for report in desk.reports] == [
        "Chat history replaced; 1 chat rebuilt; see :CodeCompanionRestore"
    ]
    assert len(texts(store, "theirs")) == 30
    assert texts(store, "open") == ["said before"]
    assert texts(store, "new") == ["said after"]
    assert texts(store, "closed") == []
    assert store.check() == []
    store.close()
    assert sound(desk.path)
    assert len(desk.reports) == 1


def test_an_older_state_of_the_same_database_is_detected_too(desk: Desk, tmp_path: Path) -> None:
    """Yesterday's backup has the same tables and first messages, and was ours."""
    store = desk.open()
    store.append("days", [said("yesterday")]).result()
    store.close()
    shutil.copyfile(desk.path, tmp_path / "backup.db")
    store = desk.open()
    store.append("days", [said("today")]).result()
    store.close()
    store, losses = watched(desk)
    shutil.copyfile(tmp_path / "backup.db", desk.path)
    assert texts(store, "days") == ["yesterday"]
    assert texts(store, "open") == ["said before"]
    assert len(losses) == 1
    assert texts(store, "closed") == []
    store.close()
    assert sound(desk.path)


def test_a_file_that_is_not_a_database_is_kept_and_the_chats_continue(desk: Desk) -> None:
    store, losses = watched(desk)
    desk.path.write_bytes(b"garbage!" * 4_000)
    store.append("open", [said("said after")]).result()
    assert len(losses) == 1
    assert texts(store, "open") == ["said before", "said after"]
    (kept,) = salvage.kept_files(desk.path)
    assert kept.path.read_bytes() == b"garbage!" * 4_000
    assert "an unusable file replaced it" in kept.story
    assert store.check() == []
    store.close()
    assert sound(desk.path)


def test_a_copy_in_progress_is_awaited(desk: Desk, backup: Path, monkeypatch: pytest.MonkeyPatch, start: Start) -> None:
    """Half a file must not be mistaken for a damaged one."""
    monkeypatch.setattr(lost_file, "SETTLE_S", 2.0)  # a slow machine may pause between two pieces, too
    store, losses = watched(desk)
    copier = start(
        """
        import time
        whole = Path(sys.argv[2]).read_bytes()
        with (folder / "sessions.db").open("wb", buffering=0) as copy:
            tell("emptied")
            for place in range(0, len(whole), len(whole) // 8):
                time.sleep(0.05)
                copy.write(whole[place : place + len(whole) // 8])
        """,
        str(backup),
    )
    assert copier.stdout is not None
    copier.stdout.readline()
    store.append("new", [said("said meanwhile")]).result()
    copier.wait()
    assert len(losses) == 1
    assert len(texts(store, "theirs")) == 30
    assert texts(store, "open") == ["said before"]
    assert texts(store, "new") == ["said meanwhile"]
    assert salvage.kept_files(desk.path) == []


def test_a_copied_file_is_not_written_to_at_the_end_after_a_failure(
    desk: Desk, backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a full disk the file is left alone when the store is closed, although SQLite would fold its log into it."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store, losses = watched(desk)
    monkeypatch.setattr(marks, "copy_unlocked", full)
    shutil.copyfile(backup, desk.path)
    assert texts(store, "open")
    store.close()
    assert losses == []
    assert "cannot restore it: the disk is full" in str(desk.reports[0])
    assert desk.path.read_bytes() == backup.read_bytes()
    assert len(texts(desk.open(), "theirs")) == 30


def test_checkpoints_by_two_hosts_do_not_count_as_another_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them changes the file, and the other one must not mistake that for a copy."""
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 40_000)
    first, second = desk.open(), desk.open()
    for store, chat in ((first, "a"), (second, "b")):
        store.acquire(chat).result()
    before = marks.mark_of_file(desk.path)
    seen = {before}
    for number in range(60):
        for store, chat in ((first, "a"), (second, "b")):
            store.append(chat, [said(f"{chat} {number} " * 400)]).result()
            seen.add(marks.mark_of_file(desk.path))
    assert len(seen) > 5
    first.close()
    third = desk.open()
    third.append("c", [said("three")]).result()
    second.close()
    assert desk.reports == []
    assert (len(texts(third, "a")), len(texts(third, "b"))) == (60, 60)
    listed = marks.read_belonging(desk.path)
    assert listed is not None
    assert len(listed.marks) < 8
    assert marks.beside(desk.path, "-marks").stat().st_mode & 0o777 == 0o600


def test_drafts_of_killed_hosts_are_removed(desk: Desk) -> None:
    desk.open().close()
    drafts = [desk.folder / "sessions.db-marks.1.new", desk.folder / "owners" / "x.chats.1.new"]
    for draft in drafts:
        draft.touch()
        os.utime(draft, (0, 0))
    young = desk.folder / "sessions.db-marks.2.new"
    young.touch()
    desk.open()
    assert [draft.exists() for draft in drafts] == [False, False]
    assert young.exists()


def test_a_file_during_a_checkpoint_has_its_mark(desk: Desk) -> None:
    """The first page is written first: for a moment the file is shorter than that page says."""
    store, _ = watched(desk)
    store.close()
    mark = marks.mark_of_file(desk.path)
    assert mark not in (None, marks.UNMARKED)
    copy = desk.path.with_name("copy.db")
    copy.write_bytes(desk.path.read_bytes()[: 4096 * 3])
    assert marks.mark_of_file(copy) == mark
    copy.write_bytes(b"garbage!" * 512)
    assert marks.mark_of_file(copy) is None


def test_a_change_through_sqlite_itself_is_not_another_file(desk: Desk) -> None:
    """Neither a restore with the `sqlite3` program nor a changed mark of the file counts as another file."""
    store, losses = watched(desk)
    other = sqlite3.connect(desk.path, isolation_level=None)
    other.execute("PRAGMA application_id = 77")
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    store.append("open", [said("said after")]).result()
    assert texts(store, "open") == ["said before", "said after"]
    assert len(texts(store, "closed")) == 40
    assert losses == [] or losses[0].renewed.state == "sound"


def test_a_moved_file_does_not_get_the_log_of_a_hanging_host(
    desk: Desk, backup: Path, host: subprocess.Popen[str]
) -> None:
    """This covers `mv backup.db sessions.db` and a new Neovim before the running one has noticed anything."""
    host.send_signal(signal.SIGSTOP)
    backup.replace(desk.path)
    store = desk.open()
    assert len(texts(store, "theirs")) == 30
    assert texts(store, "closed") == []
    assert store.check() == []
    store.append("mine", [said("of the new Neovim")]).result()
    host.send_signal(signal.SIGCONT)
    assert host.stdout is not None
    assert "Chat history replaced; 1 chat rebuilt" in host.stdout.readline()
    assert host.stdout.readline() == "whole\n"
    assert texts(store, "open") == ["said before"]
    assert texts(store, "mine") == ["of the new Neovim"]
    host.communicate("")
    assert store.check() == []
    store.close()
    assert sound(desk.path)


def test_a_deleted_file_leaves_no_log_to_the_next_one(desk: Desk, host: subprocess.Popen[str]) -> None:
    """After `rm sessions.db`, another Neovim still has its log open while the new one stores a message; both stay."""
    host.send_signal(signal.SIGSTOP)
    desk.path.unlink()
    store = desk.open()
    store.append("mine", [said("of the new Neovim")]).result()
    host.send_signal(signal.SIGCONT)
    assert host.stdout is not None
    assert "Chat history replaced; 1 chat rebuilt" in host.stdout.readline()
    assert host.stdout.readline() == "whole\n"
    assert (texts(store, "open"), texts(store, "mine")) == (["said before"], ["of the new Neovim"])
    host.communicate("")
    assert store.check() == []


def test_a_new_file_without_a_chat_is_replaced_by_the_deleted_one(desk: Desk, host: subprocess.Popen[str]) -> None:
    """After `rm sessions.db*` and a new Neovim, the running one still has everything, including closed chats."""
    host.send_signal(signal.SIGSTOP)
    for file in desk.folder.glob("sessions.db*"):
        file.unlink()
    store = desk.open()
    losses: list[Loss] = []
    store.watch_over(tuple, losses.append)
    host.send_signal(signal.SIGCONT)
    assert host.stdout is not None
    assert host.stdout.readline() == "Chat history deleted while open; restored, nothing was lost\n"
    assert len(texts(store, "closed")) == 40
    assert texts(store, "open") == ["said before"]
    store.append("mine", [said("of the new Neovim")]).result()
    host.communicate("")
    assert store.check() == []
    store.close()
    assert sound(desk.path)
    again = desk.open()
    assert (texts(again, "mine"), len(texts(again, "closed"))) == (["of the new Neovim"], 40)


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_the_log_of_a_killed_host_is_not_added_to_another_file(
    desk: Desk, backup: Path, host: subprocess.Popen[str], how: str
) -> None:
    """If a Neovim was killed, a backup restored, and Neovim started again, the backup counts."""
    host.kill()
    host.wait()
    log = (desk.folder / "sessions.db-wal").read_bytes()
    shutil.copyfile(backup, desk.path) if how == "copied" else backup.replace(desk.path)
    store = desk.open()
    assert len(texts(store, "theirs")) == 30
    assert (texts(store, "open"), texts(store, "closed")) == ([], [])
    assert store.check() == []
    assert (desk.folder / "sessions.db-wal.old").read_bytes() == log


def test_the_log_of_a_killed_host_counts_for_its_own_file(desk: Desk, host: subprocess.Popen[str]) -> None:
    """It counts even after the folder was copied elsewhere, log and all."""
    host.kill()
    host.wait()
    elsewhere = desk.folder.with_name("elsewhere")
    shutil.copytree(desk.folder, elsewhere)
    for folder in (elsewhere, desk.folder):
        store = open_store(folder)
        assert texts(store, "open") == ["said before"]
        assert len(texts(store, "closed")) == 40
        store.close()
        assert not (folder / "sessions.db-wal.old").exists()


def test_a_database_with_its_own_log_keeps_it(desk: Desk, host: subprocess.Popen[str], tmp_path: Path) -> None:
    """A whole folder is put back: file and log belong together, whatever the list beside them says."""
    host.kill()
    host.wait()
    shutil.copytree(desk.folder, tmp_path / "copy")
    desk.open().close()
    for name in ("sessions.db", "sessions.db-wal"):
        (tmp_path / "copy" / name).replace(desk.folder / name)
    store = desk.open()
    assert texts(store, "open") == ["said before"]
    assert len(texts(store, "closed")) == 40


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 5_000, b'{"marks": ["x"]}', b"\xff\xfe"])
def test_an_unreadable_list_is_ignored(desk: Desk, content: bytes) -> None:
    store, losses = watched(desk)
    marks.beside(desk.path, "-marks").write_bytes(content)
    os.utime(desk.path, (time.time() + 5,) * 2)
    store.append("open", [said("said after")]).result()
    assert losses == []
    store.close()
    assert len(texts(desk.open(), "closed")) == 40
    assert desk.reports == []


def test_an_unwritable_list_does_not_cause_other_failures(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is folded in another time, or by SQLite when the store is closed."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    store = desk.open()
    monkeypatch.setattr(marks, "write_whole", full)
    monkeypatch.setattr(writer, "CHECKPOINT_BYTES", 1)
    store.append("open", [said("one")]).result()
    store.close()
    again = desk.open()
    assert texts(again, "open") == ["one"]
    assert marks.is_ours(desk.path)
    marks.beside(desk.path, "-marks").write_bytes(b'{"marks": [1]}')  # of a file that was here before
    assert not marks.is_ours(desk.path)
    with again._database.write_lock:
        marks.adopt(desk.path, again._database.writer)
    assert not marks.beside(desk.path, "-marks").exists()
    assert not [report for report in desk.reports if not isinstance(report, StoreError)]


def test_a_file_whose_host_was_killed_during_its_exit_gets_its_name_back(desk: Desk) -> None:
    """When a host exits, a file that was copied over briefly has another name, which no other code looks for."""
    store = desk.open()
    store.append("open", [said("said before")]).result()
    store.close()
    desk.path.rename(desk.path.with_name("sessions.db.aside"))
    again = desk.open()
    assert texts(again, "open") == ["said before"]
    again.close()
    assert not desk.path.with_name("sessions.db.aside").exists()
