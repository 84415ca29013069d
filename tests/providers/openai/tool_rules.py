"""OpenAI's rules for function tools: names, non-object schemas, strict schemas that are not closed.

From the function calling and structured outputs guides: under `strict`, every object has `additionalProperties: false`
and lists all its properties as required, and some keywords are unknown. The rules are stricter than the guides in one
respect: two tools of the same name are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from tests.providers.openai.refusal import expect_length, refuse

MAX_NAME_LENGTH = 64
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_NOT_UNDER_STRICT = ("allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas")


def check_name(name: str, param: str) -> None:
    """Refuse an invalid function name."""
    expect_length(name, MAX_NAME_LENGTH, param)
    if not _NAME.fullmatch(name):
        pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        refuse(f"Invalid '{param}': string does not match pattern. {pattern}", param, "invalid_value")


def check_function(function: Mapping[str, Any], param: str, taken: set[str]) -> None:
    """Refuse a function with a bad name or schema; add its name to `taken`."""
    name = function["name"]
    check_name(name, f"{param}.name")
    if name in taken:
        refuse(f"Invalid '{param}.name': there is another tool of the name '{name}'.", f"{param}.name", "invalid_value")
    taken.add(name)
    check_schema_of(name, function.get("parameters"), f"{param}.parameters", strict=bool(function.get("strict")))


def check_schema_of(name: str, schema: Any, param: str, *, strict: bool) -> None:
    """Refuse parameters that are not a JSON Schema of an object or, under `strict`, not a closed schema."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        given = schema.get("type") if isinstance(schema, Mapping) else None
        _refuse_schema(name, f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{given}\"'.", param)
    for path, part in _parts(schema, ()):
        here = f"In context=({', '.join(map(repr, path))})"
        if part.get("type") == "array" and "items" not in part:
            _refuse_schema(name, f"{here}, array schema missing items.", param)
        if strict:
            _check_closed(name, part, here, param)


def _check_closed(name: str, part: Mapping[str, Any], here: str, param: str) -> None:
    for keyword in _NOT_UNDER_STRICT:
        if keyword in part:
            _refuse_schema(name, f"{here}, '{keyword}' is not permitted.", param)
    if part.get("type") != "object" and "properties" not in part:
        return
    if part.get("additionalProperties") is not False:
        _refuse_schema(name, f"{here}, 'additionalProperties' is required to be supplied and to be false.", param)
    properties = part.get("properties", {})
    required = part.get("required", [] if not properties else None)
    rule = "'required' is required to be supplied and to be an array including every key in properties."
    missing = [key for key in properties if key not in (required or ())]
    extra = [key for key in required or () if key not in properties]
    if missing:
        _refuse_schema(name, f"{here}, {rule} Missing '{missing[0]}'.", param)
    if extra:
        _refuse_schema(name, f"{here}, {rule} Extra required key '{extra[0]}' supplied.", param)


def _parts(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Yield every schema inside a schema with its path."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for keyword in ("properties", "$defs", "definitions"):
        for key, inner in (schema.get(keyword) or {}).items():
            yield from _parts(inner, (*path, keyword, key))
    for keyword in ("anyOf", "allOf", "oneOf"):
        for number, inner in enumerate(schema.get(keyword) or ()):
            yield from _parts(inner, (*path, keyword, str(number)))
    yield from _parts(schema.get("items"), (*path, "items"))


def _refuse_schema(name: str, text: str, param: str) -> NoReturn:
    refuse(f"Invalid schema for function '{name}': {text}", param, "invalid_function_parameters")
