"""Runs a local embedding model in a separate process, so that its memory is freed when the model is idle (R-239)."""

from __future__ import annotations

import asyncio
import base64
import binascii

import msgspec

from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.errors import NotConfigured
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.embedding import EmbeddingSettings, Vector
from codecompanion.session.code.index_process import start_worker
from codecompanion.store.code_index.vectors import from_blob


class VectorRequest(msgspec.Struct, frozen=True):
    """A line sent to the process: a request for the vector of a question."""

    id: int
    question: str


class VectorAnswer(msgspec.Struct, frozen=True):
    """A line from the process: the vector as base64 of float32, or an error sentence."""

    id: int
    vector: str = ""
    error: str = ""


class ProcessEmbedder:
    """A `QuestionEmbedder` that embeds questions in a separate process, started by the first question."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Check the model folder's content; raises `NotConfigured`."""
        self.name = OnnxEmbedder(settings).name
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()
        self._last_id = 0

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            NotConfigured: the process cannot be started, or reports why there is no vector.
        """
        async with self._asking:
            for is_last in (False, True):
                answer = await self._ask(text)
                if answer is not None:
                    break
                if is_last:
                    raise NotConfigured("embeddings: the model process ended without an answer.")
        assert answer is not None  # noqa: S101 - else it was raised
        if answer.error:
            raise NotConfigured(answer.error)
        try:
            return from_blob(base64.b64decode(answer.vector))
        except binascii.Error:
            raise NotConfigured("embeddings: the model process sent an unreadable answer.") from None

    async def aclose(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _ask(self, question: str) -> VectorAnswer | None:
        """Return the answer, or None if the process has exited (idle too long, or killed)."""
        process = await self._started()
        if process.stdin is None or process.stdout is None:
            return None
        self._last_id += 1
        try:
            process.stdin.write(msgspec.json.encode(VectorRequest(self._last_id, question)) + b"\n")
            await process.stdin.drain()
            # Skip the answers to abandoned questions, which come first.
            while line := await process.stdout.readline():
                answer = typed.read_json(line, type=VectorAnswer)
                if answer.id == self._last_id:
                    return answer
        except (OSError, *NOT_READABLE):
            pass
        await self.aclose()
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        try:
            self._process = await start_worker("codecompanion.engine.embed_worker", self._settings)
        except OSError as error:
            raise NotConfigured(f"embeddings: the model cannot be run ({error.strerror or error}).") from error
        return self._process
