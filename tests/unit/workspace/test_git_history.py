"""The last commits with their files, for ranking."""

from __future__ import annotations

from pathlib import Path

from codecompanion.workspace.git_history import MAX_FILES_OF_A_COMMIT, parse_log, read_head, recent_commits
from tests.unit.workspace.test_project_files import fill, git


def test_commits_are_newest_first_with_their_files(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    fill(tmp_path, "a b.py", "é/c.py")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "add both\n\nbody")
    first = read_head(tmp_path)
    (tmp_path / "a b.py").write_text("changed")
    git(tmp_path, "commit", "-qam", "change one")
    commits = recent_commits(tmp_path)
    assert [(one.subject, one.paths) for one in commits] == [
        ("change one", ("a b.py",)),
        ("add both", ("a b.py", "é/c.py")),
    ]
    assert commits[0].time >= commits[1].time > 1_000_000_000
    assert read_head(tmp_path) not in ("", first)
    assert [one.paths for one in recent_commits(tmp_path / "é")] == [("c.py",)]


def test_without_a_repository_there_is_no_history(tmp_path: Path) -> None:
    assert recent_commits(tmp_path) == []
    assert read_head(tmp_path) == ""
    assert recent_commits(tmp_path / "never") == []


def test_a_commit_with_very_many_files_lists_none() -> None:
    names = "\0".join(f"f{row}" for row in range(MAX_FILES_OF_A_COMMIT + 1))
    assert parse_log(f"\x0112 move all\0\n{names}\0")[0].paths == ()
    assert parse_log("\x0112 one\0\nf\0")[0].paths == ("f",)
