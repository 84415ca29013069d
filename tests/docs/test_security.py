"""Tests that each claim in doc/security.md names an existing test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PAGE = REPO / "doc/security.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def claims() -> list[list[str]]:
    """Return the cells of the table that lists the claims."""
    lines = [line.strip("| ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    rows = [line.split(" | ") for line in lines]
    return [row for row in rows if len(row) == 2 and row != ["claim", "test"]]


def test_there_are_claims() -> None:
    assert len(claims()) > 30


@pytest.mark.parametrize("row", claims(), ids=lambda row: str(row[0])[:40])
def test_a_claim_names_the_tests_that_show_it(row: list[str]) -> None:
    tests = _TEST.findall(row[1])
    assert tests, "name the test that shows it"
    for path, name in tests:
        tree = ast.parse((REPO / path).read_text(encoding="utf-8"))
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in names, f"{path} has no {name}"


def test_every_attack_suite_is_named() -> None:
    suites = {path.name for path in (REPO / "tests/attacks").glob("test_*.py")} - {"test_table.py"}
    named = {Path(path).name for path, _ in _TEST.findall(PAGE.read_text(encoding="utf-8"))}
    assert suites <= named, f"doc/security.md names no test of {sorted(suites - named)}"
