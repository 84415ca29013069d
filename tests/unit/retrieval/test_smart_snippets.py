"""R-243, R-246: the results and scores of `extractSmartSnippets`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.retrieval.relevance import score_text
from codecompanion.retrieval.smart_snippets import extract_smart_snippets, find_elements, split_lines, whole_file


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("function go() {", "function", "go"),
        ("export async function go() {", "function", "go"),
        ("export default function go() {", "function", "go"),
        ("class Box {", "class", "Box"),
        ("export class Box extends Thing {", "class", "Box"),
        ("export abstract class Box {", "class", "Box"),
        ("interface Shape {", "interface", "Shape"),
        ("export interface Shape {", "interface", "Shape"),
        ("type Id = string", "type", "Id"),
        ("const limit = 3", "variable", "limit"),
        ("export const limit: number = 3", "variable", "limit"),
        ("def go(self):", "function", "go"),
        ("    async def go(self):", "function", "go"),
        ("class Box:", "class", "Box"),
        ("    class Inner(Box):", "class", "Inner"),
    ],
)
def test_an_element_is_found(line: str, kind: str, name: str) -> None:
    """R-243: there are seven patterns, which include methods."""
    assert find_elements([line]) == [(1, kind, name)]


@pytest.mark.parametrize(
    "line",
    ["    const local = 3", "x = def_go()", "// function go", "functions go", "classy Box", "import x", "", "const"],
)
def test_other_lines_are_not_an_element(line: str) -> None:
    assert find_elements([line]) == []


def numbered(count: int, text: str = "word") -> list[str]:
    return [f"    {text} {n}" for n in range(count)]


def test_a_snippet_extends_over_30_lines() -> None:
    """R-243: it ends 30 lines after its first line."""
    text = "\n".join(["# head", "def parse():", *numbered(100)])
    [found] = extract_smart_snippets("a.py", text, ["parse"])
    assert (found.start, found.end, found.kind, found.name) == (2, 32, "function", "parse")
    assert found.text == "\n".join(["def parse():", *numbered(30)])


def test_a_snippet_ends_before_the_next_element_and_at_the_end_of_the_file() -> None:
    """R-243: the next element's start counts even if that one is not used."""
    text = "def parse():\n    pass\n\ndef other():\n    return 1 + 2\n\n"
    text += "class Parse:\n    def run(self):\n        parse()\n"
    found = extract_smart_snippets("a.py", text, ["parse"])
    assert [(one.start, one.end, one.name) for one in found] == [(1, 3, "parse"), (7, 7, "Parse"), (8, 9, "run")]


def test_the_first_block_is_used_if_only_a_word_occurs() -> None:
    """R-243: the block is the first 50 lines, with a score of 0.3."""
    text = "\n".join([*numbered(80, "a b c d"), "parse"])
    [found] = extract_smart_snippets("a.txt", text, ["parse"])
    assert (found.start, found.end, found.kind, found.name, found.score) == (1, 50, "block", "", 0.3)
    assert found.text.count("\n") == 49


def test_the_first_block_is_used_if_no_element_scores_enough() -> None:
    """R-243: an element of 0.2 and less is not taken."""
    words = " ".join(["word"] * 49)
    text = f"def go({words} parse"
    assert score_text(text, ["parse"]) <= 0.2
    [found] = extract_smart_snippets("a.py", text + "\n", ["parse"])
    assert (found.kind, found.score) == ("block", 0.3)


def test_without_a_word_there_is_no_snippet() -> None:
    assert extract_smart_snippets("a.py", "def go():\n    pass\n", ["parse"]) == []
    assert extract_smart_snippets("a.py", "x = 1\n", []) == []


def test_without_a_keyword_every_element_is_used() -> None:
    """R-246: 0.5."""
    found = extract_smart_snippets("a.py", "def go():\n    pass\nclass Box:\n    pass\n", [])
    assert [(one.name, one.score) for one in found] == [("go", 0.5), ("Box", 0.5)]


