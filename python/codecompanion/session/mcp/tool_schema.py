"""Converts the schema of a server tool to the form that providers accept: one object, no references, limited size.

A tool whose schema cannot be converted is left out. Dropping keywords only makes the schema more permissive; the
server validates its arguments itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codecompanion.formats.outside_text import is_too_deep

MAX_DEPTH = 24
MAX_NODES = 5_000
_JOINED = ("oneOf", "anyOf", "allOf")
_DROPPED = frozenset({"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "examples", "x-mcp-header"})


class UnusableSchema(ValueError):
    """No provider accepts the schema; the message says why."""


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's arguments in the accepted form.

    Raises:
        UnusableSchema: the schema is recursive without end, refers to another document, or is too deep or too large.
    """
    made = _SchemaConversion(schema).node(schema, 0, ())
    made.setdefault("type", "object")
    if made["type"] != "object":
        raise UnusableSchema("its arguments are not an object")
    made.setdefault("properties", {})
    if not isinstance(made["properties"], dict):
        raise UnusableSchema("its arguments have no names")
    for keyword in _JOINED:
        _take_in(made, made.pop(keyword, None), keyword)
    return made


def _take_in(made: dict[str, Any], choices: Any, keyword: str) -> None:
    """Merge the properties of all choices into an object, because providers reject this keyword at the top level."""
    if not isinstance(choices, list):
        return
    required: list[set[str]] = []
    for choice in choices:
        if isinstance(choice, dict):
            named = choice.get("properties")
            if isinstance(named, dict):
                made["properties"] = {**named, **made["properties"]}
            needed = choice.get("required")
            required.append({name for name in needed if isinstance(name, str)} if isinstance(needed, list) else set())
    if required:
        joined = set.union(*required) if keyword == "allOf" else set.intersection(*required)
        wanted = [name for name in made["properties"] if name in joined or name in (made.get("required") or ())]
        if wanted:
            made["required"] = wanted


class _SchemaConversion:
    """One pass over a schema, replacing references with their targets."""

    def __init__(self, whole: Mapping[str, Any]) -> None:
        self._whole, self._nodes = whole, 0

    def node(self, schema: Any, depth: int, inside: tuple[str, ...]) -> dict[str, Any]:
        """Return a schema without references; `inside`: the references being expanded."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise UnusableSchema("its schema is too large" if depth <= MAX_DEPTH else "its schema is nested too deeply")
        if not isinstance(schema, dict):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            if reference in inside:
                return {"type": "object"}  # a recursive type: deeper levels are not described
            schema = {**self._named(reference), **{key: value for key, value in schema.items() if key != "$ref"}}
            inside = (*inside, reference)
        made: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _DROPPED or key == "$ref":
                continue
            made[key] = self._value(key, value, depth, inside)
        return made

    def _value(self, key: str, value: Any, depth: int, inside: tuple[str, ...]) -> Any:
        if key in ("properties", "patternProperties") and isinstance(value, dict):
            return {name: self.node(inner, depth + 1, inside) for name, inner in value.items()}
        if key in _JOINED and isinstance(value, list):
            return [self.node(inner, depth + 1, inside) for inner in value]
        if key in ("items", "additionalProperties", "not") and isinstance(value, dict):
            return self.node(value, depth + 1, inside)
        return value

    def _named(self, reference: str) -> dict[str, Any]:
        found: Any = self._whole
        if not reference.startswith("#"):
            raise UnusableSchema(f"its schema refers to {reference[:80]}, which is not part of it")
        for part in reference[1:].strip("/").split("/") if reference != "#" else ():
            part = part.replace("~1", "/").replace("~0", "~")
            found = found.get(part) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise UnusableSchema(f"its schema refers to {reference[:80]}, which does not exist")
        return found


def is_readable(schema: Any) -> bool:
    """Return whether a schema is simple enough to be traversed."""
    import json

    try:
        return isinstance(schema, dict) and not is_too_deep(json.dumps(schema))
    except (TypeError, ValueError, RecursionError):
        return False
