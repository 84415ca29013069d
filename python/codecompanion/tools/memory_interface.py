"""Defines the interface through which the `memory` tool reaches everything remembered about a project but the notes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import msgspec

from codecompanion.model.messages import Source


class FoundMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An entry found in memory. `place` is its path under `/memories`, or its author."""

    place: str
    title: str
    day: str
    lines: tuple[str, ...]
    sources: tuple[Source, ...] = ()


class ProjectMemory(Protocol):
    """A project's memory, apart from the notes, which the tool reads and writes itself."""

    def shared_dir(self) -> Path | None:
        """Return the real folder of the notes for all projects, or None if it does not exist."""

    def changing(self) -> AbstractContextManager[None]:
        """Return a context manager that holds the notes lock.

        Raises `CodeCompanionError` if another Neovim holds the lock for too long.
        """

    def why_refused(self, text: str) -> str:
        """Return why this text may not be remembered, or "" if it may."""

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
