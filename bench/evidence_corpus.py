"""Questions that test whether a project's index recognises questions about it: titles, plain questions, general ones.

Titles are those of the newest pull requests that changed source, or subjects of commits, on the main line of a
repository. The index is that of the state before the oldest of them, so that it contains no title, nor a change log
that quotes one.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bench.commit_questions import NOT_A_QUESTION, NUMBER_AT_END, PULL_REQUEST, SOURCE_ENDINGS, GitDirectory

PLAIN_GENERAL = "plain_general"
"""The source of our own general questions."""
WORDED_ALIKE = "worded_alike"
"""The source of our own general questions that are worded like those about a project."""
OURS = (PLAIN_GENERAL, WORDED_ALIKE)
MIN_WORDS = 3
MIN_CHARS, MAX_CHARS = 12, 200
ONE_IN = 20
"""Every twentieth line of a text file is a question."""
_SOURCE = SOURCE_ENDINGS | {"kt", "rb", "cc", "vue"}
_NO_SOURCE = re.compile(
    r"(^|/)(\.github|docs?|tests?|spec|__tests__|examples?|website|scripts|benchmarks?|changelog[^/]*)/"
    r"|(^|/)(setup|conf|noxfile|__about__)\.|\.config\.|[._](test|spec)\.",
    re.IGNORECASE,
)
_MAINTENANCE = re.compile(
    r"^(merge|backport|(chore|ci|docs?|tests?|style|build|refactor|cleanup|breaking|deps?)\b[^a-z])|typo|lint|\bruff\b"
    r"|flake8|mypy|docstring|comment|dependenc|\bCI\b|upgrade|\bpython \d|readme|copyright|license",
    re.IGNORECASE,
)
_MARK = re.compile(r"^(?:[\s>#*|-]|Q[.:]|Q\d+[.:]|\d+[.)])*")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_EMPHASIS = re.compile(r"[*`_]{1,3}(?=\W|$)|(?<!\w)[*`_]{1,3}")
_ASKS = re.compile(r"(what|how|why|when|which|can|explain) ", re.IGNORECASE)
_HEADING = re.compile(r"[\s\d.>*-]*#")


class Corpus(msgspec.Struct, frozen=True):
    """`evidence_corpus.toml`, read from a folder of git directories."""

    folder: Path
    table: dict[str, Any]

    def repositories(self, part: str) -> list[str]:
        """Return the repositories of a part, `training` or `held_out`."""
        found: list[str] = self.table["repositories"][part].split()
        return found

    def git(self, repository: str) -> GitDirectory:
        """Return the git directory of a repository."""
        name = repository.replace("/", "+")
        places = (self.folder / name / "repo", self.folder / f"{name}.git")
        found = next((place for place in places if place.is_dir()), None)
        if found is None:
            raise SystemExit(f"{places[1]} is missing: git clone --bare https://github.com/{repository} {places[1]}")
        return GitDirectory(found)

    def plain(self, repository: str) -> list[str]:
        """Return the plain questions about a repository."""
        return _lines(self.table["plain"].get(repository, ""))

    def swe_qa(self, part: str) -> dict[str, list[str]]:
        """Return name of a repository → the questions that SWE-QA asks of it."""
        repository, folder = self.table["swe_qa"]["folder"].split(":")
        names = self.table["swe_qa"][part].split()
        return {
            name: list(questions_in(f"{name}.jsonl", self._read(repository, f"{folder}/{name}.jsonl")))
            for name in names
        }

    def general(self, part: str) -> dict[str, list[str]]:
        """Return source → questions about something else."""
        found: dict[str, dict[str, None]] = {PLAIN_GENERAL: dict.fromkeys(_lines(self.table["plain_general"][part]))}
        for one in self.table["general"][part].split():
            repository, path = one.split(":")
            questions = questions_in(path, self._read(repository, path))
            found.setdefault(repository, {}).update(dict.fromkeys(questions))
        if part in self.table[WORDED_ALIKE]:
            found[WORDED_ALIKE] = dict.fromkeys(_lines(self.table[WORDED_ALIKE][part]))
        return {source: list(questions) for source, questions in found.items()}

    def _read(self, repository: str, path: str) -> bytes:
        git = self.git(repository)
        try:
            return git.blob(git.run("rev-parse", f"HEAD:{path}").strip())
        finally:
            git.close()


@cache
def corpus(folder: Path) -> Corpus:
    """Return the corpus, whose repositories are in a folder."""
    return Corpus(folder, tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")))


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def titles_of(git: GitDirectory, limit: int) -> tuple[list[str], str]:
    """Return the newest titles that could be questions, and the commit before the oldest of them."""
    log = (
        "log",
        "--first-parent",
        "-m",
        "--no-renames",
        "--diff-filter=M",
        "--name-only",
        "-n",
        str(max(1500, 2 * limit)),
    )
    found, before = dict[str, None](), "HEAD"
    for record in git.run(*log, "--format=%x01%P%x02%s%x02%b%x03").split("\x01")[1:]:
        said, _, paths = record.partition("\x03")
        parents, subject, body = said.split("\x02", 2)
        title = body.strip().partition("\n")[0] if PULL_REQUEST.match(subject) else subject
        title = NUMBER_AT_END.sub("", title).strip()
        if not parents or not any(map(_is_source, paths.split("\n"))):
            continue
        if len(title.split()) < MIN_WORDS or _MAINTENANCE.search(title) or NOT_A_QUESTION.search(title):
            continue
        found.setdefault(title)
        before = parents.split()[0]
        if len(found) == limit:
            break
    return list(found), before


def _is_source(path: str) -> bool:
    return path.rpartition(".")[2] in _SOURCE and not _NO_SOURCE.search(path)


def questions_in(path: str, content: bytes) -> Iterable[str]:
    """Yield the questions of a file, according to its extension."""
    match path.rpartition(".")[2]:
        case "md":
            return _in_markdown(content.decode("utf-8", "replace"))
        case "jsonl":
            rows = [json.loads(line) for line in content.splitlines() if line.strip()]
            return [
                next(row[key] for key in ("question", "instruction", "turns") if key in row)
                for row in map(_first, rows)
            ]
        case "json":
            return [row["doc"] for row in json.loads(content)]
        case "csv":
            return [row[0] for row in csv.reader(io.StringIO(content.decode()))][1:]
        case "yml":
            lines = content.decode().splitlines()
            return [line[4:].strip(" '\"") for line in lines if line.startswith("- - ")]
        case "zip":
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                name = next(one for one in packed.namelist() if one.endswith("train.json") and "MACOSX" not in one)
                return [row["intent"].strip() for row in json.loads(packed.read(name))]
        case _:
            lines = content.decode("utf-8", "replace").splitlines()
            return [line for line in lines if MIN_CHARS <= len(line) <= MAX_CHARS][::ONE_IN]


def _first(row: dict[str, Any]) -> dict[str, str]:
    return {key: value[0] if key == "turns" else value for key, value in row.items()}


def _in_markdown(text: str) -> Iterator[str]:
    for line in text.splitlines():
        said = _EMPHASIS.sub("", _LINK.sub(r"\1", _MARK.sub("", line))).strip()
        asks = said.endswith("?") or (_ASKS.match(said) and _HEADING.match(line))
        if asks and MIN_CHARS <= len(said) <= MAX_CHARS:
            yield said


class Asked(msgspec.Struct, frozen=True):
    """A question; `kind`: `title`, `plain`, `swe_qa`, or the source of one about something else."""

    text: str
    kind: str
    is_about: bool


def asked_of(given: Corpus, part: str, repository: str, titles: Iterable[str], most: int = 60) -> list[Asked]:
    """Return the questions for a repository, with up to `most` general ones of each source, the same in each run."""
    name, general = repository.rpartition("/")[2], given.general(part)
    swe_qa = given.swe_qa(part).get(name, []) if name in given.table["swe_qa"][part].split() else []
    about = {"title": titles, "plain": given.plain(repository), "swe_qa": swe_qa}
    chosen = random.Random(repository)
    return [
        *(Asked(text, kind, True) for kind, texts in about.items() for text in texts),
        *(
            Asked(text, source, False)
            for source, texts in general.items()
            for text in chosen.sample(texts, min(most, len(texts)))
        ),
    ]
