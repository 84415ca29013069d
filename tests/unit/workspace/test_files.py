"""The list of a project's files, and reading them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from codecompanion.workspace.files import walk


def _make(root: Path, *names: str, **contents: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(contents.get(name, "x\n"))


def _names(root: Path, include_ignored: bool = False) -> list[str]:
    return [path.relative_to(root).as_posix() for path in walk(root, include_ignored=include_ignored)]


def test_files_are_sorted_by_the_parts_of_their_path(tmp_path: Path) -> None:
    _make(tmp_path, "b.py", "a/z.py", "a-b.py", "a.py", ".ci/run", "B.py")
    assert _names(tmp_path) == [".ci/run", "B.py", "a/z.py", "a-b.py", "a.py", "b.py"]


def test_ignore_files_of_every_level_count_and_the_nearest_takes_precedence(tmp_path: Path) -> None:
    _make(
        tmp_path, "keep.log", "a.log", "build/out.o", "sub/b.log", "sub/c.tmp", "sub/build/keep", "top/x", "sub/top/x"
    )
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/top\n# comment\n\n")
    (tmp_path / "sub" / ".gitignore").write_text("!b.log\n*.tmp\n")
    assert _names(tmp_path) == [".gitignore", "keep.log", "sub/.gitignore", "sub/b.log", "sub/top/x"]
    assert "build/out.o" in _names(tmp_path, include_ignored=True)


def test_folders_that_never_belong_to_a_project_are_left_out(tmp_path: Path) -> None:
    _make(tmp_path, "node_modules/a.js", ".git/HEAD", "__pycache__/a.pyc", ".venv/x", "src/a.py")
    assert _names(tmp_path) == ["src/a.py"]
    assert _names(tmp_path, include_ignored=True) == [".venv/x", "__pycache__/a.pyc", "node_modules/a.js", "src/a.py"]


def test_rules_of_the_repository_above_the_workspace_count(tmp_path: Path) -> None:
    _make(tmp_path, ".git/info/exclude", "pkg/mine.local", "pkg/a.log", "pkg/a.py")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / ".git" / "info" / "exclude").write_text("*.local\n")
    assert _names(tmp_path / "pkg") == ["a.py"]


def test_an_ignored_folder_requested_explicitly_is_listed(tmp_path: Path) -> None:
    _make(tmp_path, ".git/HEAD", "build/a.o")
    (tmp_path / ".gitignore").write_text("build/\n")
    assert _names(tmp_path / "build") == ["a.o"]


def test_links_and_special_files_are_not_listed(tmp_path: Path) -> None:
    _make(tmp_path, "a.py")
    (tmp_path / "up").symlink_to("..")
    (tmp_path / "b.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "fifo")
    assert _names(tmp_path) == ["a.py"]


def test_a_broken_ignore_file_ignores_what_it_can(tmp_path: Path) -> None:
    _make(tmp_path, "a.log", "b.py")
    (tmp_path / ".gitignore").write_bytes(b"!\n*.log\n\xff\xfe\n///\n[\n")
    assert _names(tmp_path) == [".gitignore", "b.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_walk_matches_git(tmp_path: Path) -> None:
    _make(tmp_path, "a b.txt", "doc/x.md", "doc/y.txt", "foo/bar/z", "foo/baz/z", "q.o", "d/q.o", "d/e/f/g.c", "é.py")
    (tmp_path / ".gitignore").write_text("doc/**/*.md\n/foo/*\n!/foo/baz\n**/e/f/*.c\n*.o\n!d/q.o\na\\ b.txt\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--others", "--exclude-standard"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert sorted(_names(tmp_path)) == sorted(listed.stdout.decode().rstrip("\0").split("\0"))
