"""Failed assertions of a scene show its screen; each scene runs in an in-memory folder, if available."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codecompanion.store.opening import open_store

pytest.register_assert_rewrite("tests.faults.scene")


MEMORY = Path("/dev/shm")
"""An in-memory disk without waits: a scene writes some twenty times, and no row is about a power failure."""


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an unused store, which is faster to copy than to create."""
    folder = tmp_path_factory.mktemp("empty")
    open_store(folder).close()
    return folder / "sessions.db"


@pytest.fixture
def root(empty_store: Path) -> Iterator[Path]:
    """Return the folder of one scene, with its store."""
    with TemporaryDirectory(prefix="scene-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        (Path(folder) / "data").mkdir(mode=0o700)
        shutil.copy(empty_store, Path(folder) / "data")
        yield Path(folder)
