"""Defines the tables of a code index, and opens its file, replacing a damaged or older one (R-239).

The package's docstring documents the tables. `FORMAT` increases with every change to a table or its contents.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import sqlite3
import time
from pathlib import Path
from typing import get_args

from codecompanion.errors import StoreUnavailable
from codecompanion.formats.regex import regex
from codecompanion.model.code import DefinitionKind
from codecompanion.store.sqlite_connection import create_private_file, explain, is_damage, make_private_folder

FORMAT = 6
APPLICATION_ID = 0x43436978  # "CCix"
BUSY_TIMEOUT_S = 2.0
_NO_WORD = regex(r"[^\w.-]")
_CACHE_KIB = 8_000
_UNUSED_S = 14 * 24 * 3600
_WAL_LIMIT_BYTES = 16_000_000

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL,
  sha256 BLOB NOT NULL, language TEXT NOT NULL, lines INTEGER NOT NULL, is_parsed INTEGER NOT NULL,
  indexed_at INTEGER NOT NULL, why_not TEXT NOT NULL
);
CREATE TABLE pieces (
  id INTEGER PRIMARY KEY AUTOINCREMENT, file_id INTEGER NOT NULL, start INTEGER NOT NULL, more_lines INTEGER NOT NULL,
  parent_id INTEGER NOT NULL, name_id INTEGER NOT NULL, kind_id INTEGER NOT NULL, hash BLOB NOT NULL
);
CREATE INDEX pieces_of_file ON pieces (file_id);
CREATE VIEW chunks AS SELECT
  c.id, c.file_id, c.start, c.start + c.more_lines AS "end",
  (SELECT iif(p.name = '', n.name, p.name || '.' || n.name) FROM names p, names n
    WHERE p.id = c.parent_id AND n.id = c.name_id) AS symbol,
  (SELECT kind FROM kinds WHERE id = c.kind_id) AS kind, c.hash
  FROM pieces c;
CREATE VIRTUAL TABLE chunk_text USING fts5 (path, symbol, text, content = '', tokenize = 'porter unicode61');
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL, hash INTEGER NOT NULL);
CREATE INDEX names_by_hash ON names (hash);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, kind TEXT NOT NULL);
CREATE TABLE definitions (
  file_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, name_id INTEGER NOT NULL, kind_id INTEGER NOT NULL,
  parent_id INTEGER NOT NULL, start INTEGER NOT NULL, more_lines INTEGER NOT NULL, lines_above INTEGER NOT NULL,
  PRIMARY KEY (file_id, ordinal)
) WITHOUT ROWID;
CREATE VIEW symbols AS SELECT
  d.file_id, d.ordinal, d.name_id, (SELECT kind FROM kinds WHERE id = d.kind_id) AS kind,
  (SELECT name FROM names WHERE id = d.parent_id) AS parent, d.start,
  d.start + d.more_lines AS "end", d.start + d.lines_above AS line
  FROM definitions d;
CREATE TABLE outlines (file_id INTEGER PRIMARY KEY, signatures BLOB NOT NULL);
CREATE INDEX definitions_by_name ON definitions (name_id);
CREATE TABLE refs (
  name_id INTEGER NOT NULL, file_id INTEGER NOT NULL, uses INTEGER NOT NULL, PRIMARY KEY (name_id, file_id)
) WITHOUT ROWID;
CREATE INDEX refs_of_file ON refs (file_id);
CREATE TABLE undefined_refs (file_id INTEGER PRIMARY KEY, names BLOB NOT NULL);
CREATE TABLE vectors (
  id INTEGER PRIMARY KEY, hash BLOB NOT NULL, model TEXT NOT NULL, dims INTEGER NOT NULL, vector BLOB NOT NULL,
  UNIQUE (hash, model)
);
"""
INDEX_BY_HASH = "CREATE INDEX IF NOT EXISTS pieces_by_hash ON pieces (hash)"
"""Statement that adds an index on the chunk hashes; run only for an index with vectors."""
INSERT_VECTORS = "INSERT OR IGNORE INTO vectors (hash, model, dims, vector) VALUES (?, ?, ?, ?)"
KINDS: tuple[str, ...] = (*get_args(DefinitionKind), "block", "file")


class IndexUnusable(StoreUnavailable):
    """The index file is damaged, has another format, or belongs to another program; it must be rebuilt."""


def index_path(cache_dir: Path, root: Path) -> Path:
    """Return the path of a project's index. `root` must be resolved; two folders with the same name get two files.

    Each format has its own file, so that two versions of the plugin do not keep replacing each other's index.
    """
    tag = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    name = _NO_WORD.sub("_", root.name[:40]) or "root"
    return cache_dir / "code_index" / f"{name}-{tag}.{FORMAT}.db"


