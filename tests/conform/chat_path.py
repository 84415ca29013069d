"""The path of a test: whether it drives a session, a real Neovim, or a command that runs the chat's code.

Only such a test counts as showing a row of the documents; code shown by a helper's test may never run in a chat.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import PurePath
from typing import Any

import pytest

PROPERTY = "chat path"
"""The name of the test property: a sorted list of `session`, `editor` and `command`."""
COMMANDS = frozenset(
    {"classify", "context", "demo", "fim", "gather", "recall", "replay", "restore", "search", "select", "summarize"}
)
"""Commands of the command line that run the same code as a chat."""
_EDITORS = frozenset({"nvim", "tmux"})


class ChatPath:
    """A pytest plugin that adds the property `PROPERTY` to each test."""

    def __init__(self) -> None:
        self._found = set[str]()
        self._of_fixtures = dict[str, frozenset[str]]()
        """The sessions and processes started by each fixture that several tests share, by fixture name."""
        self._watching = False

    def _watch(self) -> None:
        """Start recording new sessions and processes."""
        from codecompanion.session.session import Session

        sys.addaudithook(self._audit)
        Session.__init__ = _noticed(Session.__init__, lambda: self._found.add("session"))  # type: ignore[method-assign]
        self._watching = True

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            self._found |= started([str(word) for word in arguments[1]])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        if not self._watching:
            self._watch()
        self._found.clear()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        before = frozenset(self._found)
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._of_fixtures[fixturedef.argname] = frozenset(self._found) - before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            shared = (self._of_fixtures.get(name, frozenset()) for name in getattr(item, "fixturenames", ()))
            item.user_properties.append((PROPERTY, sorted(self._found.union(*shared))))


def started(argv: Sequence[str]) -> set[str]:
    """Return the kind of a started process: `editor`, `command`, or neither."""
    if not argv:
        return set()
    if PurePath(argv[0]).name in _EDITORS:
        return {"editor"}
    package = next((i for i in range(len(argv) - 1) if argv[i] == "-m" and argv[i + 1] == "codecompanion"), None)
    return {"command"} if package is not None and COMMANDS.intersection(argv[package + 2 : package + 3]) else set()


def _noticed(method: Callable[..., None], notice: Callable[[], object]) -> Callable[..., None]:
    @functools.wraps(method)
    def noticing(*args: Any, **kwargs: Any) -> None:
        notice()
        method(*args, **kwargs)

    return noticing
