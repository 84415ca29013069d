"""Makes the vectors of an index in a separate process or from the command line, never in the host (R-239).

Each written batch is durable, so the next run continues where a stopped one ended. An early end is reported in one
sentence, and keyword search still works. Only one process may run at a time; a second one does nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import AdapterError, ContentRefused, ContextOverflow, MalformedReply, RequestRejected
from codecompanion.model.code import CodeChunk
from codecompanion.model.embedding import Embedder, Vector, unit_vector
from codecompanion.retrieval.search.embedding_text import embedding_text
from codecompanion.store.code_index.build_lock import building
from codecompanion.store.code_index.index_writer import chunk_hash
from codecompanion.store.code_index.vectors import Missing, VectorWriter

_log = logging.getLogger(__name__)

MAX_REFUSED = 20
"""Number of refused inputs after which the run ends, because then the inputs are not the cause."""
_ABOUT_THE_TEXT = (RequestRejected, ContentRefused, ContextOverflow, MalformedReply)

ChunksOf = Callable[[str], Sequence[CodeChunk]]
"""A function that returns the current chunks of the file at an index path, or none if it cannot be read."""
Report = Callable[[int, int], None]
"""A callback that receives the number of finished inputs and the total."""


class Run(msgspec.Struct, frozen=True):
    """The result of a run. `vectors`: number of vectors made; `missing`: number of chunks without a vector.

    `shortened`: number of inputs truncated to the model's limit; `unusable`: number of inputs without a vector. `why`:
    the reason for an early end, "" = complete.
    """

    vectors: int = 0
    missing: int = 0
    shortened: int = 0
    unusable: int = 0
    why: str = ""
    is_busy: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the notes for the user, one sentence each."""
        told = []
        if self.shortened:
            told.append(f"{self.shortened} of the texts exceeded the model's limit and were truncated.")
        if self.unusable:
            told.append(f"{self.unusable} of the texts got no usable vector; keyword search still finds them.")
        if self.why:
            rest = (
                f" {self.missing} pieces of code have no vector yet; keyword search still finds them."
                if self.missing
                else ""
            )
            told.append(f"{self.why}{rest}")
        return tuple(told)


async def make_vectors(
    path: Path,
    embedder: Embedder,
    chunks_of: ChunksOf,
    *,
    report: Report = lambda done, total: None,
    limit_s: float | None = None,
) -> Run:
    """Make the vectors that the index at `path` lacks. Blocks while reading files.

    `limit_s`: timeout per batch in seconds, after which the run ends.

    Raises:
        StoreUnavailable: the index cannot be read or written; the message says why.
        FileNotFoundError: there is no index.
    """
    with building(path.with_suffix(".vectors")) as is_ours:
        if not is_ours:
            return Run(is_busy=True)
        writer = VectorWriter(path)
        try:
            return await _Maker(writer, embedder, report, limit_s).run(chunks_of)
        finally:
            writer.close()


class _Maker:
    def __init__(self, writer: VectorWriter, embedder: Embedder, report: Report, limit_s: float | None) -> None:
        self._writer, self._embedder, self._report, self._limit_s = writer, embedder, report, limit_s
        self._refused = self._made = 0

    async def run(self, chunks_of: ChunksOf) -> Run:
        writer, embedder = self._writer, self._embedder
        missing = writer.missing(embedder.name)
        total, done, why = sum(one.chunks for one in missing), 0, ""
        before = embedder.shortened, embedder.unusable
        try:
            async for batch in self._batches(missing, chunks_of):
                async with asyncio.timeout(self._limit_s):
                    vectors = await self._vectors(batch)
                writer.put(embedder.name, vectors)
                done += len(batch)
                self._report(min(done, total), total)
        except AdapterError as error:
            why = str(error)
        except TimeoutError:
            why = f"embeddings: no vectors within {self._limit_s:g} s."
        if not why and missing:
            writer.forget_unused(embedder.name)
        left = sum(one.chunks for one in writer.missing(embedder.name))
        shortened, unusable = embedder.shortened - before[0], embedder.unusable - before[1] + self._refused
        return Run(self._made, left, shortened, unusable, why)

    async def _batches(self, missing: Iterable[Missing], chunks_of: ChunksOf) -> AsyncIterator[dict[bytes, str]]:
        """Yield batches of {chunk hash: text}, sized to keep the embedder busy."""
        batch: dict[bytes, str] = {}
        for one in missing:
            texts = {chunk_hash(chunk.text): embedding_text(chunk) for chunk in chunks_of(one.path)}
            known = self._writer.known(self._embedder.name, texts)
            batch |= {digest: text for digest, text in texts.items() if digest not in known}
            while len(batch) >= self._embedder.batch_size:
                first = list(batch)[: self._embedder.batch_size]
                yield {digest: batch.pop(digest) for digest in first}
        if batch:
            yield batch

    async def _vectors(self, batch: Mapping[bytes, str]) -> dict[bytes, Vector]:
        """Return the vectors of a batch; an input that the model refuses gets an empty vector."""
        try:
            vectors = await self._embedder.embed(list(batch.values()))
        except _ABOUT_THE_TEXT as error:
            if len(batch) == 1:
                self._refused += 1
                if self._refused > MAX_REFUSED or not self._made:
                    raise
                _log.info("a text got no vector: %s", error)
                return dict.fromkeys(batch, unit_vector(()))
            digests = list(batch)
            middle = len(digests) // 2
            found: dict[bytes, Vector] = {}
            for half in (digests[:middle], digests[middle:]):
                found |= await self._vectors({digest: batch[digest] for digest in half})
            return found
        self._made += sum(map(bool, vectors))
        return dict(zip(batch, vectors, strict=True))
