"""The questions of `bench/evidence_corpus.toml`: parsing, and the separation of fitting and measuring."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench.commit_questions import GitDirectory
from bench.evidence_corpus import asked_of, corpus, questions_in, titles_of

MARKDOWN = """\
# Questions
1. ### What is a **closure**
## Q. How do [promises](x.md) work?
- Is it fast?
A closure is a function. Is that all there is to say?
What it does is simple
"""


@pytest.mark.parametrize(
    ("path", "content", "questions"),
    [
        (
            "a/README.md",
            MARKDOWN,
            ["What is a closure", "How do promises work?", "A closure is a function. Is that all there is to say?"],
        ),
        (
            "a.jsonl",
            '{"instruction": "Plan a trip"}\n{"turns": ["Write a poem", "Go on"]}\n',
            ["Plan a trip", "Write a poem"],
        ),
        ("a.csv", "query\nsort a list\n", ["sort a list"]),
        ("a.yml", "conversations:\n- - What is AI?\n  - A field.\n", ["What is AI?"]),
        ("dev.json", json.dumps([{"doc": "python sort list"}]), ["python sort list"]),
    ],
)
def test_questions_are_read_from_files_of_every_kind(path: str, content: str, questions: list[str]) -> None:
    assert list(questions_in(path, content.encode())) == questions


def test_no_repository_and_no_source_is_both_fitted_on_and_measured() -> None:
    given = corpus(Path())
    assert not set(given.repositories("training")) & set(given.repositories("held_out"))
    for table in ("general", "swe_qa", "plain_general"):
        parts = [set(given.table[table][part].splitlines()) for part in ("training", "held_out")]
        assert not parts[0] & parts[1]
    names = [one.rpartition("/")[2] for one in given.repositories("held_out")]
    assert not set(names) & set(given.table["swe_qa"]["wording"].split())


def test_titles_are_those_of_changed_source_and_the_state_is_older(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(tmp_path), *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    for path in ("src/a.py", "docs/a.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text("a = 1\n")
    git("add", ".")
    git("commit", "-qm", "Begin a new thing")
    first = git("rev-parse", "HEAD")
    for number, (path, title) in enumerate(
        [
            ("src/a.py", "Follow redirects of proxies (#12)"),
            ("docs/a.py", "Explain how redirects work"),
            ("src/a.py", "Fix typo in the name"),
        ]
    ):
        (tmp_path / path).write_text(f"a = {number + 2}\n")
        git("commit", "-qam", title)
    assert titles_of(GitDirectory(tmp_path / ".git"), 80) == (["Follow redirects of proxies"], first)


def test_missing_repositories_are_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="git clone --bare https"):
        asked_of(corpus(tmp_path), "training", "encode/httpx", [])
    with pytest.raises(SystemExit, match="sharkdp/fd"):
        corpus(tmp_path).git("sharkdp/fd")
