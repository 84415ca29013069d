"""A function whose module is imported by its first call, for tables of which a session calls only a few functions.

The table's test loads every entry, so that a wrong name is found there. `engine/idle_work.py` imports them early, while
the host is idle.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Deferred:
    """The function `name` of `module`."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def load(self) -> Callable[..., Any]:
        """Import the module and return the function."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; its module is imported first."""
        return self.load()(*arguments)
