"""Describes JSON values in error messages: a value's type, and why a field is invalid."""

from __future__ import annotations

import json
from typing import Any

_KINDS = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
_SHOWN_CHARS = 40


def kind(value: Any) -> str:
    """Return JSON's name for the type of a value."""
    return _KINDS.get(type(value), "an object")


def shown(value: Any) -> str:
    """Return a short string, a number or a boolean as JSON, and the type of anything else."""
    if isinstance(value, str | bool | int | float) and len(str(value)) <= _SHOWN_CHARS:
        return json.dumps(value)
    return kind(value)


def wrong_field(name: str, value: Any, expected: str) -> str:
    """Return why a field is invalid: it is missing (or null), or not of the expected type."""
    if value is None:
        return f'"{name}" is missing; expected {expected}'
    return f'"{name}": expected {expected}, found {shown(value)}'
