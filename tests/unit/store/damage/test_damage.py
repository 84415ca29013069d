"""Damaged databases: readable data is saved, the damaged file kept, the user notified."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from codecompanion.engine.doctor import history_findings
from codecompanion.errors import StoreCorrupt
from codecompanion.store.damage import salvage
from codecompanion.store.damage.lost_file import Renewed, State
from codecompanion.store.damage.rebuild import Loss, Rebuilt
from codecompanion.store.damage.salvage import Saved, finish_swap, repair
from tests.unit.store.conftest import Desk, Start, fill, said

PAGE = 4096
NOISE = random.Random(1).randbytes(PAGE)


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def page_of_events(path: Path) -> int:
    """Return the offset of a leaf page in the middle of the events table."""
    with sqlite3.connect(path) as connection:
        pages = connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'leaf' ORDER BY pageno"
        ).fetchall()
    connection.close()
    return int(pages[len(pages) // 2][0] - 1) * PAGE


def root_of_events(path: Path) -> int:
    """Return the number of the root page of the events table."""
    with sqlite3.connect(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()
    connection.close()
    return int(root)


def kept_files(desk: Desk) -> list[Path]:
    return sorted(desk.folder.glob("*.damaged-*.db"))


@pytest.mark.sweep
def test_a_lost_header_loses_nothing_and_the_damaged_file_is_kept(desk: Desk) -> None:
    """The first page is taken from a fresh database; every event, draft and calibration is recovered."""
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
    assert str(report) == "Damaged chat history: 4 chats saved; see :CodeCompanionRestore"
    assert salvage.kept_files(desk.path) == [
        salvage.KeptFile(kept, "4 chats with 240 entries saved, nothing is missing")
    ]
    assert store.append("chat0", [said("goes on")]).result()[0].seq == 61


@pytest.mark.parametrize("junk", [b"\0" * PAGE, b"\xff" * PAGE, NOISE], ids=["zeros", "ones", "noise"])
def test_a_damaged_page_in_the_middle_loses_only_its_entries(desk: Desk, junk: bytes) -> None:
    """The damage is found while reading: the rest is shown and the user notified; the next start repairs the file."""
    expected = fill(desk)
    overwrite(desk.path, page_of_events(desk.path), junk)
    store = desk.open()
    seen = {chat: store.load_events(chat) for chat in expected}
    missing = sum(map(len, expected.values())) - sum(map(len, seen.values()))
    assert 0 < missing < 12
    for chat, events in seen.items():
        assert [event for event in expected[chat] if event in events] == events
    assert all(" left out of this chat; see :CodeCompanionRestore" in str(report) for report in desk.reports)
    assert desk.reports
    store.close()
    desk.reports.clear()
    repaired = desk.open()
    assert {chat: repaired.load_events(chat) for chat in expected} == seen
    (report,) = desk.reports
    lost = "1 entry" if missing == 1 else f"{missing} entries"
    assert str(report) == f"Damaged chats: 4 saved, {lost} lost; see :CodeCompanionRestore"
    (kept,) = salvage.kept_files(desk.path)
    assert kept.path == kept_files(desk)[0]
    assert kept.story == f"4 chats with {240 - missing} entries saved, {missing} could not be read"
    assert repaired.check() == []
    new = repaired.append("chat0", [said("goes on")]).result()[0]
    assert new.seq > expected["chat0"][-1].seq - 12
    repaired.close()
    desk.reports.clear()
    assert desk.open().load_events("chat0")[-1] == new
    assert desk.reports == []


def test_a_lost_page_above_all_others_hides_nothing(desk: Desk) -> None:
    """If the root page of the events table is lost, every row below it is found on its own page."""
    expected = fill(desk)
    overwrite(desk.path, (root_of_events(desk.path) - 1) * PAGE, b"\0" * PAGE)
    store = desk.open()
    assert {chat: store.load_events(chat) for chat in expected} == expected
    assert str(desk.reports[-1]) == "Damaged chat history: 4 chats saved; see :CodeCompanionRestore"
    assert store.list_sessions()[0].messages == 60


def test_only_reading_page_by_page_recovers_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """`carve` is needed because SQLite's own scan, which `repair` does first, finds nothing below a lost root."""
    expected = fill(desk, chats=2, messages=18)
    overwrite(desk.path, (root_of_events(desk.path) - 1) * PAGE, b"\0" * PAGE)
    monkeypatch.setattr(salvage, "carve_events", lambda path: iter(()))
    store = desk.open()
    assert {chat: store.load_events(chat) for chat in expected} == {chat: [] for chat in expected}


