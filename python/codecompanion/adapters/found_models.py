"""Caches answers from the model table for later hosts: importing the table takes 0.36 s of CPU before a chat opens.

A file in the cache folder contains one answer for each (URL, model) that a chat used, valid only for the edition of the
table that it came from. URLs may contain keys, so the file contains only their hashes. Unreadable or unwritable entries
count as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from codecompanion import __version__
from codecompanion.adapters.installed import edition_of
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

MAX_ANSWERS = 100


class ModelFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a model. `provider` and `model` are its names in the table.

    `provider` is "" if the table has the model, but not its price at this URL. The context window is in tokens; 0 means
    unknown.
    """

    provider: str
    model: str
    context_window: int = 0


class FoundModels(msgspec.Struct, frozen=True):
    """The answers from one edition of the table; an answer is None if the model is not in the table."""

    edition: str
    answers: dict[str, ModelFacts | None] = {}

    def get(self, address: str, model: str) -> tuple[ModelFacts | None] | None:
        """Return the stored answer in a 1-tuple, or None if nothing is stored."""
        key = _key(address, model)
        return (self.answers[key],) if key in self.answers else None

    def add(self, file: Path, address: str, model: str, facts: ModelFacts | None) -> None:
        """Store an answer in memory and in the file; drop the oldest answers beyond the limit."""
        if not self.edition or self.answers.get(_key(address, model), ...) == facts:
            return
        self.answers[_key(address, model)] = facts
        for oldest in list(self.answers)[:-MAX_ANSWERS]:
            del self.answers[oldest]
        fresh = file.with_name(f"{file.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.write_bytes(msgspec.json.encode(self))
            fresh.replace(file)


def read_found(file: Path) -> FoundModels:
    """Read the stored answers; return no answers if the file is for another edition of the table."""
    edition = edition_of("genai_prices")
    edition = edition and f"{edition} {__version__}"
    with contextlib.suppress(OSError, *NOT_READABLE):
        found = typed.read_json(file.read_bytes(), type=FoundModels)
        if found.edition == edition:
            return found
    return FoundModels(edition)


def _key(address: str, model: str) -> str:
    return hashlib.sha256(f"{address}\n{model}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
