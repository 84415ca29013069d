"""A chat history that is deleted, truncated, replaced or has flipped bits: every loss is reported or repaired.

Each attack damages a copy of a data folder, then acts as the user would: list the chats, open one, resume each. A loss
is silent if a text differs from the original and nothing reports it; none may be silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import sqlite3
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codecompanion.errors import CodeCompanionError, StoreError
from codecompanion.session.storage.missing_chats import MissingChats
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from codecompanion.wire.events import Notice, Severity
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.unit.session.compaction.test_effects import kept
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

CHATS, TURNS = ("aaa", "bbb", "ccc"), 4
Texts = dict[str, list[str]]
Attack = Callable[[Path, random.Random, Path], None]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable waiting until files have settled."""
    monkeypatch.setattr("codecompanion.store.damage.lost_file.SETTLE_S", 0.0)


def bench_of(folder: Path, store: Store, *replies: Any) -> Bench:
    """Return a host of the data folder; no id is used twice."""
    bench = kept(folder, ScriptedAdapter("s", replies), store=store)
    bench.services.new_token = lambda: uuid.uuid4().hex
    return bench


def texts_of(session: Any) -> list[str]:
    return [message.text for message in session.log.view.messages]


async def talk(folder: Path, chats: tuple[str, ...], words: str, *, ends_well: bool = True) -> Texts:
    """Write messages in some chats of a data folder; if `ends_well` is false, the host is killed."""
    live = folder if ends_well else folder.with_name(f"{folder.name}-live")
    store = open_store(live / "data")
    replies = [says(f"{words} answer {n} " + "lorem ipsum " * 250) for n in range(TURNS * len(chats))]
    bench = bench_of(live, store, *replies)
    texts = {}
    for chat in chats:
        session = await bench.open(chat)
        for number in range(TURNS):
            session.submit(submit(f"{words} {chat} question {number} " + "dolor sit " * 120, number + 1))
            await bench.idle(session)
        await session.effects.settled()
        texts[chat] = texts_of(session)
        if ends_well:
            await session.close()
            await asyncio.to_thread(store.release(chat).result)
    if not ends_well:
        shutil.copytree(live, folder)
    store.close()
    return texts


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Texts]]:
    """Return data folders in several states: closed, killed, an older copy of the first, and another user's."""
    root = tmp_path_factory.mktemp("store")

    async def make() -> dict[str, tuple[Path, Texts]]:
        closed = root / "closed"
        texts = await talk(closed, CHATS[:2], "early")
        shutil.copytree(closed / "data", root / "older" / "data")
        texts |= await talk(closed, CHATS[2:], "late")
        again = open_store(closed / "data")
        bench = bench_of(closed, again, says("the newest answer"))
        session = await bench.resume("aaa")
        session.submit(submit("the newest question", 9))
        await bench.idle(session)
        await session.effects.settled()
        texts["aaa"] = texts_of(session)
        await session.close()
        again.close()
        killed = await talk(root / "killed", CHATS, "killed", ends_well=False)
        other = await talk(root / "other", ("zzz",), "foreign", ends_well=False)
        return {
            "closed": (closed, texts),
            "killed": (root / "killed", killed),
            "older": (root / "older", {}),
            "other": (root / "other", other),
        }

    return asyncio.run(make())


async def silent_losses(folder: Path, truth: Texts, exact: list[bool]) -> list[str]:
    """Act as the user would; return the unreported errors. `exact`: whether each chat must be restored exactly."""
    said: list[str] = []
    store: Store | None = None
    try:
        store = open_store(folder / "data", report=lambda problem: said.append(str(problem)))
    except StoreError as error:
        return [f"refused in the words of a library: {error}"] if "Error:" in str(error) or not str(error) else []
    try:
        bench = bench_of(folder, store)
        missing_chats = MissingChats(bench.services)
        listed: set[str] = set()
        try:
            missing = await missing_chats.look()
            listed = {info.id for info in store.list_sessions()}
        except StoreError as error:
            said.append(str(error))
            missing = await missing_chats.look()
        named = {one.chat for one in missing.chats}
        wrong = []
        for chat in truth:
            if chat not in listed | named and not said and not missing.text:
                wrong.append(f"{chat} is neither listed nor named")
        first = {chat: await resumed(bench, chat) for chat in listed & set(truth)}
        answer = await missing_chats.restore_all()
        for chat, expected in truth.items():
            found, notices = first.get(chat) or ([], [])
            if found != expected and chat in named:
                found, more = await resumed(bench, chat)
                notices = [*notices, *more]
            exact.append(found == expected)
            if found != expected and not (notices or said or missing.text or "Not:" in answer):
                wrong.append(f"{chat}: {len(found)} of {len(expected)} messages are exact, and nothing was said")
        return wrong
    finally:
        store.close()


