"""Completers over loopback servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from codecompanion import settings as all_settings
from codecompanion.adapters.registry import AdapterRegistry, read_settings
from codecompanion.session.complete.completer import Completer
from codecompanion.session.complete.completion_source import make_source
from codecompanion.settings_sections import CompletionSettings
from codecompanion.wire.requests import CompleteCode

MakeCompleter = Callable[..., Completer]


def completion_settings(**changes: Any) -> CompletionSettings:
    """Return the default settings with changes."""
    return msgspec.structs.replace(all_settings.load({}).completion, **changes)


def registry(adapters: dict[str, Any] | None = None, **environ: str) -> AdapterRegistry:
    """Return the built-in adapters and the given ones."""
    loaded = all_settings.load({"adapters": adapters or {}})
    return AdapterRegistry(
        read_settings(loaded.adapters), read_blob=lambda sha: b"", summarise=lambda messages, limit: "", environ=environ
    )


def code(text: str = "x = |\n", **fields: Any) -> CompleteCode:
    """Return a request at the position marked by `|`."""
    before, _, after = text.partition("|")
    return CompleteCode(**{"id": 1, "path": "a.py", "before": before, "after": after} | fields)


class NoProjects:
    """An editor whose files belong to no project."""

    async def find(self, path: str, cwd: str) -> None:
        """Return no project."""

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.fixture
def make_completer() -> Iterator[MakeCompleter]:
    """Create completers; a reported bug fails the test unless it is expected."""
    made: list[Completer] = []

    def make(
        *, projects: Any = None, bugs: list[BaseException] | None = None, context_window: int = 0,
        adapters: dict[str, Any] | None = None, environ: dict[str, str] | None = None, **changes: Any,
    ) -> Completer:  # fmt: skip
        settings = completion_settings(**changes)
        known = registry(adapters, **(environ or {}))

        def report(error: BaseException) -> str:
            assert bugs is not None, error
            bugs.append(error)
            return "An internal error."

        completer = Completer(
            settings,
            lambda: make_source(settings, known, "offline"),
            projects=projects or NoProjects(),
            context_window=context_window,
            clock=iter(range(1_000_000)).__next__,
            report_bug=report,
        )
        made.append(completer)
        return completer

    yield make
    assert all(completer._source is None for completer in made), "every test closes its completers"
