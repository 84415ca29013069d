"""Determines the type of a question, as five yes/no answers, from a model's reply or from its words (R-212)."""

from __future__ import annotations

import re
from functools import cache

from codecompanion.formats.package_table import package_table
from codecompanion.model.gathered import QuestionTypes
from codecompanion.retrieval.classifier import MAX_END_CHARS, json_of_reply

_NAMES = {
    "isImplementation": "is_implementation",
    "isArchitectural": "is_architectural",
    "isDebugging": "is_debugging",
    "isCodeExplanation": "is_code_explanation",
    "isFeatureRequest": "is_feature_request",
}
"""Maps the document's JSON names to our field names."""


def types_by_words(question: object) -> QuestionTypes:
    """Return the types whose words appear in the question; several may be true, or none."""
    if not isinstance(question, str):
        return QuestionTypes()
    text = " ".join(f"{question[:MAX_END_CHARS]} {question[-MAX_END_CHARS:]}".lower().replace("’", "'").split())
    return QuestionTypes(**{f"is_{name}": pattern.search(text) is not None for name, pattern in _patterns().items()})


def types_of_reply(reply: str) -> QuestionTypes | None:
    """Return the types in a model's reply, or None if it is not an object of booleans; omitted types are false."""
    value = json_of_reply(reply)
    if not isinstance(value, dict) or not value.keys() & _NAMES:
        return None
    given = {ours: value.get(theirs, False) for theirs, ours in _NAMES.items()}
    return QuestionTypes(**given) if all(isinstance(one, bool) for one in given.values()) else None


def types_as_json(types: QuestionTypes) -> dict[str, bool]:
    """Return the types under the document's names."""
    return {theirs: bool(getattr(types, ours)) for theirs, ours in _NAMES.items()}


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    kinds = package_table("retrieval/question_words.toml")["types"]
    return {name: re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)") for name, words in kinds.items()}
