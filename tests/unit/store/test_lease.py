"""One chat, one host: leases between real processes (design, section Store)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from codecompanion.errors import LeaseHeld
from codecompanion.store import lease
from codecompanion.store.lease import FileLock, Owner, is_locked
from tests.leftovers import closed_at_end

from .conftest import CREATED, Desk, Start, said

OWN_AND_WAIT = """
store = open_store(folder)
store.acquire("c").result()
store.append("c", [said("from the owner")]).result()
tell(os.getpid())
sys.stdin.read()
store.close()
tell("closed")
"""


def test_the_owner_of_a_chat_is_named_and_others_only_read(desk: Desk, start: Start) -> None:
    """The refusal names process and machine; reading, listing and searching still work."""
    process = start(OWN_AND_WAIT)
    assert process.stdout is not None
    pid = process.stdout.readline().strip()
    store = desk.open()
    with pytest.raises(LeaseHeld, match=f"process {pid} on "):
        store.acquire("c").result()
    with pytest.raises(LeaseHeld):
        store.append("c", [said("intruder")]).result()
    (event,) = store.load_events("c")
    assert event.payload == said("from the owner")
    assert store.list_sessions()[0].owned is True
    held = store.foreign_lease("c")
    assert held is not None
    assert held.pid == int(pid)
    store.append("another", [said("mine")]).result()
    assert process.communicate("")[0] == "closed\n"
    assert store.foreign_lease("c") is None
    assert store.acquire("c").result().pid == os.getpid()


def test_kill_9_of_the_owner_frees_the_chat_at_once(desk: Desk, start: Start) -> None:
    """No expiry has to pass: the operating system releases the lock of a dead process."""
    process = start(OWN_AND_WAIT)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    store = desk.open()
    assert store.list_sessions()[0].owned is False
    store.acquire("c").result()
    assert store.append("c", [said("mine now")]).result()[0].seq == 2


def test_a_stopped_owner_keeps_its_chat(desk: Desk, start: Start) -> None:
    """A host that does not run for a while (a laptop asleep) does not lose its chat."""
    process = start(OWN_AND_WAIT)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(19)  # SIGSTOP
    with pytest.raises(LeaseHeld):
        desk.open().acquire("c").result()


def test_a_host_that_lost_its_lease_cannot_write(desk: Desk) -> None:
    """The lease is checked inside the transaction of every append."""
    first, second = desk.open(), desk.open()
    first.acquire("c").result()
    first.append("c", [said("one")]).result()
    first.release("c").result()
    second.acquire("c").result()
    with pytest.raises(LeaseHeld):
        first.append("c", [said("late")]).result()
    assert len(second.load_events("c")) == 1


def test_acquiring_twice_works_and_releasing_others_does_nothing(desk: Desk) -> None:
    """A host cannot lock itself out, nor release another host's lease."""
    first, second = desk.open(), desk.open()
    assert first.acquire("c").result().owner == first.acquire("c").result().owner
    second.release("c").result()
    with pytest.raises(LeaseHeld):
        second.acquire("c").result()


def test_two_processes_append_to_two_chats_without_losing_any(desk: Desk, start: Start) -> None:
    """Concurrent writers use one file, each in its own chat."""
    program = """
        store = open_store(folder)
        chat = sys.argv[2]
        store.acquire(chat).result()
        tell("ready")
        sys.stdin.readline()
        futures = [store.append(chat, [said(f"{chat} {number}")]) for number in range(300)]
        tell(sum(len(future.result()) for future in futures))
        store.close()
    """
    processes = [start(program, chat) for chat in ("left", "right")]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["300\n", "300\n"]
    store = desk.open()
    for chat in ("left", "right"):
        texts = [event.payload.message.text for event in store.load_events(chat)]  # type: ignore[union-attr]
        assert texts == [f"{chat} {number}" for number in range(300)]
    assert len(store.search("29", "left", limit=100)) == 11  # 29 and 290 … 299


