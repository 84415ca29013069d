"""The option `--embed SPEC` of `index`, `search` and `gather`: computes missing vectors, then searches them (R-239).

Giving a SPEC is consent to its cost: a run reports the cost on standard error before it begins, and errors afterwards.
Keys come from the user's environment and are never shown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.adapters.embeddings.spec import EXPECTED, parse_spec
from codecompanion.adapters.keys.key_source import KeyReader
from codecompanion.cli import progress
from codecompanion.cli.environment import user_environment
from codecompanion.errors import AdapterError, InputError, NotConfigured
from codecompanion.model.embedding import Embedder
from codecompanion.session.vectors.estimate import estimate_run
from codecompanion.session.vectors.question_vector import QuestionVectors
from codecompanion.session.vectors.run import Run, make_vectors
from codecompanion.session.vectors.vector_process import chunks_of_files
from codecompanion.store.code_index.vectors import VectorWriter
from codecompanion.workspace.project_files import Choice


def add_embed(parser: argparse.ArgumentParser) -> None:
    """Add the option to a command."""
    parser.add_argument("--embed", metavar="SPEC", help=f"also search by meaning: {EXPECTED}")


class CommandVectors:
    """The vectors of one command, which may use several SPECs. Close it in the event loop where it was used."""

    def __init__(self) -> None:
        self._by_spec: dict[str, tuple[QuestionVectors, Embedder]] = {}
        self._filled: set[tuple[str, Path]] = set()

    def of(self, spec: str) -> QuestionVectors:
        """Return the vectors of a SPEC, for comparison with questions.

        Raises:
            InputError: the SPEC is invalid, or names a folder without a model.
        """
        return self._made(spec)[0]

    def _made(self, spec: str) -> tuple[QuestionVectors, Embedder]:
        known = self._by_spec.get(spec)
        if known is None:
            try:
                embedder = make_embedder(parse_spec(spec), KeyReader(environ=user_environment()))
            except NotConfigured as error:
                raise InputError(str(error)) from error
            known = self._by_spec[spec] = QuestionVectors(embedder, limit_s=60.0), embedder
        return known

    async def fill(self, spec: str, root: Path, path: Path, choice: Choice, *, limit_s: float | None = None) -> Run:
        """Compute the missing vectors of the index at `path`, once; report the cost and errors.

        `limit_s`: seconds to wait for the answer to a batch before the run ends, or None for no limit. It is ignored
        for a local model.

        Raises:
            StoreUnavailable: the index cannot be read or written.
        """
        _, embedder = self._made(spec)
        limit_s = None if isinstance(embedder, OnnxEmbedder) else limit_s
        if (spec, path) in self._filled:
            return Run()
        self._filled.add((spec, path))
        if isinstance(embedder, OnnxEmbedder):
            # Load the model now, so that no question's `ms` includes it. Errors are reported when a vector is needed.
            with contextlib.suppress(AdapterError):
                await embedder.embed_query("the model is loaded")
        writer = VectorWriter(path)
        try:
            missing = writer.missing(embedder.name)
        finally:
            writer.close()
        if not missing:
            return Run()
        estimate = await asyncio.to_thread(estimate_run, missing, parse_spec(spec), is_paid=embedder.is_paid)
        if estimate.is_paid:
            print(f"codecompanion: vectors for {estimate.sentence}", file=sys.stderr)

        def report(done: int, total: int) -> None:
            progress.step(f"codecompanion: {done:,} of {total:,} vectors")

        run = await make_vectors(path, embedder, chunks_of_files(root, choice), report=report, limit_s=limit_s)
        for note in ("Another process is computing vectors for this index.",) if run.is_busy else run.notes:
            print(f"codecompanion: {note}", file=sys.stderr)
        return run

    async def aclose(self) -> None:
        """Close connections and release models."""
        for vectors, _ in self._by_spec.values():
            await vectors.aclose()
        self._by_spec.clear()
