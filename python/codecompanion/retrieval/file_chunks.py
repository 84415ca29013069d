"""Splits a file into chunks for the index: definitions if the file was parsed, else blocks of paragraphs (R-239).

A definition that fits is one chunk. A larger one is split at the definitions inside it; the lines between them, and
definitions without inner ones, are split at empty lines. A chunk that does not start its definition begins with the
enclosing signatures (the class line above a method), so that its text shows its context; `start` and `end` do not
include these. No line is in two chunks; lines without content (`end`, braces) may be in none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex
from codecompanion.model.code import CodeChunk, Definition, DefinitionKind, ParsedFile

MAX_LINES = 80
MAX_CHARS = 3_600
_SPLIT_FROM = 0.5  # share of the maximum size before which there is no split at an empty line
_MIN_TABLE_LINES = 5  # a variable with this many lines is its own unit
_HAS_WORD = regex(r"\w\w")
_ONLY_ENDS = regex(r"(?:\W|\bend\b|\belse\b)*")

_Kind = DefinitionKind | Literal["block", "file"]


class _Unit(msgspec.Struct, frozen=True):
    """Lines that belong together.

    `around`: the enclosing signatures, put before every part of the unit except the first.
    """

    start: int
    end: int
    symbol: str = ""
    kind: _Kind = "block"
    signature: str = ""
    around: tuple[str, ...] = ()


def chunk_file(path: str, text: str, parsed: ParsedFile) -> list[CodeChunk]:
    """Return the chunks of a file in order; an empty list if no line contains a word."""
    lines = text.split("\n")
    whole = _Unit(1, len(lines), kind="block" if parsed.definitions else "file")
    if parsed.definitions:
        pieces = _split_at(whole, _units(parsed.definitions), lines)
    else:
        pieces = (
            iter([whole]) if _fits(whole, lines) else _paragraphs(msgspec.structs.replace(whole, kind="block"), lines)
        )
    return [chunk for piece in pieces if (chunk := _chunk(path, piece, lines)) is not None]


def _units(definitions: Sequence[Definition]) -> list[_Unit]:
    """Return the definitions that may be chunks, outer ones before inner ones."""
    units = []
    for one in definitions:
        if one.kind in ("variable", "constant") and one.end - one.start + 1 < _MIN_TABLE_LINES:
            continue
        symbol = f"{one.parent}.{one.name}" if one.parent else one.name
        units.append(_Unit(one.start, one.end, symbol, one.kind, one.signature))
    return sorted(units, key=lambda unit: (unit.start, -unit.end))


def _split_at(outer: _Unit, inside: Sequence[_Unit], lines: list[str]) -> Iterator[_Unit]:
    """Yield the pieces of `outer`, split at the units inside it."""
    around = (*outer.around, outer.signature) if outer.signature else outer.around
    at, index = outer.start, 0
    while index < len(inside):
        unit = inside[index]
        index += 1
        first = index
        while index < len(inside) and inside[index].start <= unit.end:
            index += 1
        start = max(unit.start, at)
        if unit.end < start:
            continue
        if start > at:
            yield from _paragraphs(_between(outer, at, start - 1), lines)
        inner = msgspec.structs.replace(unit, start=start, end=min(unit.end, outer.end), around=around)
        yield from _piece(inner, inside[first:index], lines)
        at = inner.end + 1
    if at <= outer.end:
        yield from _paragraphs(_between(outer, at, outer.end), lines)


def _piece(unit: _Unit, inside: Sequence[_Unit], lines: list[str]) -> Iterator[_Unit]:
    """Yield the whole unit if it fits into a chunk, otherwise its parts."""
    if _fits(unit, lines):
        yield unit
    elif inside:
        yield from _split_at(unit, inside, lines)
    else:
        yield from _paragraphs(unit, lines)


def _between(outer: _Unit, start: int, end: int) -> _Unit:
    """Return the given lines of `outer` as a unit.

    Unless it includes the first line of `outer`, the signature of `outer` precedes it.
    """
    around = outer.around if start == outer.start or not outer.signature else (*outer.around, outer.signature)
    return _Unit(start, end, outer.symbol, outer.kind, "" if start > outer.start else outer.signature, around)


def _paragraphs(unit: _Unit, lines: list[str]) -> Iterator[_Unit]:
    """Yield chunk-sized parts of the unit, split at empty lines, preferably before the least indented code."""
    start = unit.start
    while start <= unit.end:
        end = _end_of_piece(start, unit.end, lines)
        yield _between(unit, start, end) if start > unit.start else msgspec.structs.replace(unit, end=end)
        start = end + 1


def _end_of_piece(start: int, last: int, lines: list[str]) -> int:
    """Return the last line of the part that begins at `start`; a single line may exceed the maximum size."""
    chars, end = 0, start - 1
    while end < last and end - start + 1 < MAX_LINES:
        chars += len(lines[end]) + 1
        if chars > MAX_CHARS and end >= start:
            break
        end += 1
    if end == last:
        return last
    earliest = start + int((end - start + 1) * _SPLIT_FROM)
    best, best_indent = end, 1_000
    for row in range(end, earliest - 1, -1):
        if not lines[row - 1].strip() and row < last:
            following = lines[row]
            indent = len(following) - len(following.lstrip())
            if following.strip() and indent < best_indent:
                best, best_indent = row, indent
    return best


def _fits(unit: _Unit, lines: list[str]) -> bool:
    if unit.end - unit.start >= MAX_LINES:
        return False
    return sum(len(line) + 1 for line in lines[unit.start - 1 : unit.end]) <= MAX_CHARS


def _chunk(path: str, unit: _Unit, lines: list[str]) -> CodeChunk | None:
    """Return a unit as a chunk without surrounding empty lines, or None if it has no content."""
    start, end = unit.start, unit.end
    while start <= end and not lines[start - 1].strip():
        start += 1
    while end >= start and not lines[end - 1].strip():
        end -= 1
    own = "\n".join(lines[start - 1 : end])
    if not _HAS_WORD.search(own) or _ONLY_ENDS.fullmatch(own):
        return None
    return CodeChunk(path, start, end, "\n".join((*unit.around, own)), unit.symbol, unit.kind)
