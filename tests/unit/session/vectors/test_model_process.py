"""The embedder of questions runs in its own process (R-239)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codecompanion.adapters.embeddings.onnx_embedder import OnnxEmbedder, missing_packages
from codecompanion.errors import NotConfigured
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.session.vectors.model_process import ProcessEmbedder
from tests.onnx_models import write_model_folder
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(bool(missing_packages()), reason=f"not installed: {' '.join(missing_packages())}")


@pytest.fixture
async def embedder(tmp_path: Path) -> AsyncIterator[ProcessEmbedder]:
    folder = write_model_folder(tmp_path, {"load": [3.0, 0.0], "file": [0.0, 4.0]})
    embedder = ProcessEmbedder(EmbeddingSettings(onnx=str(folder), query_prefix="load "))
    yield embedder
    await embedder.aclose()


async def test_questions_are_embedded_in_a_process_that_is_restarted(embedder: ProcessEmbedder) -> None:
    assert list(await embedder.embed_query("file")) == pytest.approx([0.6, 0.8])
    assert not await embedder.embed_query(" ")
    assert embedder.name == OnnxEmbedder(embedder._settings).name
    process = embedder._process
    assert process is not None
    process.kill()
    await process.wait()
    assert list(await embedder.embed_query("file file")) == pytest.approx([0.351, 0.936], abs=1e-3)
    # A question that is given up leaves its answer in the pipe: the next one gets its own.
    before = embedder._last_id
    given_up = asyncio.create_task(embedder.embed_query("load load load"))
    async with asyncio.timeout(PATIENCE_S):
        while embedder._last_id == before:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    assert list(await embedder.embed_query("file")) == pytest.approx([0.6, 0.8])


async def test_an_error_is_returned_as_a_sentence(tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path, {"load": [3.0, 0.0]})
    (folder / "model.onnx").write_bytes(b"no model")
    embedder = ProcessEmbedder(EmbeddingSettings(onnx=str(folder)))
    with pytest.raises(NotConfigured, match="cannot be loaded"):
        await embedder.embed_query("load")
    (folder / "tokenizer.json").unlink()
    await embedder.aclose()
    with pytest.raises(NotConfigured, match="ended without an answer"):
        await embedder.embed_query("load")


async def test_a_missing_python_is_a_sentence(embedder: ProcessEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/never/python")
    with pytest.raises(NotConfigured, match=r"the model cannot be run \("):
        await embedder.embed_query("load")
