"""Decides, without a model, whether a question is about the project: by the index or its words (R-207)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from codecompanion.model.gathered import Classification
from codecompanion.retrieval.classifier import WordRules, classify_by_words
from codecompanion.retrieval.gather_pipeline import Classify
from codecompanion.retrieval.index_evidence import Evidence, classify_by_index


class EvidenceOf(Protocol):
    """A project's index as a source of evidence."""

    async def evidence(self, question: str, unsaved: Mapping[str, str]) -> Evidence | None:
        """Return the index's evidence for a question, or None if the index cannot be used."""
        ...


def asks_index(stage: Classify, question: object) -> bool:
    """Return whether the index, if there is one, classifies the question."""
    return stage.by == "index" and isinstance(question, str) and bool(question.strip())


def classify_question(question: object, stage: Classify, evidence: Evidence | None) -> Classification:
    """Classify a question by the index's evidence or, without evidence, by its words."""
    if evidence is not None and isinstance(question, str) and asks_index(stage, question):
        return classify_by_index(question, evidence)
    return classify_by_words(question, WordRules(stage.with_exceptions))
