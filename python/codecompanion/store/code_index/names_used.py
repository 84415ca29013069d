"""Stores the names a file uses: a row for each name that the project defines, four bytes for each other name.

Most names that code uses are defined elsewhere (the standard library, packages): as rows they would take a tenth of the
source's size. They are still needed: the project may define one of them later, and then every unchanged file that uses
it must count as a user. 24 bits of a name's hash distinguish it from the file's other names: there is one false user in
500,000 pairs of file and new name.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter

from codecompanion.store.code_index.name_hashes import ids_of_defined, name_hash

_MAX_USES = 255
_FEW_NAMES = 16
"""Maximum number of names that SQLite itself searches for, in all files at once."""

IdOfName = Callable[[str], int]


def put_references(
    connection: sqlite3.Connection, file: int, uses: Mapping[str, int], id_of: IdOfName, *, is_finished: bool
) -> None:
    """Write the names a file uses, as name → count.

    Until the build `is_finished`, each name may still become defined.
    """
    defined = ids_of_defined(connection, uses) if is_finished else {name: id_of(name) for name in uses}
    rows = [(name, file, uses[text]) for text, name in defined.items()]
    connection.executemany("INSERT OR REPLACE INTO refs VALUES (?, ?, ?)", rows)
    if len(defined) < len(uses):
        packed = _pack((name_hash(name), count) for name, count in uses.items() if name not in defined)
        connection.execute("INSERT OR REPLACE INTO undefined_refs VALUES (?, ?)", (file, packed))


def forget_references(connection: sqlite3.Connection, file: int) -> None:
    """Remove the stored names that a file uses."""
    names = connection.execute("SELECT name_id FROM refs WHERE file_id = ?", (file,)).fetchall()
    connection.executemany("DELETE FROM refs WHERE name_id = ? AND file_id = ?", [(name, file) for (name,) in names])
    connection.execute("DELETE FROM undefined_refs WHERE file_id = ?", (file,))


def set_undefined_aside(connection: sqlite3.Connection) -> None:
    """Pack the rows of undefined names into four bytes each."""
    query = (
        "SELECT r.file_id, n.hash, r.uses FROM refs r JOIN names n ON n.id = r.name_id"
        " WHERE r.name_id NOT IN (SELECT name_id FROM definitions) ORDER BY r.file_id"
    )
    for file, rows in groupby(connection.execute(query).fetchall(), itemgetter(0)):
        known = connection.execute("SELECT names FROM undefined_refs WHERE file_id = ?", (file,)).fetchone()
        packed = (known[0] if known else b"") + _pack((digest, uses) for _, digest, uses in rows)
        connection.execute("INSERT OR REPLACE INTO undefined_refs VALUES (?, ?)", (file, packed))
    connection.execute("DELETE FROM refs WHERE name_id NOT IN (SELECT name_id FROM definitions)")


def bring_back(connection: sqlite3.Connection, names: Iterable[str], id_of: IdOfName) -> None:
    """Restore rows for the uses of newly defined names."""
    wanted: dict[int, list[str]] = defaultdict(list)
    for name in names:
        wanted[name_hash(name)].append(name)
    for file, packed in _files_with(connection, wanted):
        found, left = [], array("I")
        for one in _unpack(packed):
            hits = wanted.get(one >> 8)
            if hits is None:
                left.append(one)
            else:
                found += [(id_of(name), file, one & _MAX_USES) for name in hits]
        if found:
            connection.executemany("INSERT OR IGNORE INTO refs VALUES (?, ?, ?)", found)
            connection.execute("UPDATE undefined_refs SET names = ? WHERE file_id = ?", (_to_bytes(left), file))


def _files_with(connection: sqlite3.Connection, wanted: Mapping[int, object]) -> Iterator[tuple[int, bytes]]:
    """Yield the files that may use one of the hashes, with their packed names."""
    query = "SELECT file_id, names FROM undefined_refs"
    if len(wanted) <= _FEW_NAMES:
        given = [digest.to_bytes(3, "little") for digest in wanted]
        tests = " OR ".join("instr(names, ?)" for _ in given)
        yield from connection.execute(f"{query} WHERE {tests or 0}", given).fetchall()
    else:
        yield from connection.execute(query).fetchall()


def _pack(uses: Iterable[tuple[int, int]]) -> bytes:
    """Return the (hash, uses) pairs packed for the table: 24 and 8 bits each, little-endian."""
    return _to_bytes(array("I", (digest << 8 | min(count, _MAX_USES) for digest, count in uses)))


def _to_bytes(values: array[int]) -> bytes:
    if sys.byteorder == "big":
        values = array("I", values)
        values.byteswap()
    return values.tobytes()


def _unpack(packed: bytes) -> array[int]:
    values = array("I", packed[: len(packed) // 4 * 4])
    if sys.byteorder == "big":
        values.byteswap()
    return values