@pytest.mark.slow("damages every fifth page")
@pytest.mark.parametrize("junk", [b"\0" * PAGE, NOISE], ids=["zeros", "noise"])
def test_any_single_damaged_page_leaves_a_working_store_after_two_starts(desk: Desk, junk: bytes) -> None:
    """Every 5th page in turn: at most the entries of that page are gone, and all of the store works again."""
    expected = fill(desk, chats=2, messages=18)
    sound = desk.path.read_bytes()
    desk.close()
    for page in range(0, len(sound) // PAGE, 5):
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
                lambda store=store: store.check(),
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


def test_a_truncated_file_yields_its_remaining_events(desk: Desk) -> None:
    """The events in the first part of a truncated copy are saved."""
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


def test_a_file_that_is_not_a_database_is_kept_and_a_new_one_created(desk: Desk) -> None:
    """A text file under our name is not ours to delete."""
    desk.folder.mkdir()
    desk.path.write_text("dear diary " * 1000)
    store = desk.open()
    store.append("c", [said("hi")]).result()
    assert kept_files(desk)[0].read_text().startswith("dear diary")
    assert "nothing readable" in str(desk.reports[0])


@pytest.mark.parametrize("tried_first", [True, False])
def test_events_only_in_the_write_ahead_log_are_saved_too(desk: Desk, start: Start, tried_first: bool) -> None:
    """If the host is killed before a checkpoint and the header lost, the WAL is read and kept with the damaged file."""
    expected = fill(desk, chats=1)
    process = start("""
        store = open_store(folder)
        store.save_draft("chat0", "newest").result()
        tell("written")
        sys.stdin.read()
    """)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    overwrite(desk.path, 0, b"garbage!" * (PAGE // 8))
    assert b"newest" not in desk.path.read_bytes()
    wal = (desk.folder / "sessions.db-wal").read_bytes()
    if not tried_first:
        repair(desk.path, 0.0)
    store = desk.open()
    assert store.load_draft("chat0") == "newest"
    assert store.load_events("chat0") == expected["chat0"]
    (kept,) = kept_files(desk)
    if tried_first:
        assert b"newest" in kept.read_bytes()  # SQLite itself folded the WAL in
    else:
        assert kept.with_name(kept.name + "-wal").read_bytes() == wal


def test_a_damaged_search_index_is_rebuilt_at_the_next_start(desk: Desk) -> None:
    """SQLite's page check does not cover the index; the log is sufficient to rebuild it."""
    expected = fill(desk, chats=1)
    with sqlite3.connect(desk.path) as connection:
        connection.execute("UPDATE message_text_data SET block = x'00' WHERE id > 10")
    connection.close()
    store = desk.open()
    with pytest.raises(StoreCorrupt, match=r"CodeCompanion restart repairs it.*:CodeCompanionRestore"):
        store.search("lorem")
    store.close()
    again = desk.open()
    assert len(again.search("lorem", limit=99)) == 60
    assert again.load_events("chat0") == expected["chat0"]


def test_one_undecodable_row_is_left_out_and_reported_once_per_load(desk: Desk) -> None:
    """A single bad payload is never fatal."""
    fill(desk, chats=1, messages=5)
    with sqlite3.connect(desk.path) as connection:
        connection.execute("UPDATE events SET payload = x'00ff' WHERE seq = 3")
    connection.close()
    store = desk.open()
    assert [event.seq for event in store.load_events("chat0")] == [1, 2, 4, 5]
    assert [str(report) for report in desk.reports] == [
        "1 damaged entry left out of this chat; see :CodeCompanionRestore"
    ]


def test_a_damaged_file_in_use_by_another_neovim_is_left_in_place(desk: Desk, start: Start) -> None:
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


def test_an_interrupted_swap_of_the_repaired_file_is_completed(desk: Desk) -> None:
    """After a kill between the renames of a repair, the rebuilt file takes its place and the damaged one is kept."""
    expected = fill(desk, chats=1)
    shutil.copyfile(desk.path, desk.folder / "sessions.rebuilt")
    desk.path.unlink()
    (desk.folder / "sessions.db-wal").write_bytes(b"a log of the damaged file")
    assert desk.open().load_events("chat0") == expected["chat0"]
    assert not (desk.folder / "sessions.rebuilt").exists()
    (log,) = desk.folder.glob("sessions.damaged-*-wal")
    assert log.read_bytes() == b"a log of the damaged file"
    assert finish_swap(desk.path, 0.0) is None


@pytest.mark.parametrize(
    ("saved", "sentence"),
    [
        (Saved(1, 1, 0), "Damaged chat history: 1 chat saved; see :CodeCompanionRestore"),
        (Saved(1, 5, 1), "Damaged chats: 1 saved, 1 entry lost; see :CodeCompanionRestore"),
        (Saved(2_345, 9, 0), "Damaged chat history: 2,345 chats saved; see :CodeCompanionRestore"),
        (Saved(0, 0, 0), "Damaged chat history: nothing readable; see :CodeCompanionRestore"),
    ],
)
def test_the_notice_of_damage_fits_the_command_line(saved: Saved, sentence: str) -> None:
    """Of 80 columns 68 are free beside the ruler; the rest would be cut, and with it the remedy (R-478)."""
    assert saved.sentence() == sentence
    assert len(sentence) <= 68


@pytest.mark.parametrize("state", ["deleted", "emptied", "replaced"])
@pytest.mark.parametrize("chats", [0, 1, 12])
def test_the_notice_of_a_loss_fits_it_too(state: State, chats: int) -> None:
    loss = Loss(Renewed(state, is_whole=False), tuple(Rebuilt(f"{n}", "view") for n in range(chats)))
    assert len(loss.sentence()) <= 68
    assert loss.sentence().endswith("see :CodeCompanionRestore")


def test_checkhealth_reports_the_damage_and_the_kept_file(desk: Desk) -> None:
    """It does so until the file is deleted, even after a restart; losses in an open store are reported, too."""
    fill(desk)
    overwrite(desk.path, 0, b"garbage!" * (PAGE // 8))
    desk.open().close()
    store = desk.open()
    (kept,) = kept_files(desk)
    (finding,) = history_findings(store)
    assert not finding.ok
    assert finding.text == (
        f"was damaged: 4 chats with 240 entries saved, nothing is missing; the damaged file is kept as {kept}"
    )
    assert ":CodeCompanionRestore" in finding.advice
    kept.with_suffix(".txt").unlink()
    assert "interrupted" in history_findings(store)[0].text
    kept.unlink()
    assert history_findings(store) == []
    store.incidents.append("Chat history deleted while open; restored, nothing was lost")
    assert [found.text for found in history_findings(store)] == store.incidents
