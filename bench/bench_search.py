"""How long a warm search takes, by the size of the project: wall and CPU milliseconds of a query.

    python -m bench.bench_search DIR… [--queries 200] [--files N]

The index of each folder is built in a temporary place (`--files`: of the first N files only). A query has two to eight
words, from names that the project defines, so that each has results; every tenth one names a definition as code.
Limits: p95 80 ms at 1,500 files, 150 ms at 10,000.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from codecompanion.formats.code_words import split_words
from codecompanion.session.code.indexing import Difference, write_changes
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher
from codecompanion.store.code_index.index_writer import IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.git_edits import Edits, recent_edits
from codecompanion.workspace.git_history import Commit, read_head, recent_commits
from codecompanion.workspace.project_files import Choice, list_project_files, read_project_file

WARM_UP = 10


class Project:
    """A folder and its index, complete."""

    def __init__(self, root: Path, reader: IndexReader) -> None:
        self.root, self.reader = root, reader

    def read(self, path: str) -> str | None:
        """Return the text of a file."""
        return read_project_file(self.root, path, Choice()).content.decode("utf-8", "replace")

    def not_indexed(self) -> Sequence[str]:
        """Return nothing."""
        return ()

    def files_with(self, words: Collection[str], paths: Sequence[str]) -> list[str]:
        """Return nothing: every file is indexed."""
        return []

    def head(self) -> str:
        """Return the commit."""
        return read_head(self.root)

    def commits(self) -> Sequence[Commit]:
        """Return the last commits."""
        return recent_commits(self.root)

    def edits(self) -> Sequence[Edits]:
        """Return the lines that the last commits changed."""
        return recent_edits(self.root)


def queries_of(reader: IndexReader, count: int) -> list[str]:
    """Return questions built from the words of defined names."""
    chance = random.Random(11)
    with reader.reading() as connection:
        names = [row[0] for row in connection.execute("SELECT n.name FROM names n WHERE length(n.name) > 3")]
    found = []
    for number in range(count):
        words = [word for name in chance.sample(names, 4) for word in split_words(name) if len(word) > 2]
        text = " ".join(chance.sample(words, min(len(words), chance.randint(2, 8))))
        found.append(f"where is `{chance.choice(names)}` {text}" if number % 10 == 0 else text)
    return found


def make_index(root: Path, path: Path, files: int = 0) -> IndexReader:
    """Index the first `files` files of a folder, 0 = all; return a reader of the index."""
    listed = list_project_files(root, Choice()).paths[: files or None]
    writer = IndexWriter(path, root)
    write_changes(writer, root, Difference(tuple(listed)), Choice(), time.time_ns, lambda done, total: None)
    writer.finish()
    writer.close()
    return IndexReader(path)


def measure(root: Path, files: int, queries: int) -> None:
    """Make the index, search, print."""
    with tempfile.TemporaryDirectory() as folder:
        reader = make_index(root, Path(folder) / "index.db", files)
        search = CodeSearcher(Project(root, reader))
        asked = queries_of(reader, queries + WARM_UP)
        for text in asked[:WARM_UP]:
            search.search(text, SearchOptions())
        wall, cpu = list[float](), list[float]()
        for text in asked[WARM_UP:]:
            before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
            search.search(text, SearchOptions())
            wall.append((time.perf_counter() - started) * 1000)
            after = resource.getrusage(resource.RUSAGE_SELF)
            cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
        counts = reader.counts()
        reader.close()
    for name, values in (("wall", wall), ("cpu", cpu)):
        values.sort()
        print(
            f"{root}: {counts.files} files, {counts.chunks} chunks: {name} ms p50 {values[len(values) // 2]:.0f}"
            f" p95 {values[int(len(values) * 0.95)]:.0f} max {values[-1]:.0f}",
            flush=True,
        )


def main() -> None:
    """Measure each folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--files", type=int, default=0)
    arguments = parser.parse_args()
    for folder in arguments.folders:
        measure(folder.resolve(), arguments.files, arguments.queries)


if __name__ == "__main__":
    main()
