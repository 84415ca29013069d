"""Detects files that are not a project's own text, by name: secret, vendored, generated, binary (R-266).

The lists are data (`left_out.toml`). Paths are relative to the project's root, with `/`.
"""

from __future__ import annotations

import re
from functools import cache

from codecompanion.formats.package_table import package_table
from codecompanion.workspace.secret_files import is_secret, one_pattern


@cache
def _table() -> dict[str, dict[str, object]]:
    return package_table("workspace/left_out.toml")


def words(group: str, key: str) -> frozenset[str]:
    """Return a list from the data as a set of words."""
    found = _table()[group][key]
    return frozenset(found.split() if isinstance(found, str) else map(str, found if isinstance(found, list) else ()))


def max_data_bytes() -> int:
    """Return the size limit of a file that is mostly data."""
    return int(str(_table()["data"]["max_bytes"]))


def marks_of_generated_files() -> tuple[bytes, ...]:
    """Return the strings that mark a file as generated if they occur in its first lines."""
    return tuple(mark.encode() for mark in words("generated", "marks"))


def is_hidden(path: str) -> bool:
    """Return whether a part of the path begins with a dot (R-216)."""
    return any(part.startswith(".") for part in path.split("/"))


def why_left_out(path: str, *, is_tracked: bool) -> str:
    """Return why a file is left out because of its name: "secret", "vendored", "generated", "binary", or ""."""
    if is_secret(path):
        return "secret"
    *folders, name = path.lower().split("/")
    if not _vendored(is_tracked).isdisjoint(folders):
        return "vendored"
    if _generated().fullmatch(name):
        return "generated"
    if "." in name and name.rpartition(".")[2] in _binary():
        return "binary"
    return ""


def vendored_folder(path: str, *, is_tracked: bool) -> str:
    """Return the folder that makes a file vendored or generated, with a `/`, or the path itself if none does."""
    parts = path.split("/")
    known = _vendored(is_tracked)
    for depth, part in enumerate(parts[:-1], 1):
        if part.lower() in known:
            return "/".join(parts[:depth]) + "/"
    return path


def build_folders_of(path: str) -> list[str]:
    """Return a file's parent folders that are named like build output."""
    *folders, _ = path.lower().split("/")
    known = _build()
    if known.isdisjoint(folders):
        return []
    return ["/".join(folders[:depth]) for depth, folder in enumerate(folders, 1) if folder in known]


def is_data(path: str) -> bool:
    """Return whether the file is text that is mostly data, of which only small files are read."""
    return "." in path and path.rpartition(".")[2].lower() in _data()


@cache
def _binary() -> frozenset[str]:
    """Return the extensions of files that are not text."""
    return words("binary", "extensions")


@cache
def _data() -> frozenset[str]:
    return words("data", "extensions")


@cache
def _build() -> frozenset[str]:
    return words("vendored", "unless_tracked")


@cache
def _vendored(is_tracked: bool) -> frozenset[str]:
    folders = words("vendored", "folders")
    return folders if is_tracked else folders | _build()


@cache
def _generated() -> re.Pattern[str]:
    return one_pattern(sorted(words("generated", "names")))
