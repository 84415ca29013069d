"""Stores a conversation as lines, each with the changes since the previous line (R-461, R-478).

    {"history": [[0, 12], {message}, [14, 20]], "files": {"a.py": [3, 2000]}}

A pair is a range of messages of the conversation so far, an object is a message in the transcript format. `files`: the
files read since, path → (cycle, bytes). So the cost of a checkpoint depends on the changes, not on the length of the
chat.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from codecompanion.errors import StoreCorrupt
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.fold import grown_from

T = TypeVar("T")
Run = tuple[int, int]


def parts_of(before: Sequence[T], after: Sequence[T]) -> tuple[list[Run | T], int]:
    """Return `after` as ranges of `before` and new items, and the number of unchanged leading items if it only grew.

    Messages are compared by identity.
    """
    grown = grown_from(tuple(before), tuple(after))
    parts: list[Run | T] = [(0, grown)] if grown else []
    if grown == len(before):
        return [*parts, *after[grown:]], grown
    places = {id(value): place for place, value in enumerate(before)}
    first = last = -1
    for value in after:
        place = places.get(id(value), -1)
        if first >= 0 and place != last:
            parts.append((first, last))
            first = -1
        if place < 0:
            parts.append(value)
        else:
            first, last = (place if first < 0 else first), place + 1
    return ([*parts, (first, last)] if first >= 0 else parts), 0


def lines_of(
    parts: Sequence[Run | T], kept: int, files: Mapping[str, Sequence[int]], encode: Callable[[T], bytes]
) -> Iterator[bytes]:
    """Yield the lines; if messages were only appended to the first `kept`, each new one gets its own line."""
    read = json.dumps(files, separators=(",", ":")).encode("ascii")
    joined = [part for part in parts if not isinstance(part, tuple)]
    if not kept and len(joined) < len(parts):
        pieces = [b"[%d,%d]" % part if isinstance(part, tuple) else encode(part) for part in parts]
        yield b'{"history":[%s],"files":%s}\n' % (b",".join(pieces), read)
        return
    if files or not joined:
        yield b'{"history":[[0,%d]],"files":%s}\n' % (kept, read)
    for place, message in enumerate(joined, kept):
        yield b'{"history":[[0,%d],%s]}\n' % (place, encode(message))


def read_lines(lines: Iterable[bytes], where: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the conversation and the files read, rebuilt from the lines.

    Raises:
        StoreCorrupt: a line is damaged; the message names the file.
    """
    history: list[dict[str, Any]] = []
    files: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            history = _changed(history, value["history"])
            files |= value.get("files", {})
        except (*NOT_READABLE, KeyError, TypeError) as error:
            raise StoreCorrupt(f"{where} is damaged (line {number}: {error})") from error
    return history, files


def _changed(history: list[dict[str, Any]], parts: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the conversation after the change; if it only grows, it is extended in place."""
    for part in parts:
        if isinstance(part, list) and not 0 <= part[0] <= part[1] <= len(history):
            raise ValueError(f"the range {part} does not exist")
    if parts and isinstance(parts[0], list) and parts[0][0] == 0 and not any(isinstance(p, list) for p in parts[1:]):
        del history[parts[0][1] :]
        history.extend(parts[1:])
        return history
    return list(itertools.chain(*(history[p[0] : p[1]] if isinstance(p, list) else (p,) for p in parts)))
