"""Reads the files of a project for the gatherers: only below its root, with unsaved changes, each once (R-266).

All methods block and may be called in any thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from codecompanion.formats.text_files import decode
from codecompanion.model.code import ParsedFile
from codecompanion.workspace.project_files import Choice, list_project_files, read_project_file
from codecompanion.workspace.secret_text import without_secrets
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

MAX_PARSED_CHARS = 1_000_000


class CodeTexts(Protocol):
    """Provides the contents of files by path, and their definitions."""

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None if it cannot be read."""
        ...

    def parse(self, path: str) -> ParsedFile:
        """Return the definitions of a file."""
        ...


def parse_text(path: str, text: str) -> ParsedFile:
    """Return the definitions in a file's text; none if the text is very large or there is no grammar for it."""
    language = language_of(path, text[:8192].encode("utf-8", "replace"))
    return parse(text, language) if len(text) <= MAX_PARSED_CHARS else ParsedFile(language)


class ProjectCode:
    """The files of a project during one gathering. `unsaved`: the contents of changed buffers, by absolute path."""

    def __init__(self, root: Path, choice: Choice, unsaved: Mapping[str, str]) -> None:
        self.root, self.choice = Path(os.path.realpath(root)), choice
        base = f"{self.root}/"
        real = {os.path.realpath(path): text for path, text in unsaved.items()}
        self.unsaved = {path.removeprefix(base): text for path, text in real.items() if path.startswith(base)}
        self._lock = threading.Lock()
        self._listed: tuple[str, ...] | None = None
        self._texts = dict[str, str | None]()
        self._parsed = dict[str, ParsedFile]()

    def listed(self, check: Callable[[], None] = lambda: None) -> tuple[str, ...]:
        """Return the project's own files, excluding hidden, secret, vendored, binary and ignored files."""
        with self._lock:
            if self._listed is None:
                self._listed = list_project_files(self.root, self.choice, check).paths if self.root.is_dir() else ()
            return self._listed

    def read(self, path: str) -> str | None:
        """Return the text of a listed file, or None if it cannot be read or must not be searched."""
        if path in self.unsaved:
            text, why = without_secrets(self.unsaved[path], path)
            return None if why else text
        if path not in self._texts:
            found = read_project_file(self.root, path, self.choice)
            self._texts[path] = None if found.why_not else decode(found.content).text
        return self._texts[path]

    def keep(self, path: str, text: str) -> None:
        """Cache the text of a file that was read in another way."""
        self._texts[path] = text

    def parse(self, path: str) -> ParsedFile:
        """Return the definitions of a file; none if it cannot be read or has no grammar."""
        if path not in self._parsed:
            self._parsed[path] = parse_text(path, self.read(path) or "")
        return self._parsed[path]


class Stoppable:
    """Wraps `CodeTexts` with a stop check: `check` raises when the result is no longer needed."""

    def __init__(self, code: CodeTexts, check: Callable[[], None]) -> None:
        self._code, self._check = code, check

    def read(self, path: str) -> str | None:
        """Return the text of a file, or None if it cannot be read."""
        self._check()
        return self._code.read(path)

    def parse(self, path: str) -> ParsedFile:
        """Return the definitions of a file."""
        self._check()
        return self._code.parse(path)
