"""Computes the vectors of open projects in the background and searches them (R-239).

A question starts the computation of missing vectors in a separate process, and is answered with the existing ones. An
expensive run waits for the user's approval (`make` with `may_be_large`). After a failure, the first question asked at
least ten minutes later retries. Each problem is reported once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Literal

from codecompanion.adapters.base import AdapterSettings, SecretReader
from codecompanion.adapters.embeddings.http_embedder import connection_of
from codecompanion.adapters.embeddings.make import make_embedder
from codecompanion.adapters.embeddings.spec import problem_with
from codecompanion.errors import AdapterError, StoreError
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.session.code.index_process import WorkerProcess
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_options import NearestChunks
from codecompanion.session.vectors.model_process import ProcessEmbedder
from codecompanion.session.vectors.question_vector import QuestionVectors, refusing
from codecompanion.session.vectors.vector_process import VectorJob
from codecompanion.wire.events import IndexProgress

_log = logging.getLogger(__name__)

AGAIN_AFTER_S = 600.0
AGAIN_AFTER_NOTHING_S = 60.0
"""Delay in seconds after a run that made no vectors: the missing chunks may exist only in unsaved buffers."""


class ProjectVectors:
    """Computes and searches the vectors of projects as configured. Used from the engine's loop."""

    def __init__(
        self,
        settings: EmbeddingSettings,
        read_key: SecretReader,
        tell: Callable[[str], None],
        emit: Callable[[IndexProgress], None] = lambda progress: None,
    ) -> None:
        """Initialise without importing, reading or sending anything. `tell` shows a sentence, `emit` progress."""
        self.settings = settings
        self._read_key, self._tell, self._emit = read_key, tell, emit
        self._questions: QuestionVectors | None = None
        self._workers: dict[Path, WorkerProcess] = {}
        self._not_before: dict[Path, float] = {}
        self._settled: dict[Path, int] = {}
        self._told: set[str] = set()
        self._problems: dict[Path, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: set[Path] = set()

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        """Return the function that finds the nearest chunks (`QuestionVectors`); start computing missing vectors."""
        try:
            questions = self._open()
        except AdapterError as error:
            why = str(error)
            self._say(why)
            return refusing(why)
        found = await questions.nearest(index, question)
        if index.path not in self._followed:
            self._followed.add(index.path)
            self._start(self._follow(index))
        return found

    def problem(self, index: ProjectIndex) -> str:
        """Return why the last run for an index ended early, or "" if it did not."""
        return self._problems.get(index.path, "")

    def make_soon(self, index: ProjectIndex) -> None:
        """Make missing vectors once the index is built, whatever the cost, because the user requested it."""
        self._start(self._make_after_build(index))

    async def make(self, index: ProjectIndex, *, may_be_large: bool = False) -> str:
        """Start making missing vectors unless a run is active.

        Return why that failed, or "" if it is running or done.
        """
        worker = self._workers.get(index.path)
        if worker is not None and worker.is_running:
            return ""
        if worker is None:
            worker = WorkerProcess(
                lambda state, done, total, why: self._take_progress(index, state, done, total, why),
                "codecompanion.engine.vector_worker",
            )
            self._workers[index.path] = worker
        try:
            key = await asyncio.to_thread(self._key)
        except AdapterError as error:
            return str(error)
        job = VectorJob(
            os.fsencode(index.root), os.fsencode(index.path), index.choice, self.settings, key, may_be_large
        )
        return await worker.start(job)

    async def wait(self, index: ProjectIndex) -> None:
        """Wait until no run is active for the index."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        worker = self._workers.get(index.path)
        if worker is not None:
            await worker.wait()

    async def aclose(self) -> None:
        """Stop the workers and unload the model."""
        for task in tuple(self._tasks):
            task.cancel()
        for worker in self._workers.values():
            await worker.stop()
        if self._questions is not None:
            await self._questions.aclose()

    def _start(self, step: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _make_after_build(self, index: ProjectIndex) -> None:
        await index.wait()
        if index.state.phase != "unusable" and (why := await self.make(index, may_be_large=True)):
            self._say(why)

    async def _follow(self, index: ProjectIndex) -> None:
        """Start a run once the index is built if chunks lack vectors and a retry is due."""
        try:
            await index.wait()
            await self._make_if_missing(index)
        finally:
            self._followed.discard(index.path)

    async def _make_if_missing(self, index: ProjectIndex) -> None:
        worker = self._workers.get(index.path)
        is_due = time.monotonic() >= self._not_before.get(index.path, 0.0)
        if not is_due or (worker is not None and worker.is_running):
            return
        vectors = self._open().reader_of(index.reader)
        try:
            version = await asyncio.to_thread(vectors.data_version)
            if version == self._settled.get(index.path):
                return
            self._settled[index.path] = version
            if not await asyncio.to_thread(vectors.count_missing):
                return
        except (StoreError, FileNotFoundError) as error:
            _log.info("no vectors are made: %s", error)
            return
        if why := await self.make(index):
            self._failed(index, why)

    def _take_progress(
        self, index: ProjectIndex, phase: Literal["building", "ready", "unusable"], done: int, total: int, why: str
    ) -> None:
        # The reason for an early end is reported below.
        shown = phase if phase == "building" or not why else "absent"
        self._emit(IndexProgress(root=str(index.root), phase=shown, done=done, total=total, of_vectors=True))
        if phase != "building":
            self._ended(index, done, why)

    def _ended(self, index: ProjectIndex, done: int, why: str) -> None:
        self._settled.pop(index.path, None)
        self._problems.pop(index.path, None)
        if why:
            self._failed(index, why)
        elif not done:
            self._not_before[index.path] = time.monotonic() + AGAIN_AFTER_NOTHING_S

    def _failed(self, index: ProjectIndex, why: str) -> None:
        self._not_before[index.path] = time.monotonic() + AGAIN_AFTER_S
        self._problems[index.path] = why
        self._say(why)

    def _say(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._tell(text)

    def _open(self) -> QuestionVectors:
        if self._questions is None:
            settings = self.settings
            if settings.onnx and problem_with(settings) is None:
                self._questions = QuestionVectors(ProcessEmbedder(settings))
            else:
                self._questions = QuestionVectors(make_embedder(settings, self._read_key))
        return self._questions

    def _key(self) -> str:
        """Return the API key for the worker, whose environment does not contain it."""
        connection: AdapterSettings = connection_of(self.settings)
        return self._read_key(connection) if self.settings.key else ""
