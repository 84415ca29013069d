"""Rates recently changed lines by the age of the commit and the similarity of its subject to the question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codecompanion.retrieval.ranking.word_index import WordIndex

_RECENT = 10.0
"""Commit age, in commits, at which the recency of a change is halved."""


class EditedRun(msgspec.Struct, frozen=True):
    """Lines that a commit changed.

    `recency`: 0..1, 1 = changed by the last commit; `likeness`: BM25 of the commit subject.
    """

    start: int
    end: int
    recency: float
    likeness: float = 0.0

    def touches(self, start: int, end: int) -> bool:
        """Return whether the commit changed any of these lines."""
        return self.start <= end and self.end >= start


class EditedLines:
    """Changed lines by path. `commits`, newest first: the stems of the commit subject, and path → changed lines."""

    def __init__(self, commits: Iterable[tuple[Sequence[str], Mapping[str, Sequence[tuple[int, int]]]]] = ()) -> None:
        self._subjects = WordIndex()
        self._runs = defaultdict[str, list[tuple[str, EditedRun]]](list)
        for age, (stems, lines) in enumerate(commits):
            commit, recency = str(age), 1.0 / (1.0 + age / _RECENT)
            self._subjects.put(commit, dict.fromkeys(stems, 1.0))
            for path, runs in lines.items():
                self._runs[path] += [(commit, EditedRun(start, end, recency)) for start, end in runs]

    def like(self, stems: Iterable[str]) -> dict[str, tuple[EditedRun, ...]]:
        """Return path → changed lines, rated by the similarity of their commit subjects to the question."""
        likeness = self._subjects.score(stems)
        return {
            path: tuple(
                msgspec.structs.replace(run, likeness=likeness[commit]) if commit in likeness else run
                for commit, run in runs
            )
            for path, runs in self._runs.items()
        }
