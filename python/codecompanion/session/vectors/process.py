"""A model on this machine in a process of its own: its memory is not the host's, and goes when nobody asks (R-239)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import sys
from collections.abc import Sequence

import msgspec

from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder
from codecompanion.errors import NotConfigured
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.embedding import EmbeddingSettings, Vector
from codecompanion.session.code.worker import worker_environment
from codecompanion.store.code_index.vectors import from_blob

_LINE_LIMIT = 1_000_000


class VectorRequest(msgspec.Struct, frozen=True):
    """One line to the process: the vector of a question is wanted."""

    id: int
    question: str


class VectorAnswer(msgspec.Struct, frozen=True):
    """One line of the process: base64 of float32, or one sentence."""

    id: int
    vector: str = ""
    error: str = ""


class ProcessEmbedder(OnnxEmbedder):
    """Questions go to the process, which is started with the first of them. Runs of pieces of code have their own."""

    def __init__(self, settings: EmbeddingSettings) -> None:
        """Look what the folder holds; raises `NotConfigured`."""
        super().__init__(settings)
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()
        self._last_id = 0

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Refuse: the host makes no vectors of code."""
        raise NotImplementedError

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question.

        Raises:
            NotConfigured: the process cannot be started, or says why it has none.
        """
        async with self._asking:
            for is_last in (False, True):
                answer = await self._ask(text)
                if answer is not None:
                    break
                if is_last:
                    raise NotConfigured("embeddings: the process of the model ended without an answer.")
        assert answer is not None  # noqa: S101 - else it was raised
        if answer.error:
            raise NotConfigured(answer.error)
        try:
            return from_blob(base64.b64decode(answer.vector))
        except binascii.Error:
            raise NotConfigured("embeddings: the process of the model cannot be understood.") from None

    async def aclose(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _ask(self, question: str) -> VectorAnswer | None:
        """Return the answer, None when the process has ended: it had nothing to do for long, or was killed."""
        process = await self._started()
        if process.stdin is None or process.stdout is None:
            return None
        self._last_id += 1
        try:
            process.stdin.write(msgspec.json.encode(VectorRequest(self._last_id, question)) + b"\n")
            await process.stdin.drain()
            # The answer to a question that was given up stands before ours.
            while line := await process.stdout.readline():
                answer = msgspec.json.decode(line, type=VectorAnswer)
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
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "codecompanion.engine.embed_worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd="/" if os.name == "posix" else None,
                env=worker_environment(),
                start_new_session=True,
                limit=_LINE_LIMIT,
            )
        except OSError as error:
            raise NotConfigured(f"embeddings: the model cannot be run ({error.strerror or error}).") from error
        if self._process.stdin is not None:
            self._process.stdin.write(msgspec.json.encode(self._settings) + b"\n")
        return self._process
