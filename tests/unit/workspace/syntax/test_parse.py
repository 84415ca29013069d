"""Definitions found by the grammars: one text per language, and texts that no grammar accepts (R-222, R-225, R-257)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from codecompanion.workspace.syntax.grammars import load_grammar
from codecompanion.workspace.syntax.languages import language_of, languages
from codecompanion.workspace.syntax.parse import MAX_SIGNATURE_CHARS, parse

PYTHON = dedent(
    '''\
    import os.path, sys as system
    from a import (b,
      c as d)

    # A shape.
    @decorated
    class Shape(Base):
        """Doc."""
        sides: int = 1

        @property
        def area(self, unit: str) -> float:
            def inner(): pass
            import late
            return measured(unit)

    LIMIT = 3

    async def draw(
        first,
        second,
    ):
        pass
    '''
)


def shown(text: str, language: str) -> list[tuple[str, str, str, int, int, int]]:
    """Return kind, parent, name, start, end and line of each definition."""
    return [(one.kind, one.parent, one.name, one.start, one.end, one.line) for one in parse(text, language).definitions]


def test_python_definitions_include_their_decorators_and_comments() -> None:
    assert shown(PYTHON, "python") == [
        ("class", "", "Shape", 5, 15, 7),
        ("variable", "Shape", "sides", 9, 9, 9),
        ("method", "Shape", "area", 11, 15, 12),
        ("function", "Shape.area", "inner", 13, 13, 13),
        ("constant", "", "LIMIT", 17, 17, 17),
        ("function", "", "draw", 19, 23, 19),
    ]


def test_a_signature_is_one_line_without_the_body() -> None:
    signatures = {one.name: one.signature for one in parse(PYTHON, "python").definitions}
    assert signatures["area"] == "def area(self, unit: str) -> float"
    assert signatures["draw"] == "async def draw( first, second, )"
    assert signatures["Shape"] == "class Shape(Base)"
    long = parse("def f(" + "a, " * 500 + "):\n    pass\n", "python").definitions[0].signature
    assert len(long) == MAX_SIGNATURE_CHARS


def test_imports_are_verbatim_and_name_their_bindings() -> None:
    imports = parse(PYTHON, "python").imports
    assert [(one.start, one.end, one.names) for one in imports] == [(1, 1, ("os", "system")), (2, 3, ("b", "d"))]
    assert imports[1].text == "from a import (b,\n  c as d)"


def test_references_are_names_not_defined_there() -> None:
    references = {(one.name, one.line) for one in parse(PYTHON, "python").references}
    assert {("measured", 15), ("Base", 7), ("decorated", 6), ("property", 11)} <= references
    assert not {name for name, _ in references} & {"Shape", "area", "self"}


SAMPLES = tomllib.loads((Path(__file__).parent / "samples.toml").read_text())["sample"]


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["path"] for sample in SAMPLES])
def test_each_language_is_parsed(sample: dict[str, Any]) -> None:
    parsed = parse(sample["text"], language_of(sample["path"]))
    found = [f"{one.kind} {f'{one.parent}.' if one.parent else ''}{one.name} {one.start}" for one in parsed.definitions]
    assert found == sample["definitions"].split(",\n")
    assert sorted({name for one in parsed.imports for name in one.names}) == sample["imports"]
    assert parsed.is_parsed


@pytest.mark.parametrize("language", list(languages()))
def test_every_language_of_the_table_has_a_grammar(language: str) -> None:
    assert load_grammar(language) is not None


@pytest.mark.parametrize("language", list(languages()))
@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\0\0",
        "(((((((" * 500,
        "\ud800 def",
        "}" * 3000,
        "é" * 999,
        "a\r\nb\r",
        "def f(:\n  class\n",
        "x" * 200_000,
    ],
    ids=["empty", "line", "nul", "open", "surrogate", "close", "accents", "cr", "broken", "one word"],
)
def test_any_text_can_be_parsed(language: str, text: str) -> None:
    lines = text.count("\n") + 1
    parsed = parse(text, language)
    assert all(1 <= one.start <= one.line <= one.end <= lines for one in parsed.definitions)
    assert all(1 <= one.start <= one.end <= lines for one in parsed.imports)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("javascript", "[\n" * 60_000),
        ("c", "{\n" * 60_000),
        ("c", "int f() " + "{\n" * 20_000 + "}\n" * 20_000),
        ("lua", "x = " + "{\n" * 60_000),
        ("java", "class A {\n" * 20_000),
    ],
    ids=["open lists", "open blocks", "nested blocks", "open tables", "open classes"],
)
def test_text_that_takes_queries_minutes_is_not_parsed(language: str, text: str) -> None:
    """Sixty thousand brackets took a minute, four hundred thousand five: the text is indexed in blocks."""
    parsed = parse(text, language)
    assert (parsed.language, parsed.definitions) == (language, ())


def test_without_a_grammar_the_text_is_not_parsed() -> None:
    parsed = parse("x = 1", "cobol")
    assert (parsed.language, parsed.is_parsed, parsed.definitions) == ("cobol", False, ())


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("src/a.py", b"", "python"),
        ("a.PY", b"", "python"),
        ("a.d.ts", b"", "typescript"),
        ("Rakefile", b"", "ruby"),
        ("bin/run", b"#!/usr/bin/env python3.11\n", "python"),
        ("bin/run", b"#!/usr/bin/env -S uv run\n", "python"),
        ("bin/run", b"#!/bin/sh\n", "bash"),
        ("bin/run", b"#!/usr/bin/perl\n", ""),
        ("a.h", b"int f(void);\n", "c"),
        ("a.h", b"namespace a {\n", "cpp"),
        (".py", b"", ""),
        ("py", b"", ""),
        ("a.unknown", b"#!/bin/sh\n", ""),
        ("; rm -rf", b"", ""),
    ],
)
def test_a_file_has_a_language(path: str, head: bytes, language: str) -> None:
    assert language_of(path, head) == language
