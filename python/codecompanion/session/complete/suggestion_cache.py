"""Caches recent suggestions by model and prompt (R-261), so that undoing a keystroke sends no request."""

from __future__ import annotations

from collections import OrderedDict

MAX_ENTRIES = 50


class SuggestionCache:
    """Caches suggestions under `model:prompt`; the oldest entry is dropped when the cache is full."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[str, tuple[str, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, model: str, prompt: str) -> tuple[str, ...] | None:
        """Return the cached suggestions, or None if there are none."""
        return self._entries.get(f"{model}:{prompt}")

    def put(self, model: str, prompt: str, texts: tuple[str, ...]) -> None:
        """Store the suggestions; an existing entry keeps its position in the order of age."""
        self._entries[f"{model}:{prompt}"] = texts
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
