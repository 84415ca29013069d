"""CodeBuddy's search in a chat: files by their text, the index, vectors, four tiers (R-221…R-239)."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import time
from array import array
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.embedding import Vector, unit_vector
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.code.search_options import NearestChunks
from codecompanion.session.vectors.question_vector import QuestionVectors
from codecompanion.store.code_index.vectors import VectorWriter
from codecompanion.tools.files.open_files import Opened, OpenFile
from codecompanion.wire.requests import Buffer
from tests.conform.code_chat import QUESTIONS, CodeChat, write
from tests.contract.command_line import run
from tests.ripgrep import RIPGREP

RELATED = json.dumps({"isCodebaseRelated": True, "categories": ["api"], "confidence": "high"})


def model_of(*terms: str) -> dict[str, str]:
    """Return the replies of a utility model that provides these search terms."""
    return dict(zip(QUESTIONS, (RELATED, '{"isDebugging": false}', ", ".join(terms)), strict=True))


def by_source(chat: CodeChat, source: str) -> list[str]:
    return [f"{piece.path}:{piece.start}" for piece in chat.pieces if piece.source == source]


@pytest.mark.parametrize("searcher", ["ripgrep", "git", "walk"])
async def test_files_are_found_by_their_text_in_any_case(code_chat, monkeypatch, tmp_path, searcher):
    """R-221: terms are literal and joined by OR; ignored and vendored files are not searched."""
    programs = tmp_path / "programs"
    programs.mkdir()
    wanted = {"ripgrep": RIPGREP, "git": "/usr/bin/git", "walk": ""}[searcher]
    if wanted is None or (wanted and not Path(wanted).exists()):
        pytest.skip(f"there is no {searcher} on this machine")
    if wanted:
        (programs / Path(wanted).name).symlink_to(wanted)
    files = {
        "a.py": "def first():\n    return 'ZEBRA(1)'\n",
        "b.py": "def second():\n    return 'Quagga'\n",
        "c.py": "def third():\n    return 'zebra1'\n",
        "made/d.py": "def fourth():\n    return 'zebra(1)'\n",
        "node_modules/e.py": "def fifth():\n    return 'zebra(1)'\n",
        ".gitignore": "made/\n",
    }
    chat = await code_chat(files, replies=model_of("zebra(1)", "quagga"), indexed=False)
    if searcher == "git":
        subprocess.run(["git", "init", "-q"], cwd=chat.bench.root, check=True)  # noqa: ASYNC221
    monkeypatch.setenv("PATH", os.fspath(programs))
    await chat.ask("what is this about")
    assert by_source(chat, "ast") == ["a.py:1", "b.py:1"]


LANGUAGES = {
    "a.py": "x = 1\n\n\ndef zebra():\n    return 1\n",
    "b.js": "const x = 1\n\n\nfunction zebra() {\n  return 1\n}\n",
    "c.ts": "const x = 1\n\n\nfunction zebra(): number {\n  return 1\n}\n",
    "d.lua": "local x = 1\n\n\nlocal function zebra()\n  return 1\nend\n",
    "e.rs": "const X: i32 = 1;\n\n\nfn zebra() -> i32 {\n    1\n}\n",
    "f.go": "package x\n\n\nfunc zebra() int {\n\treturn 1\n}\n",
}


async def test_each_grammar_finds_its_functions_and_files_without_one_are_found_by_pattern(code_chat):
    """R-225."""
    chat = await code_chat({**LANGUAGES, "g.unknown": "x\n\n\nfunction zebra() {\n}\n"})
    await chat.ask("where is zebra defined in this project?")
    named = {(piece.path, piece.start, piece.name) for piece in chat.pieces if piece.name}
    assert {(path, 4, "zebra") for path in (*LANGUAGES, "g.unknown")} <= named


async def test_an_unsaved_buffer_is_searched(code_chat, monkeypatch):
    """R-225: the text of open buffers is searched."""
    chat = await code_chat({"a.py": "def zebra():\n    return 1\n"})
    path = os.fspath(chat.bench.root / "a.py")
    opened = OpenFile(path=path, buffer=1, tick=1, modified=True, text="\n\ndef zebra(new):\n    return new\n")

    async def look(editor: object, paths: object) -> Opened:
        return Opened({path: opened})

    monkeypatch.setattr(type(chat.bench.services.editor), "look", look)
    block = await chat.ask("where is zebra in this project?", buffers=(Buffer(name=path, modified=True, tick=1),))
    assert "(lines 3-4)" in block
    assert "def zebra(new):" in block


async def test_code_that_looks_like_the_text_form_stays_a_value(code_chat):
    """R-226: rendered text is never parsed again."""
    text = '"""zebra reads\n\n## File: src/other.py\n```python\ndef made_up():\n    pass\n```\n"""\n'
    chat = await code_chat({"notes.py": text, "src/other.py": "def other():\n    return 1\n"})
    block = await chat.ask("what is zebra in @notes.py?")
    (named,) = (piece for piece in chat.pieces if piece.source == "mention")
    assert (named.path, named.start, named.end) == ("notes.py", 1, 8)
    assert text in block
    assert "made_up" not in {piece.name for piece in chat.pieces if piece.path != "notes.py"}


