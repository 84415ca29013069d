"""The lines changed by recent commits, with their current numbers (ours)."""

from __future__ import annotations

from pathlib import Path

from codecompanion.workspace.git_edits import Edits, parse_edits, recent_edits
from tests.unit.workspace.test_project_files import git


def commit(root: Path, text: str, subject: str) -> None:
    (root / "a b.py").write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", subject)


def test_changed_lines_are_carried_forward_through_later_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    lines = [f"line {number}" for number in range(1, 21)]
    commit(tmp_path, "\n".join(lines), "add the file")
    lines[9] = "ten"
    commit(tmp_path, "\n".join(lines), "change the tenth")
    commit(tmp_path, "\n".join(["new", "+++ b/other.py", "\x01text", *lines]), "three on top")
    commit(tmp_path, "\n".join(["new", "+++ b/other.py", "\x01text", *lines[:4], *lines[6:]]), "without two")
    assert recent_edits(tmp_path) == [
        Edits("without two", {"a b.py": ((7, 7),)}),
        Edits("three on top", {"a b.py": ((1, 3),)}),
        Edits("change the tenth", {"a b.py": ((11, 11),)}),
        Edits("add the file", {"a b.py": ((4, 21),)}),
    ]
    assert [one.subject for one in recent_edits(tmp_path, 1)] == ["without two"]


def test_replaced_lines_are_at_their_replacement() -> None:
    header = "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    newest = f"\x01second\n\n{header}@@ -3,4 +3,2 @@ def f\n-a\n-b\n-c\n-d\n+x\n+y\n"
    assert parse_edits(f"{newest}\x01first\n\n{header}@@ -1 +4,3 @@\n-a\n+b\n+c\n+d\n") == [
        Edits("second", {"f": ((3, 4),)}),
        Edits("first", {"f": ((4, 4),)}),
    ]


def test_paths_are_relative_to_the_folder(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "in").mkdir()
    commit(tmp_path / "in", "one\n", "add one")
    commit(tmp_path, "two\n", "add two")
    assert recent_edits(tmp_path / "in") == [Edits("add one", {"a b.py": ((1, 1),)})]


def test_a_removed_file_and_a_binary_one_have_no_lines(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    commit(tmp_path, "one\n", "add one")
    (tmp_path / "a b.py").unlink()
    (tmp_path / "image").write_bytes(b"\0\1\2")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "an image instead")
    assert recent_edits(tmp_path) == [Edits("an image instead", {}), Edits("add one", {"a b.py": ((1, 1),)})]


def test_without_a_repository_there_are_no_edits(tmp_path: Path) -> None:
    assert recent_edits(tmp_path) == []
    assert recent_edits(tmp_path / "never") == []
    assert parse_edits("") == []
