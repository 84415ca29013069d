"""The session's interface for the `memory` tool to everything remembered about a project besides the notes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from codecompanion.model.messages import Source


class FoundMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An entry found in the memory. `place`: its path under `/memories`, or its author."""

    place: str
    title: str
    day: str
    lines: tuple[str, ...]
    sources: tuple[Source, ...] = ()


class ProjectMemory(Protocol):
    """A project's memory, apart from the notes, which the tool reads and writes itself."""

    def shared_dir(self) -> Path | None:
        """Return the real folder of the notes for every project, None = it does not exist."""

    def changing(self) -> AbstractContextManager[None]:
        """Hold the lock of the notes; raises a `CodeCompanionError` if another Neovim holds it for too long."""

    def why_refused(self, text: str) -> str:
        """Return why this text may not be remembered; "" = it may."""

    def search(self, query: str, check: Callable[[], None]) -> tuple[FoundMemory, ...]:
        """Return the entries that match a query, best first; `check` raises if the call is stopped."""


class NoProjectMemory:
    """A `ProjectMemory` with only the project's notes, for the command line and tests."""

    def shared_dir(self) -> Path | None:
        """Return None."""
        return None

    def changing(self) -> AbstractContextManager[None]:
        """Lock nothing."""
        return nullcontext()

    def why_refused(self, text: str) -> str:
        """Return "": everything may be remembered."""
        del text
        return ""

    def search(self, query: str, check: Callable[[], None]) -> tuple[FoundMemory, ...]:
        """Find nothing."""
        del query, check
        return ()
