"""Classifies whether a question is about the project, and its topics, by a model's reply or by words (R-204 … R-211).

The words are ours (`question_words.toml`). Only the two ends of a long question are read: a pasted log between them
says little about the question.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, cast

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.model.gathered import CONFIDENCE_VALUES, Classification, Confidence
from codecompanion.retrieval.word_forms import MAX_EDITS, MIN_FUZZY_LENGTH, edits_within, is_same_word, stem

MAX_END_CHARS = 2000
MAX_CATEGORIES = 5
MIN_KEYWORDS = 2
NEGATED_WORDS = 3
PATTERN_POINTS, KEYWORD_POINTS, STRONG_POINTS = 3, 1, 2
HIGH_POINTS, MEDIUM_POINTS = 5, 3
_WORD = regex(r"[^\W_]+")
_TABLE = "retrieval/question_words.toml"
_PATTERNS = "retrieval/question_patterns.toml"


class _Found(msgspec.Struct, frozen=True):
    """The matches in a question: patterns, distinct keywords by category, strong indicators."""

    patterns: int
    by_category: dict[str, int]
    keywords: int
    strong: int


class WordRules(msgspec.Struct, frozen=True):
    """Settings for comparing words.

    `with_exceptions`: common words never count as misspelt keywords, and a negation in `why …` or in an error message
    excludes nothing (R-208).
    """

    with_exceptions: bool = True


DEFAULT_RULES = WordRules()


def classify_by_words(question: object, rules: WordRules = DEFAULT_RULES) -> Classification:
    """Return the classification by words (R-207 … R-209); a value that is not a text with words is unclassified."""
    if not isinstance(question, str) or not question.strip():
        return Classification()
    text = _ends(question)
    words = _WORD.findall(text.lower())
    stated = _error_messages().sub(" ", text.lower()) if rules.with_exceptions else text.lower()
    if _is_negated(_WORD.findall(stated), rules):
        return Classification()
    found = _look(text, words, rules)
    if not (found.patterns or found.keywords >= MIN_KEYWORDS or found.strong):
        return Classification()
    points = PATTERN_POINTS * found.patterns + KEYWORD_POINTS * found.keywords + STRONG_POINTS * found.strong
    counted = found.by_category
    return Classification(
        is_codebase_related=True,
        categories=_most(counted),
        confidence="high" if points >= HIGH_POINTS else "medium" if points >= MEDIUM_POINTS else "low",
    )


def categories_by_words(question: str) -> tuple[str, ...]:
    """Return the categories whose keywords appear in a question, most matches first; `general` if none do (R-210)."""
    text = _ends(question)
    return _most(_look(text, _WORD.findall(text.lower()), DEFAULT_RULES).by_category)


def _most(counted: dict[str, int]) -> tuple[str, ...]:
    found = sorted((name for name in counted if counted[name]), key=lambda name: -counted[name])
    return tuple(found[:MAX_CATEGORIES]) or ("general",)


def classification_of_reply(reply: str) -> Classification | None:
    """Return the classification in a model's reply, or None if it is invalid (R-205); the words then decide."""
    value = json_of_reply(reply)
    if not isinstance(value, dict) or not isinstance(value.get("isCodebaseRelated"), bool):
        return None
    categories = value.get("categories", [])
    if not isinstance(categories, list):
        return None
    names = (name.strip() for name in categories if isinstance(name, str))
    confidence = value.get("confidence")
    known = confidence.strip().lower() if isinstance(confidence, str) else ""
    is_related = value["isCodebaseRelated"]
    return Classification(
        is_codebase_related=is_related,
        categories=(tuple(dict.fromkeys(filter(None, names)))[:MAX_CATEGORIES] or ("general",)) if is_related else (),
        confidence=cast("Confidence", known if known in CONFIDENCE_VALUES else "medium"),
        source="model",
    )


