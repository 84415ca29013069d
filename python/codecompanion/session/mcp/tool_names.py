"""Builds the names by which models call server tools, `server__tool`: valid for every provider, unique and stable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

MAX_CHARS = 64
_HASH_CHARS = 6


def model_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return {tool: name for the model} for the tools of a server.

    If a name is too long, has invalid characters or would collide with another, a hash is appended, so that the name
    does not depend on the other tools.
    """
    plain = {tool: f"{_letters(server)}__{_letters(tool)}" for tool in tools}
    counted: dict[str, int] = {}
    for name in plain.values():
        counted[name.casefold()] = counted.get(name.casefold(), 0) + 1
    return {tool: _unique(name, server, tool, counted) for tool, name in plain.items()}


def is_tool_of(server: str, name: str) -> bool:
    """Return whether a tool of the server may have this name for the model."""
    return name.startswith(f"{_letters(server)}__"[: MAX_CHARS - _HASH_CHARS - 1])


def group_name(server: str) -> str:
    """Return the name of the group with all tools of the server."""
    return f"mcp:{_letters(server)[:MAX_CHARS]}"


def _unique(name: str, server: str, tool: str, counted: dict[str, int]) -> str:
    if name == f"{server}__{tool}" and len(name) <= MAX_CHARS and counted[name.casefold()] == 1:
        return name
    if (
        name != f"{server}__{tool}"
        and len(name) <= MAX_CHARS
        and counted[name.casefold()] == 1
        and _is_close(server, tool)
    ):
        return name
    mark = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name[: MAX_CHARS - _HASH_CHARS - 1]}_{mark}"


def _is_close(server: str, tool: str) -> bool:
    """Return whether only dots, slashes and spaces need replacing, which makes collisions within a server unlikely."""
    return re.fullmatch(r"[A-Za-z0-9_./ :-]+", server + tool) is not None


def _letters(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", text) or "_"
