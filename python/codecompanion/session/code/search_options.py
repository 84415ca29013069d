"""How a search in the code of a project is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from codecompanion.model.found_code import WantedTier
from codecompanion.retrieval.search.fusion import HybridOptions

if TYPE_CHECKING:
    from codecompanion.session.code.project_index import ProjectIndex

NearestChunks = Callable[[int], Mapping[int, float]]
"""`(how many)` → chunk id → cosine with the question, the nearest ones. May raise; then there are no vectors."""


class ChunkVectors(Protocol):
    """The vectors of indexed code, such as `session.vectors.question_vector.QuestionVectors`."""

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        """Return how the chunks nearest to a question are asked for; never raises for what is missing."""
        ...


DEFAULT_TOP_K = 10
MAX_TOP_K = 50


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`below`: only files below this path, "" = all. `per_file`: places of one file in the joined ranking.

    `in_play`: files the user has open, mentioned or just edited. `hybrid`: the document's weights, decay and diversity.
    """

    tier: WantedTier = "auto"
    top_k: int = DEFAULT_TOP_K
    per_file: int = 1
    below: str = ""
    in_play: tuple[str, ...] = ()
    hybrid: HybridOptions = HybridOptions()
    with_common: bool = True
