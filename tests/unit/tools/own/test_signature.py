"""From type hints and docstrings to schemas, and from arguments back to values."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from codecompanion.errors import ConfigError, ToolInputInvalid
from codecompanion.tools.own.docstring import read_docstring
from codecompanion.tools.own.signature import read_signature
from codecompanion.tools.parameter_schema import problem_with_parameters


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    name: str
    children: list[Tree]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def everything(  # noqa: D417 - some arguments have no description
    city: str,
    at: Point,
    unit: Literal["c", "f"] = "c",
    days: int = 3,
    words: list[str] | None = None,
    more: dict[str, float] = {},  # noqa: B006 - as people write it
    colour: Colour = Colour.RED,
    share: Annotated[float, Field(ge=0, le=1)] = 0.5,
    context: Any = None,
) -> str:
    """Tell the weather.

    It is made up.

    Args:
        city: Where,
            in English.
        unit (str): Celsius or
            Fahrenheit.
        nonsense: No such argument.

    Returns:
        str: words
    """
    return ""


def test_the_schema_of_a_function_comes_from_hints_and_docstring() -> None:
    made = read_signature(everything, "key")
    assert made.description == "Tell the weather.\n\nIt is made up."
    assert made.wants_context
    assert made.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city", "at"],
        "properties": {
            "city": {"type": "string", "description": "Where, in English."},
            "at": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                "required": ["x"],
                "additionalProperties": False,
            },
            "unit": {
                "type": "string",
                "enum": ["c", "f"],
                "default": "c",
                "description": "Celsius or Fahrenheit.",
            },
            "days": {"type": "integer", "default": 3},
            "words": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            "more": {"type": "object", "additionalProperties": {"type": "number"}, "default": {}},
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "share": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
        },
    }
    assert problem_with_parameters(made.parameters) == ""


def test_arguments_are_converted_as_hinted() -> None:
    made = read_signature(everything, "key")
    given = made.arguments({"city": "Oslo", "at": {"x": 1}, "colour": "blue", "words": ["a"]})
    assert given == {"city": "Oslo", "at": Point(1), "colour": Colour.BLUE, "words": ["a"]}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"city": "Oslo"}, "`at`: Field required"),
        ({"city": "Oslo", "at": {"x": "one"}}, "`at.x`: Input should be a valid integer"),
        ({"city": "Oslo", "at": {"x": 1}, "unit": "k"}, "`unit`: Input should be 'c' or 'f'"),
        ({"city": "Oslo", "at": {"x": 1}, "more": {"a": "b"}}, "`more.a`: Input should be a valid number"),
        ({"city": "Oslo", "at": {"x": 1}, "share": 2}, "`share`: Input should be less than or equal to 1"),
        ({"city": "Oslo", "at": {"x": 1}, "town": "x"}, "`town`: Extra inputs are not permitted"),
    ],
)
def test_wrong_arguments_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolInputInvalid) as error:
        read_signature(everything, "key").arguments(given)
    assert said in str(error.value)


def test_names_used_by_pydantic_are_ordinary_names() -> None:
    def odd(schema: str, json: int = 1, copy: bool = False, model_config: str = "", _hidden: str = "") -> None:
        """Odd."""

    made = read_signature(odd, "key")
    assert list(made.parameters["properties"]) == ["schema", "json", "copy", "model_config", "_hidden"]
    assert made.arguments({"schema": "s", "_hidden": "h"}) == {"schema": "s", "_hidden": "h"}


def test_a_recursive_type_terminates() -> None:
    def walk(tree: Tree) -> None:
        """Walk."""

    made = read_signature(walk, "key")
    child = made.parameters["properties"]["tree"]["properties"]["children"]["items"]
    assert child == {"type": "object"}
    assert made.arguments({"tree": {"name": "a", "children": [{"name": "b", "children": []}]}}) == {
        "tree": Tree("a", [Tree("b", [])])
    }


def test_without_hints_everything_is_accepted() -> None:
    def bare(a, b=Path("/x"), **more):  # type: ignore[no-untyped-def]
        pass

    made = read_signature(bare, "key")
    assert made.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["a"],
        "properties": {"a": {}, "b": {}},
    }
    assert made.description == ""


def test_a_function_without_arguments_has_none() -> None:
    def now() -> str:
        """Tell the time."""
        return ""

    assert read_signature(now, "key").parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def _positional(a: int, /) -> None: ...


def _many(*paths: str) -> None: ...


def _strange(a: threading.Thread) -> None: ...  # type: ignore[name-defined] # noqa: F821


def _no_schema(a: object, b: type[Path] = Path, c: Any = 1, d: complex | Path = 1j) -> None: ...


class _Unknown: ...


def _unknown(a: _Unknown) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_positional, "key: `a` cannot be passed by name"),
        (_many, "key: `paths` cannot be passed by name"),
        (_strange, "key: the type hints cannot be read: NameError: name 'threading' is not defined"),
        (_unknown, "key: no schema can be generated from the type hints"),
    ],
)
def test_a_function_without_a_possible_schema_is_one_sentence(function: Any, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_signature(function, "key")
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words", "arguments"),
    [
        (None, "", {}),
        ("One line.", "One line.", {}),
        ("Do.\n\nArgs:\n    a: first\n    b (int, optional): second\n", "Do.", {"a": "first", "b": "second"}),
        ("Do.\n\n    Args:\n        a: first:\n            more: of it\n", "Do.", {"a": "first: more: of it"}),
        (
            "Do.\n\nParameters\n----------\na : int\n    first\nb\n    second\n    line\n\nReturns\n-------\nstr",
            "Do.",
            {"a": "first", "b": "second line"},
        ),
        (
            "Do.\n\n:param a: first\n    more\n:param int b: second\n:returns: x\n",
            "Do.",
            {"a": "first more", "b": "second"},
        ),
        ("Returns the sum.\n\nNotes on it: none.\n", "Returns the sum.\n\nNotes on it: none.", {}),
        ("Args:\n", "", {}),
        ("Parameters\n", "Parameters", {}),
    ],
)
def test_docstrings_are_parsed_in_the_three_common_styles(
    text: str | None, words: str, arguments: dict[str, str]
) -> None:
    found = read_docstring(text)
    assert (found.text, found.arguments) == (words, arguments)
