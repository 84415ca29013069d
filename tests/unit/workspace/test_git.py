"""Git facts about the workspace: R-351, R-355."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from codecompanion.workspace.git import GitStatus, parse_status, read_status

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(folder, *arguments):
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(("git", *name, *arguments), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    git(tmp_path, "init", "-q", "-b", "docs-refresh")
    (tmp_path / "README.md").write_text("one\n")
    (tmp_path / "old name.py").write_text("x = 1\n" * 30)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_branch_and_changed_files_of_a_repository_are_read(repository):
    """R-351: each changed file has git's status code and its current path."""
    (repository / "README.md").write_text("two\n")
    (repository / "new ü.txt").write_text("n")
    git(repository, "mv", "old name.py", "new name.py")
    status = read_status(repository)
    assert status is not None
    assert status.branch == "docs-refresh"
    assert sorted(status.changed) == [("??", "new ü.txt"), ("M", "README.md"), ("R", "new name.py")]
    assert read_status(repository) == status


def test_a_clean_tree_and_one_without_a_commit(tmp_path, repository):
    """R-351: a clean tree has a branch and no changes; an unborn branch has a name, too."""
    assert read_status(repository) == GitStatus("docs-refresh")
    unborn = tmp_path / "unborn"
    unborn.mkdir()
    git(unborn, "init", "-q", "-b", "main")
    assert read_status(unborn) == GitStatus("main")


def test_without_a_repository_there_are_no_facts(tmp_path):
    """R-351: no status is returned, so the packet has `git: not_detected`."""
    assert read_status(tmp_path) is None
    assert read_status(tmp_path / "missing") is None


def test_a_detached_head_has_no_branch(repository):
    """R-351: the branch line is left out."""
    git(repository, "checkout", "-q", "--detach")
    assert read_status(repository) == GitStatus("")


def test_the_repository_cannot_run_a_program(repository):
    """A clone of a stranger's folder may name programs in its configuration; asking for facts must not start them."""
    ran = repository / "ran"
    git(repository, "config", "core.fsmonitor", f"touch {ran}; false")
    assert read_status(repository) is not None
    assert not ran.exists()


def test_a_slow_git_is_given_up(repository, monkeypatch, tmp_path_factory):
    """The turn does not wait beyond the limit."""
    slow = tmp_path_factory.mktemp("bin")
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}:/usr/bin:/bin")
    assert read_status(repository, 0.2) is None


def test_headers_have_an_upstream():
    """The header also names the upstream and the distance to it."""
    assert parse_status("## main...origin/main [ahead 1]\0 M a.py\0").branch == "main"
    assert parse_status("## feature/x [gone]\0") == GitStatus("feature/x")
