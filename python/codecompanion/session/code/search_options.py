"""The options of a search in the code of a project."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from codecompanion.model.found_code import WantedTier
from codecompanion.retrieval.gather_pipeline import (
    AppendCommonFiles,
    GatherPipeline,
    KeepFirstOfFile,
    SearchCascade,
    SearchRanked,
)
from codecompanion.retrieval.search.fusion import HybridOptions
from codecompanion.retrieval.search.results import MAX_RESULTS

if TYPE_CHECKING:
    from codecompanion.session.code.project_index import ProjectIndex
    from codecompanion.settings_sections import HybridSettings

NearestChunks = Callable[[int], Mapping[int, float]]
"""`(limit)` → {chunk id: cosine similarity to the question} for the nearest chunks. If it raises, words are used
instead.
"""


class ChunkVectors(Protocol):
    """The vectors of indexed code, such as `session.vectors.question_vector.QuestionVectors`."""

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        """Return a function that finds the chunks nearest to a question.

        No error is raised if vectors are missing.
        """
        ...


DEFAULT_TOP_K = 10
MAX_TOP_K = 50


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one search.

    `below`: only files below this path, "" = all. `per_file`: maximum number of ranked results per file.

    `in_play`: files that the user has open, has mentioned or has just edited. `hybrid`: the document's weights, decay
    and diversity. `most`: maximum number of results, including common files. `with_common`: append common project files
    if the question is broad (`is_broad` = the caller knows that it is) or nothing is found; `beside_hits`: append them
    even if the question's own words have hits; `every_manifest`: include manifests that the document does not name.
    """

    tier: WantedTier = "auto"
    top_k: int = DEFAULT_TOP_K
    per_file: int = 1
    most: int = MAX_RESULTS
    below: str = ""
    in_play: tuple[str, ...] = ()
    hybrid: HybridOptions = HybridOptions()
    with_common: bool = True
    is_broad: bool = False
    beside_hits: bool = True
    every_manifest: bool = True


def search_options(
    pipeline: GatherPipeline, hybrid: HybridSettings, *, in_play: tuple[str, ...] = (), is_broad: bool = False
) -> SearchOptions:
    """Return the search options of a pipeline; `hybrid` applies to the document's tiers (R-228, R-263)."""
    common, ranked = pipeline.find(AppendCommonFiles), pipeline.find(SearchRanked)
    asked = SearchOptions(
        in_play=in_play,
        with_common=common is not None,
        beside_hits=common is not None and common.beside_hits,
        every_manifest=common is not None and common.every_manifest,
        is_broad=is_broad,
    )
    if ranked is not None:
        return msgspec.structs.replace(asked, top_k=ranked.max_files, per_file=ranked.per_file)
    once, cascade = pipeline.find(KeepFirstOfFile), pipeline.stage(SearchCascade)
    return msgspec.structs.replace(
        asked,
        tier=cascade.first,
        top_k=hybrid.top_k,
        most=once.most if once is not None else MAX_RESULTS,
        per_file=1 if once is not None else hybrid.top_k,
        hybrid=HybridOptions(
            vector_weight=hybrid.vector_weight,
            text_weight=hybrid.text_weight,
            top_k=hybrid.top_k,
            decay=hybrid.decay.enabled,
            half_life_days=hybrid.decay.half_life_days,
            mmr=hybrid.mmr.enabled,
            mmr_lambda=hybrid.mmr.lambda_,
        ),
    )