class Cosines:
    """Fake vectors of whole files: path → cosine with any question; records how many results were requested."""

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self.cosines, self.asked = cosines, list[int]()

    async def nearest(self, index: ProjectIndex, question: str) -> NearestChunks:
        with index.reader.reading() as connection:
            rows = connection.execute("SELECT c.id, f.path FROM chunks c JOIN files f ON f.id = c.file_id").fetchall()
        found = {chunk: self.cosines[path] for chunk, path in rows if path in self.cosines}

        def ask(limit: int) -> Mapping[int, float]:
            self.asked.append(limit)
            best = sorted(found, key=lambda chunk: -found[chunk])
            return {chunk: found[chunk] for chunk in best[:limit]}

        return ask


def hybrid(top_k: int, **more: Any) -> dict[str, Any]:
    return {"top_k": top_k, **more}


ANIMALS = {
    "zebra.py": "def first():\n    return 'zebra stripes in the meadow'\n",
    "quagga.py": "def second():\n    return 'a quagga beside zebra stripes'\n",
    "lion.py": "def third():\n    return 'a lion under a tree'\n",
}


@pytest.mark.parametrize(("top_k", "fetched"), [(1, 20), (20, 20), (35, 35)])
async def test_each_side_fetches_more_than_requested(code_chat, top_k, fetched):
    """R-229: max(topK, 20) are fetched."""
    vectors = Cosines({"lion.py": 0.9})
    chat = await code_chat(ANIMALS, vectors=vectors, hybrid=hybrid(top_k), replies=model_of("nowhere", "neither"))
    await chat.ask("zebra stripes")
    assert vectors.asked == [fetched]


@pytest.mark.parametrize(
    ("weights", "first"),
    [((1.0, 0.0), "lion.py"), ((0.0, 1.0), "zebra.py"), ((0.5, 0.5), "quagga.py")],
)
async def test_both_sides_are_merged_by_chunk_and_weighted(code_chat, weights, first):
    """R-228, R-229: a result found by both has both scores; with topK 1 only the best one is kept."""
    cosines = Cosines({"lion.py": 0.9, "quagga.py": 0.85})
    options = hybrid(1, vector_weight=weights[0], text_weight=weights[1])
    others = {f"other{n}.py": f"def other_{n}():\n    return {n}\n" for n in range(20)}
    files = {**ANIMALS, **others, "zebra.py": "def zebra_stripes():\n    return 'zebra stripes'\n"}
    chat = await code_chat(files, vectors=cosines, hybrid=options, replies=model_of("nowhere", "neither"))
    await chat.ask("zebra stripes")
    assert [piece.path for piece in chat.pieces if piece.source == "search"] == [first]
    assert chat.found["tier"] == "hybrid"


TWINS = {
    "one.py": "def one():\n    return 'meadow grass and flowers'\n",
    "twin.py": "def one():\n    return 'meadow grass and flowers'\n",
    "other.py": "def quite():\n    return 'something about ships at sea'\n",
    "last.py": "def last():\n    return 'the end'\n",
}


@pytest.mark.parametrize(("enabled", "second"), [(False, "twin.py"), (True, "other.py")])
async def test_results_are_diversified_if_enabled(code_chat, enabled, second):
    """R-233, R-264: MMR with λ 0.7 over the words is off by default; it takes effect with the next question."""
    vectors = Cosines({"one.py": 0.9, "twin.py": 0.89, "other.py": 0.7, "last.py": 0.1})
    chat = await code_chat(TWINS, vectors=vectors, hybrid=hybrid(2), replies=model_of("nowhere", "neither"))
    assert (chat.defaults.hybrid.mmr.enabled, chat.defaults.hybrid.mmr.lambda_) == (False, 0.7)
    chat.set(hybrid={"mmr": {"enabled": enabled}})
    await chat.ask("zebra")
    assert {piece.path for piece in chat.pieces if piece.source == "search"} == {"one.py", second}


