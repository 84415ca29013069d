"""The comparison with other plugins: each of our "yes" names an existing test, each "no" gives the reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
PAGE = REPO / "doc/compared.md"
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[list[str]]:
    """Return the cells of all rows except the header rows."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[-1].strip(" |") != "here"]


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row[0])[:40])
def test_claims_about_a_feature_are_shown_by_tests(row: list[str]) -> None:
    assert len(row) == 5, "a feature, three plugins, and here"
    here = row[4]
    answer = re.match(r"(yes|differently|no)\b", here)
    assert answer, "begin with yes, differently or no"
    if answer[1] == "no":
        assert len(here) > len("no: ") + 10, "say why"
        return
    tests = _TEST.findall(here)
    assert tests, "name the test that shows it"
    for path, name in tests:
        assert name in functions(REPO / path), f"{path} has no {name}"


def functions(path: Path) -> set[str]:
    """Return the names of the tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