def json_of_reply(reply: str) -> Any:
    """Return the JSON value of a reply, ignoring fences and a leading `json`; None if there is none."""
    text = reply.replace("```", "").strip()
    if text[:4].lower() == "json":
        text = text[4:].strip()
    try:
        return json.loads(text)
    except NOT_READABLE:
        return None


def _ends(text: str) -> str:
    if len(text) <= 2 * MAX_END_CHARS:
        return text
    return f"{text[:MAX_END_CHARS]}\n{text[-MAX_END_CHARS:]}"


def _is_negated(words: list[str], rules: WordRules) -> bool:
    """Return whether one of the three words after a negation is a keyword (R-208).

    There is one exception: after `why`, `not` asks why something is missing and excludes nothing.
    """
    asks_why = words[:1] == ["why"] and rules.with_exceptions
    for place, word in enumerate(words):
        if asks_why and word == "not":
            continue
        following = words[place + 1 : place + 1 + NEGATED_WORDS]
        if word in _words("negations") and any(_keywords_of(one, rules) for one in following):
            return True
    return False


def _look(text: str, words: list[str], rules: WordRules) -> _Found:
    stems_by_category: dict[str, set[str]] = {name: set() for name in _categories()}
    for word in dict.fromkeys(words):
        for category in _keywords_of(word, rules):
            stems_by_category[category].add(stem(word))
    return _Found(
        patterns=sum(_matches(pattern, text, excepted) for pattern, excepted in _patterns()),
        by_category={name: len(stems) for name, stems in stems_by_category.items()},
        keywords=len(set[str]().union(*stems_by_category.values())),
        strong=sum(
            any(_is_strong(word, wanted, rules) for word in set(words)) for wanted in _words("strong_indicators")
        ),
    )


def _is_strong(word: str, indicator: str, rules: WordRules) -> bool:
    """Return whether a word begins with an indicator's stem, or is a misspelling of the indicator."""
    if word.startswith(stem(indicator)):
        return True
    return len(word) >= MIN_FUZZY_LENGTH and not _is_exempt(word, rules) and edits_within(word, indicator, MAX_EDITS)


def _keywords_of(word: str, rules: WordRules) -> tuple[str, ...]:
    """Return the categories of a word: by exact stem, or else as a misspelling unless it is a common word."""
    same = tuple(name for name, stems in _stems().items() if stem(word) in stems)
    if same or _is_exempt(word, rules):
        return same
    return tuple(
        name for name, keywords in _categories().items() if any(is_same_word(word, keyword) for keyword in keywords)
    )


def _is_exempt(word: str, rules: WordRules) -> bool:
    """Return whether a word is common, and so not a misspelling of another."""
    if not rules.with_exceptions:
        return False
    return word in _words("no_misspelling") or stem(word) in _common_stems()


def _matches(pattern: re.Pattern[str], text: str, excepted: frozenset[str]) -> bool:
    """Return whether a pattern matches any text outside the exceptions."""
    if not excepted:
        return pattern.search(text) is not None
    return any(found.group().lower() not in excepted for found in pattern.finditer(text))


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], frozenset[str]], ...]:
    """Return each group's pattern and the words it ignores: a brand in mixed case is not an identifier."""
    groups = package_table(_PATTERNS)["patterns"]
    return tuple(
        (
            re.compile("|".join(group["any"]), re.IGNORECASE | re.MULTILINE),
            _words(group["but"]) if "but" in group else frozenset(),
        )
        for group in groups
    )


@cache
def _error_messages() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, package_table(_TABLE)['error_messages']))})\b")


@cache
def _categories() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in package_table(_TABLE)["categories"].items()}


@cache
def _stems() -> dict[str, frozenset[str]]:
    return {name: frozenset(map(stem, keywords)) for name, keywords in _categories().items()}


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(package_table(_TABLE)[name].split())


@cache
def _common_stems() -> frozenset[str]:
    return frozenset(map(stem, _words("no_misspelling") | _words("stop_words")))
