"""BM25 over a few words a file: paths, and the subjects of the commits that changed it.

Small enough to be held in memory and changed file by file; chunks of code are in the full-text index instead.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

_K1 = 1.2
_B = 0.75


class WordIndex:
    """Path → counted stems, searched by BM25."""

    def __init__(self) -> None:
        self._words: dict[str, Mapping[str, float]] = {}
        self._lengths: dict[str, float] = {}
        self._total = 0.0
        self._paths_with: dict[str, set[str]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, path: object) -> bool:
        return path in self._words

    def paths(self) -> Iterable[str]:
        """Return what is in it."""
        return self._words.keys()

    def put(self, path: str, counts: Mapping[str, float]) -> None:
        """Add a file, or replace its words."""
        self.remove(path)
        self._words[path] = counts
        self._lengths[path] = sum(counts.values())
        self._total += self._lengths[path]
        for word in counts:
            self._paths_with[word].add(path)

    def remove(self, path: str) -> None:
        """Forget a file; one that is not there is left alone."""
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
            rarity = math.log(1 + (count - len(paths) + 0.5) / (len(paths) + 0.5))
            for path in paths:
                times = self._words[path][word]
                length = self._lengths[path] / mean if mean else 1.0
                scores[path] += rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * length))
        return dict(scores)


def count_path_words(stems_of_folders: Iterable[str], stems_of_name: Iterable[str]) -> Counter[str]:
    """Return the counted words of a path; those of the file's own name count twice."""
    counts = Counter(stems_of_folders)
    for word in stems_of_name:
        counts[word] += 2
    return counts
