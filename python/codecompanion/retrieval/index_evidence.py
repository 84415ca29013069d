"""Decides whether a question is about the project, using evidence from the project's index (R-207, as decided).

The signals: how much more common the question's words are here than elsewhere (for the most and the least distinctive
word, and for names of definitions); pairs of words that are adjacent here; words and forms typical of questions about
projects rather than general ones; languages and systems that the project hardly uses. If these make it likely enough
that a question is about the project, it counts as such; otherwise it does not, unless it names the project, which makes
it a broad question. Tables and weights are fitted (bench/fit_evidence.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.code_words import split_words
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.model.gathered import Classification, Confidence
from codecompanion.retrieval.asks_something import small_talk
from codecompanion.retrieval.classifier import categories_by_words
from codecompanion.retrieval.question_form import forms_of, technologies
from codecompanion.retrieval.ranking.question import Question, read_question
from codecompanion.retrieval.ranking.stems import stem
from codecompanion.retrieval.ranking.tables import question_words
from codecompanion.retrieval.search.full_text_query import MAX_QUERY_CHARS

MIN_SHARE = 0.001
"""Assumed share of a word that is not in the tables."""
SHARE_IN_NAMES = 0.15
"""Assumed share of the chunks containing a word that have it in the name of their definition."""
MIN_NAME = 4
"""Minimum length of a folder name to match; shorter names match by chance."""
_MIN_PIECES = 1_000
"""Minimum project size, in chunks, that is assumed for a word the project does not contain."""
_MAX_LOG = 4.0
_FOREIGN = 0.02
"""Share of chunks below which a technology named in the question counts as foreign to the project."""
_CERTAIN = 0.95
_HIGH, _MEDIUM = 0.9, 0.7
MIN_WORDS, MIN_CHARACTERS = 3, 4
_WITHOUT_SPACES = regex(r"[\u3040-\u9fff\uac00-\ud7a3]")
_BETWEEN_SCRIPTS = regex(
    r"(?<=[\u3040-\u9fff\uac00-\ud7a3])(?=[A-Za-z_])|(?<=[A-Za-z0-9_])(?=[\u3040-\u9fff\uac00-\ud7a3])"
)
_NAMES_PROJECT = regex(
    r"\b(?:this|our|the|my|your|whole|entire)\s+(?:\w+\s+)?"
    r"(?:code ?base|repo(?:sitory)?|source (?:code|tree)|project)\b"
    r"|\b(?:this|our)\s+(?:code|plugin|package|library|application|app|program|tool|workspace)\b"
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The index's evidence for a question.

    `pieces`: number of chunks in the index; `with_word`, `with_pair`, `with_name`: word or pair → number of chunks that
    contain it (`with_name`: in the name of their definition); `has_file`: a file named in the question exists;
    `has_definition`: a name written as code in the question is defined in the project; `name`: the name of the
    project's folder.
    """

    pieces: int
    with_word: Mapping[str, int]
    with_pair: Mapping[str, int]
    with_name: Mapping[str, int] = {}
    has_file: bool = False
    has_definition: bool = False
    name: str = ""


class _Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    most: float
    least: float
    names: float
    pairs: float
    wording: float
    form: float
    foreign: float


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    bias: float
    limit: float
    weights: _Weights


class WordTables(msgspec.Struct, frozen=True):
    """Tables of word frequencies, by stem.

    `shares`: the share of chunks of code and documentation, or of general questions, that contain a word, whichever is
    larger; `wording`: log of how much more common the word is in questions about projects than in general ones.
    `forms`: form of a question → log-odds that it adds to the question being about a project; "" → the constant.
    """

    shares: Mapping[str, float]
    wording: Mapping[str, float]
    forms: Mapping[str, float]


def read_for_evidence(text: str) -> Question:
    """Parse a question; Latin words within Chinese, Japanese or Korean text count as words."""
    return read_question(_BETWEEN_SCRIPTS.sub(" ", text))


def telling_words(question: Question) -> tuple[str, ...]:
    """Return the words that convey a question's topic; () if there are none ("hello", even if it occurs in code)."""
    return tuple(word for word in question.words if word not in question_words()["asking"] | small_talk())


def classify_by_index(text: str, evidence: Evidence) -> Classification:
    """Classify a question by the index's evidence; the result includes the likelihood that it is about the project."""
    likely = likelihood(read_for_evidence(text), evidence)
    if likely >= _table().limit:
        return _about(text, likely, "specific")
    if _names_project(text, evidence.name):
        return _about(text, _CERTAIN, "broad")
    return Classification(source="index", likelihood=likely)


