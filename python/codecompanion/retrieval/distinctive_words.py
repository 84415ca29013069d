"""Finds the distinctive words of a question, and decides whether common project files follow its results (R-236).

Words that occur in every question, and those that make it one about the whole project, are not distinctive. In "which
function validates the trigger in our codebase" the distinctive words are `validates` and `trigger`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from codecompanion.formats.code_words import index_words
from codecompanion.retrieval.ranking.question import read_question
from codecompanion.retrieval.ranking.stems import stem
from codecompanion.retrieval.ranking.tables import question_words
from codecompanion.retrieval.search.common_files import BROAD_PHRASE, BROAD_WORDS, is_broad

ENOUGH = 0.5
"""Share of the weight of all distinctive words that one piece of code must contain to be a hit."""
LOOKED_AT = 20
"""Number of best pieces to check."""

Rarity = Callable[[str], float]
"""A function that returns the weight of a word: rare words say more about where an answer is."""


def own_words(question: str) -> tuple[str, ...]:
    """Return the words that carry a question's topic, in the index's form; () if there are none."""
    text = question.lower().replace(BROAD_PHRASE, " ")
    left_out = question_words()["asking"] | question_words()["kinds_of_code"]
    words = read_question(text).words
    return tuple(word for word in words if word not in left_out and not any(broad in word for broad in BROAD_WORDS))


def same_rarity(word: str) -> float:
    """Return the same weight for every word, for use when no frequencies are known."""
    del word
    return 1.0


def has_hit(words: Sequence[str], pieces: Iterable[str], weight: Rarity = same_rarity) -> bool:
    """Return whether any piece contains enough of a question's distinctive words, by weight."""
    weights = {_root(word): weight(word) for word in words}
    needed = ENOUGH * sum(weights.values())
    return bool(weights) and any(_weight_in(piece, weights) >= needed for piece in pieces)


def wants_common(
    question: str,
    pieces: Sequence[str],
    *,
    is_about_whole: bool = False,
    beside_hits: bool = True,
    weight: Callable[[], Rarity] = lambda: same_rarity,
) -> bool:
    """Return whether common project files follow the results, which are `pieces` of text, best first.

    `is_about_whole`: the caller knows that the question is broad. `beside_hits`: the files follow even if the
    question's distinctive words have hits. `weight` is called only if needed.
    """
    if not pieces:
        return True
    if not (is_about_whole or is_broad(question)):
        return False
    return beside_hits or not has_hit(own_words(question), pieces[:LOOKED_AT], weight())


def _weight_in(piece: str, weights: dict[str, float]) -> float:
    return sum(weights[root] for root in set(map(_root, index_words(piece))) & weights.keys())


def _root(word: str) -> str:
    return stem(stem(word))  # `validates` → `validate` → `validat`
