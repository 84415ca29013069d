"""Splits files into pieces of a few lines, and scores them by similarity to the text around the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from codecompanion.completion.near_names import NAME
from codecompanion.completion.prompt_budgets import budgets


class Piece(msgspec.Struct, frozen=True):
    """Lines of a file (1-based, inclusive), and the names in them."""

    start: int
    end: int
    text: str
    names: frozenset[str]


class FilePieces(msgspec.Struct, frozen=True):
    """The pieces of a file in order, and for each name the indices of the pieces that contain it."""

    pieces: tuple[Piece, ...] = ()
    by_name: dict[str, list[int]] = {}


class ScoredPiece(msgspec.Struct, frozen=True):
    """A piece, the path of its file, and its similarity score."""

    score: float
    path: str
    piece: Piece


@lru_cache(maxsize=8)
def cut_pieces(text: str, line: int = 1) -> FilePieces:
    """Split text that begins at `line` of its file into pieces, which end at empty lines where possible.

    The latest results are cached, because the text outside the window stays the same between keystrokes.
    """
    pieces = tuple(_pieces(text.split("\n"), line))
    by_name: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        for name in piece.names:
            by_name.setdefault(name, []).append(place)
    return FilePieces(pieces, by_name)


def _pieces(lines: Sequence[str], first: int) -> Iterator[Piece]:
    table = budgets().pieces
    start = 0
    while start < len(lines):
        end = min(start + table.max_lines, len(lines))
        if end < len(lines):
            breaks = (at for at in range(end, start + table.min_lines - 1, -1) if not lines[at - 1].strip())
            end = next(breaks, end)
        text = "\n".join(lines[start:end])
        if text.strip():
            yield Piece(start + first, end + first - 1, text.strip("\n"), frozenset(NAME.findall(text)))
        start = end


def score_pieces(
    path: str, file: FilePieces, worth: Mapping[str, int], recent: Sequence[tuple[int, int]]
) -> Iterator[ScoredPiece]:
    """Yield each piece that shares a name with `worth` (name → weight), with its score.

    `recent`: recently edited or visited lines; a piece with such lines scores higher, and is included even if it shares
    no name.
    """
    table = budgets().pieces
    # Integers: a sum of floats depends on the order.
    found: dict[int, int] = {}
    for name, counts in worth.items():
        for place in file.by_name.get(name, ()):
            found[place] = found.get(place, 0) + counts
    visited = {
        place
        for start, end in recent
        for place, piece in enumerate(file.pieces)
        if start <= piece.end and end >= piece.start
    }
    for place in found.keys() | visited:
        piece = file.pieces[place]
        score = found.get(place, 1) / (len(piece.names) + 10) ** 0.5
        yield ScoredPiece(score * table.recent if place in visited else score, path, piece)
