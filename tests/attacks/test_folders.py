"""Existing folders keep their mode, whatever their owner: a shared folder once became 0700."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from codecompanion.adapters.private_file import write_private
from codecompanion.engine.log import close_log, open_log
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.store.opening import open_store
from tests.attacks.conftest import Tally

MODES = (0o700, 0o750, 0o755, 0o770, 0o775, 0o777, 0o1777, 0o2775)


def use_store(folder: Path) -> None:
    store = open_store(folder)
    store.put_blob(b"x" * 10)
    store.close()


def use_checkpoints(folder: Path) -> None:
    files = CheckpointFiles(folder)
    files.save_snapshot("c", {"schema": "x"})
    files.append_conversation("c", files.begin_conversation("c"), [b"{}\n"])


def use_memory(folder: Path) -> None:
    MemoryFiles(folder, folder).save("flush", "t", "words", "c", 1.0, "mark")


def use_log(folder: Path) -> None:
    open_log(str(folder / "codecompanion.log"))
    close_log()


USERS: dict[str, Callable[[Path], object]] = {
    "store": use_store,
    "checkpoints": use_checkpoints,
    "memory": use_memory,
    "log": use_log,
    "logins": lambda folder: write_private(folder / "login.json", b"{}"),
}


@pytest.mark.parametrize("user", USERS)
def test_an_existing_folder_keeps_its_mode(user: str, tmp_path: Path, tally: Tally) -> None:
    """The mode is kept even through a symlink; files created in the folder are private."""
    held = tried = 0
    for number, mode in enumerate(MODES):
        for is_link in (False, True):
            folder = real = tmp_path / f"{number}-{is_link}"
            real.mkdir()
            real.chmod(mode)
            if is_link:
                folder = tmp_path / f"link-{number}"
                folder.symlink_to(real)
            USERS[user](folder)
            made = [path for path in real.rglob("*") if not path.is_symlink()]
            wide = [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077]
            tried += 1
            held += stat.S_IMODE(real.stat().st_mode) == mode and bool(made) and not wide
    tally("folders: modes × users of them", tried=tried, held=held)
    assert held == tried


def test_a_folder_that_we_make_is_ours_alone(tmp_path: Path) -> None:
    use_store(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
