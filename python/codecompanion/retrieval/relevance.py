"""Scores the relevance of code to keywords: 1.0 for the user's choices, 0.1–0.9 by keyword density (R-246)."""

from __future__ import annotations

import re
from collections.abc import Sequence

SELECTED_SCORE = 1.0
NO_KEYWORDS_SCORE = 0.5
MIN_SCORE, MAX_SCORE = 0.1, 0.9
DENSITY_WEIGHT = 5
DEFINITION_BONUS = 0.2
KEEP_ABOVE = 0.2
"""Score that a snippet must exceed to be used (R-243)."""


def score_text(text: str, keywords: Sequence[str]) -> float:
    """Return the score of code that the user did not choose.

    `min(0.9, 0.1 + 5 × occurrences / words + 0.2 for each keyword that is defined in it)`; words are separated by
    whitespace; occurrences are counted case-insensitively, even inside words; 0.5 if there are no keywords.
    """
    if not keywords:
        return NO_KEYWORDS_SCORE
    lower = text.lower()
    wanted = [keyword.lower() for keyword in keywords if keyword]
    hits = sum(map(lower.count, wanted))
    defined = sum(1 for keyword in wanted if keyword in lower and _is_defined(keyword, lower))
    words = max(1, len(text.split()))
    return min(MAX_SCORE, MIN_SCORE + DENSITY_WEIGHT * hits / words + DEFINITION_BONUS * defined)


def _is_defined(keyword: str, lower: str) -> bool:
    return re.search(rf"\b(?:function|class|interface|const|def)\s+{re.escape(keyword)}", lower) is not None
