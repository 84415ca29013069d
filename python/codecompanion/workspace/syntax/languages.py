"""Detects the language of a file by its name or, failing that, its first line.

The table is data (`languages.toml`); a language is listed if there is a grammar package for it.
"""

from __future__ import annotations

import re
from functools import cache

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

_CPP_HEADER = regex(rb"^[ \t]*(?:class|namespace|template)\b|\bstd::|^[ \t]*(?:public|private):", re.MULTILINE)
_INTERPRETER = regex(rb"^#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\S*/)?)?([A-Za-z][A-Za-z+-]*)")


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The criteria for recognising files of a language, and the options for parsing them in addition to the query."""

    extensions: tuple[str, ...]
    filenames: tuple[str, ...]
    shebangs: tuple[str, ...]
    wrappers: frozenset[str]
    names: tuple[str, ...]
    noise: frozenset[str]
    queries: str = ""
    import_names: str = ""
    docstring: bool = False


@cache
def languages() -> dict[str, Language]:
    """Return the languages by name."""
    return typed.convert(package_table("workspace/syntax/languages.toml"), dict[str, Language])


def language_of(path: str, head: bytes = b"") -> str:
    """Return the language of a file, or "" if it is unknown.

    `head`: the file's first bytes, for files without an extension and for headers, which may be C or C++.
    """
    by_extension, by_filename, by_shebang = _tables()
    name = path.rpartition("/")[2]
    if found := by_filename.get(name):
        return found
    extension = name.rpartition(".")[2].lower() if "." in name[1:] else ""
    if extension == "h" and _CPP_HEADER.search(head):
        return "cpp"
    if extension:
        return by_extension.get(extension, "")
    interpreter = _INTERPRETER.match(head[:200])
    return by_shebang.get(interpreter[1].decode().lower(), "") if interpreter else ""


@cache
def _tables() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    known = languages().items()
    return (
        {word: name for name, language in known for word in language.extensions},
        {word: name for name, language in known for word in language.filenames},
        {word: name for name, language in known for word in language.shebangs},
    )
