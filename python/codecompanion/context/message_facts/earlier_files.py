"""Parses the files of an earlier ledger, so that they survive any number of compactions (lesson 21)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

Action = Literal["read", "edited", "created", "deleted", "searched", "ran", "used", "seen"]
"""An action on a file, as named in a ledger."""

ROOT_LINE = "Paths that do not start with / are in {root}."
"""Beginning of the ledger line that names the folder common to many lines."""
_ROOT = regex(re.escape(ROOT_LINE).replace(re.escape("{root}"), r"(/.{1,200})"))
_DONE = r"(created|deleted|edited|read)"
_ENTRY = regex(rf"(?:\A|, )(?P<name>[^,()]{{1,255}}?) \((?P<done>{_DONE}\b[^()]*)\)")
_PATH = regex(rf"(?P<name>.*/[^/]+?) \((?P<done>{_DONE}\b[^()]*)\)")
_TIMES = regex(rf"{_DONE}(?: ×(\d+))?")


class EarlierFile(msgspec.Struct, frozen=True):
    """A file of an earlier ledger: the counts of actions on it, and the symbols that edits defined in it."""

    path: str
    actions: dict[Action, int]
    symbols: tuple[str, ...]


def earlier_files(text: str) -> Iterator[EarlierFile]:
    """Yield the distinct files listed in a summary.

    The lines are `- folder/name (edited ×2, read: symbol)` and `- folder/: name (…), name (…)`; summaries written
    before 2026-11-22 have no colon after the folder. A summary may list a file both in its own section and in the
    ledger below; these entries describe the same work.
    """
    found: dict[str, EarlierFile] = {}
    for file in _entries(text):
        known = found.get(file.path, file)
        actions = {**known.actions, **{name: max(n, known.actions.get(name, 0)) for name, n in file.actions.items()}}
        found[file.path] = EarlierFile(file.path, actions, tuple(dict.fromkeys((*known.symbols, *file.symbols))))
    yield from found.values()


def _entries(text: str) -> Iterator[EarlierFile]:
    root = ""
    for line in text.split("\n"):
        found = _ROOT.fullmatch(line)
        root = found.group(1) if found else root
        if not line.startswith("- "):
            continue
        folder, entries = _read_line(line[2:])
        for entry in entries:
            done, _, symbols = entry["done"].partition(": ")
            actions: dict[Action, int] = {name: int(times or 1) for name, times in _TIMES.findall(done)}
            path = f"{folder}{entry['name'].strip()}"
            if root and "/" in path and path[0] not in "/~":
                path = f"{root}/{path.removeprefix('./')}"
            yield EarlierFile(path, actions, tuple(name for name in symbols.split(", ") if name))


def _read_line(listed: str) -> tuple[str, list[re.Match[str]]]:
    """Return the folder of a line, with its slash, and the match of each entry in it."""
    for between in ("/: ", "/ "):
        folder, found, names = listed.partition(between) if between == "/: " else listed.rpartition(between)
        if found:
            return f"{folder}/", list(_ENTRY.finditer(names))
    whole = _PATH.fullmatch(listed)
    return "", [whole] if whole else list(_ENTRY.finditer(listed))
