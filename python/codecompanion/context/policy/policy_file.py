"""Reads policies from TOML; errors name the file, line and key."""

from __future__ import annotations

import tomllib
from typing import Any

from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.table import policy_from_table
from codecompanion.errors import ConfigError
from codecompanion.formats.regex import regex

_PART = regex(r"(\w+)|\[(\d+)\]")


def read_policy_file(text: str, file: str) -> Policy:
    """Return the policy that a TOML document describes.

    Raises:
        ConfigError: the text is not valid TOML or not a policy; the error's key begins with the file and line.
    """
    try:
        return policy_from_table(tomllib.loads(text), "")
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(file, str(error)) from error
    except ConfigError as error:
        key = error.key.lstrip(".")
        raise ConfigError(f"{file}:{_line_of(text, key)}: {key}", error.problem, error.expected) from error


def _line_of(text: str, key: str) -> int:
    """Return the first line that contains a key such as `stage[2].trigger`.

    For a missing key, return the line where it belongs.
    """
    parts = [name or int(number) - 1 for name, number in _PART.findall(key)]
    depth = _depth(tomllib.loads(text), parts)
    lines = text.splitlines()
    for number in range(1, len(lines) + 1):
        # Close a list of steps that continues on the following lines.
        for end in ("", "]"):
            try:
                found = tomllib.loads("\n".join([*lines[:number], end]))
            except tomllib.TOMLDecodeError:
                continue
            if _depth(found, parts) >= depth:
                return number
    return len(lines)


def _depth(value: Any, parts: list[str | int]) -> int:
    """Return the number of parts of the path that exist; a stage or tier may be named by its id."""
    for place, part in enumerate(parts):
        if isinstance(part, str) and isinstance(value, list):
            value = next((one for one in value if isinstance(one, dict) and one.get("id") == part), None)
        elif isinstance(part, str) and isinstance(value, dict):
            value = value.get(part)
        elif isinstance(part, int) and isinstance(value, list) and part < len(value):
            value = value[part]
        else:
            return place
        if value is None:
            return place
    return len(parts)
