"""Detects by name the files that contain keys or passwords (R-266); these are read only if the user names them.

The list is data (`secret_files.toml`). Paths are relative to the project's root, with `/`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache, lru_cache

import msgspec

from codecompanion.formats.package_table import package_table
from codecompanion.workspace.syntax.languages import language_of


class _Names(msgspec.Struct, frozen=True):
    folders: frozenset[str]
    names: re.Pattern[str]
    names_but_code: re.Pattern[str]


@cache
def _names() -> _Names:
    table = package_table("workspace/secret_files.toml")
    names, but_code = one_pattern(table["names"].split()), one_pattern(table["names_but_code"].split())
    return _Names(frozenset(table["folders"]), names, but_code)


def one_pattern(names: Sequence[str]) -> re.Pattern[str]:
    """Return one pattern for all these names, in which `*` is a wildcard."""
    return re.compile("|".join(map(translate, names)))


@lru_cache(maxsize=16_384)
def is_secret(path: str) -> bool:
    """Return whether the name of a file indicates keys or passwords."""
    known = _names()
    *folders, name = path.lower().split("/")
    if not known.folders.isdisjoint(folders) or known.names.fullmatch(name):
        return True
    return bool(known.names_but_code.fullmatch(name)) and not language_of(path)
