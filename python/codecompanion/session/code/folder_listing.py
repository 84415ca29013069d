"""Lists the files of a project, and lists them again only when one of its folders has changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from codecompanion.workspace.project_files import Choice, ListedFiles, list_project_files

_SAME_TIME_NS = 100_000_000
"""Time after a change within which another file may be added without changing the folder's modification time."""


class FolderListing:
    """The files of the folder `root` as last listed, and the modification times of its folders at that time.

    Every call blocks.
    """

    def __init__(self, root: Path, choice: Choice) -> None:
        """Create the object without listing anything."""
        self._root, self._choice = root, choice
        self._listed: ListedFiles | None = None
        self._times: dict[str, int] = {}

    @property
    def last_count(self) -> int:
        """Return the number of files last listed, or 0 if none were listed yet."""
        return len(self._listed.paths) if self._listed else 0

    def files(self) -> ListedFiles:
        """Return the files of the project.

        Raises:
            OSError: the folder cannot be read.
        """
        times = self._folder_times()
        if self._listed is None or times != self._times:
            self._listed = list_project_files(self._root, self._choice)
            self._times = self._folder_times()
            if abs(time.time_ns() - max(self._times.values(), default=0)) < _SAME_TIME_NS:
                self._times = {}
        return self._listed

    def _folder_times(self) -> dict[str, int]:
        """Return the modification times of all folders that contain files of the project."""
        times, base = {}, f"{self._root}/"
        names = () if self._listed is None else self._listed.folders
        for name in (*names, ".git/index"):
            try:
                times[name] = os.stat(base + name).st_mtime_ns  # noqa: PTH116 - every folder, at every question
            except OSError:
                times[name] = 0
        return times
