"""Changes seen by git below a folder of a repository (R-266: files with secret names are excluded)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from codecompanion.errors import InputError
from codecompanion.workspace.git_diff import read_diff


def git(root: Path, *arguments: str) -> None:
    author = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder inside a repository, with a committed key file."""
    below = tmp_path / "repo" / "sub"
    below.mkdir(parents=True)
    git(below.parent, "init", "-b", "main")
    (below / ".env").write_text("".join(f"KEY{number}=planted\n" for number in range(20)))
    (below / "a.txt").write_text("one\n")
    git(below, "add", ".")
    git(below, "commit", "-m", "first")
    return below


def test_secrets_in_a_subfolder_are_excluded(folder: Path) -> None:
    (folder / ".env").write_text("KEY=planted too\n")
    (folder / "a.txt").write_text("two\n")
    diff = read_diff(folder, "")
    assert "planted" not in diff.text
    assert "+two" in diff.text
    assert diff.secret == ("sub/.env",)


@pytest.mark.parametrize("what", ["staged", "", "HEAD"])
def test_renamed_secrets_are_excluded(folder: Path, what: str) -> None:
    """A renamed key file would show its lines under the new name."""
    git(folder, "mv", ".env", "settings.txt")
    (folder / "settings.txt").write_text("".join(f"KEY{number}=planted\n" for number in range(21)))
    git(folder, "add", ".")
    if what == "HEAD":
        git(folder, "commit", "-m", "second")
    diff = read_diff(folder, what)
    assert "KEY20" in diff.text  # a new file of that name: it is none of keys by its name
    assert "-KEY" not in diff.text
    assert diff.secret == ("sub/.env",)


def test_an_option_is_not_a_commit(folder: Path) -> None:
    with pytest.raises(InputError, match="--output=x is not a commit here; expected staged, unstaged, branch"):
        read_diff(folder, "--output=x")


def test_without_changes_the_diff_is_empty(folder: Path) -> None:
    assert not read_diff(folder, "")
    assert read_diff(folder, "staged").nothing == "nothing is staged"
