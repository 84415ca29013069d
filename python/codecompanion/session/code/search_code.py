"""`search_code` finds the code of a project that is relevant to a question (R-227 … R-238).

The index is updated first, as far as this is fast; files that are not in it yet are searched as text. The search runs
in a thread; a searcher's state lives as long as the project's index.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import StoreUnavailable
from codecompanion.model.found_code import SearchOutcome
from codecompanion.retrieval.index_evidence import Evidence
from codecompanion.session.code.evidence_search import find_evidence
from codecompanion.session.code.lookup import Kind, look_up
from codecompanion.session.code.project_index import Freshness, ProjectIndex
from codecompanion.session.code.search_options import ChunkVectors, SearchOptions
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.git_edits import Edits, recent_edits
from codecompanion.workspace.git_history import Commit, read_head, recent_commits


class _IndexedProject:
    """Adapts a `ProjectIndex` to the `SearchedProject` interface that the searcher uses."""

    def __init__(self, index: ProjectIndex) -> None:
        # The searcher lives as long as the index, so it must not keep the index alive.
        self._index = weakref.ref(index)
        self.root: Path = index.root
        self.reader: IndexReader = index.reader
        self.freshness = Freshness()

    def read(self, path: str) -> str | None:
        """Return the text of a file as the user sees it."""
        index = self._index()
        return index.read_text(path) if index is not None else None

    def not_indexed(self) -> Sequence[str]:
        """Return the files that are missing or outdated in the index."""
        return self.freshness.pending

    def files_with(self, words: Collection[str], paths: Sequence[str]) -> list[str]:
        """Return those of the `paths` whose files contain one of the words, ignoring case."""
        index = self._index()
        return index.files_with(words, paths) if index is not None else []

    def head(self) -> str:
        """Return the commit that is currently checked out."""
        return read_head(self.root)

    def commits(self) -> Sequence[Commit]:
        """Return the most recent commits."""
        return recent_commits(self.root)

    def edits(self) -> Sequence[Edits]:
        """Return the lines changed by the most recent commits."""
        return recent_edits(self.root)


_searchers: weakref.WeakKeyDictionary[ProjectIndex, tuple[_IndexedProject, CodeSearcher]] = weakref.WeakKeyDictionary()


async def search_code(
    index: ProjectIndex,
    query: str,
    options: SearchOptions | None = None,
    vectors: ChunkVectors | None = None,
    unsaved: Mapping[str, str] | None = None,
) -> SearchOutcome:
    """Return the locations in a project that are relevant to a question, best first.

    `unsaved`: path → text of buffers that differ from their files. If the index, git or vectors are unusable, no error
    is raised: `SearchOutcome.not_used` lists the missing sources.
    """
    started = time.perf_counter()
    searcher = await _searcher(index, unsaved)
    nearest = None if vectors is None else await vectors.nearest(index, query)
    outcome = await asyncio.to_thread(searcher.search, query, options or SearchOptions(), nearest)
    return msgspec.structs.replace(outcome, ms=(time.perf_counter() - started) * 1000)


async def evidence_of(index: ProjectIndex, question: str, unsaved: Mapping[str, str] | None = None) -> Evidence | None:
    """Return the index's evidence for a question, or None if there is no usable index (R-207)."""
    searcher = await _searcher(index, unsaved)
    try:
        return await asyncio.to_thread(find_evidence, searcher, question)
    except StoreUnavailable:
        return None


async def look_up_code(
    index: ProjectIndex, query: str, kind: Kind, below: str, limit: int, unsaved: Mapping[str, str] | None = None
) -> SearchOutcome:
    """Return at most `limit` locations below the path `below` ("" = everywhere) for a name, a string or a question."""
    searcher = await _searcher(index, unsaved)
    return await asyncio.to_thread(look_up, searcher, query, kind, below, limit)


async def _searcher(index: ProjectIndex, unsaved: Mapping[str, str] | None) -> CodeSearcher:
    if index not in _searchers:
        project = _IndexedProject(index)
        _searchers[index] = project, CodeSearcher(project)
    project, searcher = _searchers[index]
    project.freshness = await index.refresh(unsaved)
    return searcher
