"""The search tiers that the document defines: hybrid, full text, vectors, term counting (R-227 … R-235)."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence

import msgspec

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
from codecompanion.retrieval.search.term_counting import RESULTS, counted_terms
from codecompanion.session.code.search_options import NearestChunks, SearchOptions
from codecompanion.session.code.searched_project import SearchedProject
from codecompanion.session.code.text_hits import richest_first, search_texts
from codecompanion.store.code_index.search import ChunkRow, chunks_by_id, find_chunks, indexed_at

_COLUMNS = (4.0, 1.0, 1.0)
"""Weights of path, symbol and text (R-231)."""
_KEYWORDS_ONLY = (0.0, 1.0)
"""Weights of vectors and text when there are only text results (R-234)."""


class DocumentTiers:
    """The search tiers for one question. If `connection` is None, there is no index and only term counting works."""

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
        """Return the results of a tier, best first.

        Raises:
            TierUnavailable: the tier has nothing to search.
            StoreUnavailable: the index cannot be read.
        """
        match tier:
            case "hybrid":
                k = fetched_from_each_side(options.hybrid.top_k)
                vectors, text = self._vectors(k, options), self._full_text(question, k, options)
                return fuse(vectors, text, options.hybrid, time.time())
            case "fts":
                wanted = effective_top_k(options.hybrid.top_k)
                vector_weight, text_weight = _KEYWORDS_ONLY
                weights = {"vector_weight": vector_weight, "text_weight": text_weight, "top_k": wanted}
                alone = msgspec.structs.replace(options.hybrid, **weights)
                return fuse((), self._full_text(question, wanted * 2, options), alone, time.time())
            case "vector":
                return self._vectors(min(RESULTS, options.top_k), options)
            case "terms":
                return self._terms(question)[: options.top_k]

    def _full_text(self, question: str, k: int, options: SearchOptions) -> tuple[Candidate, ...]:
        if self._connection is None:
            raise TierUnavailable("the project is not indexed yet")
        query = index_query(question)
        rows = find_chunks(self._connection, query, _COLUMNS, k, options.below) if query else []
        return self._candidates([(row, text_score(row.bm25)) for row in rows], options.hybrid)

    def _vectors(self, k: int, options: SearchOptions) -> tuple[Candidate, ...]:
        if self._nearest is None or self._connection is None:
            raise TierUnavailable("there are no embeddings")
        cosines = self._nearest(k)
        rows = chunks_by_id(self._connection, cosines)
        found = self._candidates([(row, cosines[row.chunk]) for row in rows], options.hybrid)
        return tuple(sorted(found, key=lambda one: -one.score))[:k]

    def _terms(self, question: str) -> tuple[Candidate, ...]:
        terms = counted_terms(question)
        if not terms:
            return ()
        found = self._project.files_with(terms, self._every_path())
        paths = richest_first(terms, found, self._project.files_with)
        hits = [(sum(map(bool, hit.words)), hit) for hit in search_texts(terms, paths, self._project.read)]
        best = sorted(hits, key=lambda counted: (-counted[0], -counted[1].score, counted[1].path))[:RESULTS]
        return tuple(
            Candidate(-place - 1, hit.path, hit.start, hit.end, float(count)) for place, (count, hit) in enumerate(best)
        )

    def _candidates(self, scored: Sequence[tuple[ChunkRow, float]], hybrid: HybridOptions) -> tuple[Candidate, ...]:
        """Return rows as candidates: with their age if scores decay, with their text if diversity needs it."""
        ages: dict[int, int] = {}
        if hybrid.decay and self._connection is not None:
            ages = indexed_at(self._connection, {row.file for row, _ in scored})
        found = list[Candidate]()
        for row, score in scored:
            path = self._path_of(row.file)
            if path is not None:
                text = self._text(path, row) if hybrid.mmr else ""
                age = ages.get(row.file)
                place = (row.chunk, path, row.start, row.end, score, text, row.symbol, row.kind)
                found.append(Candidate(*place, indexed_at=age))
        return tuple(found)

    def _text(self, path: str, row: ChunkRow) -> str:
        lines = (self._project.read(path) or "").split("\n")
        return "\n".join(lines[row.start - 1 : row.end])
