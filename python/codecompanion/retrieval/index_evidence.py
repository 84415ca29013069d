"""Is a question about the project: the evidence that the project's index has for it (R-207, as decided).

Words that are more common here than in projects at large, words and names of the question in paths and definitions,
pairs of words that stand side by side here, and how good the best place is. A question with specific hits is about the
project; one without them is not, unless it names the project: then it is broad. The weights are fitted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Classification, Confidence
from codecompanion.retrieval.classifier import categories_by_words
from codecompanion.retrieval.ranking.question import Question, read_question, spellings
from codecompanion.retrieval.ranking.stems import stem
from codecompanion.retrieval.ranking.tables import question_words

MIN_SHARE = 0.001
"""Of a word that is not in the table."""
MIN_NAME = 4
"""A definition with a shorter name is named by chance."""
MAX_NAME_WORDS = 3
_MIN_PIECES = 1_000
"""A word that a smaller project does not have counts as one that a project of this size does not have."""
_MAX_OVER = 4.0
_MAX_BM25 = 30.0
_NO_PAIR = -2.0
_CHANCE = 3.0
"""Two words of one text stand side by side this much more often than by chance."""
_CERTAIN = 0.95
_HIGH, _MEDIUM = 0.9, 0.7
_WORD = regex(r"[A-Za-z]\w+")
_NAMES_PROJECT = regex(
    r"\b(?:this|our|the|my|your|whole|entire)\s+(?:\w+\s+)?"
    r"(?:code ?base|repo(?:sitory)?|source (?:code|tree)|project)\b"
    r"|\b(?:this|our)\s+(?:code|plugin|package|library|application|app|program|tool|workspace)\b"
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What an index has of a question. `pieces`: chunks in all, `with_word` and `with_pair`: those that have it.

    `defined`: names of the question that are defined here; `in_paths`: stems of the question that paths have;
    `best_bm25`: of the best place, positive, 0 = none; `has_file`: a file that the question names is there; `name`:
    the folder's.
    """

    pieces: int
    with_word: Mapping[str, int]
    with_pair: Mapping[str, int]
    defined: frozenset[str] = frozenset()
    in_paths: frozenset[str] = frozenset()
    best_bm25: float = 0.0
    has_file: bool = False
    name: str = ""


class _Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    over: float
    absent: float
    pair: float
    name: float
    path: float
    best: float


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bias: float
    limit: float
    weights: _Weights


def telling_words(question: Question) -> tuple[str, ...]:
    """Return the words of a question that say what it is about; () = none does."""
    return tuple(word for word in question.words if word not in question_words()["asking"])


def names_asked(text: str) -> tuple[str, ...]:
    """Return the names that code may give to words of a question, alone or up to three side by side."""
    words = _WORD.findall(text)
    runs = ("_".join(words[at : at + many]) for many in range(1, MAX_NAME_WORDS + 1) for at in range(len(words)))
    return tuple(dict.fromkeys(form for run in runs for form in spellings(run) if len(form) >= MIN_NAME))


def classify_by_index(text: str, evidence: Evidence) -> Classification:
    """Return what the index says of a question, with the likelihood that it is about the project."""
    question = read_question(text)
    likely = likelihood(question, evidence)
    if likely >= _table().limit:
        return _about(text, likely, "specific")
    if _names_project(text, evidence.name):
        return _about(text, _CERTAIN, "broad")
    return Classification(source="index", likelihood=likely)


def likelihood(question: Question, evidence: Evidence) -> float:
    """Return how likely a question is about the project, 0..1; 0 for one without a telling word."""
    if evidence.has_file:
        return _CERTAIN
    words = telling_words(question)
    if not words or not evidence.pieces:
        return 0.0
    table = _table()
    signals = signals_of(words, evidence)
    score = table.bias + sum(value * getattr(table.weights, name) for name, value in signals.items())
    return 1 / (1 + math.exp(-score))


def signals_of(words: tuple[str, ...], evidence: Evidence) -> dict[str, float]:
    """Return signal → value, as the weights are fitted for them."""
    found = evidence.with_word
    paths = {stem(word) for word in words} & evidence.in_paths
    return {
        "over": sum(_over(share_at_large(word), found.get(word, 0), evidence.pieces) for word in words) / len(words),
        "absent": sum(not found.get(word) for word in words),
        "pair": max(_pairs(evidence), default=_NO_PAIR),
        "name": max((-math.log(share_at_large(name.lower().strip("_"))) for name in evidence.defined), default=0.0),
        "path": len(paths) / len(words),
        "best": min(evidence.best_bm25, _MAX_BM25) / 10,
    }


def share_at_large(word: str) -> float:
    """Return the share of all pieces of code and documentation, in any project, that have a word."""
    return _shares().get(stem(word), MIN_SHARE)


def _over(usual: float, there: int, pieces: int) -> float:
    counted = pieces if there else max(pieces, _MIN_PIECES)
    return max(-_MAX_OVER, min(_MAX_OVER, math.log((there + 0.3) / (counted + 1) / usual)))


def _pairs(evidence: Evidence) -> Iterable[float]:
    for pair, there in evidence.with_pair.items():
        if there:
            one, other = pair.split()
            chance = max(MIN_SHARE / _CHANCE, _CHANCE * share_at_large(one) * share_at_large(other))
            yield math.log((there + 0.3) / (evidence.pieces + 1) / chance)


def _names_project(text: str, name: str) -> bool:
    """Return whether a question names the project: by a phrase, or by its folder's name if that is a rare word."""
    lowered = text.lower()
    if _NAMES_PROJECT.search(lowered):
        return True
    folder = name.lower()
    is_telling = len(folder) >= MIN_NAME and share_at_large(folder) <= MIN_SHARE
    return is_telling and folder in lowered.replace("?", " ").split()


def _about(text: str, likely: float, scope: str) -> Classification:
    confidence: Confidence = "high" if likely >= _HIGH else "medium" if likely >= _MEDIUM else "low"
    return Classification(
        is_codebase_related=True,
        categories=categories_by_words(text),
        confidence=confidence,
        source="index",
        likelihood=likely,
        is_broad=scope == "broad",
    )


@cache
def _table() -> _Table:
    return typed.convert(package_table("retrieval/evidence_weights.toml"), _Table)


@cache
def _shares() -> Mapping[str, float]:
    rows = package_table("retrieval/word_shares.toml")["shares"]
    return {word: row["share"] for row in rows for word in row["words"].split()}