@pytest.mark.sweep
def test_of_processes_that_start_together_exactly_one_gets_the_chat(desk: Desk, start: Start) -> None:
    """They open, migrate and acquire at the same moment, in a folder that does not exist yet."""
    program = """
        from codecompanion.errors import LeaseHeld
        store = open_store(folder)
        try:
            store.acquire("c").result()
            store.append("c", [said("first")]).result()
            tell("got it")
        except LeaseHeld:
            tell("refused")
        sys.stdin.read()
        store.close()
    """
    processes = [start(program) for _ in range(4)]
    answers = [process.stdout.readline() for process in processes if process.stdout is not None]
    assert sorted(answers) == ["got it\n"] + ["refused\n"] * 3
    assert len(desk.open().load_events("c")) == 1


def test_old_lock_files_of_killed_hosts_are_removed_and_live_ones_kept(desk: Desk, start: Start) -> None:
    """Crashes leave no garbage; a locked or recent file is not garbage."""
    process = start(OWN_AND_WAIT)
    assert process.stdout is not None
    process.stdout.readline()
    folder = desk.folder / lease.FOLDER
    (live,) = folder.glob("*.lock")
    dead, fresh = folder / "dead.lock", folder / "fresh.lock"
    for file in (dead, fresh):
        file.touch()
    desk.now = fresh.stat().st_mtime + 1
    os.utime(live, (0, 0))
    os.utime(dead, (0, 0))
    desk.open()
    assert live.exists()
    assert fresh.exists()
    assert not dead.exists()


def test_a_lock_is_seen_from_outside_only_while_it_is_held(desk: Desk) -> None:
    """This is true within one process, too, and when the file is gone."""
    desk.folder.mkdir()
    path = desk.folder / "x.lock"
    assert not is_locked(path)
    lock = FileLock(path)
    assert is_locked(path)
    lock.release()
    assert not is_locked(path)
    owner, other = Owner(desk.folder / "owners"), closed_at_end(Owner(desk.folder / "owners"))
    assert other.is_alive(owner.id)
    owner.close()
    assert not other.is_alive(owner.id)


def test_a_chat_is_listed_as_owned_only_for_the_others(desk: Desk) -> None:
    """The picker marks chats that cannot be resumed here."""
    first, second = desk.open(), desk.open()
    first.acquire("c").result()
    first.append("c", [CREATED, said("hi")]).result()
    assert first.list_sessions()[0].owned is False
    assert second.list_sessions()[0].owned is True


def test_a_chat_stays_its_owners_in_a_new_database(desk: Desk, start: Start) -> None:
    """The lease rows were lost with the file, and the stopped owner cannot write them again."""
    process = start(OWN_AND_WAIT)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.send_signal(signal.SIGSTOP)
    for file in desk.folder.glob("sessions.db*"):
        file.unlink()
    store = desk.open()
    held = store.foreign_lease("c")
    assert held is not None
    assert held.pid == pid
    with pytest.raises(LeaseHeld, match=f"process {pid} on "):
        store.acquire("c").result()
    with pytest.raises(LeaseHeld):
        store.append("c", [said("intruder")]).result()
    store.acquire("another").result()
    process.kill()
    process.wait()
    assert store.foreign_lease("c") is None
    store.acquire("c").result()
    names = {file.suffix for file in (desk.folder / lease.FOLDER).iterdir()}
    store.close()
    assert names == {".lock", ".chats"}
    assert not [file for file in (desk.folder / lease.FOLDER).iterdir() if file.stem == store._owner.id]


def test_a_chat_not_acquired_or_released_is_not_listed(desk: Desk, tmp_path: Path) -> None:
    first, second = desk.open(), desk.open()
    first.acquire("c").result()
    with pytest.raises(LeaseHeld):
        second.acquire("c").result()
    first.release("c").result()
    third = Owner(desk.folder / lease.FOLDER)
    try:
        assert third.foreign_claim("c") is None
        first.acquire("d").result()
        assert third.foreign_claim("d") is not None
        for odd in (b"", b"[]", b"{" * 50_000, b"\xff"):
            (desk.folder / lease.FOLDER / f"{first._owner.id}.chats").write_bytes(odd)
            assert third.foreign_claim("d") is None
    finally:
        third.close()
