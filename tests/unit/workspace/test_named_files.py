"""The names in a message that are files (R-213, R-215)."""

from __future__ import annotations

import subprocess

import pytest

from codecompanion.workspace.named_files import files_named

NAMES = ("src/deep/a.py", "a.py", "Makefile", "property", "pytest.fixture", "missing.py", "../outside.txt", "gone/x.py")
FOUND = ("src/deep/a.py", "a.py", "Makefile", "../outside.txt")


@pytest.fixture(params=[True, False], ids=["git", "walk"])
def project(request, tmp_path):
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "a.py").write_text("x")
    (root / "src" / "property").write_text("x")
    (root / "Makefile").write_text("x")
    (tmp_path / "outside.txt").write_text("x")
    if request.param:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def test_paths_and_bare_names_of_files_are_found(project):
    assert files_named(project, NAMES) == FOUND


def test_an_open_file_counts_by_its_name(project):
    assert files_named(project, ("other.py", "property"), ("/elsewhere/other.py",)) == ("other.py",)


@pytest.mark.parametrize(
    "name", ["*.py", "[a].py", "\0", "x" * 5000, "~nobody_of_that_name/x", "-rf.py", "; rm -rf.py", "/"]
)
def test_strange_names_are_not_files(project, name):
    assert files_named(project, (name,)) == ()


def test_a_file_with_a_strange_name_is_found_by_it(project):
    for name in ("[a].py", "; rm -rf.py", "two words.txt"):
        (project / "src" / name).write_text("x")
    assert files_named(project, ("[a].py", "; rm -rf.py", "two words.txt")) == (
        "[a].py",
        "; rm -rf.py",
        "two words.txt",
    )


def test_a_file_ignored_by_git_is_found_only_by_path(project):
    (project / ".gitignore").write_text("*.log\n")
    (project / "src" / "x.log").write_text("x")
    assert files_named(project, ("x.log", "src/x.log")) == ("src/x.log",)
