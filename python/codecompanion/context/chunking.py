"""Cut a transcript into chunks that fit the summariser (R-525, R-124, lesson 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codecompanion.context.transcript import shorten_middle


def chunk_entries(
    entries: Sequence[str], limit_tokens: int, count_text: Callable[[str], int]
) -> tuple[tuple[str, ...], ...]:
    """Return the entries in greedy chunks of at most `limit_tokens` each, in order.

    An entry larger than a whole chunk is shortened to head and tail; no other entry is changed.
    """
    chunks: list[tuple[str, ...]] = []
    current: list[str] = []
    used = 0
    for entry in entries:
        fitted, size = fit_entry(entry, limit_tokens, count_text)
        if current and used + size > limit_tokens:
            chunks.append(tuple(current))
            current, used = [], 0
        current.append(fitted)
        used += size
    if current:
        chunks.append(tuple(current))
    return tuple(chunks)


def fit_entry(entry: str, limit_tokens: int, count_text: Callable[[str], int]) -> tuple[str, int]:
    """Return the entry, shortened until it fits, and its size in tokens."""
    size = count_text(entry)
    chars = len(entry)
    while size > limit_tokens and chars > 64:
        chars = max(64, min(chars * limit_tokens // (size + 1), chars * 9 // 10))
        entry = shorten_middle(entry, chars)
        size = count_text(entry)
    return entry, size
