"""Opens the indexes of the projects in a command's jobs, and updates each of them once."""

from __future__ import annotations

import os
from pathlib import Path

from codecompanion.cli.environment import cache_dir
from codecompanion.cli.index_update import try_to_update_index
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.workspace.paths import is_project


class CommandIndexes:
    """The indexes of one run of a command."""

    def __init__(self) -> None:
        self._indexes: dict[Path, ProjectIndex] = {}

    def of(self, root: Path) -> ProjectIndex:
        """Return the index of a folder, updated once if that is a project; otherwise only named files are read."""
        real = Path(os.path.realpath(root))
        if real not in self._indexes:
            index = self._indexes[real] = ProjectIndex(real, cache_dir())
            if is_project(real):
                try_to_update_index(index.root, index.path, index.choice)
        return self._indexes[real]

    def existing(self, root: Path) -> ProjectIndex | None:
        """Return the index of a folder that was indexed before, else None."""
        return self.of(root) if ProjectIndex(root, cache_dir()).path.is_file() else None

    async def close(self) -> None:
        """Close every index."""
        for index in self._indexes.values():
            await index.close()
