"""Detects resources left open by a test: descriptors, threads, child processes. The test that opened them fails.

An unclosed socket may be collected during another test, which its ResourceWarning would make fail. So the open
resources before a test are compared with those after its teardown. A fixture of a module or the session owns its
resources until its own teardown. Resources that are about to close are awaited.

A helper without its own `with` passes its resources to `at_end_of_test`; those shared by all tests of a process are
opened in `kept_for_the_run`. An object closed only by the garbage collector, which runs at the end of each module, is
an error of the module's last test.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.patience import PATIENCE_S


class _WithClose(Protocol):
    def close(self) -> object: ...


Closable = TypeVar("Closable", bound=_WithClose)
_PROCESS = Path("/proc/self")
_OF_THE_PROCESS = ("gather_",)
"""Threads of a pool that the package keeps as long as its process runs (`session.gather.deadline_work`)."""
_ONNX = "/.onnxruntime/"
"""Files that onnxruntime keeps open once it has run a model."""
_closers = ExitStack()
_kept: set[str] = set()


def at_end_of_test(close: Callable[[], object]) -> None:
    """Call `close` when the running test and its fixtures have ended, in reverse order of registration."""
    _closers.callback(close)


def closed_at_end(opened: Closable) -> Closable:
    """Return the opened object; it is closed when the running test and its fixtures have ended."""
    at_end_of_test(opened.close)
    return opened


@contextmanager
def kept_for_the_run() -> Iterator[None]:
    """Keep resources opened in this block open until the process ends."""
    before = _open_now()
    yield
    _kept.update(_open_now() - before)


def _open_now() -> frozenset[str]:
    """Return the open resources under unique names; without /proc only the threads."""
    threads = (one for one in threading.enumerate() if not one.name.startswith(_OF_THE_PROCESS))
    found = {f"thread {thread.name!r} ({thread.ident})" for thread in threads}
    if sys.platform.startswith("linux"):
        found.update(_descriptors(), _children())
    return frozenset(found)


def _descriptors() -> Iterator[str]:
    for name in os.listdir(_PROCESS / "fd"):  # noqa: PTH208 (twice for each test: pathlib takes longer)
        with suppress(FileNotFoundError):  # the one that lists them
            opened = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115
            if _ONNX not in opened:
                yield f"descriptor {name} of {opened}"


def _children() -> Iterator[str]:
    for task in os.listdir(_PROCESS / "task"):  # noqa: PTH208
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            yield from (f"process {pid}" for pid in (_PROCESS / "task" / task / "children").read_text().split())


def _described(opened: str) -> str:
    """Return the description of an open resource; for a process, it includes the command."""
    kind, _, pid = opened.partition(" ")
    if kind != "process":
        return opened
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return opened
    return f"{opened}: {command.replace(bytes(1), b' ').decode(errors='replace')[:100]}"


class LeftoverCheck:
    """The pytest plugin. `patience_s`: how long a resource may take to close after its test."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._before: frozenset[str] = frozenset()
        self._owned: dict[object, frozenset[str]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None]:
        self._before = _open_now()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = _open_now()
        try:
            return (yield)
        finally:
            self._owned[fixturedef] = _open_now() - before

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[Any]) -> None:
        self._before -= self._owned.pop(fixturedef, frozenset())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None]:
        try:
            return (yield)
        finally:
            _closers.close()
            left, until = self._left(), time.monotonic() + self._patience_s
            while left and time.monotonic() < until:
                time.sleep(0.005)
                left = self._left()
            assert not left, "left open by this test: " + "; ".join(map(_described, sorted(left)))

    def _left(self) -> frozenset[str]:
        return _open_now() - self._before - _kept.union(*self._owned.values())