def remove_index(path: Path) -> None:
    """Remove the file and SQLite's files beside it; open connections keep the old content."""
    for name in (path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))):
        with contextlib.suppress(FileNotFoundError):
            name.unlink()


def create(path: Path, root: Path) -> sqlite3.Connection:
    """Create an empty index, replacing any existing file, and return a writing connection.

    Raises:
        StoreUnavailable: the folder cannot be written; gives the reason.
    """
    try:
        make_private_folder(path.parent)
        before = _set_aside(path)
        create_private_file(path)
        connection = _connect(path)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(
                f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION_ID};"
                f" PRAGMA user_version = {FORMAT}; COMMIT;"
            )
            name = os.fsencode(root).decode("utf-8", "replace")
            connection.execute("INSERT INTO meta VALUES ('root', ?)", (name,))
            connection.executemany("INSERT INTO kinds VALUES (?, ?)", enumerate(KINDS))
            _carry_vectors(connection, before)
            _remove_older_formats(path)
        except BaseException:
            connection.close()
            raise
        return connection
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error


def _set_aside(path: Path) -> Path | None:
    """Rename the index file; return a file that may have vectors: the renamed file, or one of another format."""
    aside = path.with_name(path.name + ".damaged")
    remove_index(aside)
    if not path.exists():
        remove_index(path)
        stem = path.name.rpartition(f".{FORMAT}.")[0]
        others = path.parent.glob(f"{glob.escape(stem)}.*.db") if stem else ()
        return max(others, key=lambda other: other.stat().st_mtime_ns, default=None)
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    remove_index(path)
    return aside


def _carry_vectors(connection: sqlite3.Connection, before: Path | None) -> None:
    """Copy the readable vectors of an earlier file, because computing them may have cost money."""
    if before is None:
        return
    with contextlib.suppress(sqlite3.Error):
        connection.execute("ATTACH DATABASE ? AS earlier", (os.fspath(before),))
        try:
            query = "SELECT hash, model, dims, vector FROM earlier.vectors"
            with contextlib.suppress(sqlite3.Error):  # each readable batch is kept
                cursor = connection.cursor().execute(query)
                while rows := cursor.fetchmany(1_000):
                    connection.execute(INDEX_BY_HASH)
                    connection.executemany(INSERT_VECTORS, rows)
        finally:
            connection.execute("DETACH DATABASE earlier")
    if before.name.endswith(".damaged"):
        remove_index(before)


def _remove_older_formats(path: Path) -> None:
    """Remove this folder's indexes of earlier versions that have not been written for a while."""
    stem = path.name.rsplit(".", 2)[0]
    for other in path.parent.iterdir():
        parts = other.name.rsplit(".", 2)
        is_older = len(parts) == 3 and parts[0] == stem and parts[1].isdigit() and int(parts[1]) < FORMAT
        if is_older and parts[2] == "db" and time.time() - other.stat().st_mtime > _UNUSED_S:
            remove_index(other)


def open_to_write(path: Path, root: Path) -> sqlite3.Connection:
    """Return a writing connection to the index, rebuilt if it is missing, damaged or in another format."""
    try:
        return open_existing(path)
    except (IndexUnusable, FileNotFoundError):
        return create(path, root)


def open_existing(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Return a connection to an existing index.

    Raises:
        FileNotFoundError: the index does not exist.
        IndexUnusable: the file is not an index of this format.
        StoreUnavailable: the file cannot be opened for another reason.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise FileNotFoundError(path)
    try:
        connection = _connect(path)
        try:
            mark = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if (mark, version) != (APPLICATION_ID, FORMAT):
                raise IndexUnusable(f"{path} has format {version}; this version writes {FORMAT}.")
            connection.execute("SELECT rowid FROM chunk_text WHERE chunk_text MATCH 'a' LIMIT 1").fetchone()
            if read_only:
                connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.Error as error:
        raise unusable_or_unavailable(error, path) from error


def unusable_or_unavailable(error: sqlite3.Error, path: Path) -> StoreUnavailable:
    """Convert an SQLite error to one that says whether the index must be rebuilt or is temporarily unavailable."""
    if is_damage(error) or "no such table" in str(error) or "no such column" in str(error):
        return IndexUnusable(f"{path} is damaged ({error}).")
    known = explain(error, path)
    return known if isinstance(known, StoreUnavailable) else StoreUnavailable(str(known))


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        # The index is a cache: it may be lost in a system crash, but not when the process is killed.
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection
