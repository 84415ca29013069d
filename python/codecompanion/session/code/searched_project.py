"""The interface of a project for searches: its index, the files not in it yet, and the current text of files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.git_edits import Edits
from codecompanion.workspace.git_history import Commit


class SearchedProject(Protocol):
    """A project's root and index. Every method may block and is called in a thread."""

    @property
    def root(self) -> Path:
        """Return the project's folder."""
        ...

    @property
    def reader(self) -> IndexReader:
        """Return the reader of the index, which may not exist yet."""
        ...

    def read(self, path: str) -> str | None:
        """Return the text of a file as the user sees it (with unsaved changes), or None if it cannot be read."""
        ...

    def not_indexed(self) -> Sequence[str]:
        """Return the project's files that are not in the index yet."""
        ...

    def files_with(self, words: Collection[str], paths: Sequence[str]) -> list[str]:
        """Return the `paths` whose files contain one of the words, ignoring case, as found by ripgrep or git."""
        ...

    def head(self) -> str:
        """Return a string that changes when another commit is checked out; "" = no history."""
        ...

    def commits(self) -> Sequence[Commit]:
        """Return the most recent commits, newest first."""
        ...

    def edits(self) -> Sequence[Edits]:
        """Return the lines changed by the most recent commits, newest commit first."""
        ...
