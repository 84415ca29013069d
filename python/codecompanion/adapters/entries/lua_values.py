"""Formats configuration values for messages, with Lua type names and Lua syntax."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

_NAMES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "nil"}


def lua_type(value: object) -> str:
    """Return the result of Lua's `type()` for the value."""
    return _NAMES.get(type(value), "table")


def shown(value: object) -> str:
    """Return the value in Lua syntax, on one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {shown(inner)}' for key, inner in value.items())} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"{{ {', '.join(map(shown, value))} }}" if value else "{}"
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)


def pairs(table: object) -> Iterator[tuple[str, object]]:
    """Yield the (name, value) pairs of a table in name order, or those of a list in order of position."""
    if isinstance(table, Mapping):
        yield from sorted(table.items())
    elif isinstance(table, list | tuple):
        yield from ((str(number), value) for number, value in enumerate(table, 1))
