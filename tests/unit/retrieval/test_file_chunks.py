"""Chunks follow definitions; no meaningful line is lost, none is in two chunks (R-239)."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.code import CodeChunk, Definition, ParsedFile
from codecompanion.retrieval.file_chunks import MAX_CHARS, MAX_LINES, chunk_file


def numbered(count: int, indent: str = "") -> list[str]:
    return [f"{indent}value_{row} = {row}" for row in range(count)]


def parsed(*definitions: Definition) -> ParsedFile:
    return ParsedFile("python", definitions, (), (), is_parsed=True)


def spans(chunks: list[CodeChunk]) -> list[tuple[int, int, str, str]]:
    return [(one.start, one.end, one.kind, one.symbol) for one in chunks]


def test_a_definition_that_fits_is_one_chunk() -> None:
    lines = ["import os", "", "class A:", *numbered(3, "    "), "", "def f():", "    return os"]
    definitions = (Definition("A", "class", 3, 6, 3, "class A"), Definition("f", "function", 8, 9, 8, "def f()"))
    chunks = chunk_file("a.py", "\n".join(lines), parsed(*definitions))
    assert spans(chunks) == [(1, 1, "block", ""), (3, 6, "class", "A"), (8, 9, "function", "f")]
    assert chunks[2].text == "def f():\n    return os"
    assert {one.path for one in chunks} == {"a.py"}


def test_a_large_class_is_split_at_its_methods_which_repeat_its_line() -> None:
    method = ["    def m{}(self):", *numbered(50, "        ")]
    lines = ["class A(Base):", '    """About A."""', *(row.format(n) for n in (1, 2) for row in method)]
    definitions = (
        Definition("A", "class", 1, 104, 1, "class A(Base)"),
        Definition("m1", "method", 3, 53, 3, "def m1(self)", "A"),
        Definition("m2", "method", 54, 104, 54, "def m2(self)", "A"),
    )
    chunks = chunk_file("a.py", "\n".join(lines), parsed(*definitions))
    assert spans(chunks) == [(1, 2, "class", "A"), (3, 53, "method", "A.m1"), (54, 104, "method", "A.m2")]
    assert chunks[0].text.startswith("class A(Base):\n")
    assert chunks[1].text.startswith("class A(Base)\n    def m1(self):\n")


def test_a_large_function_is_split_at_empty_lines_and_each_part_has_its_signature() -> None:
    lines = ["def f(x):", *numbered(60, "    "), "", *numbered(60, "    ")]
    definition = Definition("f", "function", 1, len(lines), 1, "def f(x)")
    chunks = chunk_file("a.py", "\n".join(lines), parsed(definition))
    assert spans(chunks) == [(1, 61, "function", "f"), (63, 122, "function", "f")]
    assert chunks[1].text.startswith("def f(x)\n    value_0")


def test_an_empty_line_with_less_indent_is_preferred() -> None:
    lines = [*numbered(50), "", *numbered(10), "", *numbered(10, "    "), "", *numbered(40, "        ")]
    assert spans(chunk_file("a.txt", "\n".join(lines), ParsedFile()))[0][:2] == (1, 50)


def test_long_tables_are_separate_and_short_variables_are_not() -> None:
    lines = ["limit = 3", "table = {", *numbered(6, "    "), "}", "other = 4"]
    definitions = (Definition("limit", "variable", 1, 1, 1), Definition("table", "variable", 2, 9, 2, "table = {"))
    chunks = chunk_file("a.py", "\n".join(lines), parsed(*definitions))
    assert spans(chunks) == [(1, 1, "block", ""), (2, 9, "variable", "table"), (10, 10, "block", "")]


def test_meaningless_lines_are_not_a_chunk() -> None:
    lines = ["M = {", "f = function()", "end", "}", "", "end"]
    chunks = chunk_file("a.lua", "\n".join(lines), parsed(Definition("f", "function", 2, 3, 2, "f = function()")))
    assert spans(chunks) == [(2, 3, "function", "f")]
    assert chunk_file("a.txt", "\n\n--\n", ParsedFile()) == []


def test_an_unparsed_small_file_is_one_chunk_and_a_large_one_blocks() -> None:
    assert spans(chunk_file("a.txt", "one word\n\ntwo", ParsedFile())) == [(1, 3, "file", "")]
    chunks = chunk_file("a.txt", "\n".join(numbered(200)), ParsedFile())
    assert [one.kind for one in chunks] == ["block"] * 3


def test_one_endless_line_is_one_chunk() -> None:
    assert spans(chunk_file("a.txt", f"begin\n{'word ' * 50_000}\nend of it", ParsedFile())) == [
        (1, 1, "block", ""),
        (2, 2, "block", ""),
        (3, 3, "block", ""),
    ]


@given(
    st.lists(st.sampled_from(["", "    word here", "other word", "}", "x" * 500]), min_size=1, max_size=300),
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 150)), max_size=12),
)
def test_every_meaningful_line_is_in_exactly_one_chunk(lines: list[str], ranges: list[tuple[int, int]]) -> None:
    """The definitions may nest, touch, overlap or end beyond the file."""
    definitions = [
        Definition(f"d{row}", "function", start, min(start + length, len(lines)), start, f"def d{row}")
        for row, (start, length) in enumerate(ranges)
        if start <= len(lines)
    ]
    chunks = chunk_file("a.py", "\n".join(lines), parsed(*definitions))
    rows = [row for one in chunks for row in range(one.start, one.end + 1)]
    assert len(rows) == len(set(rows))
    assert rows == sorted(rows)
    said = {row for row, line in enumerate(lines, 1) if re.search(r"\w\w", line)}
    assert said <= set(rows)
    for one in chunks:
        own = lines[one.start - 1 : one.end]
        assert one.text.endswith("\n".join(own))
        assert len(own) <= MAX_LINES
        assert len(own) == 1 or sum(len(line) + 1 for line in own) <= MAX_CHARS