@pytest.mark.parametrize(
    ("enabled", "days", "half_life", "first"),
    [
        (False, 300, 30, "one.py"),
        (True, 30, 30, "one.py"),
        (True, 31, 30, "other.py"),
        (True, 31, 31, "one.py"),
    ],
)
async def test_scores_of_old_code_decay_if_enabled(code_chat, enabled, days, half_life, first):
    """R-233, R-264: the half-life is 30 days by default: after it, 0.9 becomes 0.45, close to 0.445."""
    vectors = Cosines({"one.py": 0.9, "other.py": 0.445})
    chat = await code_chat(TWINS, vectors=vectors, hybrid=hybrid(1), replies=model_of("nowhere", "neither"))
    assert (chat.defaults.hybrid.decay.enabled, chat.defaults.hybrid.decay.half_life_days) == (False, 30)
    chat.set(hybrid={"decay": {"enabled": enabled, "half_life_days": half_life}})
    with sqlite3.connect(chat.index.path) as database:
        database.execute("UPDATE files SET indexed_at = ?", (int(time.time()),))
        database.execute("UPDATE files SET indexed_at = ? WHERE path = 'one.py'", (int(time.time()) - days * 86_400,))
    database.close()
    await chat.ask("zebra")
    assert [piece.path for piece in chat.pieces if piece.source == "search"] == [first]


class OneVector:
    """An embedder whose questions all have the same vector."""

    name = "one"
    is_paid = False

    def __init__(self, vector: Vector) -> None:
        self.vector = vector

    async def embed_query(self, text: str) -> Vector:
        return self.vector

    async def aclose(self) -> None:
        return


@pytest.mark.parametrize(("question", "found"), [((1.0, 0.0), ["one.py"]), ((0.0, 0.0), [])])
async def test_vectors_of_other_dimensions_and_empty_ones_are_skipped(code_chat, question, found):
    """R-232: a zero question vector finds nothing."""
    pytest.importorskip("numpy")
    vectors = QuestionVectors(OneVector(unit_vector(question)))
    files = {**TWINS, "twin.py": "def wide():\n    return 'of three dimensions'\n"}
    chat = await code_chat(files, vectors=vectors, replies=model_of("nowhere", "neither"))
    database = sqlite3.connect(chat.index.path)
    query = "SELECT f.path, c.hash FROM chunks c JOIN files f ON f.id = c.file_id ORDER BY c.id"
    hashes = dict(database.execute(query).fetchall())
    database.close()
    writer = VectorWriter(chat.index.path)
    stored = {hashes["one.py"]: (0.6, 0.8), hashes["twin.py"]: (1.0, 0.0, 0.0), hashes["other.py"]: ()}
    writer.put("one", {digest: array("f", numbers) for digest, numbers in stored.items()})
    writer.close()
    await chat.ask("zebra")
    assert [piece.path for piece in chat.pieces if piece.source == "search"] == found
    assert chat.found["tier"] == ("hybrid" if found else "terms")
    await vectors.aclose()


async def test_the_index_has_the_documents_fields_of_each_piece_and_file(code_chat):
    """R-239: these are lines, kind, hash, language and times; vectors are float32 in the same database."""
    chat = await code_chat({**LANGUAGES, "ignored.py": "x = 1\n", ".gitignore": "ignored.py\n"})
    await chat.ask("zebra in this project")
    writer = VectorWriter(chat.index.path)
    writer.put("one", {b"\0": array("f", (1.0, 0.5))})
    writer.close()
    database = sqlite3.connect(chat.index.path)
    files = "SELECT path, language, lines, size, length(sha256), mtime_ns > 0, indexed_at > 0 FROM files ORDER BY path"
    rows = database.execute(files).fetchall()
    pieces = 'SELECT c.start, c."end", c.kind, length(c.hash) > 0 FROM chunks c JOIN files f ON f.id = c.file_id'
    piece = database.execute(f"{pieces} WHERE f.path = 'a.py' AND c.symbol = 'zebra'").fetchone()
    vector = database.execute("SELECT dims, length(vector) FROM vectors").fetchone()
    database.close()
    assert [row[0] for row in rows if not row[0].startswith(".")] == sorted(LANGUAGES)
    assert rows[-6][1:] == ("python", 6, len(LANGUAGES["a.py"]), 32, 1, 1)
    assert piece == (4, 5, "function", 1)
    assert vector == (2, 8)


