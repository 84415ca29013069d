"""Is a question about the project, where no model decides: its index, or its words (R-207), for chats and commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from codecompanion.model.gathered import Classification
from codecompanion.retrieval.classifier import WordRules, classify_by_words
from codecompanion.retrieval.gather_pipeline import Classify
from codecompanion.retrieval.index_evidence import Evidence, classify_by_index


class EvidenceOf(Protocol):
    """The index of a project, as it is asked for evidence."""

    async def evidence(self, question: str, unsaved: Mapping[str, str]) -> Evidence | None:
        """Return what the index has of a question, None where it cannot be asked."""
        ...


def asks_index(stage: Classify, question: object) -> bool:
    """Return whether the index decides about a question, if there is one."""
    return stage.by == "index" and isinstance(question, str) and bool(question.strip())


def classify_question(question: object, stage: Classify, evidence: Evidence | None) -> Classification:
    """Return what the index says of a question; without evidence, what its words say."""
    if evidence is not None and isinstance(question, str) and asks_index(stage, question):
        return classify_by_index(question, evidence)
    return classify_by_words(question, WordRules(stage.with_exceptions))
