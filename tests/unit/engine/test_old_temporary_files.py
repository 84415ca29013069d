"""A starting host removes temporary files unused for days, and nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codecompanion.engine.old_temporary_files import KEPT_S, remove_old_temporary_files

LATER = time.time() + KEPT_S + 3600


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return the data folder and the system's temporary folder, with our own files and those of other programs."""
    data, temporary, others = tmp_path / "data", tmp_path / "tmp", tmp_path / "others"
    for name in ("sandbox/a/tmp/deep", "sandbox/a/caches", "sandbox/b/tmp"):
        (data / name).mkdir(parents=True)
    for name in ("sandbox/a/tmp/deep/file", "sandbox/a/tmp/file", "sandbox/a/caches/file", "history.db"):
        (data / name).write_text("x")
    for name in ("codecompanion-git-abc_1234", "codecompanion-probe-abcdefgh", "codecompanion-sandbox-01234567"):
        (temporary / name).mkdir(parents=True)
    for name in ("codecompanion-notes", "codecompanion-git-mine-of-today", "other"):
        (temporary / name).mkdir()
    others.mkdir()
    (others / "file").write_text("x")
    (temporary / "codecompanion-git-abc_1234" / "refs").symlink_to(others)
    (data / "sandbox" / "b" / "tmp" / "link").symlink_to(others)
    return data, temporary


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_old_ones_are_removed_without_following_links_or_touching_others(folders: tuple[Path, Path]) -> None:
    data, temporary = folders
    assert remove_old_temporary_files(data, temporary, LATER) == 6
    assert files_below(data) == {"sandbox/a/caches/file", "history.db"}
    assert {path.name for path in temporary.iterdir()} == {
        "codecompanion-notes",
        "codecompanion-git-mine-of-today",
        "other",
    }
    assert (temporary.parent / "others" / "file").exists()


def test_a_folder_with_a_recently_used_file_is_kept(folders: tuple[Path, Path]) -> None:
    data, temporary = folders
    used = data / "sandbox" / "a" / "tmp" / "deep" / "file"
    os.utime(used, (LATER, 0))
    remove_old_temporary_files(data, temporary, LATER)
    assert used.exists()
    assert not (data / "sandbox" / "a" / "tmp" / "file").exists()


def test_new_ones_and_missing_folders_are_kept(folders: tuple[Path, Path], tmp_path: Path) -> None:
    assert remove_old_temporary_files(*folders) == 0
    assert remove_old_temporary_files(tmp_path / "none", tmp_path / "nowhere", LATER) == 0
