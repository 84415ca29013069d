"""Fixtures of the journeys. Without tmux they are skipped; JOURNEYS=required (`make journeys`) makes that a failure."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import find_nvim
from tests.journeys.desk import Desk
from tests.journeys.terminal import missing


@pytest.fixture(autouse=True)
def tools() -> None:
    """Skip, or fail with JOURNEYS=required, if the machine has no Neovim or no terminal that can be controlled."""
    lack = missing() or ("" if find_nvim() else "no Neovim found: set NVIM_BIN, or run `make setup`")
    if lack and os.environ.get("JOURNEYS") == "required":
        pytest.fail(lack)
    if lack:
        pytest.skip(lack)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Return a desk with a clean home; its terminals are closed with the test."""
    with ExitStack() as stack:
        yield Desk(tmp_path, stack)
