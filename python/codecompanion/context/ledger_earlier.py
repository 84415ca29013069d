"""Read back what an earlier ledger says of files, so that it is known after any number of compactions (lesson 21)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from codecompanion.context.ledger_facts import Action

_DONE = r"(created|deleted|edited|read)"
_ENTRY = re.compile(rf"(?P<name>[^,()]+?) \((?P<done>{_DONE}\b[^()]*)\)")
_TIMES = re.compile(rf"{_DONE}(?: ×(\d+))?")


class EarlierFile(msgspec.Struct, frozen=True):
    """A file of an earlier ledger: what had been done to it how often, and what edits had defined in it."""

    path: str
    actions: dict[Action, int]
    symbols: tuple[str, ...]


def earlier_files(text: str) -> Iterator[EarlierFile]:
    """Yield the files that the lines `- folder/ name (edited ×2, read: symbol), …` of a summary list, each once.

    A summary may list a file in its own section and again in the ledger below: that is the same work, told twice.
    """
    found: dict[str, EarlierFile] = {}
    for file in _entries(text):
        known = found.get(file.path, file)
        actions = {**known.actions, **{name: max(n, known.actions.get(name, 0)) for name, n in file.actions.items()}}
        found[file.path] = EarlierFile(file.path, actions, tuple(dict.fromkeys((*known.symbols, *file.symbols))))
    yield from found.values()


def _entries(text: str) -> Iterator[EarlierFile]:
    for line in text.split("\n"):
        folder, slash, names = line[2:].rpartition("/ ")
        for entry in _ENTRY.finditer(names) if line.startswith("- ") else ():
            done, _, symbols = entry["done"].partition(": ")
            actions: dict[Action, int] = {name: int(times or 1) for name, times in _TIMES.findall(done)}
            path = f"{folder}{slash.strip()}{entry['name'].strip()}"
            yield EarlierFile(path, actions, tuple(name for name in symbols.split(", ") if name))
