"""Splits a transcript into chunks that fit the summariser: greedily, in order (R-525, R-124, lesson 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from codecompanion.formats.cutting import cut_middle

T = TypeVar("T")


def chunk_greedily(sized: Iterable[tuple[T, int]], limit: int) -> tuple[tuple[T, ...], ...]:
    """Return the items, given with their sizes, in chunks of at most `limit`; a larger item is its own chunk.

    The joined chunks equal the items.
    """
    chunks: list[tuple[T, ...]] = []
    current: list[T] = []
    used = 0
    for item, size in sized:
        if current and used + size > limit:
            chunks.append(tuple(current))
            current, used = [], 0
        current.append(item)
        used += size
    if current:
        chunks.append(tuple(current))
    return tuple(chunks)


def chunk_entries(
    entries: Sequence[str], limit_tokens: int, count_text: Callable[[str], int]
) -> tuple[tuple[str, ...], ...]:
    """Return the entries in chunks of at most `limit_tokens` each.

    An entry larger than a whole chunk is shortened to head and tail; other entries stay unchanged.
    """
    return chunk_greedily((fit_entry(entry, limit_tokens, count_text) for entry in entries), limit_tokens)


def fit_entry(entry: str, limit_tokens: int, count_text: Callable[[str], int]) -> tuple[str, int]:
    """Return the entry, shortened until it fits, and its size in tokens."""
    size = count_text(entry)
    chars = len(entry)
    while size > limit_tokens and chars > 64:
        chars = max(64, min(chars * limit_tokens // (size + 1), chars * 9 // 10))
        entry = cut_middle(entry, chars)
        size = count_text(entry)
    return entry, size
