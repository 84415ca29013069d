"""Ranks files with BM25 over a few words per file: those of its path, or of the commits that changed it.

The index is small enough to keep in memory and update file by file; code chunks are in the full-text index instead.
"""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from codecompanion.formats.word_rarity import rarity

_K1 = 1.2
_B = 0.75
_MIN_PREFIX = 4
"""Minimum length of a prefix; shorter words are prefixes by chance."""


class WordIndex:
    """Word counts (by stem) for each path, searchable with BM25."""

    def __init__(self) -> None:
        self._words: dict[str, Mapping[str, float]] = {}
        self._lengths: dict[str, float] = {}
        self._total = 0.0
        self._paths_with: dict[str, set[str]] = defaultdict(set)
        self._sorted: list[str] | None = None

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, path: object) -> bool:
        return path in self._words

    def paths(self) -> Iterable[str]:
        """Return the indexed paths."""
        return self._words.keys()

    def put(self, path: str, counts: Mapping[str, float]) -> None:
        """Add a file, or replace its words."""
        self.remove(path)
        self._words[path] = counts
        self._lengths[path] = sum(counts.values())
        self._total += self._lengths[path]
        for word in counts:
            if not self._paths_with[word]:
                self._sorted = None
            self._paths_with[word].add(path)

    def remove(self, path: str) -> None:
        """Remove a file; an unknown path is ignored."""
        counts = self._words.pop(path, None)
        if counts is None:
            return
        self._total -= self._lengths.pop(path)
        for word in counts:
            self._paths_with[word].discard(path)

    def score(self, stems: Iterable[str]) -> dict[str, float]:
        """Return the BM25 score of every file that has one of the stems."""
        scores = defaultdict[str, float](float)
        count = len(self._words)
        mean = self._total / count if count else 1.0
        for word in stems:
            paths = self._paths_with.get(word, ())
            weight = self._rarity(len(paths))
            for path in paths:
                times = self._words[path][word]
                length = self._lengths[path] / mean if mean else 1.0
                scores[path] += weight * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length))
        return dict(scores)

    def score_prefixes(self, stems: Iterable[str]) -> dict[str, float]:
        """Return a score for each file with words that are a prefix of a given word, or vice versa: abbreviations.

        Examples: `bench` and `benchmark`, `config` and `configuration`. Identical words do not count.
        """
        scores = defaultdict[str, float](float)
        for stem in stems:
            paths = {path for word in self._beginning_alike(stem) for path in self._paths_with[word]}
            for path in paths:
                scores[path] += self._rarity(len(paths))
        return dict(scores)

    def _beginning_alike(self, stem: str) -> Iterator[str]:
        if len(stem) < _MIN_PREFIX:
            return
        if self._sorted is None:
            self._sorted = sorted(word for word, paths in self._paths_with.items() if paths)
        for place in range(bisect.bisect_right(self._sorted, stem), len(self._sorted)):
            if not self._sorted[place].startswith(stem):
                break
            yield self._sorted[place]
        yield from (stem[:end] for end in range(_MIN_PREFIX, len(stem)) if self._paths_with.get(stem[:end]))

    def _rarity(self, files: int) -> float:
        return rarity(files, len(self._words))


def count_path_words(stems_of_folders: Iterable[str], stems_of_name: Iterable[str]) -> Counter[str]:
    """Return the word counts of a path; words in the file's own name count twice."""
    counts = Counter(stems_of_folders)
    for word in stems_of_name:
        counts[word] += 2
    return counts
