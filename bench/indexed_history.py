"""A project and its index, moved from commit to commit without a checkout: the input of `CodeSearcher` in the bench."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from bench.commit_questions import GitDirectory
from codecompanion.formats.text_files import decode
from codecompanion.model.code import CodeChunk
from codecompanion.retrieval.file_chunks import chunk_file
from codecompanion.store.code_index.index_writer import IndexedFile, IndexWriter
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace import git_edits
from codecompanion.workspace.git_history import MAX_COMMITS, Commit, parse_log
from codecompanion.workspace.project_files import Choice, belongs, why_no_text
from codecompanion.workspace.syntax.languages import language_of
from codecompanion.workspace.syntax.parse import parse

_CHOICE = Choice()


class IndexedHistory:
    """The project at one commit. `move_to` updates the index to another commit, parsing only changed files again."""

    def __init__(self, git: GitDirectory, folder: Path, *, with_history: bool = True) -> None:
        self.git, self.root = git, folder
        self.reader = IndexReader(folder / "index.db")
        self._writer = IndexWriter(folder / "index.db", folder)
        self._tree: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._chunks: dict[str, list[CodeChunk]] = {}
        self._commit = ""
        self._with_history = with_history

    def move_to(self, commit: str) -> None:
        """Index the project at a commit."""
        tree = {path: blob for path, blob in self.git.tree(commit).items() if belongs(path, _CHOICE)}
        changed = [path for path, blob in tree.items() if self._tree.get(path) != blob]
        self._writer.remove(path for path in self._tree if path not in tree)
        self._chunks = {path: chunks for path, chunks in self._chunks.items() if path in tree}
        files = list[IndexedFile]()
        for path in changed:
            content = self.git.blob(tree[path])
            if len(content) > _CHOICE.max_bytes or why_no_text(content):
                self._writer.remove([path])
                self._chunks.pop(path, None)
                continue
            text = decode(content).text
            parsed = parse(text, language_of(path, content[:8192]))
            chunks = chunk_file(path, text, parsed)
            self._chunks[path] = chunks
            digest = bytes.fromhex(tree[path])
            files.append(IndexedFile(path, 1, len(content), digest, text.count("\n") + 1, parsed, chunks))
        self._writer.put(files, 0)
        if not self._tree:
            self._writer.finish()
        self._tree, self._commit = tree, commit
        self._texts.clear()

    def paths(self) -> Sequence[str]:
        """Return the paths of the files at this commit."""
        return tuple(self._tree)

    def blob_of(self, path: str) -> str:
        """Return the hash of a file's content."""
        return self._tree[path]

    def chunks(self) -> Iterator[CodeChunk]:
        """Yield the chunks of every file at this commit."""
        for chunks in self._chunks.values():
            yield from chunks

    def read(self, path: str) -> str | None:
        """Return the text of a file."""
        if path not in self._tree:
            return None
        if path not in self._texts:
            self._texts[path] = decode(self.git.blob(self._tree[path])).text
        return self._texts[path]

    def not_indexed(self) -> Sequence[str]:
        """Return nothing: the index is complete."""
        return ()

    def files_with(self, words: Collection[str], paths: Sequence[str]) -> list[str]:
        """Return the given files that contain at least one of the words."""
        return [path for path in paths if any(word in (self.read(path) or "").lower() for word in words)]

    def head(self) -> str:
        """Return the commit, or "" when the history is left out."""
        return self._commit if self._with_history else ""

    def commits(self) -> Sequence[Commit]:
        """Return this commit and those before it."""
        log = ("log", f"--max-count={MAX_COMMITS}", "--no-merges", "--no-renames", "--diff-filter=AMR", "--name-only")
        return parse_log(self.git.run(*log, "-z", "--format=\x01%ct %s", self._commit))

    def edits(self) -> Sequence[git_edits.Edits]:
        """Return the lines changed by this commit and those before it."""
        log = (*git_edits.EDITS_LOG, f"--max-count={git_edits.MAX_COMMITS}", self._commit)
        return git_edits.parse_edits(self.git.run(*log))

    def close(self) -> None:
        """Close the index."""
        self.reader.close()
        self._writer.close()
        self.git.close()
