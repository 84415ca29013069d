"""Fixtures of the option tests: one Neovim that reads configurations, shared by all rows of a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import find_nvim
from tests.options.desk import Desk


@pytest.fixture(scope="session")
def options_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Return the desk on which scenes are played."""
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    with Desk(tmp_path_factory.mktemp("options")) as desk:
        yield desk
