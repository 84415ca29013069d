"""The index follows the disk and the editor, and damage to its file is never an error."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from codecompanion.session.code import indexing, project_index
from codecompanion.session.code.indexing import build
from codecompanion.session.code.left_out_files import left_out_sentence
from codecompanion.session.code.project_index import Freshness, IndexState, ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.store.code_index.build_lock import building
from codecompanion.store.code_index.index_tables import FORMAT
from codecompanion.store.code_index.search import ReferenceGraph, file_paths
from codecompanion.workspace.project_files import Choice
from tests.leftovers import closed_at_end
from tests.patience import PATIENCE_S
from tests.unit.workspace.test_project_files import fill, git

LONG_AGO_NS = 1_700_000_000_000_000_000


async def until(holds: Callable[[], bool]) -> None:
    """Wait until the predicate is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.002)


def write(root: Path, name: str, text: str, age: int = 0) -> None:
    """Write a file as if long ago; `age` sets a different modification time."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(LONG_AGO_NS + age, LONG_AGO_NS + age))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, "a.py", "def alpha():\n    return 1\n")
    write(folder, "lib/b.py", "from a import alpha\n\ndef beta():\n    return alpha()\n")
    return folder


@pytest.fixture
async def index(root: Path, tmp_path: Path) -> AsyncIterator[ProjectIndex]:
    """A built index."""
    one = ProjectIndex(root, tmp_path / "cache")
    build(root, one.path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    yield one
    await one.close()


def names(index: ProjectIndex) -> set[str]:
    """Return the names of all definitions in the index."""
    with index.reader.reading() as connection:
        return {name for (name,) in connection.execute("SELECT name FROM symbols JOIN names n ON n.id = name_id")}


async def test_an_unchanged_file_is_not_written(index: ProjectIndex) -> None:
    assert await index.refresh() == Freshness(is_complete=True)
    assert names(index) == {"alpha", "beta"}
    assert index.state == IndexState("ready")
    assert index.reader.files_using("alpha") == [("lib/b.py", 2)]


async def test_a_new_function_has_the_callers_that_existed_before_it(root: Path, tmp_path: Path) -> None:
    """An unchanged file that calls it counts as a user of it: the ranking sees the edge."""
    write(root, "caller.py", "from a import omega\n\ndef early():\n    return omega(1)\n")
    index = ProjectIndex(root, tmp_path / "cache")
    build(root, index.path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    assert index.reader.files_using("omega") == []
    await index.refresh({"a.py": "def alpha():\n    return 1\n\ndef omega(x):\n    return x\n"})
    assert index.reader.files_using("omega") == [("caller.py", 2)]
    with index.reader.reading() as connection:
        ids = {path: file for file, path in file_paths(connection).items()}
        edges = ReferenceGraph().edges_of(connection, [ids["a.py"]])
    assert {user for user, definer in edges if definer == ids["a.py"]} == {ids["caller.py"], ids["lib/b.py"]}
    await index.close()


async def test_excluded_files_are_reported(index: ProjectIndex, root: Path) -> None:
    for name, text in (("b.js", "var a=1;" * 9_000), ("yarn.lock", "x"), ("logo.png", "x"), (".env", "K=1")):
        write(root, name, text)
    for number in range(5):
        write(root, f"big{number}.csv", "1,2\n" * 50_000)
    with contextlib.suppress(OSError):
        (root / os.fsdecode(b"bad\xff.py")).write_text("x = 1\n")
    await index.refresh()
    await index.wait()
    sentence = left_out_sentence(await index.left_out())
    has_name = ", 1 with names that are not UTF-8 (bad\\xff.py)" in sentence
    assert has_name == (root / os.fsdecode(b"bad\xff.py")).exists()
    assert sentence.startswith(
        "Not searched: 5 too large (big0.csv, big1.csv, big2.csv, …), 2 generated (b.js, yarn.lock)"
    )
    assert sentence.endswith("1 withheld as secret (.env), 1 binary.")
    assert left_out_sentence({}) == ""


async def test_a_table_of_many_short_rows_is_found_only_by_its_words(index: ProjectIndex, root: Path) -> None:
    """A grammar would spend seconds looking for names in its rows."""
    write(root, "table.sh", "row=1\n" * 15_000 + "needle=1\n" + "row=1\n" * 15_000)
    await index.refresh()
    assert names(index) == {"alpha", "beta"}
    found = await search_code(index, "needle")
    assert [(one.path, one.start <= 15_001 <= one.end) for one in found.results] == [("table.sh", True)]


async def test_links_and_pipes_listed_by_git_are_not_written_at_every_question(root: Path, tmp_path: Path) -> None:
    """A question that finds no change writes nothing and starts no worker."""
    (root / "self").symlink_to(root)
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "dev.py").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    index = ProjectIndex(root, tmp_path / "cache")
    build(root, index.path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    assert await index.refresh() == Freshness(is_complete=True)
    assert set(index.reader.files()) == {"a.py", "lib/b.py"}
    await index.close()


async def test_an_unreadable_file_is_not_retried_at_every_question(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(13, "no", str(path))

    write(root, "shut.py", "x = 1\n")
    monkeypatch.setattr("codecompanion.workspace.project_files.os.open", refuse)
    assert (await index.refresh()).written == 1
    assert await index.refresh() == Freshness(is_complete=True)
    monkeypatch.undo()
    assert index.reader.left_out() == [("shut.py", "unreadable")]
    write(root, "shut.py", "def opened(): pass\n", age=1)
    await index.refresh()
    assert "opened" in names(index)


@pytest.mark.parametrize("name", ["a 'quoted\" name", "new\nline", os.fsdecode(b"bad\xff")])
async def test_a_project_may_have_any_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    try:
        write(root, "a.py", "def alpha():\n    return 1\n")
    except OSError:
        pytest.skip("this file system has only names that are text")
    index = ProjectIndex(root, tmp_path / "cache")
    await index.refresh()
    assert (await index.wait()).phase == "ready"
    assert index.path.name.isascii()
    assert [one.path for one in (await search_code(index, "alpha")).results] == ["a.py"]
    await index.close()


async def test_saves_deletions_renames_and_new_files_are_noticed(index: ProjectIndex, root: Path) -> None:
    await index.refresh()
    write(root, "a.py", "def gamma():\n    return 1\n", age=1)
    assert (await index.refresh()).written == 1
    assert names(index) == {"gamma", "beta"}
    write(root, "a.py", "def gamma2():\n    return 1\n", age=1)  # the same time, another size
    await index.refresh()
    assert names(index) == {"gamma2", "beta"}
    (root / "lib/b.py").rename(root / "lib/c.py")
    await index.refresh()
    assert [one.path for one in index.reader.definitions_named(["beta"])] == ["lib/c.py"]
    (root / "lib/c.py").unlink()
    write(root, "new/d.py", "def delta(): pass\n")
    await index.refresh()
    assert names(index) == {"gamma2", "delta"}


async def test_a_file_written_just_now_is_checked_again(index: ProjectIndex, root: Path) -> None:
    """Two saves within one tick of the file system's clock have the same time."""
    (root / "a.py").write_text("def early(): pass\n")
    found = (root / "a.py").stat()
    await index.refresh()
    (root / "a.py").write_text("def later(): pass\n")
    os.utime(root / "a.py", ns=(found.st_atime_ns, found.st_mtime_ns))
    await index.refresh()
    assert names(index) == {"later", "beta"}


