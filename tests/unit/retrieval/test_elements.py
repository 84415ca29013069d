"""R-222 … R-224: the elements of parsed files."""

from __future__ import annotations

import pytest

from codecompanion.model.code import Definition, ParsedFile
from codecompanion.retrieval.elements import (
    Element,
    as_snippet,
    best_elements,
    find_elements_with,
    term_points,
    with_points,
)

SOURCE = """class Parser:
    def parse(self):
        return Token()

    def other(self):
        pass

limit = 3
"""
PARSED = ParsedFile(
    language="python",
    definitions=(
        Definition("Parser", "class", 1, 6, 1),
        Definition("parse", "method", 2, 3, 2, parent="Parser"),
        Definition("other", "method", 5, 6, 5, parent="Parser"),
        Definition("limit", "variable", 8, 8, 8),
        Definition("mod", "module", 1, 1, 1),
    ),
    is_parsed=True,
)


def test_elements_with_a_term_in_name_or_code_are_found() -> None:
    """R-222: a module is not an element, and `other` has no term."""
    found = find_elements_with("a.py", SOURCE, PARSED, ["PARSE", "token"])
    assert [(one.type, one.name, one.start, one.end, one.children) for one in found] == [
        ("class", "Parser", 1, 6, 2),
        ("method", "parse", 2, 3, 0),
    ]
    assert found[0].name_hits == {"parse"}
    assert found[0].code_hits == {"parse", "token"}
    assert found[1].text == "    def parse(self):\n        return Token()"


def test_an_unparsed_file_yields_its_matching_lines() -> None:
    """R-222."""
    found = find_elements_with("a.txt", "one\nparse me\nparse you", ParsedFile(), ["parse"])
    assert [(one.type, one.start, one.text) for one in found] == [("other", 2, "parse me"), ("other", 3, "parse you")]


def test_terms_are_weighted_from_ten_to_one() -> None:
    """R-223: the weights decrease linearly."""
    assert term_points(["a"]) == {"a": 10}
    assert term_points(["a", "b"]) == {"a": 10, "b": 1}
    assert term_points(["a", "b", "c", "d"]) == {"a": 10, "b": 7, "c": 4, "d": 1}


def element(kind: str = "function", text: str = "x", **fields: object) -> Element:
    values = {"path": "a.py", "type": kind, "name": "n", "start": 1, "end": 1, "kind": kind, **fields}
    return Element(text=text, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "points"),
    [
        (element("class"), 10 + 3),
        (element("method"), 8 + 3),
        (element("function"), 8),
        (element("variable"), 4),
        (element("other"), 2),
        (element("function", name_hits=frozenset({"a"})), 8 + 20),
        (element("function", code_hits=frozenset({"a"})), 8 + 10),
        (element("function", code_hits=frozenset({"a", "b"})), 8 + 10 + 1),
        (element("class", children=4), 10 + 3 + 8),
        (element("function", text="x" * 1001), 8 - 2),
        (element("function", text="x" * 1000), 8),
        (element("function", name_hits=frozenset({"a"}), code_hits=frozenset({"a", "b"})), 8 + 20 + 11 + 1.5),
    ],
)
def test_an_element_has_points(one: Element, points: float) -> None:
    """R-223: hits in the code are added where the source adds those in the name."""
    assert with_points(one, ["a", "b"]).points == points


def many(count: int, **fields: object) -> list[Element]:
    return [element(start=n, end=n, points=float(n % 40), **fields) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "least", "most"),
    [(49, 5, 49), (50, 10, 100), (199, 10, 100), (200, 15, 75), (499, 15, 75), (500, 20, 50)],
)
def test_more_elements_mean_stricter_rules(count: int, least: int, most: int) -> None:
    """R-224."""
    found = best_elements(many(count, name_hits=frozenset({"a"})))
    assert 0 < len(found) <= most
    assert min(one.points for one in found) >= least


def test_many_elements_need_the_term_in_their_name() -> None:
    """R-224: this applies from 200 elements on."""
    assert best_elements(many(199))
    assert best_elements(many(200)) == []


def test_many_elements_exclude_those_inside_others() -> None:
    """R-224: from 200 elements on, children are excluded."""
    inside = [
        element("method", start=900 + n, end=900 + n, points=30.0, name_hits=frozenset({"a"})) for n in range(200)
    ]
    around = element("class", start=900, end=1200, points=50.0, name_hits=frozenset({"a"}))
    assert best_elements([around, *inside]) == [around]


def test_elements_are_sorted_by_type_then_points_without_duplicates() -> None:
    """R-224: the order is class, function, method, variable."""
    kinds = ["variable", "method", "function", "class"]
    low = [element(kind, name=kind, start=n, points=10.0) for n, kind in enumerate(kinds)]
    high = element("method", name="high", start=9, points=20.0)
    found = best_elements([*low, high, high])
    assert [one.name for one in found] == ["class", "function", "high", "method", "variable"]


def test_points_are_converted_to_a_score() -> None:
    """R-246: the scores range from 0.1 to 0.9."""
    scores = [as_snippet(element(points=points)).score for points in (-5.0, 0.0, 30.0, 60.0, 900.0)]
    assert scores == pytest.approx([0.1, 0.1, 0.5, 0.9, 0.9])
