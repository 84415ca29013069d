"""Checks general properties of tables, lists and plain numbers; every error names the full key path.

Positions in key paths count from 1, as in the Lua table the user wrote.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
import msgspec.inspect

from codecompanion.context.policy.hints import OLD_WORDS, unknown_key
from codecompanion.counting.token_sizes import is_short_form, parse_tokens
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.cutting import cut

T = TypeVar("T")

LARGEST = 2**53
"""The largest integer that a Lua number represents exactly."""
DEEPEST = 32
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def describe(value: Any) -> str:
    """Return a description of the value for an error message."""
    if isinstance(value, str):
        return repr(cut(value, 60))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list"
    return "nothing" if value is None else type(value).__name__


def table_of(value: Any, key: str, expected: str = "a table") -> dict[str, Any]:
    """Return a copy of the value as a table; raises `ConfigError`. An empty Lua table arrives as an empty list."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple) and not value:
        return {}
    raise ConfigError(key, f"got {describe(value)}", expected)


def list_of(value: Any, key: str, expected: str = "a list") -> list[Any]:
    """Return the value as a list; raises `ConfigError`."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping) and not value:
        return []
    raise ConfigError(key, f"got {describe(value)}", expected)


def refuse_nonsense(value: Any, key: str, depth: int = 0) -> None:
    """Raise `ConfigError` for numbers that are never valid, and for tables nested too deeply."""
    if depth > DEEPEST:
        raise ConfigError(key, "it is nested too deeply", "a plain table")
    if isinstance(value, Mapping):
        for name, inner in value.items():
            refuse_nonsense(inner, f"{key}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value, 1):
            refuse_nonsense(inner, f"{key}[{position}]", depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(key, f"got {value}", "a number")
        if value < 0:
            raise ConfigError(key, f"{describe(value)} is negative", "0 or more")
        if value > LARGEST:
            raise ConfigError(key, "the number is too large", f"at most {LARGEST}")


def with_sizes(value: Any, kind: Any) -> Any:
    """Return the value with `16k` converted to 16000 wherever a struct expects a whole number."""
    return _sized(value, _type_info(kind)) if _has_size(value) else value


def _has_size(value: Any) -> bool:
    """Return whether a string in the value may be a size; if not, the types are not examined."""
    if isinstance(value, Mapping):
        return any(_has_size(inner) for inner in value.values())
    return isinstance(value, str) and is_short_form(value)


@cache
def _type_info(kind: Any) -> msgspec.inspect.Type:
    return msgspec.inspect.type_info(kind)


def _sized(value: Any, wanted: msgspec.inspect.Type) -> Any:
    kinds = wanted.types if isinstance(wanted, msgspec.inspect.UnionType) else (wanted,)
    if isinstance(value, str):
        takes_text = any(isinstance(kind, msgspec.inspect.StrType | msgspec.inspect.LiteralType) for kind in kinds)
        takes_number = any(isinstance(kind, msgspec.inspect.IntType) for kind in kinds)
        is_size = takes_number and not takes_text and is_short_form(value) and not value.startswith("0")
        return parse_tokens(value) if is_size else value
    struct = next((kind for kind in kinds if isinstance(kind, msgspec.inspect.StructType)), None)
    if struct is not None and isinstance(value, Mapping):
        types = {field.encode_name: field.type for field in struct.fields}
        return {name: _sized(inner, types[name]) if name in types else inner for name, inner in value.items()}
    return value


def convert(value: Any, kind: type[T], key: str) -> T:
    """Return the value as a struct.

    Raises:
        ConfigError: the value does not fit; the error names the key.
    """
    try:
        return typed.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise _named(text, where.rstrip("`"), kind, key) from error


def _named(text: str, where: str, kind: Any, key: str) -> ConfigError:
    """Return msgspec's error in terms of the configuration."""
    path = key + re.sub(r"\[(\d+)\]", lambda found: f"[{int(found[1]) + 1}]", where).replace("[...]", "")
    at = _type_at(msgspec.inspect.type_info(kind), where)
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown:
        names = [field.encode_name for field in at.fields] if isinstance(at, msgspec.inspect.StructType) else []
        return ConfigError(f"{path}.{unknown[1]}", *unknown_key(unknown[1], names))
    missing = re.search(r"required field `(.+)`", text)
    if missing:
        return ConfigError(f"{path}.{missing[1]}", "it is missing")
    found = re.fullmatch(r"Expected `(.+)`, got `(.+)`", text)
    if found:
        wanted = [_WORDS.get(name.strip(), name.strip()) for name in found[1].split("|") if name.strip() != "null"]
        return ConfigError(path, f"got {_WORDS.get(found[2], found[2])}", " or ".join(wanted))
    odd = re.fullmatch(r"Invalid enum value (.+)", text)
    if odd:
        expected = OLD_WORDS.get(odd[1].strip("'")) or ", ".join(map(repr, _choices(at)))
        return ConfigError(path, f"there is no {odd[1]}", expected)
    problem, _, expected = text.partition("; expected ")
    return ConfigError(path, problem[0].lower() + problem[1:], expected)


def _choices(kind: msgspec.inspect.Type | None) -> list[Any]:
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return [value for one in kinds if isinstance(one, msgspec.inspect.LiteralType) for value in one.values if value]


def _type_at(kind: msgspec.inspect.Type, where: str) -> msgspec.inspect.Type | None:
    """Return the type at a place such as `.older_than.unit` or `.exclude_tools[0]`, or None if it is unknown."""
    at: msgspec.inspect.Type | None = kind
    for part in re.findall(r"\.[^.\[]+|\[[^\[\]]*\]", where):
        kinds = at.types if isinstance(at, msgspec.inspect.UnionType) else (at,)
        at = None
        for one in kinds:
            if part.startswith("[") and isinstance(one, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
                at = one.item_type
            elif isinstance(one, msgspec.inspect.StructType):
                at = next((field.type for field in one.fields if field.encode_name == part[1:]), None)
    return at


def refuse_unknown(fields: Mapping[str, Any], allowed: Collection[str], key: str) -> None:
    """Raise `ConfigError` for the first unknown field, with the nearest known one."""
    for name in fields:
        if name not in allowed:
            raise ConfigError(f"{key}.{name}", *unknown_key(str(name), allowed))
