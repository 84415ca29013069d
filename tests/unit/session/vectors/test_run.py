"""Computing the vectors of an index: resumed, stopped, reported (R-239)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from codecompanion.errors import AuthenticationFailed, RequestRejected
from codecompanion.model.code import CodeChunk, ParsedFile
from codecompanion.model.embedding import EmbeddingSettings, Vector, unit_vector
from codecompanion.retrieval.search.embedding_text import MAX_CHARS, embedding_text
from codecompanion.session.vectors.estimate import FREE_TOKENS, Estimate, estimate_run
from codecompanion.session.vectors.run import MAX_REFUSED, Run, make_vectors
from codecompanion.store.code_index.build_lock import building
from codecompanion.store.code_index.index_tables import index_path
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.store.code_index.vectors import Missing
from tests.leftovers import closed_at_end
from tests.providers.embeddings.hashing import hashed_vector


class HashedWords:
    """An embedder without a model. It refuses texts with the word `poison`, and fails after `good` texts."""

    name = "hashed"
    is_paid = False
    batch_size = 4

    def __init__(self, good: int = 10**9) -> None:
        self.texts: list[str] = []
        self.shortened = self.unusable = 0
        self._good = good

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        if any("poison" in text for text in texts):
            raise RequestRejected("embeddings: the provider refused the request (400).")
        if len(self.texts) + len(texts) > self._good:
            raise AuthenticationFailed("embeddings: the key was refused (401).")
        self.texts += texts
        return [unit_vector(hashed_vector(text) if text else ()) for text in texts]

    async def embed_query(self, text: str) -> Vector:
        return (await self.embed([text]))[0]

    async def aclose(self) -> None:
        return


class Project:
    """Files and their index. `read` returns the current chunks of a file."""

    def __init__(self, folder: Path) -> None:
        self.path = index_path(folder, Path("/project"))
        self.files: dict[str, list[str]] = {}
        self.read_paths: list[str] = []
        self._writer = closed_at_end(IndexWriter(self.path, Path("/project")))

    def chunks(self, path: str) -> list[CodeChunk]:
        return [CodeChunk(path, row, row, text, f"name{row}") for row, text in enumerate(self.files.get(path, ()), 1)]

    def read(self, path: str) -> list[CodeChunk]:
        self.read_paths.append(path)
        return self.chunks(path)

    def put(self, path: str, *texts: str) -> None:
        self.files[path] = list(texts)
        size = sum(map(len, texts))
        self._writer.put([IndexedFile(path, 1, size, b"x" * 32, 9, ParsedFile(), self.chunks(path))], now=1)

    def vectors(self) -> int:
        return closed_at_end(IndexReader(self.path)).counts().vectors


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    for number in range(6):
        project.put(f"src/{number}.py", f"def load_{number}(): one", f"def save_{number}(): two")
    return project


async def test_every_chunk_gets_a_vector_once(project: Project) -> None:
    embedder, told = HashedWords(), list[tuple[int, int]]()
    run = await make_vectors(project.path, embedder, project.read, report=lambda *figures: told.append(figures))
    assert run == Run(vectors=12)
    assert told == [(4, 12), (8, 12), (12, 12)]
    assert project.vectors() == 12
    assert embedder.texts[0] == "src/0.py\nname1\ndef load_0(): one"
    assert await make_vectors(project.path, embedder, project.read) == Run()
    assert len(embedder.texts) == 12


async def test_a_hanging_endpoint_ends_an_awaited_run(project: Project) -> None:
    """R-203: `gather --embed` took 245 s; the computed vectors stay."""

    class Hangs(HashedWords):
        async def embed(self, texts: Sequence[str]) -> list[Vector]:
            if self.texts:
                await asyncio.Event().wait()
            return await super().embed(texts)

    run = await make_vectors(project.path, Hangs(), project.read, limit_s=0.05)
    assert (run.vectors, run.missing, run.why) == (4, 8, "embeddings: no vectors within 0.05 s.")
    assert project.vectors() == 4


async def test_a_stopped_run_continues_where_it_ended(project: Project) -> None:
    """Stored vectors stay, whatever ended the run; the second run reads only the files that need it."""
    first = HashedWords(good=8)
    run = await make_vectors(project.path, first, project.read)
    assert (run.vectors, run.missing, run.why) == (8, 4, "embeddings: the key was refused (401).")
    said = (
        "embeddings: the key was refused (401). 4 pieces of code have no vector yet; keyword search still finds them."
    )
    assert run.notes == (said,)
    second = HashedWords()
    project.read_paths.clear()
    assert await make_vectors(project.path, second, project.read) == Run(vectors=4)
    assert len(second.texts) == 4
    assert project.read_paths == ["src/4.py", "src/5.py"]


async def test_only_changed_texts_are_embedded_once(project: Project) -> None:
    embedder = HashedWords()
    await make_vectors(project.path, embedder, project.read)
    project.put("src/copy.py", *project.files["src/0.py"])
    project.put("src/1.py", "def load_1(): one", "def save_1(): changed")
    embedder.texts.clear()
    assert await make_vectors(project.path, embedder, project.read) == Run(vectors=1)
    assert embedder.texts == ["src/1.py\nname2\ndef save_1(): changed"]


async def test_a_text_refused_by_the_model_costs_only_itself(project: Project) -> None:
    project.put("src/9.py", "poison", "def fine(): pass")
    run = await make_vectors(project.path, HashedWords(), project.read)
    assert (run.vectors, run.missing, run.unusable, run.why) == (13, 0, 1, "")
    assert run.notes == ("1 of the texts got no usable vector; keyword search still finds them.",)


async def test_a_model_that_refuses_everything_is_asked_only_a_few_times(tmp_path: Path) -> None:
    """It is not asked once for each of a hundred thousand texts."""
    project = Project(tmp_path)
    project.put("a.py", *(f"poison {number}" for number in range(64)))
    run = await make_vectors(project.path, HashedWords(), project.read)
    assert run.why.startswith("embeddings: the provider refused")
    project.put("0.py", "def fine(): pass")
    project.put("a.py", "def good(): pass", *(f"poison {number}" for number in range(64)))
    run = await make_vectors(project.path, HashedWords(), project.read)
    assert run.why
    assert run.unusable == MAX_REFUSED + 1


async def test_a_file_deleted_meanwhile_is_left_for_the_next_run(project: Project) -> None:
    del project.files["src/3.py"]
    run = await make_vectors(project.path, HashedWords(), project.read)
    assert (run.vectors, run.missing, run.why) == (10, 2, "")


async def test_only_one_process_computes_them(project: Project) -> None:
    with building(project.path.with_suffix(".vectors")):
        assert (await make_vectors(project.path, HashedWords(), project.read)).is_busy
    assert project.vectors() == 0


def test_an_embedded_text_is_short_and_begins_with_its_place() -> None:
    long = embedding_text(CodeChunk("src/a.py", 1, 9, "  def f():\n" + "x" * 9_999, "Box.f"))
    assert long.startswith("src/a.py\nBox.f\ndef f():\n")
    assert len(long) == len("src/a.py\nBox.f\n") + MAX_CHARS
    assert embedding_text(CodeChunk("a.md", 1, 1, "hello")) == "a.md\nhello"
    assert embedding_text(CodeChunk("a.md", 1, 1, " \n ")) == ""


def test_the_price_is_estimated_in_advance() -> None:
    missing = [Missing("a.py", 5_000, 10_000, 20_000_000), Missing("b.py", 100, 100, 1_000)]
    openai = EmbeddingSettings(url="https://api.openai.com/v1", model="text-embedding-3-small")
    found = estimate_run(missing, openai, is_paid=True)
    assert found.chunks == 5_100
    assert found.tokens == pytest.approx(5_000 * (MAX_CHARS + 50) / 3.2 + 100 * 60 / 3.2, rel=0.01)
    assert found.usd == pytest.approx(found.tokens * 0.02 / 1e6)
    assert found.sentence == "5,100 pieces of code, about 392k tokens, about $0.01"
    assert not found.is_large
    large = openai.__class__(url="https://api.openai.com/v1", model="text-embedding-3-large")
    assert estimate_run(missing * 2, large, is_paid=True).is_large
    unknown = EmbeddingSettings(url="https://api.nobody.test/v1", model="m")
    assert estimate_run(missing, unknown, is_paid=True).sentence.endswith("about 392k tokens, at an unknown price")
    assert Estimate(1, FREE_TOKENS + 1, None, is_paid=True).is_large
    assert not Estimate(1, 10**9, None, is_paid=False).is_large
    assert estimate_run(missing, unknown, is_paid=False).sentence == "5,100 pieces of code, about 392k tokens"
