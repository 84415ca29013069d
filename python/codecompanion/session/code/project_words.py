"""State that a searcher keeps between questions: the words of paths and commits, and the reference graph.

It follows the index: files are added and removed individually, and the graph is read again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from codecompanion.retrieval.ranking.edited_lines import EditedLines
from codecompanion.retrieval.ranking.like_commits import LikeCommits
from codecompanion.retrieval.ranking.stems import stems_of
from codecompanion.retrieval.ranking.word_index import WordIndex, count_path_words
from codecompanion.store.code_index.search import ReferenceGraph, data_version, file_paths
from codecompanion.store.code_index.word_search import WordCounts
from codecompanion.workspace.git_edits import Edits
from codecompanion.workspace.git_history import Commit

_MAX_FILES_OF_A_SUBJECT = 10
"""Maximum number of files in a commit whose subject is used; the subject of a larger commit says little about each
file.
"""
_MAX_FILES_OF_A_LIKE_COMMIT = 20
_RECENT = 10.0
"""Number of commits after which the recency of a change is halved."""


class ProjectWords:
    """The words of one project. `paths`: file id → path, as of the last state of the index that was read.

    `file_names`: file names without extensions, in lower case.
    """

    def __init__(self) -> None:
        self.paths: dict[int, str] = {}
        self.ids: dict[str, int] = {}
        self.path_words = WordIndex()
        self.subjects = WordIndex()
        self.commits = LikeCommits()
        self.edits = EditedLines()
        self.recency: Mapping[str, float] = {}
        self.word_counts = WordCounts()
        self.file_names = frozenset[str]()
        self._graph = ReferenceGraph()
        self._state: tuple[int, int] | None = None
        self._not_indexed = frozenset[str]()

    def follow_index(self, connection: sqlite3.Connection) -> None:
        """Apply changes to the index since the last question."""
        state = (id(connection), data_version(connection))
        if state != self._state:
            self._state = state
            self.paths = file_paths(connection)
            self.ids = {path: file for file, path in self.paths.items()}
            self._graph.clear()
            self.word_counts.clear()
            self._put_paths()

    def forget_index(self) -> None:
        """Drop everything that came from the index, because there is no index now."""
        self._state, self.paths, self.ids = None, {}, {}
        self._graph.clear()
        self.word_counts.clear()
        self._put_paths()

    def follow_listing(self, not_indexed: Iterable[str]) -> None:
        """Update the set of files that are not in the index."""
        names = frozenset(not_indexed)
        if names != self._not_indexed:
            self._not_indexed = names
            self._put_paths()

    def follow_history(self, commits: Iterable[Commit], edits: Iterable[Edits] = ()) -> None:
        """Index the words of commit subjects, and the changed lines, newest commit first."""
        words: dict[str, Counter[str]] = defaultdict(Counter)
        recency: dict[str, float] = {}
        telling = list[tuple[list[str], tuple[str, ...]]]()
        for age, commit in enumerate(commits):
            for path in commit.paths:
                recency.setdefault(path, 1.0 / (1.0 + age / _RECENT))
            stems = stems_of(commit.subject)
            if len(commit.paths) <= _MAX_FILES_OF_A_LIKE_COMMIT:
                telling.append((stems, commit.paths))
            if len(commit.paths) <= _MAX_FILES_OF_A_SUBJECT:
                for path in commit.paths:
                    words[path].update(stems)
        self.recency = recency
        self.edits = EditedLines((stems_of(one.subject), one.lines) for one in edits)
        self.commits = LikeCommits(telling)
        self.subjects = WordIndex()
        for path, counts in words.items():
            self.subjects.put(path, counts)

    def all_paths(self) -> Iterable[str]:
        """Return the paths of all known files of the project."""
        return self.path_words.paths()

    def edges(self, connection: sqlite3.Connection, paths: Iterable[str]) -> dict[str, dict[str, float]]:
        """Return {using file: {defining file: strength}} for all edges between these files and any others."""
        files = [self.ids[path] for path in paths if path in self.ids]
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for (user, definer), weight in self._graph.edges_of(connection, files).items():
            if user in self.paths and definer in self.paths:
                found[self.paths[user]][self.paths[definer]] = weight
        return dict(found)

    def _put_paths(self) -> None:
        wanted = {*self.ids, *self._not_indexed}
        known = set(self.path_words.paths())
        for path in known - wanted:
            self.path_words.remove(path)
        self.file_names = frozenset(path.rpartition("/")[2].partition(".")[0].lower() for path in wanted)
        folders: dict[str, list[str]] = {}
        for path in wanted - known:
            folder, _, name = path.rpartition("/")
            if folder not in folders:
                folders[folder] = stems_of(folder)
            self.path_words.put(path, count_path_words(folders[folder], stems_of(name)))
