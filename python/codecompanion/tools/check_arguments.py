"""Checks values against the part of JSON Schema that tool parameters use, with errors a model can act on.

Checked: type, enum, const, required, properties, additionalProperties, items, minimum/maximum and their exclusive
forms, minLength/maxLength, minItems/maxItems, anyOf. Other keywords are ignored, even `pattern`, because a pattern from
outside could take forever to match. Where a schema is expected, anything but an object (such as `true` or a list)
allows everything.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_LIMITS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", operator.ge, "at least"),
    ("maximum", operator.le, "at most"),
    ("exclusiveMinimum", operator.gt, "more than"),
    ("exclusiveMaximum", operator.lt, "less than"),
)
_SIZES = (
    (str, "minLength", "maxLength", "characters"),
    (list, "minItems", "maxItems", "items"),
)


def problems(value: Any, schema: dict[str, Any], name: str = "") -> list[str]:
    """Return the errors of a value, one phrase each."""
    return list(_problems(value, schema, name))


def cleaned(value: Any, schema: Any) -> Any:
    """Remove optional `null`s from a valid value, and convert whole floats to integers where expected."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {
            key: cleaned(item, properties.get(key, {}))
            for key, item in value.items()
            if not _is_absent(key, item, schema)
        }
    if isinstance(value, list):
        return [cleaned(item, schema.get("items", {})) for item in value]
    if isinstance(value, float) and value.is_integer() and "integer" in _expected_types(schema):
        return int(value)
    return value


def shown(value: Any) -> str:
    """Format a value for an error message as its type and shortened JSON."""
    try:
        text = msgspec.json.encode(value).decode("utf-8", "replace")
    except (*NOT_READABLE, TypeError):
        text = "that cannot be shown"
    text = text if len(text) <= 60 else text[:57] + "…"
    kinds = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return "null" if value is None else f"the {kinds[type(value)]} {text}"


def _problems(value: Any, schema: Any, name: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    choices = schema.get("anyOf")
    if choices and all(problems(value, choice, name) for choice in choices):
        yield from _problems(value, choices[0], name)
        return
    label = f"`{name}`" if name else "the value"
    types = _expected_types(schema)
    if types and not any(_has_type(value, kind) for kind in types):
        yield f"{label} must be {_article(' or '.join(types))}, not {shown(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(msgspec.json.encode(choice).decode() for choice in schema["enum"])
        yield f"{label} must be one of {allowed}, not {shown(value)}"
    if "const" in schema and value != schema["const"]:
        yield f"{label} must be {msgspec.json.encode(schema['const']).decode()}, not {shown(value)}"
    if isinstance(value, dict):
        yield from _object_problems(value, schema, name)
    elif isinstance(value, (str, list)):
        yield from _size_problems(value, schema, label)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        for keyword, fits, words in _LIMITS:
            if keyword in schema and not fits(value, schema[keyword]):
                yield f"{label} must be {words} {schema[keyword]}, not {value}"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{name}[{index}]")


def _object_problems(value: dict[str, Any], schema: dict[str, Any], name: str) -> Iterator[str]:
    properties: dict[str, Any] = schema.get("properties", {})
    required = schema.get("required", ())
    prefix = f"{name}." if name else ""
    for key in required:
        if key not in value:
            expected = " or ".join(_expected_types(properties.get(key, {}))) or "value"
            yield f"`{prefix}{key}` is missing; it is required and must be {_article(expected)}"
    for key, item in value.items():
        if key in properties:
            if not _is_absent(key, item, schema):
                yield from _problems(item, properties[key], prefix + key)
        elif schema.get("additionalProperties") is False:
            nearest = get_close_matches(key, properties, n=1)
            hint = (
                f"did you mean `{nearest[0]}`?" if nearest else f"the arguments are {', '.join(properties) or 'none'}"
            )
            yield f"`{prefix}{key[:60]}` is unknown, {hint}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _problems(item, schema["additionalProperties"], prefix + key)


def _size_problems(value: str | list[Any], schema: dict[str, Any], label: str) -> Iterator[str]:
    for kind, least, most, unit in _SIZES:
        if isinstance(value, kind) and len(value) < schema.get(least, 0):
            yield f"{label} must have at least {schema[least]} {unit}, not {len(value)}"
        if isinstance(value, kind) and most in schema and len(value) > schema[most]:
            yield f"{label} must have at most {schema[most]} {unit}, not {len(value)}"


def _expected_types(schema: Any) -> tuple[str, ...]:
    kind = schema.get("type", ()) if isinstance(schema, dict) else ()
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _has_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _is_absent(key: str, value: Any, schema: dict[str, Any]) -> bool:
    """Return whether an argument is a `null` that counts as omitted."""
    if value is not None or key in schema.get("required", ()):
        return False
    return "null" not in _expected_types(schema.get("properties", {}).get(key, {}))


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