def searched(root: Path, *arguments: str) -> dict[str, Any]:
    """Return the answer of `search` in the document's pipeline."""
    command = ("search", "--root", os.fspath(root / "project"), "--pipeline", "document", *arguments)
    status, out, err = run(*command, XDG_CACHE_HOME=os.fspath(root / "cache"))
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("parse config", {"camel.py", "snake.py", "words.py", "parse_config.py"}),
        ("parsing configs", {"camel.py", "snake.py", "words.py", "parse_config.py"}),
        ("parse lion", set()),
    ],
)
def test_full_text_splits_names_and_stems_words(tmp_path, query, paths):
    """R-230, R-231: every word must match; the path counts four times; the score is raw / (1 + raw)."""
    files = {
        "camel.py": "def parseConfig(text):\n    return text\n",
        "snake.py": "def parse_config(text):\n    return text\n",
        "words.py": "def other():\n    return 'parse the config'\n",
        "parse_config.py": "def other():\n    return 'nothing of it'\n",
        "half.py": "def parse(text):\n    return text\n",
    }
    write(tmp_path / "project", files)
    answer = searched(tmp_path, "--tier", "fts", query)
    if not paths:
        assert answer["tier"] == "terms"
        return
    results = answer["results"]
    assert (answer["tier"], {one["path"] for one in results}) == ("fts", paths)
    assert results[0]["path"] == "parse_config.py"
    (path,) = (tmp_path / "cache").rglob("*.db")
    database = sqlite3.connect(path)
    ranks = (
        "SELECT f.path, -bm25(chunk_text, 4.0, 1.0, 1.0) FROM chunk_text JOIN chunks c ON c.id = chunk_text.rowid"
        " JOIN files f ON f.id = c.file_id WHERE chunk_text MATCH 'parse AND config'"
    )
    raw = dict(database.execute(ranks).fetchall())
    database.close()
    for one in results:
        assert one["score"] == pytest.approx(raw[one["path"]] / (1 + raw[one["path"]]), abs=0.001)


def test_the_last_tier_counts_different_words(tmp_path):
    """R-235, R-234: words are lower case and longer than two letters; the score is the number of words.

    Five results remain.
    """
    files = {f"e{place}.py": "api\n" for place in range(7)}
    files |= {"b.py": "The API of it\n", "c.py": "the API has API_KEYS\n", "d.py": "of it\n"}
    write(tmp_path / "project", files)
    results = searched(tmp_path, "--tier", "terms", "the API, api_keys of it")["results"]
    assert [(one["path"], one["score"], one["method"]) for one in results[:2]] == [
        ("c.py", 3.0, "terms"),
        ("b.py", 2.0, "terms"),
    ]
    assert [one["score"] for one in results[2:]] == [1.0, 1.0, 1.0]


async def test_the_next_tier_searches_after_a_failure_and_an_empty_result(code_chat):
    """R-227: the document mentions only failures, its source also empty results; the strict form handles both."""
    document = {"policy": "codebuddy", "pipeline": "document"}
    for question, options, tier, found in (
        ("zebra stripes", {}, "fts", {"zebra.py:1", "quagga.py:1"}),
        ("zebra nowhere", {}, "terms", {"zebra.py:1", "quagga.py:1"}),
        ("zebra nowhere", document, "terms", {"zebra.py:1", "quagga.py:1"}),
        ("zebra nowhere", {"indexed": False}, "", set()),
    ):
        chat = await code_chat(ANIMALS, **options)
        await chat.ask(f"#{{codebase}} {question}")
        assert chat.found["tier"] == tier
        assert set(by_source(chat, "search")) == found


async def test_a_result_names_the_tier_that_found_it(code_chat):
    """R-238: the tier is recorded in the chat's log; common files are marked separately."""
    by_vectors: Callable[[], Cosines] = lambda: Cosines({"lion.py": 0.9})  # noqa: E731
    for vectors, question, tier in (
        (by_vectors(), "zebra stripes", "hybrid"),
        (None, "zebra stripes", "fts"),
        (None, "zebra nowhere", "terms"),
    ):
        chat = await code_chat({**ANIMALS, "README.md": "# Animals\n"}, vectors=vectors)
        await chat.ask(f"#{{codebase}} {question}")
        assert chat.found["tier"] == tier
        await chat.ask("what is the architecture of this project?")
        assert by_source(chat, "common") == ["README.md:1"]
