"""A checkout that moves from commit to commit, with an index that follows it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from pathlib import Path

import msgspec

from bench.commit_questions import GitDirectory
from codecompanion import settings
from codecompanion.model.gathered import Gathered
from codecompanion.session.code import searcher
from codecompanion.session.code.indexing import build
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.session.gather.ask import Ask
from codecompanion.session.gather.gather_code import GatherResources, gather
from codecompanion.session.gather.index_search import IndexSearch

_SETTLED_NS = 10**9
TIMEOUT_S = 120.0
"""Long enough that no gatherer times out, so that the results do not depend on the machine's load."""


class CheckedOut:
    """A clone whose history ends at the current commit; call `move_to` first."""

    index: ProjectIndex

    def __init__(self, git: GitDirectory, folder: Path) -> None:
        self.root, self._cache = folder / "project", folder / "cache"
        subprocess.run(("git", "clone", "-qsn", str(git.path), str(self.root)), check=True)
        context = settings.load({}).context
        memories = msgspec.structs.replace(context.memories, enabled=False)
        self._context = msgspec.structs.replace(context, timeout_s=TIMEOUT_S, memories=memories)
        searcher.HISTORY_CHECKED_EVERY_S = -1.0  # the state changes with each question

    async def move_to(self, commit: str) -> None:
        """Check out a commit and update the index to its files."""
        command = ("git", "-C", str(self.root), "checkout", "-qf", "--detach", commit)
        await asyncio.to_thread(subprocess.run, command, check=True)
        self.index = ProjectIndex(self.root, self._cache)
        build(self.index.root, self.index.path, self.index.choice, now_ns=lambda: time.time_ns() + _SETTLED_NS)

    def read(self, path: str) -> str | None:
        """Return the text of a file."""
        return self.index.read_text(path)

    async def gather(self, ask: Ask) -> Gathered:
        """Return the code that a chat would gather."""
        return await gather(ask, GatherResources(self._context, time.monotonic, IndexSearch(self.index)))
