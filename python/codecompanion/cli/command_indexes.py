"""The indexes of the projects that a command's jobs are about; each is brought up to date once."""

from __future__ import annotations

from pathlib import Path

from codecompanion.cli.environment import cache_dir, home_dir
from codecompanion.cli.index_update import try_to_update_index
from codecompanion.session.code.project_index import ProjectIndex


def is_project(root: Path) -> bool:
    """Return whether a folder is indexed: a home folder and the root of the disk are not."""
    return root not in (home_dir(), Path(root.anchor))


class CommandIndexes:
    """Of one run of a command."""

    def __init__(self) -> None:
        self._indexes: dict[Path, ProjectIndex] = {}

    def of(self, root: Path) -> ProjectIndex:
        """Return the index of a folder; one that is not a project has none, so that only named files of it are read."""
        if root not in self._indexes:
            index = self._indexes[root] = ProjectIndex(root, cache_dir())
            if is_project(root):
                try_to_update_index(index.root, index.path, index.choice)
        return self._indexes[root]

    def existing(self, root: Path) -> ProjectIndex | None:
        """Return the index of a folder that was indexed before, None = it was not."""
        return self.of(root) if ProjectIndex(root, cache_dir()).path.is_file() else None

    async def close(self) -> None:
        """Close every index."""
        for index in self._indexes.values():
            await index.close()
