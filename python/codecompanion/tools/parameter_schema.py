"""Checks whether an external schema of a tool's arguments can be sent and used for validation.

Only the parts that `check_arguments` reads are examined; unknown keywords are passed on to the model unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

_MAX_CHARS = 100_000
_MAX_DEPTH = 32
_TYPES = frozenset({"object", "array", "string", "boolean", "integer", "number", "null"})
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SIZES = ("minLength", "maxLength", "minItems", "maxItems")


def problem_with_parameters(parameters: object) -> str:
    """Return why this cannot be the schema of a tool's arguments, or "" if it can."""
    if not isinstance(parameters, dict):
        return "its schema is not an object"
    if parameters.get("type") != "object":
        return 'its schema is not of type "object"'
    try:
        size = len(msgspec.json.encode(parameters))
    except (*NOT_READABLE, TypeError) as error:
        return f"its schema is not JSON ({error})"
    if size > _MAX_CHARS:
        return f"its schema is longer than {_MAX_CHARS:,} characters"
    return next(_problems(parameters, "", 0), "")


def _problems(schema: object, where: str, depth: int) -> Iterator[str]:
    """Yield a problem for each part that `check_arguments` cannot use."""
    if depth > _MAX_DEPTH:
        yield f"its schema is nested deeper than {_MAX_DEPTH} levels"
    elif isinstance(schema, Mapping):
        yield from _wrong_keywords(schema, f" at {where}" if where else "")
        for name, inner in _parts(schema):
            yield from _problems(inner, f"{where}.{name}" if where else name, depth + 1)


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        yield from properties.items()
    if "items" in schema:
        yield "items", schema["items"]
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        yield "additionalProperties", more
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        yield from ((f"anyOf[{number}]", choice) for number, choice in enumerate(choices))


def _wrong_keywords(schema: Mapping[str, Any], at: str) -> Iterator[str]:
    kinds = schema.get("type", "object")
    named = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(named, list) or not named or any(kind not in _TYPES for kind in named):
        yield f"its schema has an invalid type {kinds!r}{at}; valid types are {', '.join(sorted(_TYPES))}"
    for keyword, kind in (("properties", Mapping), ("required", list), ("enum", list), ("anyOf", list)):
        if keyword in schema and not isinstance(schema[keyword], kind):
            yield f"its schema has an invalid {keyword!r}{at}"
    for keyword in (*_NUMBERS, *_SIZES):
        value = schema.get(keyword, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            yield f"its schema has an invalid {keyword!r}{at}"
