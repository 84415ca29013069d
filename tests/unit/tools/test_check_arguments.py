"""Validation of tool arguments: errors in words that a model can act on."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.tools import check_arguments

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "(a+)+$"},
        "line": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "kind": {"type": "string", "enum": ["x", "y"]},
        "always": {"const": 1},
        "on": {"type": "boolean"},
        "range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "nullable": {"type": ["string", "null"]},
        "deep": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "`path` is missing; it is required and must be a string"),
        ({"path": None}, "`path` must be a string, not null"),
        ({"path": 3}, "`path` must be a string, not the integer 3"),
        ({"path": ""}, "`path` must have at least 1 characters, not 0"),
        ({"path": "a" * 6}, "`path` must have at most 5 characters, not 6"),
        ({"path": "a", "line": "3"}, '`line` must be an integer, not the string "3"'),
        ({"path": "a", "line": True}, "`line` must be an integer, not the boolean true"),
        ({"path": "a", "line": 1.5}, "`line` must be an integer, not the number 1.5"),
        ({"path": "a", "line": 0}, "`line` must be at least 1, not 0"),
        ({"path": "a", "line": 10}, "`line` must be at most 9, not 10"),
        ({"path": "a", "share": 0}, "`share` must be more than 0, not 0"),
        ({"path": "a", "share": 1.0}, "`share` must be less than 1, not 1.0"),
        ({"path": "a", "kind": "z"}, '`kind` must be one of "x", "y", not the string "z"'),
        ({"path": "a", "always": 2}, "`always` must be 1, not the integer 2"),
        ({"path": "a", "on": "true"}, '`on` must be a boolean, not the string "true"'),
        ({"path": "a", "on": 1}, "`on` must be a boolean, not the integer 1"),
        ({"path": "a", "range": [1]}, "`range` must have at least 2 items, not 1"),
        ({"path": "a", "range": [1, 2, 3]}, "`range` must have at most 2 items, not 3"),
        ({"path": "a", "range": [1, "2"]}, '`range[1]` must be an integer, not the string "2"'),
        ({"path": "a", "either": []}, "`either` must be a string, not the array []"),
        ({"path": "a", "deep": {}}, "`deep.x` is missing; it is required and must be a string"),
        ({"path": "a", "map": {"k": "v"}}, '`map.k` must be an integer, not the string "v"'),
        ({"path": "a", "lines": 3}, "`lines` is unknown, did you mean `line`?"),
        ({"path": "a" * 300}, "`path` must have at most 5 characters"),
    ],
)
def test_an_error_names_the_argument_its_value_and_the_expected_one(given: dict[str, Any], said: str) -> None:
    assert any(said in problem for problem in check_arguments.problems(given, _SCHEMA)), check_arguments.problems(
        given, _SCHEMA
    )


def test_all_errors_are_reported_at_once() -> None:
    assert len(check_arguments.problems({"line": 0, "kind": "z", "zzz": 1}, _SCHEMA)) == 4


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a"},
        {"path": "a", "line": 9, "share": 0.5, "kind": "x", "on": False, "range": [1, 2], "either": 5, "always": 1},
        {"path": "a", "either": "text", "deep": {"x": "1", "more": 2}, "map": {"k": 1}, "nullable": None},
    ],
)
def test_valid_arguments_have_no_errors(given: dict[str, Any]) -> None:
    assert check_arguments.problems(given, _SCHEMA) == []
    assert check_arguments.cleaned(given, _SCHEMA) == given


def test_an_optional_null_counts_as_missing_and_a_whole_float_as_an_integer() -> None:
    given = {"path": "a", "line": 3.0, "kind": None, "nullable": None, "range": [1.0, 2]}
    assert check_arguments.problems(given, _SCHEMA) == []
    cleaned = check_arguments.cleaned(given, _SCHEMA)
    assert cleaned == {"path": "a", "line": 3, "nullable": None, "range": [1, 2]}
    assert isinstance(cleaned["line"], int)


def test_a_long_value_is_quoted_shortened() -> None:
    assert len(check_arguments.shown("x" * 10_000)) < 100
