"""Questions with known answers, from the histories of public repositories: a commit's subject, and its changes.

A question is the subject of a commit that is not a merge, has three or more words, and changed one to ten existing
source files; releases, version numbers and formatting are left out. The state of the project is the parent of the
commit; nothing later is seen. The titles of merged pull requests are another source: longer, and closer to the wording
of people who do not know the code.

Repositories are git directories with their history, such as `git clone --bare` makes; nothing is checked out.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SOURCE_ENDINGS = frozenset("py pyi lua go rs js jsx mjs cjs ts tsx c h cpp hpp java rb sh vim".split())
MAX_GOLD = 10
MIN_WORDS = 3
NOT_A_QUESTION = re.compile(
    r"^(bump|release|version|v?\d+\.\d+|prepare|merge|revert|changelog|format|lint|black|style[:(]|chore\(main\)"
    r"|chore\(release\)|update changelog|run |ruff|isort|stylua|gofmt|rustfmt|typo|\[docgen\]|\[pre-commit|whitespace"
    r"|fmt\b)|\b(stylua|pre-commit|reformat|clippy|gofmt|rustfmt|pyupgrade|auto-generate|copyright|changelog"
    r"|version bump|bump version)\b",
    re.IGNORECASE,
)
_DIFF = ("--no-renames", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv")
NUMBER_AT_END = re.compile(r"\s*\(#\d+\)\s*$")
PULL_REQUEST = re.compile(r"Merge pull request #\d+ ")
_BACKPORT = re.compile(r"\[?(backport|pr #)", re.IGNORECASE)
_MERGES = 1500
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


@dataclass(frozen=True, slots=True)
class CommitQuestion:
    """A subject, the state of the project before its commit, and the changes: path → changed lines of that state."""

    text: str
    commit: str
    parent: str
    changed: Mapping[str, tuple[tuple[int, int], ...]]


@dataclass(slots=True)
class GitDirectory:
    """Reads a repository without a work tree."""

    path: Path
    _reader: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def run(self, *arguments: str) -> str:
        """Return the output of a git command."""
        command = ("git", "--git-dir", str(self.path), "-c", "core.quotePath=false", *arguments)
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")

    def tree(self, commit: str) -> dict[str, str]:
        """Return path → blob of the regular files of a commit."""
        found = {}
        for entry in self.run("ls-tree", "-r", "-z", "--full-tree", commit).split("\0"):
            mode_type_blob, _, path = entry.partition("\t")
            if mode_type_blob.startswith("100"):
                found[path] = mode_type_blob.split(" ")[2]
        return found

    def blob(self, blob: str) -> bytes:
        """Return the content of a blob."""
        if self._reader is None:
            command = ("git", "--git-dir", str(self.path), "cat-file", "--batch")
            self._reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write(blob.encode() + b"\n")
        self._reader.stdin.flush()
        size = int(self._reader.stdout.readline().split()[2])
        content = self._reader.stdout.read(size)
        self._reader.stdout.read(1)
        return content

    def close(self) -> None:
        """End the process that reads blobs."""
        if self._reader is not None and self._reader.stdin is not None and self._reader.stdout is not None:
            self._reader.stdin.close()
            self._reader.stdout.close()
            self._reader.wait()
            self._reader = None


def questions_of(git: GitDirectory, limit: int, head: str = "HEAD") -> list[CommitQuestion]:
    """Return the last `limit` questions of a history, the oldest first."""
    found = list[CommitQuestion]()
    for question in _questions(git, limit, head):
        found.append(question)
        if len(found) == limit:
            break
    return found[::-1]


def _questions(git: GitDirectory, limit: int, head: str) -> Iterator[CommitQuestion]:
    log = ("log", "--no-merges", *_DIFF)
    # One call a few times as long as needed is quicker than many.
    output = git.run(*log, "--format=%x01%H%x02%P%x02%s", "-n", str(limit * 12), head)
    for record in output.split("\x01")[1:]:
        first, _, diff = record.partition("\n")
        commit, parents, subject = first.split("\x02", 2)
        text = NUMBER_AT_END.sub("", subject).strip()
        if not parents or " " in parents or len(text.split()) < MIN_WORDS or NOT_A_QUESTION.search(text):
            continue
        if changed := _changed_source(diff):
            yield CommitQuestion(text, commit, parents, changed)


def pull_requests_of(git: GitDirectory, limit: int, head: str = "HEAD") -> list[CommitQuestion]:
    """Return the last `limit` titles of merged pull requests that are questions, the oldest first."""
    found = list[CommitQuestion]()
    log = ("log", "--merges", "--first-parent", "--format=%x01%H%x02%P%x02%s%x02%b", "-n", str(_MERGES), head)
    for record in git.run(*log).split("\x01")[1:]:
        commit, parents, subject, body = record.split("\x02", 3)
        text = NUMBER_AT_END.sub("", body.strip().partition("\n")[0]).strip()
        is_title = PULL_REQUEST.match(subject) and not _BACKPORT.match(text)
        if not is_title or len(text.split()) < MIN_WORDS or NOT_A_QUESTION.search(text):
            continue
        parent = parents.split()[0]
        if changed := _changed_source(git.run("diff", *_DIFF, parent, commit)):
            found.append(CommitQuestion(text, commit, parent, changed))
        if len(found) == limit:
            break
    return found[::-1]


def _changed_source(diff: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return path → changed lines of existing source files; {} when there are too many."""
    changed = {path: lines for path, lines in _changed(diff).items() if path.rpartition(".")[2] in SOURCE_ENDINGS}
    return changed if len(changed) <= MAX_GOLD else {}


def _changed(diff: str) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return path → changed lines of existing files."""
    found: dict[str, list[tuple[int, int]]] = {}
    path = ""
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            path = line.rpartition(" b/")[2]
        elif line.startswith("new file"):
            path = ""
        elif path and (hunk := _HUNK.match(line)):
            start, count = int(hunk[1]), int(hunk[2] if hunk[2] is not None else 1)
            found.setdefault(path, []).append((start, start + max(count, 1) - 1))
    return {path: tuple(lines) for path, lines in found.items()}
