"""Finds the file that a tool call reads or edits, to judge which results a future edit needs (lesson 24).

Tool names do not matter: a path is an argument whose name suggests a path, or the file of a `cat`, `sed -n`, `head` or
`tail` in a shell command. A file is *edited* by a call that names a path and contains text to write. Prose is never
interpreted.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any, Literal

import msgspec

from codecompanion.context.message_facts.calls import read_arguments, strings_in
from codecompanion.context.message_facts.name_patterns import PATH
from codecompanion.formats.regex import regex
from codecompanion.model.messages import ToolCall

Access = Literal["read", "edited"]

_PATH_KEYS = frozenset("path file filename filepath targetfile absolutepath relativepath uri document".split())
_TEXT_KEYS = regex(r"^(?:new|old)|content|replace|insert|patch|^filetext$|^text$|^diff$|^edits?$")
_PART_KEYS = regex(r"range|line|offset|limit|start|end|view")
_SEARCH_KEYS = frozenset("pattern query regex regexp glob search searchterm needle".split())
_COMMAND_KEYS = frozenset("command cmd script".split())
_SHOWING = regex(
    r"(?:^|&&|;|\n)[^\S\n]*(?P<tool>cat|nl|head|tail|less|bat|sed\s+-n)\s+"
    r"(?:-\S+\s+|\d+\s+|'[^']*'\s+|\"[^\"]*\"\s+)*"
    r"(?P<path>[^-\s;&|<>'\"*][^\s;&|<>'\"*]*)"
)
_WHOLE = frozenset({"cat", "nl", "less", "bat"})


class FileUse(msgspec.Struct, frozen=True):
    """The use of a file by one call. `part` describes the range read, or is "" for the whole file."""

    path: str
    access: Access
    part: str = ""


def file_use(call: ToolCall) -> FileUse | None:
    """Return the file that the call uses, and how it uses it, or None if the call does not use a file."""
    arguments = read_arguments(call.arguments)
    if not isinstance(arguments, dict):
        return None
    names = {_bare(name): value for name, value in arguments.items()}
    path = next((value for name, value in names.items() if name in _PATH_KEYS and _is_path(value)), "")
    if path:
        if any(_TEXT_KEYS.search(name) and _says_something(value) for name, value in names.items()):
            return FileUse(posixpath.normpath(path), "edited")
        if any(name in _SEARCH_KEYS and _says_something(value) for name, value in names.items()):
            return None  # a search in a file shows single lines, so it does not count as a look at the file
        return FileUse(posixpath.normpath(path), "read", _part(names))
    nested = [value for key, value in strings_in(arguments) if _bare(key) in _PATH_KEYS and _is_path(value)]
    if len(nested) == 1:
        return FileUse(posixpath.normpath(nested[0]), "read", call.arguments)
    command = next((value for name, value in names.items() if name in _COMMAND_KEYS and isinstance(value, str)), "")
    return _shown_by_command(command)


def _shown_by_command(command: str) -> FileUse | None:
    shown = _SHOWING.search(command)
    if shown is None:
        return None
    whole = shown["tool"] in _WHOLE and "|" not in command[shown.end() :]
    return FileUse(posixpath.normpath(shown["path"]), "read", "" if whole else shown[0].strip())


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 400 and "\n" not in value


def _says_something(value: Any) -> bool:
    return value not in (None, "", "null", [], {})


def _part(names: dict[str, Any]) -> str:
    """Return the arguments that restrict a read to a range, as one string."""
    parts = [
        f"{name}={value}" for name, value in sorted(names.items()) if _PART_KEYS.search(name) and _says_something(value)
    ]
    return " ".join(parts)


def names_in(text: str) -> frozenset[str]:
    """Return the base names of the files that a string mentions."""
    return frozenset(posixpath.basename(path) for path in PATH.findall(text))
