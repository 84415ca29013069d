"""Vectors computed by a real background process, and questions that use them (R-227, R-239)."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.keys.key_source import KeyReader
from codecompanion.model.embedding import EmbeddingSettings
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_code import search_code
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.vectors import estimate
from codecompanion.session.vectors.project_vectors import ProjectVectors
from codecompanion.session.vectors.vector_process import VectorJob, carry_out
from codecompanion.workspace.project_files import Choice
from tests.onnx_models import write_model_folder
from tests.providers.embeddings.server import EmbeddingServer, EmbeddingServerThread

KEY = "sk-proj-aBcD1234efGH5678"
FILES = {
    "src/login.py": "def signin(user):\n    return user.token\n",
    "src/paint.py": "def draw_window(screen):\n    return screen.paint()\n",
    "src/mail.py": "def send_mail(address):\n    return smtp(address)\n",
}


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[ProjectIndex]:
    """Return the complete index of a small project."""
    root = tmp_path / "project"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    index = ProjectIndex(root, tmp_path / "cache")
    build(index.root, index.path, index.choice, now_ns=time.time_ns)
    yield index
    await index.close()


def vectors_on(server: EmbeddingServer, told: list[str], **fields: Any) -> ProjectVectors:
    settings = EmbeddingSettings(**{"url": server.url, "model": "test-embedding", **fields})
    return ProjectVectors(settings, KeyReader(environ={"EMBED_KEY": KEY}), told.append)


async def test_a_question_starts_the_embedding_and_the_next_one_searches_by_meaning(index: ProjectIndex) -> None:
    """`auth` and `login` share no letter with `signin`; the fake model knows that they are synonyms."""
    pytest.importorskip("numpy")
    told: list[str] = []
    with EmbeddingServerThread("ollama", key=KEY) as server:
        vectors = vectors_on(server, told, key="EMBED_KEY")
        options = SearchOptions(tier="vector", with_common=False)
        first = await search_code(index, "where is auth done", options, vectors)
        assert "vector search: the code has no vectors from this model yet" in " ".join(first.not_used)
        await vectors.wait(index)
        assert (await index.counts()).vectors == 3
        second = await search_code(index, "where is auth done", options, vectors)
        assert (second.tier, second.results[0].path) == ("vector", "src/login.py")
        joined = await search_code(index, "where is auth done", SearchOptions(with_common=False), vectors)
        assert joined.results[0].path == "src/login.py"
        texts = len(server.texts)
        await vectors.wait(index)
        assert len(server.texts) == texts, "nothing is missing: nothing is made"
        (index.root / "src" / "new.py").write_text("def encrypt_disk(): pass\n")
        await search_code(index, "where is auth done", options, vectors)
        await vectors.wait(index)
        assert server.texts[texts:] == ["src/new.py\nencrypt_disk\ndef encrypt_disk(): pass"]
        assert told == []
        await vectors.aclose()


async def test_a_failure_is_reported_once_and_words_are_used(index: ProjectIndex) -> None:
    told: list[str] = []
    with EmbeddingServerThread("ollama", key="another") as server:
        vectors = vectors_on(server, told, key="EMBED_KEY")
        for _ in range(3):
            found = await search_code(index, "where is mail sent", SearchOptions(), vectors)
            assert found.results[0].path == "src/mail.py"
            await vectors.wait(index)
        (said,) = told
        assert said.startswith("embeddings: the key in ")
        assert said.endswith("3 pieces of code have no vector yet; keyword search still finds them.")
        assert KEY not in said
        assert vectors.problem(index) == said, "`index status` shows it"
        assert len(server.requests) == 1
        await vectors.aclose()


async def test_unusable_settings_are_reported_once(index: ProjectIndex, tmp_path: Path) -> None:
    told: list[str] = []
    vectors = ProjectVectors(EmbeddingSettings(onnx=str(tmp_path / "none")), KeyReader(environ={}), told.append)
    for _ in range(2):
        found = await search_code(index, "mail", SearchOptions(), vectors)
        assert found.results
    assert len(told) == 1
    assert "there is no such folder" in told[0]
    await vectors.aclose()


async def test_a_local_model_is_run_by_the_worker(index: ProjectIndex, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    folder = write_model_folder(tmp_path / "model", {"mail": [1.0, 0.0], "screen": [0.0, 1.0], "user": [-1.0, 0.5]})
    vectors = ProjectVectors(EmbeddingSettings(onnx=str(folder)), KeyReader(environ={}), lambda text: None)
    assert await vectors.make(index) == ""
    await vectors.wait(index)
    found = await search_code(index, "screen", SearchOptions(tier="vector", with_common=False), vectors)
    assert (found.tier, found.results[0].path) == ("vector", "src/paint.py")
    await vectors.aclose()


async def test_a_large_paid_run_waits_for_the_user(index: ProjectIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "FREE_TOKENS", 10)
    settings = EmbeddingSettings(url="https://api.nobody.test/v1", model="m")
    job = VectorJob(os.fsencode(index.root), os.fsencode(index.path), Choice(), settings, KEY)
    assert KEY not in repr(job)
    made = carry_out_in_thread(job)
    assert (made.vectors, made.missing) == (0, 3)
    said = "Semantic search needs vectors for 3 pieces of code, about "
    assert made.why.startswith(said)
    assert made.why.endswith(" tokens, at an unknown price. :CodeCompanion index creates them.")


def carry_out_in_thread(job: VectorJob) -> Any:
    """Run the job like its process: in its own event loop."""
    import threading

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(carry_out(job, lambda done, total: None)))
    thread.start()
    thread.join()
    return found[0]


def test_the_workers_environment_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from codecompanion.session.code.index_process import worker_environment

    monkeypatch.setenv("EMBED_KEY", KEY)
    assert KEY in os.environ.values()
    assert KEY not in worker_environment().values()
