"""Computes vectors with a local model, using the extra `semantic`: onnxruntime, tokenizers, numpy (R-239).

As in sentence-transformers, the last hidden states of the actual tokens are averaged and normalised to length 1. The
work runs in a thread, one small batch of inputs of similar length at a time, so that a cancellation takes effect.
Nothing is imported before the first text; loading the model takes 0.2 s and about ten times its size in memory.
"""

from __future__ import annotations

import asyncio
import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from codecompanion.adapters.embeddings.onnx_folder import OnnxFolder, read_folder
from codecompanion.adapters.embeddings.prefixes import prefixes_of
from codecompanion.errors import MalformedReply, NotConfigured
from codecompanion.model.embedding import EmbeddingSettings, Vector, unit_vector

TOKENS_IN_A_BATCH = 1_024
"""Maximum tokens in a batch, including padding. Larger batches are not faster (4,096: twice the memory, 10 % more
time).
"""
TEXTS_AT_ONCE = 64
MAX_THREADS = 4
_CHARS_PER_TOKEN = 12
"""Upper bound of characters per token (except in long runs of spaces); text beyond that is not tokenized."""
PACKAGES = ("onnxruntime", "tokenizers", "numpy")


class OnnxEmbedder:
    """One model in one folder; see `model.embedding.Embedder`. `threads` 0 means all cores but one, at most four."""

    is_paid = False
    batch_size = TEXTS_AT_ONCE

    def __init__(self, settings: EmbeddingSettings, *, threads: int = 0) -> None:
        """Check the files in the folder; raises `NotConfigured`."""
        self._folder = folder = read_folder(settings.onnx)
        known = prefixes_of(settings, folder.model.parent.name)
        self._query_prefix = known[0] or (folder.query_prefix if settings.query_prefix is None else "")
        self._document_prefix = known[1] or (folder.document_prefix if settings.document_prefix is None else "")
        mark = f" [{self._document_prefix.strip()[:40]}]" if self._document_prefix else ""
        self.name = f"onnx:{folder.digest}:{folder.max_tokens}{mark}"
        self.shortened = self.unusable = 0
        self._threads = threads or max(1, min(MAX_THREADS, (os.cpu_count() or 2) - 1))
        self._lock = threading.Lock()
        self._model: _Model | None = None

    def __repr__(self) -> str:
        """Show the name."""
        return f"OnnxEmbedder({self.name!r})"

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of code chunks."""
        return await self._embed([self._document_prefix + text if text.strip() else "" for text in texts])

    async def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return (await self._embed([self._query_prefix + text if text.strip() else ""]))[0]

    async def aclose(self) -> None:
        """Release the model."""
        self._model = None

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors = [unit_vector(()) for _ in texts]
        filled = [index for index, text in enumerate(texts) if text]
        for start in range(0, len(filled), TEXTS_AT_ONCE):
            indexes = filled[start : start + TEXTS_AT_ONCE]
            stop = threading.Event()
            try:
                found = await asyncio.to_thread(self._run, [texts[index] for index in indexes], stop)
            except asyncio.CancelledError:
                stop.set()
                raise
            for index, vector in zip(indexes, found, strict=True):
                vectors[index] = vector
        return vectors

    def _run(self, texts: Sequence[str], stop: threading.Event) -> list[Vector]:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder, self._threads)
            vectors, cut = self._model.embed(texts, stop)
        self.shortened += cut
        self.unusable += sum(not vector for vector in vectors)
        return vectors


def missing_packages() -> list[str]:
    """Return the extra's packages that are not installed, without importing any of them."""
    return [name for name in PACKAGES if find_spec(name) is None]


def _load(folder: OnnxFolder, threads: int) -> _Model:
    try:
        return _Model(folder, threads)
    except ImportError as error:
        missing = " and ".join(missing_packages()) or str(error)
        raise NotConfigured(
            f"embeddings: a local model needs {missing}, which this Python does not have. Run"
            f" :CodeCompanion install semantic, or pip install {' '.join(PACKAGES)}."
        ) from error
    except Exception as error:  # onnxruntime and tokenizers raise their own classes, and plain exceptions
        first = str(error).partition("\n")[0][:200]
        raise NotConfigured(f"embeddings: the model in {folder.model.parent} cannot be loaded ({first}).") from error


class _Model:
    """The loaded model and its tokenizer. Not thread-safe."""

    def __init__(self, folder: OnnxFolder, threads: int) -> None:
        import numpy
        import onnxruntime
        from tokenizers import Tokenizer

        self._numpy, self._pooling = numpy, folder.pooling
        self._tokenizer = Tokenizer.from_file(str(folder.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(folder.max_tokens)
        self._max_chars = folder.max_tokens * _CHARS_PER_TOKEN
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        # Spinning worker threads would take CPU time from the editor.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(folder.model), options, providers=["CPUExecutionProvider"])
        self._inputs = {one.name for one in self._session.get_inputs()}
        outputs = {one.name: one for one in self._session.get_outputs()}
        # Some exported models already pool.
        self._output = next((name for name in ("sentence_embedding",) if name in outputs), next(iter(outputs)))

    def embed(self, texts: Sequence[str], stop: threading.Event) -> tuple[list[Vector], int]:
        """Return the vectors and the number of truncated inputs. If `stop` is set, the remaining vectors are empty."""
        encodings = self._tokenizer.encode_batch([text[: self._max_chars] for text in texts])
        cut = sum(
            bool(encoding.overflowing) or len(text) > self._max_chars
            for encoding, text in zip(encodings, texts, strict=True)
        )
        vectors = [unit_vector(()) for _ in texts]
        for indexes in _batches([len(encoding.ids) for encoding in encodings]):
            if stop.is_set():
                break
            found = self._pooled([encodings[index].ids for index in indexes])
            for index, row in zip(indexes, found, strict=True):
                vectors[index] = array("f", row.tobytes()) if row.any() else unit_vector(())
        return vectors, cut

    def _pooled(self, rows: Sequence[Sequence[int]]) -> Any:
        """Return the vectors of token rows as float32, normalised to length 1, or all zeros if invalid."""
        np = self._numpy
        width = max(map(len, rows))
        ids = np.zeros((len(rows), width), np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        given |= {"position_ids": np.broadcast_to(np.arange(width, dtype=np.int64), ids.shape)}
        (states,) = self._session.run([self._output], {name: given[name] for name in self._inputs})
        states = states.astype(np.float32, copy=False)
        if states.ndim == 3:
            states = self._pool(states, mask)
        if states.ndim != 2 or len(states) != len(rows):
            raise MalformedReply("embeddings: the model returned no vector for a text. Is it an embedding model?")
        lengths = np.linalg.norm(states, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 0)
        return np.where(usable, states / np.where(usable, lengths, 1), 0).astype("<f4")

    def _pool(self, states: Any, mask: Any) -> Any:
        np = self._numpy
        if self._pooling == "first":
            return states[:, 0]
        if self._pooling == "last":
            return states[np.arange(len(states)), mask.sum(1) - 1]
        weights = mask[:, :, None].astype(np.float32)
        return (states * weights).sum(1) / weights.sum(1)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the inputs' indexes in batches of similar length, each with at most `TOKENS_IN_A_BATCH` tokens."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > TOKENS_IN_A_BATCH:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
