"""Files are written completely or not at all, and cancelling leaves nothing running."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import threading
from pathlib import Path

import pytest

from codecompanion.errors import ToolError
from codecompanion.tools.files.disk import Check, Stopped, in_thread, make_link, remove_file, set_mode, write_atomic
from tests.unit.tools.conftest import names_in


def test_a_file_is_replaced_with_its_mode_and_no_other_file_is_left(tmp_path: Path) -> None:
    file = tmp_path / "run.sh"
    file.write_text("old")
    file.chmod(0o754)
    write_atomic(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o754
    assert names_in(tmp_path) == ["run.sh"]


def test_a_new_file_gets_its_folders_and_the_users_mask(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a" / "b" / "c.txt", b"x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a" / "b" / "c.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("what", ["read-only", "a folder", "not a regular file", "not a directory"])
def test_an_irreplaceable_file_is_refused_and_unchanged(tmp_path: Path, what: str) -> None:
    target = tmp_path / "target"
    if what == "a folder":
        target.mkdir()
    elif what == "not a regular file":
        os.mkfifo(target)
    else:
        target.write_text("old")
        target.chmod(0o444)
    path = target / "x" if what == "not a directory" else target
    with pytest.raises(ToolError, match=what) as caught:
        write_atomic(path, b"new")
    assert "Nothing was changed" in str(caught.value)
    assert names_in(tmp_path) == ["target"]
    if target.is_file():
        assert target.read_text() == "old"


def test_a_folder_or_file_without_permission_is_refused(as_nobody: Path) -> None:
    file = as_nobody / "file"
    file.write_text("old")
    as_nobody.chmod(0o555)
    try:
        with pytest.raises(ToolError, match=r"permission denied\. Nothing was changed"):
            write_atomic(file, b"new")
        with pytest.raises(ToolError, match=r"permission denied\. Nothing was changed"):
            write_atomic(as_nobody / "new", b"new")
    finally:
        as_nobody.chmod(0o755)
    assert file.read_text() == "old"


def test_a_full_disk_leaves_the_old_content_and_no_remains(tmp_path: Path) -> None:
    """A file size limit simulates the full disk: the write fails half-way in the same place."""
    file = tmp_path / "file"
    file.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(ToolError, match=r"file too large\. Nothing was changed"):
            write_atomic(file, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert file.read_text() == "old"
    assert names_in(tmp_path) == ["file"]


def test_a_stopped_write_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")

    def check() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        write_atomic(file, b"new", check)
    assert file.read_text() == "old"
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("deeper", ["", "below"])
def test_a_folder_that_became_a_link_is_not_followed(tmp_path: Path, deeper: str) -> None:
    """The path was resolved earlier: a link in it is newer, and nothing is written, deleted or created through it."""
    outside = tmp_path / "outside"
    (outside / "below").mkdir(parents=True)
    for folder in (outside, outside / "below"):
        (folder / "file").write_text("secret")
        (folder / "file").chmod(0o600)
    (tmp_path / "inside").symlink_to(outside)
    folder = tmp_path / "inside" / deeper
    for change in (
        lambda: write_atomic(folder / "file", b"x"),
        lambda: write_atomic(folder / "new" / "file", b"x"),
        lambda: remove_file(folder / "file"),
        lambda: make_link(folder / "link", "file"),
        lambda: set_mode(folder / "file", 0o777),
    ):
        with pytest.raises(ToolError, match=r"inside has become a symbolic link\. Nothing was changed"):
            change()
    assert names_in(outside) == ["below", "file"]
    assert names_in(outside / "below") == ["file"]
    assert (outside / "file").read_text() == "secret"
    assert stat.S_IMODE((outside / "file").stat().st_mode) == 0o600


def test_the_mode_of_a_links_target_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(OSError, match="symbolic link"):
        set_mode(tmp_path / "link", 0o777)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


async def test_cancelling_waits_for_the_thread_to_stop() -> None:
    running, stopped = threading.Event(), threading.Event()

    def work(check: Check) -> None:
        running.set()
        try:
            while True:
                check()
        finally:
            stopped.set()

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(running.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped.is_set()


async def test_exceptions_in_the_thread_reach_the_caller() -> None:
    def work(check: Check) -> None:
        raise ToolError("no")

    with pytest.raises(ToolError, match="no"):
        await in_thread(work)
