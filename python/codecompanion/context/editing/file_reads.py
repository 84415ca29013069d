"""Which tool results show a file, and which are out of date: what an edit to come is likely to need (lesson 24).

Tools of any naming are understood: a path is the argument called so, or the file of a `cat`, `sed -n`, `head` or `tail`
in a shell command. A file is *edited* by a call that names a path and brings text to write. Nothing is guessed from
prose.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from codecompanion.context.ledger.facts import PATH, read_arguments, strings_in
from codecompanion.formats.regex import regex
from codecompanion.model.invariants import Pairing
from codecompanion.model.messages import Message, ToolCall, is_typed_by_user

Access = Literal["read", "edited"]

_PATH_KEYS = frozenset("path file filename filepath targetfile absolutepath relativepath uri document".split())
_TEXT_KEYS = regex(r"^(?:new|old)|content|replace|insert|patch|^filetext$|^text$|^diff$|^edits?$")
_PART_KEYS = regex(r"range|line|offset|limit|start|end|view")
_COMMAND_KEYS = frozenset("command cmd script".split())
_SHOWING = regex(
    r"(?:^|&&|;|\n)[^\S\n]*(?P<tool>cat|nl|head|tail|less|bat|sed\s+-n)\s+"
    r"(?:-\S+\s+|\d+\s+|'[^']*'\s+|\"[^\"]*\"\s+)*"
    r"(?P<path>[^-\s;&|<>'\"*][^\s;&|<>'\"*]*)"
)
_WHOLE = frozenset({"cat", "nl", "less", "bat"})
# A longer message is something pasted, and not what the user says the work is about.
_MAX_MESSAGE_CHARS = 20_000


class FileUse(msgspec.Struct, frozen=True):
    """What one call does with a file. `part` tells a range of it, "" = all of it."""

    path: str
    access: Access
    part: str = ""


class FileUses(msgspec.Struct, frozen=True):
    """The files of a view; numbers are indexes of messages.

    `of_result`: what the call of a result did. `last_read`, `last_edited`, `last_named` (by the user; by the bare name
    of the file): the newest place for each path. `last_shown`: the newest result that shows all of the file. `newest`:
    the results that no later read of the same file makes superfluous.
    """

    of_result: dict[int, FileUse]
    last_read: dict[str, int]
    last_edited: dict[str, int]
    last_named: dict[str, int]
    last_shown: dict[str, int]
    newest: frozenset[int]


@lru_cache(maxsize=8192)
def file_use(call: ToolCall) -> FileUse | None:
    """Return what the call does with which file, None when no file is named."""
    arguments = read_arguments(call.arguments)
    if not isinstance(arguments, dict):
        return None
    names = {_bare(name): value for name, value in arguments.items()}
    path = next((value for name, value in names.items() if name in _PATH_KEYS and _is_path(value)), "")
    if path:
        if any(_TEXT_KEYS.search(name) and _says_something(value) for name, value in names.items()):
            return FileUse(posixpath.normpath(path), "edited")
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
    """Return what narrows a read down, in one text."""
    parts = [
        f"{name}={value}" for name, value in sorted(names.items()) if _PART_KEYS.search(name) and _says_something(value)
    ]
    return " ".join(parts)


def find_uses(messages: Sequence[Message], pairing: Pairing) -> FileUses:
    """Return what the calls did with files.

    A read of a whole file makes all earlier reads of it superfluous, a read of a part those of the same part.
    """
    uses = FileUses({}, {}, {}, _named_files(messages), {}, frozenset())
    for index, message in enumerate(messages):
        for position, call in enumerate(message.tool_calls):
            use, result = file_use(call), pairing.result_of.get((index, position))
            if use is None or result is None or messages[result].is_error:
                continue
            uses.of_result[result] = use
            (uses.last_edited if use.access == "edited" else uses.last_read)[use.path] = result
    newest: set[int] = set()
    parts_seen: dict[str, set[str]] = {}
    for result in sorted(uses.of_result, reverse=True):
        use = uses.of_result[result]
        if use.access == "edited" or messages[result].edited or messages[result].compacted:
            continue
        if not use.part:
            uses.last_shown.setdefault(use.path, result)
        parts = parts_seen.setdefault(use.path, set())
        if "" not in parts and use.part not in parts:
            newest.add(result)
        parts.add(use.part)
    return msgspec.structs.replace(uses, newest=frozenset(newest))


def _named_files(messages: Sequence[Message]) -> dict[str, int]:
    """Return where the user named which file last."""
    named: dict[str, int] = {}
    for index, message in enumerate(messages):
        if is_typed_by_user(message) and len(message.text) <= _MAX_MESSAGE_CHARS:
            for name in _names_in(message.text):
                named[name] = index
    return named


@lru_cache(maxsize=2048)
def _names_in(text: str) -> frozenset[str]:
    return frozenset(posixpath.basename(path) for path in PATH.findall(text))
