"""The index of a project as gathering asks it (R-227, `search_code`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codecompanion.model.found_code import SearchOutcome
from codecompanion.retrieval.search.fusion import HybridOptions
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.session.code.search_options import ChunkVectors, SearchOptions
from codecompanion.settings_sections import HybridSettings


class IndexSearch:
    """Searches one index with the user's weights; common files are another gatherer's."""

    def __init__(self, index: ProjectIndex, hybrid: HybridSettings, vectors: ChunkVectors | None = None) -> None:
        self._index, self._vectors = index, vectors
        self._hybrid = HybridOptions(
            vector_weight=hybrid.vector_weight,
            text_weight=hybrid.text_weight,
            top_k=hybrid.top_k,
            decay=hybrid.decay.enabled,
            half_life_days=hybrid.decay.half_life_days,
            mmr=hybrid.mmr.enabled,
            mmr_lambda=hybrid.mmr.lambda_,
        )

    async def __call__(
        self, question: str, *, top_k: int, per_file: int, in_play: Sequence[str], unsaved: Mapping[str, str]
    ) -> SearchOutcome:
        """Return the best places; `unsaved`: path → text of changed buffers."""
        options = SearchOptions(
            top_k=top_k, per_file=per_file, in_play=tuple(in_play), hybrid=self._hybrid, with_common=False
        )
        return await search_code(self._index, question, options, self._vectors, unsaved)
