"""Runs the vector worker, a low-priority process that ends with the host (R-239).

The job, including the API key, arrives on standard input, because other programs can read a process's environment. The
worker reports progress in the format of the index worker (`session.code.index_process.Progress`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

import msgspec

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.adapters.keys.key_source import KeyReader
from codecompanion.model.code import CodeChunk
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.session.code.indexing import index_file
from codecompanion.session.vectors.estimate import estimate_run
from codecompanion.session.vectors.run import ChunksOf, Report, Run, make_vectors
from codecompanion.store.code_index.vectors import VectorWriter
from codecompanion.workspace.project_files import Choice

NAME = "embeddings"
"""The name under which `adapters.embeddings` requests the API key."""


class VectorJob(msgspec.Struct, frozen=True):
    """A job: compute the vectors of the index at `path` for the folder `root`; both are file system paths as bytes.

    `may_be_large`: the user approved the cost.
    """

    root: bytes
    path: bytes
    choice: Choice
    embedding: EmbeddingSettings
    key: str = ""
    may_be_large: bool = False

    def __repr__(self) -> str:
        """Show only the folder, because the job may contain a key."""
        return f"VectorJob({self.root!r})"


def chunks_of_files(root: Path, choice: Choice) -> ChunksOf:
    """Return a function that reads the chunks of a project file from disk."""

    def read(path: str) -> tuple[CodeChunk, ...]:
        with contextlib.suppress(OSError, ValueError):
            one = index_file(root, path, choice, time.time_ns())
            return tuple(one.chunks) if one is not None else ()
        return ()

    return read


def carry_out(job: VectorJob, report: Report) -> Run:
    """Make the vectors in a separate event loop; blocks. A large run that was not approved ends with its estimate.

    Raises:
        CodeCompanionError: the settings or the index cannot be used; the message says why.
        FileNotFoundError: there is no index.
    """
    root, path = Path(os.fsdecode(job.root)), Path(os.fsdecode(job.path))
    embedder = make_embedder(job.embedding, KeyReader({NAME: job.key} if job.key else {}, environ={}))
    writer = VectorWriter(path)
    try:
        missing = writer.missing(embedder.name)
    finally:
        writer.close()
    estimate = estimate_run(missing, job.embedding, is_paid=embedder.is_paid)
    if estimate.is_large and not job.may_be_large:
        why = f"Semantic search needs vectors for {estimate.sentence}."
        why += " :CodeCompanion index creates them."
        return Run(missing=estimate.chunks, why=why)

    async def run() -> Run:
        try:
            return await make_vectors(path, embedder, chunks_of_files(root, job.choice), report=report)
        finally:
            await embedder.aclose()

    return asyncio.run(run())