def likelihood(question: Question, evidence: Evidence) -> float:
    """Return the likelihood that a question is about the project, 0..1; 0 if none of its words conveys a topic."""
    if evidence.has_file or evidence.has_definition:
        return _CERTAIN
    signals = signals_of(question, evidence, word_tables())
    if signals is None:
        return 0.0
    table = _table()
    score = table.bias + sum(value * getattr(table.weights, name) for name, value in signals.items())
    return 1 / (1 + math.exp(-score))


def signals_of(question: Question, evidence: Evidence, tables: WordTables) -> dict[str, float] | None:
    """Return signal → value, as used to fit the weights; None for a question without a word that conveys its topic.

    If most words of a question are in no table, as in a German question, words that the project lacks do not count as
    evidence.
    """
    words, asked = telling_words(question), _stems(question.text)
    is_unknown = _is_unknown(asked, tables)
    if is_unknown:
        words = tuple(word for word in words if evidence.with_word.get(word))
    if not words or not evidence.pieces:
        return None
    shares = [tables.shares.get(stem(word), MIN_SHARE) for word in words]
    in_names = [SHARE_IN_NAMES * share for share in shares]
    logs = _logs(words, shares, evidence.with_word, 0.3, evidence.pieces)
    named = _logs(words, in_names, evidence.with_name, 0.1, evidence.pieces)
    return {
        "most": max(logs),
        "least": min(logs),
        "names": sum(named) / len(named),
        "pairs": sum(map(bool, evidence.with_pair.values())) / max(1, len(words) - 1),
        "wording": sum(tables.wording.get(word, 0.0) for word in asked) / math.sqrt(max(1, len(asked))),
        "form": 0.0 if is_unknown else form_score(question.text, tables.forms),
        "foreign": float(_many_foreign(question, evidence)),
    }


def form_score(text: str, forms: Mapping[str, float]) -> float:
    """Return the log-odds that a question is about a project, judged by its form."""
    return forms.get("", 0.0) + sum(forms.get(form, 0.0) for form in forms_of(text))


def _many_foreign(question: Question, evidence: Evidence) -> int:
    """Return how many technologies in a question are foreign to the project."""
    named = technologies().intersection(split_words(question.text))
    return sum(evidence.with_word.get(word, 0) < _FOREIGN * evidence.pieces for word in named)


def may_ask_in_other_language(text: str) -> bool:
    """Return whether a question may be in another language.

    It must have at least three words, or four characters of a script without spaces, and most of its words must be in
    no table.
    """
    asked = _stems(_BETWEEN_SCRIPTS.sub(" ", text[:MAX_QUERY_CHARS]))
    is_long = len(asked) >= MIN_WORDS or len(_WITHOUT_SPACES.findall(text)) >= MIN_CHARACTERS
    return is_long and _is_unknown(asked, word_tables())


def _stems(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(stem, split_words(text))))


def _is_unknown(asked: Sequence[str], tables: WordTables) -> bool:
    return 2 * sum(word in tables.shares or word in tables.wording for word in asked) <= len(asked)


def _logs(
    words: Sequence[str], usual: Sequence[float], found: Mapping[str, int], least: float, pieces: int
) -> list[float]:
    """Return, for each word, the log of its share in the project over its usual share.

    `least`: the count used instead of 0.
    """
    logs = list[float]()
    for word, share in zip(words, usual, strict=True):
        there = found.get(word, 0)
        log = math.log((there + least) / ((pieces if there else max(pieces, _MIN_PIECES)) + 1) / share)
        logs.append(max(-_MAX_LOG, min(_MAX_LOG, log)))
    return logs


def share_at_large(word: str) -> float:
    """Return a word's general share: in code and documentation, or in general questions, whichever is larger."""
    return word_tables().shares.get(stem(word), MIN_SHARE)


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
def word_tables() -> WordTables:
    """Return the word tables shipped with the package."""
    rows = package_table("retrieval/word_shares.toml")
    forms = {
        form: float(row["log"])
        for row in package_table("retrieval/form_weights.toml")["forms"]
        for form in " ".join(row["words"].split()).split(", ")
    }
    return WordTables(_by_word(rows["shares"], "share"), _by_word(rows["wording"], "log"), forms)


def _by_word(rows: Sequence[Mapping[str, str]], value: str) -> Mapping[str, float]:
    return {word: float(row[value]) for row in rows for word in row["words"].split()}