@pytest.mark.parametrize(
    ("text", "keywords", "score"),
    [
        ("alpha beta", [], 0.5),
        ("alpha beta gamma delta", ["zeta"], 0.1),
        (" ".join(["word"] * 99) + " parse", ["parse"], 0.1 + 5 * 1 / 100),
        (" ".join(["word"] * 98) + " parse Parser", ["parse"], 0.1 + 5 * 2 / 100),
        (" ".join(["word"] * 98) + " def parse", ["parse"], 0.1 + 5 * 1 / 100 + 0.2),
        (" ".join(["word"] * 98) + " function parseAll", ["parse"], 0.1 + 5 * 1 / 100 + 0.2),
        (" ".join(["word"] * 96) + " const A class B", ["a", "b", "zeta"], 0.1 + 5 * 3 / 100 + 0.4),
        (" ".join(["word"] * 98) + " type parse", ["parse"], 0.1 + 5 * 1 / 100),
        (" ".join(["word"] * 98) + " undef parse", ["parse"], 0.1 + 5 * 1 / 100),
        ("parse", ["parse"], 0.9),
        (" ".join(["word"] * 99) + " a.c", ["a.c"], 0.1 + 5 * 1 / 100),
        (" ".join(["word"] * 99) + " abc", ["a.c"], 0.1),
        (" ".join(["word"] * 99) + " (x+", ["(x+"], 0.1 + 5 * 1 / 100),
        ("", ["parse"], 0.1),
    ],
)
def test_the_score_follows_the_formula(text: str, keywords: list[str], score: float) -> None:
    """R-246: `min(0.9, 0.1 + 5 × hits / words + 0.2 per defined keyword)`; a keyword is not a pattern."""
    assert score_text(text, keywords) == pytest.approx(score)


@given(st.text(max_size=200), st.lists(st.text(max_size=5), max_size=4))
def test_a_score_stays_within_its_bounds(text: str, keywords: list[str]) -> None:
    assert 0.1 <= score_text(text, keywords) <= 0.9


def test_a_file_chosen_by_the_user_is_one_snippet() -> None:
    """R-248: lines are counted as in editors."""
    found = whole_file("a.py", "one\ntwo\n")
    assert (found.start, found.end, found.score, found.is_selected, found.text) == (1, 2, 1.0, True, "one\ntwo\n")
    assert whole_file("a.py", "").end == 1


SOURCE = st.lists(
    st.sampled_from(["def parse():", "    pass", "", "class Box:", "    def run(self):", "parse()", "const parse = 1"]),
    max_size=90,
).map("\n".join)


@given(SOURCE, st.sampled_from([["parse"], ["box", "run"], []]))
def test_snippets_name_their_own_lines(text: str, keywords: list[str]) -> None:
    """Lines and text agree, none is longer than 50 lines, elements do not overlap."""
    lines = split_lines(text)
    found = extract_smart_snippets("a.py", text, keywords)
    for one in found:
        assert one.text == "\n".join(lines[one.start - 1 : one.end])
        assert 1 <= one.start <= one.end <= min(len(lines), one.start + 49)
        assert one.score > 0.2
    for one, other in pairwise(found):
        assert one.end < other.start


def test_blank_lines_before_the_next_element_belong_to_the_snippet() -> None:
    """R-243: the snippet extends to the start of the next element, or to the end of the file; nothing is trimmed."""
    text = "def go():\n    return 1\n\n\ndef stop():\n    return go\n\n"
    found = extract_smart_snippets("a.py", text, ["go", "stop"])
    assert [(one.start, one.end, one.text) for one in found] == [
        (1, 4, "def go():\n    return 1\n\n"),
        (5, 7, "def stop():\n    return go\n"),
    ]


def test_a_class_followed_by_its_first_method_is_one_line() -> None:
    """R-243: the method is the next element and ends the class.

    `select` keeps the line, only a chat drops such fillers.
    """
    found = extract_smart_snippets("a.py", "class Box:\n    def box(self):\n        return 1\n", ["box"])
    assert [(one.kind, one.name, one.start, one.end) for one in found] == [
        ("class", "Box", 1, 1),
        ("function", "box", 2, 3),
    ]
