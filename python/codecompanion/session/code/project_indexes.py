"""The indexes of the projects open in the editor: one per folder, created on first use.

Importing this module is cheap: the modules that an index needs are imported when the first index is created.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from codecompanion.settings_sections import GatheringSettings
from codecompanion.wire.events import Event, IndexProgress

if TYPE_CHECKING:
    from codecompanion.session.code.project_index import IndexState, ProjectIndex
    from codecompanion.workspace.project_files import Choice


def choice_of(settings: GatheringSettings) -> Choice:
    """Return the user's choice of files (R-216, R-265)."""
    from codecompanion.workspace.project_files import Choice

    return Choice(settings.include_hidden, int(settings.max_file_size_mb * 1_000_000))


MAX_OPEN = 4
"""Maximum number of open indexes; beyond it, the least recently used one is closed."""


class ProjectIndexes:
    """All indexes of a host. Use it on the engine's event loop."""

    def __init__(self, cache_dir: Path, emit: Callable[[Event], None]) -> None:
        """Create the object without reading anything. `emit` receives the progress of index builds."""
        self._cache_dir = cache_dir
        self._emit = emit
        self._open: OrderedDict[Path, ProjectIndex] = OrderedDict()

    async def of(self, root: str | Path, choice: Choice | None = None) -> ProjectIndex:
        """Return the index of a folder. A changed choice of files takes effect immediately."""
        from codecompanion.session.code.project_index import ProjectIndex

        real = Path(await asyncio.to_thread(os.path.realpath, root))
        index = self._open.get(real)
        if index is not None and choice is not None and choice != index.choice:
            await self._open.pop(real).close()
            index = None
        if index is None:
            index = ProjectIndex(real, self._cache_dir, choice, lambda state: self._tell(real, state))
            self._open[real] = index
            if len(self._open) > MAX_OPEN:
                _, oldest = self._open.popitem(last=False)
                await oldest.close()
        self._open.move_to_end(real)
        return index

    def mark_changed(self, paths: Iterable[str]) -> None:
        """Mark these files (absolute paths) as changed, so that their indexes check them first."""
        for path in paths:
            for root, index in self._open.items():
                if path.startswith(f"{root}/"):
                    index.mark_changed(path.removeprefix(f"{root}/"))

    async def aclose(self) -> None:
        """Stop all workers and close all index files."""
        while self._open:
            _, index = self._open.popitem()
            await index.close()

    def _tell(self, root: Path, state: IndexState) -> None:
        self._emit(IndexProgress(root=str(root), phase=state.phase, done=state.done, total=state.total, why=state.why))
