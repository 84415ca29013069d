"""Splits files into chunks of a few lines, and scores them by similarity to the text around the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from codecompanion.completion.near_names import NAME
from codecompanion.completion.prompt_budgets import budgets


class Chunk(msgspec.Struct, frozen=True):
    """Lines of a file (1-based, inclusive), and the names in them."""

    start: int
    end: int
    text: str
    names: frozenset[str]


class FileChunks(msgspec.Struct, frozen=True):
    """The chunks of a file in order, and for each name the indices of the chunks that contain it."""

    chunks: tuple[Chunk, ...] = ()
    by_name: dict[str, list[int]] = {}


class ScoredChunk(msgspec.Struct, frozen=True):
    """A chunk, the path of its file, and its similarity score."""

    score: float
    path: str
    chunk: Chunk


@lru_cache(maxsize=8)
def split_into_chunks(text: str, line: int = 1) -> FileChunks:
    """Split text that begins at `line` of its file into chunks, which end at empty lines where possible.

    The latest results are cached, because the text outside the window stays the same between keystrokes.
    """
    chunks = tuple(_chunks(text.split("\n"), line))
    by_name: dict[str, list[int]] = {}
    for place, chunk in enumerate(chunks):
        for name in chunk.names:
            by_name.setdefault(name, []).append(place)
    return FileChunks(chunks, by_name)


def _chunks(lines: Sequence[str], first: int) -> Iterator[Chunk]:
    table = budgets().chunks
    start = 0
    while start < len(lines):
        end = min(start + table.max_lines, len(lines))
        if end < len(lines):
            breaks = (at for at in range(end, start + table.min_lines - 1, -1) if not lines[at - 1].strip())
            end = next(breaks, end)
        text = "\n".join(lines[start:end])
        if text.strip():
            yield Chunk(start + first, end + first - 1, text.strip("\n"), frozenset(NAME.findall(text)))
        start = end


def score_chunks(
    path: str, file: FileChunks, worth: Mapping[str, int], recent: Sequence[tuple[int, int]]
) -> Iterator[ScoredChunk]:
    """Yield each chunk that shares a name with `worth` (name → weight), with its score.

    `recent`: recently edited or visited lines; a chunk with such lines scores higher, and is included even if it shares
    no name.
    """
    table = budgets().chunks
    # Integers: a sum of floats depends on the order.
    found: dict[int, int] = {}
    for name, counts in worth.items():
        for place in file.by_name.get(name, ()):
            found[place] = found.get(place, 0) + counts
    visited = {
        place
        for start, end in recent
        for place, chunk in enumerate(file.chunks)
        if start <= chunk.end and end >= chunk.start
    }
    for place in found.keys() | visited:
        chunk = file.chunks[place]
        score = found.get(place, 1) / (len(chunk.names) + 10) ** 0.5
        yield ScoredChunk(score * table.recent if place in visited else score, path, chunk)