async def resumed(bench: Bench, chat: str) -> tuple[list[str], list[str]]:
    """Return the texts of the chat and the notices when it was opened."""
    bench.events.clear()
    texts: list[str] = []
    notices = []
    try:
        session = await bench.resume(chat)
        if session is not None:
            texts = texts_of(session)
            await session.close()
            bench.store.release(chat).result()
    except CodeCompanionError as error:
        notices.append(str(error))
    notices += [event.text for event in bench.of(Notice) if event.level is not Severity.INFO]
    return texts, notices


# ---- the attacks


def database(folder: Path) -> Path:
    return folder / "data" / "sessions.db"


def beside(folder: Path, suffix: str) -> Path:
    return database(folder).with_name("sessions.db" + suffix)


def flip(path: Path, rng: random.Random, count: int = 1) -> None:
    """Flip bits of a file."""
    if not path.exists() or not path.stat().st_size:
        return
    content = bytearray(path.read_bytes())
    for _ in range(count):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def remove(folder: Path, rng: random.Random, other: Path) -> None:
    database(folder).unlink()


def remove_all(folder: Path, rng: random.Random, other: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-marks"):
        beside(folder, suffix).unlink(missing_ok=True)


def empty(folder: Path, rng: random.Random, other: Path) -> None:
    database(folder).write_bytes(b"")


def cut(folder: Path, rng: random.Random, other: Path) -> None:
    os.truncate(database(folder), rng.randrange(database(folder).stat().st_size))


def cut_log(folder: Path, rng: random.Random, other: Path) -> None:
    if beside(folder, "-wal").exists():
        os.truncate(beside(folder, "-wal"), rng.randrange(beside(folder, "-wal").stat().st_size))


def zero_page(folder: Path, rng: random.Random, other: Path) -> None:
    pages = database(folder).stat().st_size // 4096
    with database(folder).open("r+b") as file:
        file.seek(4096 * rng.randrange(max(1, pages)))
        file.write(bytes(4096))


def flip_database(folder: Path, rng: random.Random, other: Path) -> None:
    flip(database(folder), rng, rng.choice([1, 1, 3, 30]))


def flip_log(folder: Path, rng: random.Random, other: Path) -> None:
    flip(beside(folder, "-wal"), rng, rng.choice([1, 3]))


def flip_marks(folder: Path, rng: random.Random, other: Path) -> None:
    flip(beside(folder, "-marks"), rng)


def flip_checkpoints(folder: Path, rng: random.Random, other: Path) -> None:
    """Delete the database, so that the checkpoints are needed, and flip bits in them."""
    remove_all(folder, rng, other)
    files = [path for path in sorted((folder / "state").rglob("*")) if path.is_file()]
    for path in rng.sample(files, min(3, len(files))):
        flip(path, rng)


def swap(folder: Path, rng: random.Random, other: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        beside(folder, suffix).unlink(missing_ok=True)
        if beside(other, suffix).exists():
            shutil.copyfile(beside(other, suffix), beside(folder, suffix))


def swap_file_only(folder: Path, rng: random.Random, other: Path) -> None:
    shutil.copyfile(database(other), database(folder))


def foreign_log(folder: Path, rng: random.Random, other: Path) -> None:
    for suffix in ("-wal", "-shm"):
        shutil.copyfile(beside(other, suffix), beside(folder, suffix))


def older_copy(folder: Path, rng: random.Random, other: Path) -> None:
    for suffix in ("-wal", "-shm"):
        beside(folder, suffix).unlink(missing_ok=True)
    shutil.copyfile(other.with_name("older") / "data" / "sessions.db", database(folder))


def other_program(folder: Path, rng: random.Random, other: Path) -> None:
    remove_all(folder, rng, other)
    with contextlib.closing(sqlite3.connect(database(folder))) as connection:
        connection.execute("CREATE TABLE bookmarks(url)")
        connection.execute("INSERT INTO bookmarks VALUES ('kept')")
        connection.commit()


def no_database(folder: Path, rng: random.Random, other: Path) -> None:
    database(folder).write_bytes(rng.choice([b"hello", rng.randbytes(9_000), b"SQLite format 3\0" + bytes(9_000)]))


def a_folder(folder: Path, rng: random.Random, other: Path) -> None:
    remove_all(folder, rng, other)
    database(folder).mkdir()
    (database(folder) / "theirs").write_text("kept")


def dead_link(folder: Path, rng: random.Random, other: Path) -> None:
    remove_all(folder, rng, other)
    database(folder).symlink_to(folder / "nowhere" / "x.db")


def link_to_another(folder: Path, rng: random.Random, other: Path) -> None:
    remove_all(folder, rng, other)
    copy = folder / "copy.db"
    shutil.copyfile(database(other), copy)
    database(folder).symlink_to(copy)


def lost_row(folder: Path, rng: random.Random, other: Path) -> None:
    """Delete a row of the log or of the chat list, as another program might."""
    with contextlib.closing(sqlite3.connect(database(folder), isolation_level=None)) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM events WHERE type = 'message_added'")]
        if ids and rng.random() < 0.7:
            connection.execute("DELETE FROM events WHERE id = ?", (rng.choice(ids),))
        else:
            connection.execute("DELETE FROM chats WHERE chat_id = ?", (rng.choice(CHATS),))


def no_evidence(folder: Path, rng: random.Random, other: Path) -> None:
    """Empty the history and remove its checkpoints: only the list of marks shows that there was a history."""
    empty(folder, rng, other)
    shutil.rmtree(folder / "state")


def alike_tables(folder: Path, rng: random.Random, other: Path) -> None:
    """Replace the database with another program's that has tables of the same names: a calendar has `events`."""
    remove_all(folder, rng, other)
    with contextlib.closing(sqlite3.connect(database(folder))) as connection:
        connection.execute(f"CREATE TABLE {rng.choice(['events', 'chats'])}(id INTEGER, day TEXT)")
        connection.execute(f"PRAGMA user_version = {rng.choice([0, 1, 7])}")
        connection.commit()


def from_a_dump(folder: Path, rng: random.Random, other: Path) -> None:
    """Recreate the database from `sqlite3 .dump`: without version and mark, and perhaps without some rows."""
    with contextlib.closing(sqlite3.connect(database(folder))) as connection:
        lines = [line for line in connection.iterdump() if rng.random() < 0.95 or "INSERT" not in line]
    remove(folder, rng, other)
    for suffix in ("-wal", "-shm"):
        beside(folder, suffix).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(database(folder), isolation_level=None)) as connection:
        for line in lines:
            with contextlib.suppress(sqlite3.Error):
                connection.execute(line)


def other_version(folder: Path, rng: random.Random, other: Path) -> None:
    with contextlib.closing(sqlite3.connect(database(folder), isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {rng.choice([0, 1, 2, 3, -1, 99_999])}")


def a_pipe(folder: Path, rng: random.Random, other: Path) -> None:
    remove_all(folder, rng, other)
    if rng.random() < 0.5:
        os.mkfifo(database(folder))
    else:
        database(folder).symlink_to(rng.choice(["/dev/null", "/dev/zero"]))


ATTACKS: dict[str, tuple[Attack, int, int]] = {
    "deleted": (remove, 2, 10),
    "deleted with all beside it": (remove_all, 1, 5),
    "emptied": (empty, 2, 10),
    "cut at random": (cut, 4, 100),
    "log cut at random": (cut_log, 3, 100),
    "zeroed page": (zero_page, 6, 150),
    "bits flipped in the database": (flip_database, 10, 400),
    "bits flipped in the log": (flip_log, 6, 150),
    "bits flipped in the marks": (flip_marks, 2, 40),
    "bits flipped in checkpoints": (flip_checkpoints, 6, 150),
    "exchanged for another history": (swap, 2, 10),
    "another history copied over it": (swap_file_only, 2, 10),
    "foreign log": (foreign_log, 2, 10),
    "older copy": (older_copy, 2, 10),
    "another program's database": (other_program, 2, 10),
    "not a database": (no_database, 3, 50),
    "a folder in its place": (a_folder, 1, 5),
    "a dead link": (dead_link, 1, 5),
    "a link to another history": (link_to_another, 1, 5),
    "deleted rows": (lost_row, 4, 100),
    "emptied without checkpoints": (no_evidence, 1, 5),
    "another program's tables of the same name": (alike_tables, 2, 10),
    "written again from a dump": (from_a_dump, 2, 20),
    "another version": (other_version, 3, 20),
    "a device or a pipe": (a_pipe, 2, 6),
}


@pytest.mark.slow("damages every part of the database")
@pytest.mark.parametrize("kind", ATTACKS)
async def test_no_loss_is_silent(
    kind: str, tmp_path: Path, folders: dict[str, tuple[Path, Texts]], tally: Tally
) -> None:
    attack, short, full = ATTACKS[kind]
    tried, problems, exact = 0, list[str](), list[bool]()
    for number in range(amount(short, full=full)):
        for state in ("closed", "killed"):
            if kind == "older copy" and state == "killed":
                continue
            source, truth = folders[state]
            folder = tmp_path / f"{number}-{state}"
            shutil.copytree(source, folder)
            attack(folder, random.Random(f"{kind} {number} {state}"), folders["other"][0])
            tried += 1
            problems += [f"{state} {number}: {wrong}" for wrong in (await silent_losses(folder, truth, exact))[:1]]
            shutil.rmtree(folder)
    tally(f"history: {kind}", tried=tried, held=tried - len(problems))
    print(f"{kind}: {sum(exact)} of {len(exact)} chats came back exactly")
    assert not problems, problems[:5]
