"""Finds the chunks with any of several words or word pairs, best first by BM25 (R-231).

In one second, SQLite reads 50 million postings, but computes BM25 for only one million chunks. A chunk is therefore not
scored if it contains only query words that occur in very many chunks: BM25 gives these words little weight. The result
is the same as when scoring all chunks, except for two limits in large projects: words in half of the chunks find
nothing by themselves, and pairs of very common words are limited. If the words left out could together add up to more
than the score of the last chunk found, all chunks are scored.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from codecompanion.store.code_index.search import ChunkRow, find_chunks

FEW_CHUNKS = 2_000
"""Number of matching chunks up to which all of them are scored."""
PAIR_POSTINGS = 400_000
"""Maximum number of postings to read for pairs, counting both words of each; pairs of rare words come first."""
_HIGHEST_FACTOR = 2.2
"""Upper bound of a word's score, as a multiple of its weight: k1 + 1 of SQLite's `bm25()`."""
_NO_WEIGHT = 1e-6
"""SQLite's weight for a word in half of the chunks or more."""
_LAST_SCORE = 3.5
_LAST_SCORE_A_WORD = 0.55
"""Amount that each word adds to the usual minimum score of the 600th chunk; nine of ten questions (one to three
docstrings) to 2.6 million lines of Python and Go reach that minimum.
"""


class WordCounts:
    """The number of chunks with each word; counted on first use and cached until the index changes."""

    def __init__(self) -> None:
        self._of_match: dict[str, int] = {}
        self._all: int | None = None

    def clear(self) -> None:
        """Drop the counts, because the index has changed."""
        self._of_match.clear()
        self._all = None

    def chunks_with(self, connection: sqlite3.Connection, word: str) -> int:
        """Return the number of chunks that have a word."""
        return self._count(connection, f'"{word}"')

    def chunks_named(self, connection: sqlite3.Connection, word: str) -> int:
        """Return the number of chunks that have a word in the name of their definition."""
        return self._count(connection, f'symbol : "{word}"')

    def _count(self, connection: sqlite3.Connection, match: str) -> int:
        if match not in self._of_match:
            query = "SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?"
            self._of_match[match] = int(connection.execute(query, (match,)).fetchone()[0])
        return self._of_match[match]

    def chunks(self, connection: sqlite3.Connection) -> int:
        """Return the number of all chunks."""
        if self._all is None:
            self._all = int(connection.execute("SELECT count(*) FROM chunk_text_docsize").fetchone()[0])
        return self._all


def find_any(
    connection: sqlite3.Connection,
    counts: WordCounts,
    words: Iterable[str],
    pairs: Iterable[str],
    columns: tuple[float, float, float],
    limit: int,
    below: str = "",
) -> list[ChunkRow]:
    """Return the best chunks with any of the words, or any of the pairs ("word word").

    A word that occurs in half of the chunks finds nothing by itself, unless the project is small or there is no other
    word.
    """
    chunks_with = {word: count for word in words if (count := counts.chunks_with(connection, word))}
    kept = _worth_their_cost(pairs, chunks_with)
    every = (*chunks_with, *kept)
    if not every:
        return []
    if not below and sum(chunks_with.values()) > FEW_CHUNKS:
        weights = {word: _weight(count, counts.chunks(connection)) for word, count in chunks_with.items()}
        telling = [word for word in chunks_with if weights[word] > _NO_WEIGHT]
        common = _common(chunks_with, weights, telling, limit)
        rare = (*(word for word in telling if word not in common), *kept)
        found = _with_any(connection, rare, common, columns, limit) if rare else []
        might_miss = sum(weights[word] for word in common) * _HIGHEST_FACTOR
        if found and (not common or (len(found) == limit and -found[-1].bm25 >= might_miss)):
            return found
        if common:
            found = find_chunks(connection, _any_of((*telling, *kept)), columns, limit)
        if found:
            return found
    return find_chunks(connection, _any_of(every), columns, limit, below)


def count_pairs(connection: sqlite3.Connection, counts: WordCounts, pairs: Iterable[str]) -> dict[str, int]:
    """Return pair → the number of chunks in which the two words are adjacent; costly pairs are left out."""
    pairs = tuple(pairs)
    words = {word for pair in pairs for word in pair.split()}
    chunks_with = {word: count for word in words if (count := counts.chunks_with(connection, word))}
    return {pair: counts.chunks_with(connection, pair) for pair in _worth_their_cost(pairs, chunks_with)}


def _worth_their_cost(pairs: Iterable[str], chunks_with: Mapping[str, int]) -> list[str]:
    """Return the pairs whose words exist, rare pairs first, up to the limit, but at least one."""
    costs = {
        pair: sum(chunks_with[word] for word in pair.split())
        for pair in pairs
        if all(word in chunks_with for word in pair.split())
    }
    kept, spent = list[str](), 0
    for pair in sorted(costs, key=lambda pair: costs[pair]):
        spent += costs[pair]
        if spent > PAIR_POSTINGS and kept:
            break
        kept.append(pair)
    return kept


def _common(
    chunks_with: Mapping[str, int], weights: Mapping[str, float], telling: Sequence[str], limit: int
) -> list[str]:
    """Return the most common words, as many as are unlikely to make a chunk one of the best without other words.

    Returns none if that saves nothing: the other words are in too few chunks, or in many more chunks than these words.
    """
    last_score = _LAST_SCORE + _LAST_SCORE_A_WORD * len(telling)
    common, might_add = list[str](), 0.0
    for word in sorted(telling, key=lambda word: -chunks_with[word]):
        might_add += weights[word] * _HIGHEST_FACTOR
        if might_add > last_score or chunks_with[word] <= FEW_CHUNKS:
            break
        common.append(word)
    of_common = sum(chunks_with[word] for word in common)
    of_rare = sum(chunks_with[word] for word in telling) - of_common
    return common if limit <= of_rare <= 2 * of_common else []


def _with_any(
    connection: sqlite3.Connection,
    rare: Sequence[str],
    common: Sequence[str],
    columns: tuple[float, float, float],
    limit: int,
) -> list[ChunkRow]:
    """Return the best chunks that have a rare word; common words add to the score.

    FTS5 has no optional words, so chunks without a common word are found by a second query.
    """
    if not common:
        return find_chunks(connection, _any_of(rare), columns, limit)
    with_common = find_chunks(connection, f"({_any_of(rare)}) AND ({_any_of(common)})", columns, limit)
    without = find_chunks(connection, f"({_any_of(rare)}) NOT ({_any_of(common)})", columns, limit)
    return sorted((*with_common, *without), key=lambda row: row.bm25)[:limit]


def _any_of(phrases: Iterable[str]) -> str:
    return " OR ".join(f'"{phrase}"' for phrase in phrases)


def _weight(chunks: int, every: int) -> float:
    """Return the inverse document frequency as SQLite's `bm25()` computes it."""
    return max(math.log((every - chunks + 0.5) / (chunks + 0.5)), _NO_WEIGHT) if chunks <= every else _NO_WEIGHT
