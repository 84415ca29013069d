"""Looks up names by 24 bits of their hash; an index on the names would be three times as large."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable

NAMED = "n.hash IN (SELECT value FROM json_each(?)) AND n.name IN (SELECT value FROM json_each(?))"
"""SQL condition for rows `n` of `names` that have one of several names; `asked` returns its parameters."""

IS_DEFINED = "EXISTS (SELECT 1 FROM definitions d WHERE d.name_id = n.id)"


def ids_of_defined(connection: sqlite3.Connection, names: Iterable[str]) -> dict[str, int]:
    """Return name → id for the names that the project defines."""
    query = f"SELECT n.name, n.id FROM names n WHERE {NAMED} AND {IS_DEFINED}"  # noqa: S608 - our own names
    return dict(connection.execute(query, asked(names)))


def name_hash(name: str) -> int:
    """Return the value of `names.hash` for a name, 0 ≤ … < 2^24."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0xFFFFFF


def asked(names: Iterable[str]) -> tuple[str, str]:
    """Return the two parameters of `NAMED`."""
    texts = list(dict.fromkeys(names))
    return json.dumps([name_hash(text) for text in texts]), json.dumps(texts)