async def test_a_checkout_is_noticed(root: Path, tmp_path: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other")
    write(root, "a.py", "def omega(): pass\n", age=5)
    git(root, "rm", "-q", "lib/b.py")
    git(root, "commit", "-qam", "two")
    index = ProjectIndex(root, tmp_path / "cache")
    await index.build()
    assert (await index.wait()).phase == "ready"
    assert names(index) == {"omega"}
    git(root, "checkout", "-q", "main")
    await index.refresh()
    assert names(index) == {"alpha", "beta"}
    await index.close()


async def test_unsaved_buffers_override_their_files(index: ProjectIndex, root: Path) -> None:
    await index.refresh({"a.py": "def typed(): pass\n", "fresh.py": "def unborn(): pass\n", ".env": "KEY=1"})
    assert names(index) == {"typed", "beta", "unborn"}
    assert index.read_text("a.py") == "def typed(): pass\n"
    assert index.read_text(".env") is None
    assert (await index.refresh({"a.py": "def typed(): pass\n"})).written == 0
    assert names(index) == {"typed", "beta"}
    await index.refresh()
    assert names(index) == {"alpha", "beta"}
    assert (index.read_text("a.py") or "").startswith("def alpha")


@pytest.mark.parametrize("max_read", [0, 50])
async def test_text_search_sees_unsaved_buffers(
    index: ProjectIndex, max_read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_index, "MAX_READ_FILES", max_read)
    await index.refresh({"lib/b.py": "zebra = 1\n"})
    assert index.files_with(["ALPHA", "other"], ["a.py", "lib/b.py", "never.py"]) == ["a.py"]
    assert index.files_with(["zebra"], ["a.py", "lib/b.py"]) == ["lib/b.py"]
    assert index.files_with(["alpha"], ["lib/b.py"]) == []


async def test_an_ignored_buffer_is_not_indexed(index: ProjectIndex, root: Path) -> None:
    write(root, ".gitignore", "made/\n")
    write(root, "made/x.py", "def made(): pass\n")
    await index.refresh({"made/x.py": "def made2(): pass\n"})
    assert names(index) == {"alpha", "beta"}


async def test_the_first_question_starts_the_worker(root: Path, tmp_path: Path) -> None:
    states: list[IndexState] = []
    index = ProjectIndex(root, tmp_path / "cache", on_change=states.append)
    assert await index.refresh() == Freshness(False, ("a.py", "lib/b.py"))
    assert (await index.wait()).phase == "ready"
    assert states[0].phase == "building"
    assert await index.refresh() == Freshness(is_complete=True)
    counts = await index.counts()
    assert (counts.files, counts.symbols, counts.is_complete) == (2, 2, True)
    await index.close()


async def test_a_large_backlog_is_left_to_the_worker_and_reported(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_index, "MAX_OWN_FILES", 3)
    await index.refresh()
    for row in range(5):
        write(root, f"more/m{row}.py", f"def more{row}(): pass\n")
    fresh = await index.refresh()
    assert fresh.pending == tuple(f"more/m{row}.py" for row in range(5))
    assert fresh.is_complete
    await index.wait()
    assert await index.refresh() == Freshness(is_complete=True)
    assert len(names(index)) == 7


async def test_in_a_very_large_project_the_host_checks_only_reported_files(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_index, "MAX_COMPARED", 1)
    await index.refresh()
    await index.wait()
    write(root, "a.py", "def told(): pass\n", age=3)
    write(root, "lib/b.py", "def untold(): pass\n", age=3)
    index.mark_changed("a.py")
    await index.refresh()
    assert names(index) == {"told", "beta"}
    monkeypatch.setattr(index, "_compared_at", -1e9)
    await index.refresh()
    await index.wait()
    assert names(index) == {"told", "untold"}


async def test_missing_files_of_a_very_large_project_are_reported_without_checking_each(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index.refresh()
    monkeypatch.setattr(project_index, "MAX_COMPARED", 1)
    writer = project_index.IndexWriter(index.path, index.root)
    writer.remove(["lib/b.py"])
    writer.set_meta("complete", "0")
    writer.close()
    write(root, "c.py", "c = 1\n")
    monkeypatch.setattr(index, "_compared_at", float("inf"))  # not its turn
    assert await index.refresh() == Freshness(False, ("c.py", "lib/b.py"))


@pytest.mark.slow("indexes a large project in a process that is killed")
async def test_a_killed_worker_is_followed_by_one_that_continues(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row in range(1500):
        write(root, f"many/f{row}.py", f"def f{row}(): pass\n" * 20)
    index = ProjectIndex(root, tmp_path / "cache")
    await index.build()
    await until(lambda: index.state.done > 0)
    process = index._worker._process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    state = await index.wait()
    assert state.phase == "unusable"
    assert "resumes it" in state.why
    before = await index.counts()
    assert 0 < before.files < 1502
    assert not before.is_complete
    fresh = await index.refresh()
    assert not fresh.is_complete
    assert len(fresh.pending) == 1502 - before.files
    assert (await index.wait()).phase == "ready"
    assert (await index.counts()).files == 1502
    await index.close()


async def test_the_worker_ends_with_the_host(root: Path, tmp_path: Path) -> None:
    for row in range(1500):
        write(root, f"many/f{row}.py", f"def f{row}(): pass\n" * 20)
    index = ProjectIndex(root, tmp_path / "cache")
    await index.build()
    await until(lambda: index.state.done > 0)
    process = index._worker._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()  # the host has exited
    assert await process.wait() == 0
    assert not (await index.counts()).is_complete
    await index.close()


async def test_two_builders_do_not_collide(index: ProjectIndex, root: Path) -> None:
    with building(index.path) as first, building(index.path) as second:
        assert (first, second) == (True, False)
        assert build(root, index.path, Choice(), now_ns=lambda: 1).is_busy
        await index.build()
        assert "Another Neovim" in (await index.wait()).why
    assert (await index.refresh()).is_complete


async def test_two_hosts_share_an_index(index: ProjectIndex, root: Path, tmp_path: Path) -> None:
    other = ProjectIndex(root, tmp_path / "cache")
    await other.refresh()
    write(root, "a.py", "def shared(): pass\n", age=9)
    await index.refresh()
    assert (await other.refresh()).written == 0, "what one has written the other need not"
    assert names(other) == {"shared", "beta"}
    await other.close()


@pytest.mark.slow("indexes a project again and again")
@pytest.mark.parametrize("content", [b"garbage" * 999, b"", b"SQLite format 3\0" + bytes(4000)])
async def test_a_damaged_index_is_rebuilt(index: ProjectIndex, content: bytes) -> None:
    await index.close()
    index.path.write_bytes(content)
    assert await index.refresh() == Freshness(False, ("a.py", "lib/b.py"))
    assert (await index.wait()).phase == "ready"
    assert await index.refresh() == Freshness(is_complete=True)
    assert names(index) == {"alpha", "beta"}


async def test_damage_in_the_middle_is_found_and_repaired(index: ProjectIndex) -> None:
    await index.close()
    content = bytearray(index.path.read_bytes())
    content[8192:-4096] = b"\xfe" * (len(content) - 12288)
    index.path.write_bytes(content)
    await index.refresh()
    await index.wait()
    assert (await index.refresh()).is_complete
    assert names(index) == {"alpha", "beta"}


async def test_an_index_of_another_format_is_rebuilt(index: ProjectIndex) -> None:
    with sqlite3.connect(index.path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 7}")
    connection.close()
    assert await index.refresh() == Freshness(False, ("a.py", "lib/b.py"))
    await index.wait()
    assert (await index.refresh()).is_complete


async def test_a_deleted_index_is_rebuilt(index: ProjectIndex) -> None:
    await index.refresh()
    for path in index.path.parent.iterdir():
        path.unlink()
    assert not (await index.refresh()).is_complete
    await index.wait()
    assert (await index.refresh()).is_complete


async def test_an_unwritable_cache_is_reported_and_nothing_raises(root: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    index = ProjectIndex(root, tmp_path / "cache")
    assert await index.refresh() == Freshness(pending=("a.py", "lib/b.py"))
    state = await index.wait()
    assert state.phase == "unusable"
    assert state.why.startswith("The code is not indexed: ")
    found = await search_code(index, "beta")
    assert [result.path for result in found.results] == ["lib/b.py"]
    assert (await index.counts()).files == 0
    await index.close()


async def test_a_failed_worker_is_not_restarted_by_every_question(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = ProjectIndex(root, tmp_path / "cache")
    index.path.parent.mkdir(parents=True)
    index.path.with_suffix(".lock").mkdir()
    await index.refresh()
    assert (await index.wait()).phase == "unusable"
    fresh = await index.refresh()
    assert fresh.pending == ("a.py", "lib/b.py")
    assert (index.state.phase, index._worker.is_running) == ("unusable", False)
    index.path.with_suffix(".lock").rmdir()
    await index.build()
    assert (await index.wait()).phase == "ready", "but by who asks for it"
    await index.close()


async def test_a_full_disk_is_reported_and_existing_entries_stay(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise project_index.StoreError("the disk is full; free some space and try again")

    await index.refresh()
    monkeypatch.setattr(project_index, "IndexWriter", full)
    write(root, "a.py", "def lost(): pass\n", age=4)
    fresh = await index.refresh()
    assert fresh == Freshness(is_complete=True, pending=("a.py",))
    assert names(index) == {"alpha", "beta"}


async def test_a_busy_index_names_its_missing_files(
    index: ProjectIndex, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await index.refresh()
    monkeypatch.setattr(project_index, "WRITE_PATIENCE_S", 0.0)
    holder = sqlite3.connect(index.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    write(root, "a.py", "def waits(): pass\n", age=4)
    assert (await index.refresh({"lib/b.py": "typed = 1\n"})).pending == ("a.py", "lib/b.py")
    assert index.state.phase == "ready"
    holder.execute("ROLLBACK")
    holder.close()
    assert (await index.refresh()).written == 1


async def test_a_home_folder_is_not_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    index = ProjectIndex(tmp_path, tmp_path / "cache")
    assert await index.refresh() == Freshness()
    assert "is not a project" in index.state.why
    assert not index.path.exists()


def test_a_rebuild_keeps_valid_entries(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "x.db"
    first = build(root, path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    again = build(root, path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    rebuilt = build(root, path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS, is_rebuild=True)
    assert (first.written, again.written, rebuilt.written) == (2, 0, 2)


def test_hostile_files_are_indexed_or_excluded_and_remembered(root: Path, tmp_path: Path) -> None:
    fill(root, "; rm -rf", "UPPER.py", "upper.py")
    (root / "line.js").write_bytes(b"x" * 900_000)
    (root / "bytes.py").write_bytes(b"name = '\xff\xfe\xe9'\n" * 3)
    (root / "binary.py").write_bytes(b"a\0b")
    (root / "deep.py").write_text("(\n" * 20_000)
    path = tmp_path / "cache" / "x.db"
    build(root, path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS)
    files = closed_at_end(indexing.IndexReader(path)).files()
    assert {name for name, one in files.items() if one.why_not} == {"line.js", "binary.py"}
    assert {"; rm -rf", "UPPER.py", "upper.py", "bytes.py", "deep.py"} <= set(files)
    assert build(root, path, Choice(), now_ns=lambda: 2 * LONG_AGO_NS).written == 0


async def test_a_chat_that_closes_during_indexing_leaves_no_worker(root: Path, tmp_path: Path) -> None:
    index = ProjectIndex(root, tmp_path / "cache")
    await index.build()
    process = index._worker._process
    await asyncio.gather(index.close(), index.close())
    assert process is not None
    assert process.returncode is not None
