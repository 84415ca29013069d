"""Tests that numbers cited in code and tests are defined in `doc/dev`, and that paths named in `doc/dev` exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
DOCS = REPO / "doc" / "dev"
CITING = ("python", "lua", "rplugin", "plugin", "ftplugin", "tests", "bench")
SUFFIXES = frozenset({".py", ".lua", ".toml", ".md", ".txt"})
# Data and stories in which such a word is something else.
NOT_CITING = re.compile(
    r"bench/demo_(?:codebase|story)\.py|tests/docs/test_references\.py|tests/unit/context/test_verification\.py"
)

_TO = r"(?:…| … | to |–)"
_REQUIREMENT = re.compile(rf"\bR-(\d{{3}})(?:{_TO}(?:R-)?(\d{{3}}))?\b")
_LETTER = re.compile(rf"(?<![\w./#-])([KSP])(\d{{1,2}})(?:{_TO}\1?(\d{{1,2}}))?(?![\w.-]*[\w])")
_SPAN = rf"(?:\d+{_TO}\d+|\d+)"
_LESSONS = re.compile(rf"\blessons? ({_SPAN}(?:(?:,| and|, and|,\n|\n)? ?{_SPAN})*)", re.IGNORECASE)
_SECTION = re.compile(r"\bpipeline(?:\.md)? (\d\.\d)", re.IGNORECASE)
_DEFINED = re.compile(r"^- \*\*(R-\d{3}|[KSP]\d{1,2}|Lesson \d+)\*\*", re.MULTILINE)
_DEFINED_SECTION = re.compile(r"^## (5\.\d)", re.MULTILINE)
_PATH = re.compile(r"`((?:python|lua|rplugin|plugin|ftplugin|tests|bench|doc|tools)/[\w./*-]*)`")


def expand(first: str, last: str | None) -> Iterator[int]:
    """Yield the numbers of a range such as R-101…R-104; a single number is a range of one."""
    yield from range(int(first), int(last or first) + 1)


def cited(text: str) -> set[str]:
    """Return everything that a text cites, by the names that `doc/dev` uses to define it."""
    found = {f"R-{n:03}" for one in _REQUIREMENT.finditer(text) for n in expand(*one.groups())}
    found |= {f"{one[1]}{n}" for one in _LETTER.finditer(text) for n in expand(one[2], one[3])}
    for one in _LESSONS.finditer(text):
        for first, last in re.findall(rf"(\d+)(?:{_TO}(\d+))?", one[1]):
            found |= {f"Lesson {n}" for n in expand(first, last or None)}
    return found | {f"pipeline {one[1]}" for one in _SECTION.finditer(text)}


@cache
def defined() -> frozenset[str]:
    """Return all numbers that `doc/dev` defines."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))]
    numbers = {name for text in texts for name in _DEFINED.findall(text)}
    return frozenset(numbers | {f"pipeline {one}" for text in texts for one in _DEFINED_SECTION.findall(text)})


def citing_files() -> list[Path]:
    """Return our files that may contain citations."""
    files = (path for folder in CITING for path in (REPO / folder).rglob("*") if path.suffix in SUFFIXES)
    return [path for path in files if not NOT_CITING.search(path.as_posix())]


def unresolved(text: str) -> set[str]:
    """Return the citations of a text that `doc/dev` does not define."""
    return cited(text) - defined()


def test_every_cited_number_is_defined_in_the_documents() -> None:
    missing = [
        f"{path.relative_to(REPO)}: {name}"
        for path in citing_files()
        for name in sorted(unresolved(path.read_text(encoding="utf-8")))
    ]
    assert not missing, "\n".join(missing)


def test_the_documents_cite_only_numbers_they_define() -> None:
    missing = [
        f"{path.relative_to(REPO)}: {name}"
        for path in sorted(DOCS.rglob("*.md"))
        for name in sorted(unresolved(path.read_text(encoding="utf-8")))
    ]
    assert not missing, "\n".join(missing)


def test_no_document_is_cited_that_is_not_in_the_repository() -> None:
    elsewhere = re.compile(r"\b(?:design|ui|style)\.md(?=[,;:)]? [A-Z(]|[);])|\bspec/\w+\.md|shared/(?:spec|\w+\.md)")
    naming = [
        f"{path.relative_to(REPO)}: {found}"
        for path in citing_files()
        for found in elsewhere.findall(path.read_text(encoding="utf-8"))
    ]
    assert not naming, "\n".join(naming)


def test_no_number_is_defined_twice() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))]
    names = [name for text in texts for name in _DEFINED.findall(text)]
    assert len(names) > 400
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(R-501 … R-503, K9)", {"R-501", "R-502", "R-503", "K9"}),
        ("R-107…R-108; R-512", {"R-107", "R-108", "R-512"}),
        ("lessons 1, 2, 29 and 48", {"Lesson 1", "Lesson 2", "Lesson 29", "Lesson 48"}),
        ("Lessons 36…38,\n39", {"Lesson 36", "Lesson 37", "Lesson 38", "Lesson 39"}),
        ("S2 `clear_tool_results` … table P4.", {"S2", "P4"}),
        ("(pipeline.md 5.6)", {"pipeline 5.6"}),
        ("/S3/x S1E2 K8.txt gpt-S2 P0x", set()),
    ],
)
def test_citations_are_recognised(text: str, expected: set[str]) -> None:
    assert cited(text) == expected


def test_an_undefined_number_is_found() -> None:
    assert unresolved("R-599, lesson 99, K19, S23, P6, pipeline 5.9") == {
        *("R-599", "Lesson 99", "K19", "S23", "P6", "pipeline 5.9")
    }


def test_every_path_that_the_documents_name_exists() -> None:
    named = [
        (path, name) for path in sorted(DOCS.rglob("*.md")) for name in _PATH.findall(path.read_text(encoding="utf-8"))
    ]
    assert named
    missing = [f"{path.relative_to(REPO)}: {name}" for path, name in named if not list(REPO.glob(name.rstrip("/")))]
    assert not missing, "\n".join(missing)


def test_every_file_that_a_module_docstring_names_exists() -> None:
    """This applies to `decode.py` in the same folder and to `http/adapter.py` in another one."""
    ours = [path for folder in ("python", "tests/providers", "tools") for path in (REPO / folder).rglob("*.py")]
    known = [path.as_posix() for path in REPO.glob("[a-z]*/**/*.py")]
    missing = [
        f"{path.relative_to(REPO)}: {name}"
        for path in ours
        for name in re.findall(r"`([\w/]+\.py)`", ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        if not any(one.endswith(f"/{name}") for one in known)
    ]
    assert not missing, "\n".join(missing)


def test_every_module_that_a_docstring_names_exists() -> None:
    """Names such as `session.actions.forking` and `store.log` are checked, so moving a module includes its mentions."""
    package = REPO / "python" / "codecompanion"
    rooms = "|".join(path.name for path in package.iterdir() if (path / "__init__.py").exists())
    named = re.compile(rf"`((?:{rooms})(?:\.[a-z_]+)+)[`.]")

    def exists(name: str) -> bool:
        parts = name.split(".")
        heads = [package.joinpath(*parts[:n]) for n in range(2, len(parts) + 1)]
        return any(head.with_suffix(".py").exists() for head in heads) or heads[-1].is_dir()

    # Fields of another program's sessions.
    data = {"tools.calls", "tools.call_id"}
    missing = [
        f"{path.relative_to(REPO)}: {name}"
        for path in package.rglob("*.py")
        for name in named.findall(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        if name not in data and not exists(name)
    ]
    assert not missing, "\n".join(missing)
