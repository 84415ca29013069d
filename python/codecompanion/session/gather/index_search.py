"""Adapts a project's index for gathering (R-227, `search_code`)."""

from __future__ import annotations

from collections.abc import Mapping

from codecompanion.model.found_code import SearchOutcome
from codecompanion.retrieval.index_evidence import Evidence
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import evidence_of, search_code
from codecompanion.session.code.search_options import ChunkVectors, SearchOptions


class IndexSearch:
    """Searches the index of one project."""

    def __init__(self, index: ProjectIndex, vectors: ChunkVectors | None = None) -> None:
        self._index, self._vectors = index, vectors

    async def __call__(self, question: str, options: SearchOptions, unsaved: Mapping[str, str]) -> SearchOutcome:
        """Return the best places for a question; `unsaved`: path → text of changed buffers."""
        return await search_code(self._index, question, options, self._vectors, unsaved)

    async def evidence(self, question: str, unsaved: Mapping[str, str]) -> Evidence | None:
        """Return the index's evidence for a question, or None if the index cannot be used."""
        return await evidence_of(self._index, question, unsaved)
