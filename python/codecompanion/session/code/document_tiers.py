"""The document's own tiers over the index: hybrid, full text, vectors, term counting (R-227 … R-235)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence

from codecompanion.model.found_code import SearchTier
from codecompanion.retrieval.search.cascade import TierUnavailable
from codecompanion.retrieval.search.full_text_query import index_query, text_score
from codecompanion.retrieval.search.fusion import (
    Candidate,
    HybridOptions,
    effective_top_k,
    fetched_from_each_side,
    fuse,
)
from codecompanion.retrieval.search.term_counting import RESULTS, counted_terms, term_score
from codecompanion.session.code.search_options import NearestChunks, SearchOptions
from codecompanion.session.code.searched_project import SearchedProject
from codecompanion.session.code.text_hits import search_texts
from codecompanion.store.code_index.search import ChunkRow, chunks_by_id, find_chunks

_COLUMNS = (4.0, 1.0, 1.0)
"""Weights of path, symbol and text (R-231)."""
_KEYWORDS_ONLY = (0.0, 1.0)
"""Weights of vectors and text when there is only text (R-234)."""


class DocumentTiers:
    """The tiers for one question. `connection` None: there is no index, so only term counting has something to read."""

    def __init__(
        self,
        project: SearchedProject,
        connection: sqlite3.Connection | None,
        paths: Callable[[int], str | None],
        every_path: Callable[[], Sequence[str]],
        nearest: NearestChunks | None,
    ) -> None:
        self._project, self._connection = project, connection
        self._path_of, self._every_path, self._nearest = paths, every_path, nearest

    def search(self, tier: SearchTier, question: str, options: SearchOptions) -> tuple[Candidate, ...]:
        """Return what a tier finds, best first.

        Raises:
            TierUnavailable: there is nothing it could search.
            StoreUnavailable: the index cannot be read.
        """
        match tier:
            case "hybrid" | "auto":
                k = fetched_from_each_side(options.hybrid.top_k)
                return fuse(self._vectors(k), self._full_text(question, k, options), options.hybrid, time.time())
            case "fts":
                wanted = effective_top_k(options.hybrid.top_k)
                vector_weight, text_weight = _KEYWORDS_ONLY
                alone = HybridOptions(vector_weight=vector_weight, text_weight=text_weight, top_k=wanted)
                return fuse((), self._full_text(question, wanted * 2, options), alone, time.time())
            case "vector":
                return self._vectors(RESULTS)
            case "terms":
                return self._terms(question)

    def _full_text(self, question: str, k: int, options: SearchOptions) -> tuple[Candidate, ...]:
        if self._connection is None:
            raise TierUnavailable("the project is not indexed yet")
        query = index_query(question)
        rows = find_chunks(self._connection, query, _COLUMNS, k, options.below) if query else []
        return tuple(found for row in rows if (found := self._candidate(row, text_score(row.bm25))))

    def _vectors(self, k: int) -> tuple[Candidate, ...]:
        if self._nearest is None or self._connection is None:
            raise TierUnavailable("there are no embeddings")
        cosines = self._nearest(k)
        rows = chunks_by_id(self._connection, cosines)
        found = (self._candidate(row, cosines[row.chunk]) for row in rows)
        return tuple(sorted((one for one in found if one), key=lambda one: -one.score))[:k]

    def _terms(self, question: str) -> tuple[Candidate, ...]:
        terms = counted_terms(question)
        if not terms:
            return ()
        paths = self._project.files_with(terms, self._every_path())
        hits = [(sum(map(bool, hit.words)), hit) for hit in search_texts(terms, paths, self._project.read)]
        best = sorted(hits, key=lambda counted: (-counted[0], -counted[1].score, counted[1].path))[:RESULTS]
        return tuple(
            Candidate(-place - 1, hit.path, hit.start, hit.end, term_score(count, len(terms)))
            for place, (count, hit) in enumerate(best)
        )

    def _candidate(self, row: ChunkRow, score: float) -> Candidate | None:
        path = self._path_of(row.file)
        if path is None:
            return None
        return Candidate(row.chunk, path, row.start, row.end, score, symbol=row.symbol, kind=row.kind)
