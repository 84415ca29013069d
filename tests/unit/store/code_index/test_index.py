"""The index file: entries are found, changes are incremental, damage leads to a rebuild (R-231, R-239)."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import pytest

from codecompanion.formats.code_words import index_words, split_words
from codecompanion.model.code import CodeChunk, Definition, ParsedFile, Reference
from codecompanion.store.code_index.index_tables import FORMAT, IndexUnusable, index_path, open_existing
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from tests.leftovers import closed_at_end

ROOT = Path("/project")


def indexed(path: str, *texts: str, mtime_ns: int = 1) -> IndexedFile:
    """Return a file in which each text is a one-line chunk whose first word is its symbol, which uses the last word."""
    chunks = [CodeChunk(path, row, row, text, text.split()[0], "function") for row, text in enumerate(texts, 1)]
    definitions = tuple(Definition(one.symbol, "function", one.start, one.end, one.start) for one in chunks)
    references = tuple(Reference(one.text.split()[-1], one.start) for one in chunks)
    parsed = ParsedFile("python", definitions, references, (), is_parsed=True)
    return IndexedFile(path, mtime_ns, sum(map(len, texts)), b"x" * 32, len(texts), parsed, chunks)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return index_path(tmp_path, ROOT)


def matching(path: Path, query: str) -> list[tuple[str, int]]:
    """Return path and first line of the matching chunks, best first, like a search."""
    with closed_at_end(IndexReader(path)).reading() as connection:
        return connection.execute(
            "SELECT f.path, c.start FROM chunk_text t JOIN chunks c ON c.id = t.rowid JOIN files f ON f.id = c.file_id"
            " WHERE chunk_text MATCH ? ORDER BY bm25(chunk_text, 4, 2, 1), f.path",
            (query,),
        ).fetchall()


def test_an_added_entry_is_found(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("src/parser.py", "parseReply of headers", "render_page with colours")], now=7)
    assert matching(path, '"reply"') == [("src/parser.py", 1)]
    assert matching(path, '"colour" AND "page"') == [("src/parser.py", 2)]  # porter: colours
    assert matching(path, 'path: "parser"') == [("src/parser.py", 1), ("src/parser.py", 2)]
    assert matching(path, 'symbol: "render"') == [("src/parser.py", 2)]
    reader = closed_at_end(IndexReader(path))
    counts = reader.counts()
    assert (counts.files, counts.chunks, counts.symbols, counts.vectors) == (1, 2, 2, 0)
    assert counts.bytes > 0
    assert not counts.is_complete
    assert reader.definitions_named(["parseReply"])[0].path == "src/parser.py"
    assert [one.name for one in reader.members_of("src/parser.py", "")] == ["parseReply", "render_page"]
    assert reader.files_using("headers") == [("src/parser.py", 1)]
    assert reader.meta("root") == "/project"
    writer.close()


def test_a_changed_file_keeps_its_unchanged_chunks(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha", "two beta")], now=1)
    with closed_at_end(IndexReader(path)).reading() as connection:
        before = dict(connection.execute("SELECT symbol, id FROM chunks"))
    writer.put([indexed("a.py", "new gamma", "one alpha", mtime_ns=2)], now=2)
    with closed_at_end(IndexReader(path)).reading() as connection:
        after = dict(connection.execute("SELECT symbol, id FROM chunks"))
        assert connection.execute("SELECT start FROM chunks WHERE symbol = 'one'").fetchone() == (2,)
        assert connection.execute("SELECT value FROM meta WHERE key = 'dead'").fetchone() == ("1",)
    assert after["one"] == before["one"]
    assert after["new"] not in before.values(), "the row of a chunk that is gone must not be used again"
    assert matching(path, '"beta"') == []
    assert matching(path, '"gamma"') == [("a.py", 1)]
    assert closed_at_end(IndexReader(path)).files_using("beta") == []


def test_twice_the_same_chunk_is_two_chunks(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    for _ in range(2):
        writer.put([indexed("a.py", "same text", "same text")], now=1)
        assert matching(path, '"text"') == [("a.py", 1), ("a.py", 2)]


def test_a_removed_file_is_forgotten(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha"), indexed("b.py", "two alpha")], now=1)
    writer.remove(["a.py", "never.py"])
    assert matching(path, '"alpha"') == [("b.py", 1)]
    reader = closed_at_end(IndexReader(path))
    assert list(reader.files()) == ["b.py"]
    assert reader.definitions_named(["one"]) == []
    assert reader.files_using("alpha") == [("b.py", 1)]


def test_a_touched_file_keeps_everything(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha")], now=1)
    writer.touch([("a.py", 99, 9)])
    known = closed_at_end(IndexReader(path)).files()["a.py"]
    assert (known.mtime_ns, known.size) == (99, 9)


def test_a_failed_batch_leaves_nothing(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    bad = indexed("b.py", "two beta")
    with pytest.raises(AttributeError):
        writer.put([indexed("a.py", "one alpha"), IndexedFile("b.py", 1, 1, b"", 1, bad.parsed, [None])], now=1)  # type: ignore[list-item]
    assert closed_at_end(IndexReader(path)).counts().files == 0
    writer.put([indexed("a.py", "one alpha")], now=1)
    assert closed_at_end(IndexReader(path)).files_using("alpha") == [("a.py", 1)]


def test_many_dead_chunks_request_a_rebuild(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codecompanion.store.code_index.index_writer._FEW_CHUNKS", 3)
    writer = closed_at_end(IndexWriter(path, ROOT))
    for version in range(4):
        assert not writer.should_be_rebuilt()
        writer.put([indexed("a.py", f"one version{version}")], now=1)
    assert writer.should_be_rebuilt()


@pytest.mark.parametrize("content", [b"garbage" * 1000, b"SQLite format 3\0" + b"\xff" * 8000, b""])
def test_a_file_that_is_not_an_index_is_rebuilt(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises((IndexUnusable, FileNotFoundError)):
        closed_at_end(IndexReader(path)).counts()
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha")], now=1)
    assert closed_at_end(IndexReader(path)).counts().files == 1


def test_another_format_is_rebuilt(path: Path) -> None:
    IndexWriter(path, ROOT).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
    connection.close()
    with pytest.raises(IndexUnusable, match=str(FORMAT)):
        open_existing(path)
    IndexWriter(path, ROOT).close()
    open_existing(path).close()


def test_unused_indexes_of_earlier_formats_are_deleted(path: Path) -> None:
    path.parent.mkdir(parents=True)
    stem = path.name.rsplit(".", 2)[0]
    unused, used, others = (path.with_name(name) for name in (f"{stem}.0.db", f"{stem}.01.db", f"other{stem}.0.db"))
    for one in (unused, used, others):
        one.write_text("old")
    for one in (unused, others):
        os.utime(one, (0, 0))
    IndexWriter(path, ROOT).close()
    assert [one.exists() for one in (unused, used, others)] == [False, True, True]


def test_a_reader_notices_a_rebuilt_file(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha")], now=1)
    reader = closed_at_end(IndexReader(path))
    assert reader.counts().files == 1
    writer.close()
    path.replace(path.with_suffix(".old"))
    IndexWriter(path, ROOT).close()
    assert reader.counts().files == 0


def test_reading_continues_while_a_batch_is_written(path: Path) -> None:
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put([indexed("a.py", "one alpha")], now=1)
    reader = closed_at_end(IndexReader(path))
    with writer._transaction() as connection:
        connection.execute("DELETE FROM files")
        assert reader.counts().files == 1
    assert reader.counts().files == 0


def test_the_file_is_private_and_has_its_own_name_per_root(tmp_path: Path) -> None:
    one, other = index_path(tmp_path, Path("/a/x")), index_path(tmp_path, Path("/b/x"))
    assert one != other
    IndexWriter(one, Path("/a/x")).close()
    assert one.stat().st_mode & 0o777 == 0o600


def users(path: Path, *names: str) -> dict[str, list[tuple[str, int]]]:
    """Return the users of each name."""
    return {name: closed_at_end(IndexReader(path)).files_using(name) for name in names}


def finished(path: Path, *files: IndexedFile) -> IndexWriter:
    """Return the writer of an index that was built once."""
    writer = closed_at_end(IndexWriter(path, ROOT))
    writer.put(files, now=1)
    writer.finish()
    writer.set_meta("complete", "1")
    return writer


def test_a_name_defined_later_has_its_existing_users(path: Path) -> None:
    """A new function gets users from files that have not changed since the index was built."""
    unchanged = indexed("b.py", "two foo", "three foo", "four bar")
    writer = finished(path, indexed("a.py", "one two"), unchanged, indexed("c.py", "five foo"))
    assert users(path, "two", "foo", "bar") == {"two": [("a.py", 1)], "foo": [], "bar": []}
    writer.put([indexed("a.py", "one two", "foo end", mtime_ns=2)], now=2)
    assert users(path, "two", "foo", "bar") == {"two": [("a.py", 1)], "foo": [("b.py", 2), ("c.py", 1)], "bar": []}
    writer.put([indexed("c.py", "five else", mtime_ns=3)], now=3)
    assert users(path, "foo", "else") == {"foo": [("b.py", 2)], "else": []}
    writer.remove(["b.py"])
    writer.put([indexed("d.py", "bar end", "else end")], now=4)
    assert users(path, "foo", "bar", "else") == {"foo": [], "bar": [], "else": [("c.py", 1)]}


def test_a_redefined_name_gets_its_users_back(path: Path) -> None:
    writer = finished(path, indexed("a.py", "foo end"), indexed("b.py", "two foo"))
    writer.put([indexed("a.py", "other end", mtime_ns=2)], now=2)
    writer.put([indexed("c.py", "three foo")], now=2)
    writer.finish()
    writer.put([indexed("d.py", "foo end")], now=3)
    assert users(path, "foo") == {"foo": [("b.py", 1), ("c.py", 1)]}


def test_incremental_changes_yield_the_same_as_a_build(path: Path, tmp_path: Path) -> None:
    """After any sequence of saves, the users of every name equal those in a fresh index."""
    chance = random.Random(7)
    words = [f"name{number}" for number in range(40)]

    def some_file(path: str) -> IndexedFile:
        texts = [f"{chance.choice(words)} {chance.choice(words)}" for _ in range(chance.randint(1, 6))]
        return indexed(path, *texts, mtime_ns=chance.randint(1, 1_000_000))

    now = {name: some_file(name) for name in ("a.py", "b.py", "c.py", "d.py", "e.py")}
    writer = finished(path, *now.values())
    for turn in range(60):
        changed = [some_file(name) for name in chance.sample(sorted(now), chance.randint(1, 3))]
        writer.put(changed, now=turn)
        now |= {one.path: one for one in changed}
        if turn % 20 == 9:
            writer.finish()
    defined = {one.name for file in now.values() for one in file.parsed.definitions}
    fresh = index_path(tmp_path / "fresh", ROOT)
    finished(fresh, *now.values())
    assert len(defined) > 5
    assert users(path, *defined) == users(fresh, *defined)


def test_identifiers_are_split() -> None:
    assert split_words("parseHTTPReply_v2(getURL, __init__)") == "parse http reply v2 get url init".split()
    assert index_words("return self.parser for x in the Parser's 数 列") == ["parser", "parser", "数", "列"]
