"""The benchmarks of gathering run on a repository with three commits."""

from __future__ import annotations

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from bench import bench_active_file, bench_chat_code, bench_gather
from bench.bench_gather import BM25, BUDGETS, WAYS
from codecompanion.session.code import searcher

BEFORE = "def parse_config(text):\n    parts = text.split('=')\n    return parts\n\n\ndef bake_cake():\n    return 1\n"
SUBJECTS = ("Add the parser of configurations", "Let parse_config split at colons", "Let bake_cake return two of them")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the git directory of a repository in which a parser is added, then changed."""
    monkeypatch.setattr(searcher, "HISTORY_CHECKED_EVERY_S", searcher.HISTORY_CHECKED_EVERY_S)  # a bench sets it
    root = tmp_path / "repository"
    root.mkdir()
    texts = (BEFORE, BEFORE.replace("'='", "':'"), BEFORE.replace("'='", "':'").replace("return 1", "return 2"))
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(("git", "init", "-q"), cwd=root, check=True)
    for text, subject in zip(texts, SUBJECTS, strict=True):
        (root / "parser.py").write_text(text)
        subprocess.run(("git", "add", "."), cwd=root, check=True)
        subprocess.run(("git", *who, "commit", "-qm", subject), cwd=root, check=True)
    return root / ".git"


def test_every_pipeline_and_bm25_answer_each_question_within_each_budget(repository: Path) -> None:
    answers = asyncio.run(bench_gather.measure(repository, 5, WAYS, pull_requests=False))
    assert set(answers) == {(way, budget) for way in WAYS for budget in BUDGETS}
    for way in ("ranked", BM25):
        found = answers[way, 4_000]
        assert [(one.in_ten, one.in_selection, one.functions) for one in found] == [(True, True, 1.0)] * 2
        assert all(one.tokens > 0 for one in found)


def test_the_benches_of_a_chat_and_of_the_open_file_run(
    repository: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SMALL_SHARE", "SHARE_ABOVE", "MAX_SHARE"):
        monkeypatch.setattr(bench_active_file.active_file, name, getattr(bench_active_file.active_file, name))
    figures: bench_active_file.Figures = {(kind, n, 0.4): [] for kind in ("own", "previous") for n in (4_000, 8_000)}
    monkeypatch.setattr(bench_active_file, "BUDGETS", (4_000, 8_000))
    asyncio.run(bench_active_file.measure(repository, 5, (0.4,), figures))
    assert {key: len(of) for key, of in figures.items()} == {key: 2 if key[0] == "own" else 1 for key in figures}
    questions = tmp_path / "questions"
    questions.write_text("where is parse_config\nwhere is parse_config\n")
    asyncio.run(bench_chat_code.measure(repository, questions, 1))
    assert re.search(r"above [1-9]", capsys.readouterr().out)
