"""What is done with results before anybody sees them: one per file, at most 15, and their text form (R-237, R-238)."""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.model.found_code import FoundCode

MAX_RESULTS = 15
_BETWEEN = "\n\n---\n\n"


def one_per_file(results: Iterable[FoundCode], most: int = MAX_RESULTS) -> tuple[FoundCode, ...]:
    """Return the first result of each file, in order, at most `most` (R-237)."""
    first: dict[str, FoundCode] = {}
    for result in results:
        first.setdefault(result.path, result)
    return tuple(first.values())[:most]


def results_as_text(results: Iterable[FoundCode]) -> str:
    """Return the results in the document's text form, "" for none (R-238)."""
    return _BETWEEN.join(
        f"File: {result.path}\nRelevance: {result.score:.2f} ({result.method})\nContent:\n{result.text}"
        for result in results
    )
