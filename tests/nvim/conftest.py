"""Fixtures of the Neovim tests: `nvim_factory` starts children that end with the test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from chat_driver import ChatDriver, make_chat
from files_desk import Desk
from harness import Nvim, find_nvim, other_nvims


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
    """Return a running Neovim with the repository on its runtimepath."""
    return nvim_factory()


@pytest.fixture
def chat(nvim_factory: Callable[..., Nvim]) -> ChatDriver:
    """Return an open chat in a Neovim with the fake host."""
    return make_chat(nvim_factory)


@pytest.fixture(params=[find_nvim() or "nvim", *other_nvims()])
def chat_everywhere(request: pytest.FixtureRequest, nvim_factory: Callable[..., Nvim]) -> ChatDriver:
    """Return an open chat on each available Neovim version ($NVIM_BINS)."""
    return make_chat(nvim_factory, binary=request.param)


@pytest.fixture
def desk(nvim_factory, tmp_path):
    """Return a factory of `Desk`; its server is stopped at the end."""
    made: list[Desk] = []

    def make(*answers: Any, **more: Any) -> Desk:
        made.append(Desk(nvim_factory, tmp_path, answers, **more))
        return made[-1]

    yield make
    for one in made:
        one.thread.__exit__(None, None, None)
