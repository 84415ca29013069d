"""Implements vector search: embeds the question, then finds the nearest chunks of an index (R-227, R-232, R-239).

With numpy, every vector is compared; without it, only the vectors of chunks found by the question's keywords. An
instance lives as long as its embedder, so that vectors stay in memory and a repeated question is embedded only once.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from codecompanion.errors import AdapterError, NetworkFailed, StoreUnavailable
from codecompanion.model.embedding import QuestionEmbedder, Vector
from codecompanion.retrieval.ranking.question import any_word_query, read_question
from codecompanion.retrieval.search.cascade import TierUnavailable
from codecompanion.session.code.search_options import NearestChunks
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.search import find_chunks
from codecompanion.store.code_index.vectors import VectorReader

MAX_QUESTION_CHARS = 4_096
"""Maximum length of a question in characters, as in full-text search (R-230)."""
_KEPT_QUESTIONS = 64
QUESTION_LIMIT_S = 5.0
"""Timeout for embedding a question, in seconds; keyword search finishes long before."""

_COLUMNS = (4.0, 1.0, 1.0)
"""Keyword search weights of path, symbol and text (R-231)."""
CANDIDATES = 400
"""Maximum number of chunks compared without numpy, which takes 30 ms in plain Python."""


class Indexed(Protocol):
    """Anything with an index reader, such as `session.code.project_index.ProjectIndex`."""

    reader: IndexReader


class QuestionVectors:
    """Compares questions with the vectors of indexes. For one event loop; the returned functions run in a thread."""

    def __init__(self, embedder: QuestionEmbedder, *, limit_s: float = QUESTION_LIMIT_S) -> None:
        self._embedder = embedder
        self._limit_s = limit_s
        self._asked: OrderedDict[str, Vector] = OrderedDict()
        self._readers: dict[Path, VectorReader] = {}
        self._lock = threading.Lock()

    async def nearest(self, index: Indexed, question: str) -> NearestChunks:
        """Return the function that finds the nearest chunks of an index; the function may raise `TierUnavailable`.

        The embedder is not called if the index has no vectors of its model. Raises an exception only when cancelled.
        """
        try:
            vectors = self.reader_of(index.reader)
            if not await asyncio.to_thread(vectors.count):
                return refusing("the code has no vectors from this model yet (:CodeCompanion index)")
            query = await self._vector_of(question[:MAX_QUESTION_CHARS])
        except FileNotFoundError:
            return refusing("the project is not indexed yet")
        except (AdapterError, StoreUnavailable) as error:
            return refusing(str(error))
        if not query:
            return refusing("the question has no vector")
        return lambda k: self._compare(vectors, question, query, k)

    async def aclose(self) -> None:
        """Release the vectors, the model and the connections."""
        with self._lock:
            readers = tuple(self._readers.values())
            self._readers.clear()
        for vectors in readers:
            await asyncio.to_thread(vectors.reader.close)  # a search may be reading
        await self._embedder.aclose()

    async def _vector_of(self, question: str) -> Vector:
        known = self._asked.get(question)
        if known is None:
            try:
                async with asyncio.timeout(self._limit_s):
                    known = await self._embedder.embed_query(question)
            except TimeoutError:
                raise NetworkFailed(f"embeddings: no vector for the question within {self._limit_s:g} s.") from None
            self._asked[question] = known
            while len(self._asked) > _KEPT_QUESTIONS:
                self._asked.popitem(last=False)
        return known

    def reader_of(self, reader: IndexReader) -> VectorReader:
        """Return a vector reader for an index, with its own connection: a search holds the index's connection."""
        with self._lock:
            known = self._readers.get(reader.path)
            if known is None:
                known = self._readers[reader.path] = VectorReader(IndexReader(reader.path), self._embedder.name)
            return known

    def _compare(self, vectors: VectorReader, question: str, query: Vector, k: int) -> dict[int, float]:
        if find_spec("numpy") is not None:
            return vectors.nearest(query, k)
        words = any_word_query(read_question(question).words)
        with vectors.reader.reading() as connection:
            rows = find_chunks(connection, words, _COLUMNS, CANDIDATES) if words else []
        found = vectors.cosines(query, [row.chunk for row in rows])
        return dict(sorted(found.items(), key=lambda item: -item[1])[:k])


def refusing(why: str) -> NearestChunks:
    """Return a function that raises `TierUnavailable` with this sentence."""

    def refuse(k: int) -> Mapping[int, float]:
        raise TierUnavailable(why)

    return refuse
