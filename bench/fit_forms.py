"""Fits the weight of each form of a question (retrieval/question_form.py): logistic regression on the questions alone.

It compares plain questions, titles and SWE-QA's questions about the training repositories with general ones. A form in
fewer than `MIN_SOURCES` repositories or sources, or in fewer than `MIN_TEXTS` questions, is left out: it describes
those rather than questions.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from codecompanion.retrieval.question_form import forms_of

Array = np.ndarray[Any, np.dtype[np.float64]]

GENERAL = "general"
WEIGHTS = {"title": 0.2, "plain": 0.7, "swe_qa": 0.1}
TITLES_OF_EACH, GENERAL_OF_EACH = 40, 200
MIN_SOURCES, MIN_TEXTS = 3, 12
STEP = 0.5
"""Step of the table's values; less than one step is left out."""
NEWTON_STEPS = 7


class Worded(msgspec.Struct, frozen=True):
    """A question; `source`: its repository, or the source of a general question."""

    text: str
    kind: str
    source: str


def worded(kind: str, source: str, texts: Sequence[str]) -> list[Worded]:
    """Return the questions of a source that are used: the newest titles, some of the general questions, all others."""
    if kind == "title":
        texts = texts[:TITLES_OF_EACH]
    elif kind == GENERAL:
        texts = random.Random(source).sample(texts, min(GENERAL_OF_EACH, len(texts)))
    return [Worded(text, kind, source) for text in texts]


class FormFit:
    """The forms of all questions as numbers; fitted without any one source."""

    def __init__(self, texts: Sequence[Worded]) -> None:
        self._texts = texts
        forms = [forms_of(one.text) for one in texts]
        seen, many = defaultdict[str, set[str]](set), Counter[str]()
        for one, found in zip(texts, forms, strict=True):
            many.update(found)
            for form in found:
                seen[form].add(one.source)
        kept = sorted(form for form in many if many[form] >= MIN_TEXTS and len(seen[form]) >= MIN_SOURCES)
        self._place = {form: place for place, form in enumerate(kept)}
        self._values = np.zeros((len(texts), len(kept) + 1))
        self._values[:, -1] = 1
        for row, found in enumerate(forms):
            self._values[row, [self._place[form] for form in found if form in self._place]] = 1

    def without(self, *sources: str) -> Mapping[str, float]:
        """Return form → log-odds, "" → the constant, fitted without some sources."""
        used = [one.source not in sources for one in self._texts]
        texts = [one for one in self._texts if one.source not in sources]
        values = self._values[np.array(used)]
        is_about = np.array([float(one.kind != GENERAL) for one in texts])
        weights = self._fitted(values, is_about, _weights(texts))
        steps = np.round(weights / STEP)
        table = {form: float(steps[place]) * STEP for form, place in self._place.items() if steps[place]}
        return {**table, "": round(float(weights[-1]), 1)}

    def _fitted(self, values: Array, is_about: Array, counted: Array) -> Array:
        price = np.eye(values.shape[1])
        price[-1, -1] = 1e-6
        weights = np.zeros(values.shape[1])
        for _ in range(NEWTON_STEPS):
            likely = 1 / (1 + np.exp(-np.clip(values @ weights, -30, 30)))
            slope = values.T @ (counted * (likely - is_about)) + price @ weights
            bend = (values * (counted * likely * (1 - likely))[:, None]).T @ values + price
            weights = weights - np.linalg.solve(bend, slope)
        return weights


def _weights(texts: Sequence[Worded]) -> Array:
    """Return the weight of each question: `WEIGHTS` for questions about projects, equal for general sources."""
    many = Counter(_group(one) for one in texts)
    general = sum(group not in WEIGHTS for group in many)
    weights = [WEIGHTS.get(_group(one), 1 / general) / many[_group(one)] for one in texts]
    return np.array(weights) * len(texts) / 2


def _group(one: Worded) -> str:
    return f"{GENERAL}:{one.source}" if one.kind == GENERAL else one.kind
