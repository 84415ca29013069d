"""Fixtures of the Neovim tests: `nvim_factory` starts children that are ended with the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Nvim, find_nvim


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Callable[..., Nvim]]:
    """Return `start(**options) -> Nvim`; all children share tmp_path (data, config) unless `root` is given."""
    if find_nvim() is None:
        pytest.skip("no Neovim found: set NVIM_BIN, or run `make setup`")
    with ExitStack() as stack:

        def start(**options: Any) -> Nvim:
            root = options.pop("root", tmp_path)
            return stack.enter_context(Nvim(root, **options))

        yield start


@pytest.fixture
def nvim(nvim_factory: Callable[..., Nvim]) -> Nvim:
    """Return one running Neovim with the repository on its runtimepath."""
    return nvim_factory()
