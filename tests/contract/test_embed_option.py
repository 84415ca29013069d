"""`--embed SPEC` of `index` and `search`: a stable contract, as seen by an outside caller (R-227, R-239)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codecompanion.adapters.embeddings.onnx_embedder import missing_packages
from tests.contract.command_line import run
from tests.onnx_models import write_model_folder
from tests.providers.embeddings.server import EmbeddingServerThread

KEY = "sk-proj-aBcD1234efGH5678"
FILES = {
    "src/login.py": "def signin(user):\n    return user.token\n",
    "src/paint.py": "def draw_window(screen):\n    return screen.paint()\n",
    "src/mail.py": "def send_mail(address):\n    return smtp(address)\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def test_an_endpoint_computes_the_vectors_once_and_search_uses_them(root: Path, tmp_path: Path) -> None:
    """The search succeeds although no file contains the question's words; the key is in no output."""
    pytest.importorskip("numpy")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "MY_EMBED_KEY": KEY}
    with EmbeddingServerThread("ollama", key=KEY) as server:
        spec = f"url={server.url},model=test-embedding,key=MY_EMBED_KEY"
        status, out, err = run("index", "--root", str(root), "--embed", spec, **environment)
        assert (status, err) == (0, "")
        assert json.loads(out)["vectors"] == 3
        assert len(server.texts) == 3
        status, out, _ = run("index", "--root", str(root), "--embed", spec, "--rebuild", **environment)
        assert json.loads(out)["vectors"] == 3
        assert len(server.texts) == 3, "a rebuilt index keeps its vectors"
        jobs = [
            {"query": "auth", "options": {"root": str(root), "tier": tier, "top_k": 2, "embed": spec}}
            for tier in ("vector", "hybrid", "auto")
        ]
        jobs.append({"query": "auth", "options": {"root": str(root), "embed": "nothing"}})
        lines = "".join(json.dumps(job) + "\n" for job in jobs)
        status, out, err = run("search", "--jobs", stdin=lines, **environment)
        answers = [json.loads(line) for line in out.splitlines()]
        assert [answer.get("tier") for answer in answers] == ["vector", "hybrid", "hybrid", None]
        assert [answer["results"][0]["path"] for answer in answers[:3]] == ["src/login.py"] * 3
        assert "expected url=…,model=…[,key=ENV] or onnx=FOLDER" in answers[3]["error"]
        assert status == 2
        assert KEY not in out + err
        assert len(server.texts) == 4, "one question, embedded once"


def test_a_tier_of_words_asks_no_model_unless_it_finds_nothing(root: Path, tmp_path: Path) -> None:
    """A SPEC given for the keyword tier costs nothing while words find results (R-227: else the tier steps down)."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "MY_EMBED_KEY": KEY}
    with EmbeddingServerThread("ollama", key=KEY) as server:
        spec = f"url={server.url},model=test-embedding,key=MY_EMBED_KEY"
        for tier in ("fts", "terms"):
            command = ("search", "--root", str(root), "--embed", spec, "--tier", tier, "draw_window")
            status, out, err = run(*command, **environment)
            answer = json.loads(out)
            assert (status, err) == (0, "")
            assert (answer["tier"], answer["results"][0]["path"]) == (tier, "src/paint.py")
        assert server.requests == []
        pytest.importorskip("numpy")
        command = ("search", "--root", str(root), "--embed", spec, "--tier", "fts", "auth")
        status, out, _ = run(*command, **environment)
        answer = json.loads(out)
        assert (answer["tier"], answer["results"][0]["path"]) == ("vector", "src/login.py")
        assert len(server.texts) == 4


@pytest.mark.skipif(bool(missing_packages()), reason=f"not installed: {' '.join(missing_packages())}")
def test_a_local_folder_computes_them_too(root: Path, tmp_path: Path) -> None:
    folder = write_model_folder(tmp_path / "model", {"mail": [1.0, 0.0], "screen": [0.0, 1.0], "user": [-1.0, 0.5]})
    cache = str(tmp_path / "cache")
    command = ("search", "--root", str(root), "--embed", f"onnx={folder}", "--tier", "vector", "screen")
    status, out, _ = run(*command, XDG_CACHE_HOME=cache)
    assert status == 0
    answer = json.loads(out)
    assert (answer["tier"], answer["results"][0]["path"]) == ("vector", "src/paint.py")
    assert answer["results"][0]["score"] > 0.8


def test_trouble_is_reported_on_standard_error_and_words_are_used(root: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    with EmbeddingServerThread("ollama", key="another") as server:
        spec = f"url={server.url},model=test-embedding,key=MY_EMBED_KEY"
        environment = {"XDG_CACHE_HOME": cache, "MY_EMBED_KEY": KEY}
        status, out, err = run("index", "--root", str(root), "--embed", spec, **environment)
        assert (status, json.loads(out)["vectors"]) == (1, 0)
        assert "the key in MY_EMBED_KEY was refused (401). Check the key" in err
        assert "3 pieces of code have no vector yet" in err
        status, out, err = run("search", "--root", str(root), "--embed", spec, "send mail", **environment)
        assert (status, json.loads(out)["results"][0]["path"]) == (0, "src/mail.py")
        assert KEY not in out + err


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nomic", "expected url=…,model=…[,key=ENV] or onnx=FOLDER"),
        ("onnx=/never", "there is no such folder; expected a folder with model.onnx and tokenizer.json"),
        (f"url=http://a.test,model=m,key={KEY}", "expected an environment variable"),
    ],
)
def test_a_wrong_spec_is_bad_input(root: Path, tmp_path: Path, spec: str, said: str) -> None:
    for command in (("index",), ("search", "mail")):
        status, out, err = run(
            command[0], "--root", str(root), "--embed", spec, *command[1:], XDG_CACHE_HOME=str(tmp_path / "cache")
        )
        assert (status, out) == (2, "")
        assert said in err
        assert KEY not in err
