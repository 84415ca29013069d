"""Reads events from the pages of a damaged database without the B-tree above them, as a last resort.

One lost page high up in a B-tree hides thousands of intact ones below it. A row of `events` is recognised by its
format: a leaf cell of a rowid table with the columns NULL (the id), text, integer, text, real, text, blob, and the
checksum that rows of newer versions have. The format is documented on the page "SQLite Database File Format" (sections
1.6 B-tree pages, 2.1 record format); pages are 4,096 bytes, all usable.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

PAGE_BYTES = 4096  # SQLite's default page size, which we never change
_LEAF_OF_TABLE = 0x0D
_MAX_LOCAL = PAGE_BYTES - 35
_MIN_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
_COLUMNS = 7

CarvedRow = tuple[str, int, float, bytes, int | None]


class _NoRow(Exception):
    """Raised for bytes that are not a row of `events`."""


def carve_events(path: Path) -> Iterator[CarvedRow]:
    """Yield (chat_id, seq, ts, payload, checksum) of every complete row, in page order."""
    pages = path.stat().st_size // PAGE_BYTES
    with path.open("rb") as file:

        def read(number: int) -> bytes:
            if not 1 <= number <= pages:
                raise _NoRow
            file.seek((number - 1) * PAGE_BYTES)
            return file.read(PAGE_BYTES)

        for number in range(1, pages + 1):
            page = read(number)
            if page[0] != _LEAF_OF_TABLE:
                continue
            cells = int.from_bytes(page[3:5], "big")
            for position in range(8, min(8 + 2 * cells, PAGE_BYTES - 1), 2):
                try:
                    yield _row(_record(page, int.from_bytes(page[position : position + 2], "big"), read, pages))
                except (_NoRow, IndexError, struct.error, UnicodeDecodeError):
                    continue


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer and the position after it."""
    value = 0
    for offset in range(8):
        byte = data[at + offset]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + offset + 1
    return value << 8 | data[at + 8], at + 9


def _record(page: bytes, at: int, read: Callable[[int], bytes], pages: int) -> bytes:
    """Return the record of the cell, including its overflow pages."""
    size, at = _varint(page, at)
    _rowid, at = _varint(page, at)
    if size <= _MAX_LOCAL:
        return page[at : at + size]
    local = _MIN_LOCAL + (size - _MIN_LOCAL) % (PAGE_BYTES - 4)
    if local > _MAX_LOCAL:
        local = _MIN_LOCAL
    if size > pages * PAGE_BYTES:
        raise _NoRow
    record = bytearray(page[at : at + local])
    following = int.from_bytes(page[at + local : at + local + 4], "big")
    while len(record) < size:
        overflow = read(following)
        following = int.from_bytes(overflow[:4], "big")
        record += overflow[4 : 4 + size - len(record)]
    return bytes(record)


def _row(record: bytes) -> CarvedRow:
    """Return the columns of the record; raise `_NoRow` if it does not have the format of a row of `events`."""
    end_of_header, at = _varint(record, 0)
    types: list[int] = []
    while at < end_of_header:
        kind, at = _varint(record, at)
        types.append(kind)
    has_sum = len(types) == _COLUMNS + 1 and (types[-1] == 0 or types[-1] in _INTEGER_BYTES)
    if at != end_of_header or not (has_sum or len(types) == _COLUMNS) or types[0] or types[2] not in _INTEGER_BYTES:
        raise _NoRow
    chat_kind, turn_kind, ts_kind, name_kind, payload_kind = types[1], types[3], types[4], types[5], types[6]
    are_texts = all(kind >= 13 and kind % 2 for kind in (chat_kind, turn_kind, name_kind))
    if not are_texts or payload_kind < 12 or payload_kind % 2 or (ts_kind != 7 and ts_kind not in _INTEGER_BYTES):
        raise _NoRow
    chat_id, at = record[at : at + (chat_kind - 13) // 2].decode("utf-8"), at + (chat_kind - 13) // 2
    seq, at = _integer(record, at, types[2])
    at += (turn_kind - 13) // 2
    if ts_kind == 7:
        (ts,), at = struct.unpack_from(">d", record, at), at + 8
    else:  # SQLite stores a whole number of a REAL column as an integer
        ts, at = _integer(record, at, ts_kind)
    at += (name_kind - 13) // 2
    size = (payload_kind - 12) // 2
    payload, at = record[at : at + size], at + size
    stored_sum = None
    if has_sum and types[-1]:
        stored_sum, at = _integer(record, at, types[-1])
    if len(payload) != size or at != len(record):
        raise _NoRow
    return chat_id, seq, float(ts), payload, stored_sum


def _integer(record: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind in (8, 9):
        return kind - 8, at
    width = _INTEGER_BYTES[kind]
    return int.from_bytes(record[at : at + width], "big", signed=True), at + width
