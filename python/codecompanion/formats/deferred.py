"""Defers a module's import until one of its functions is called; for tables of functions that are mostly not called.

The table's test loads every entry, so that a wrong name is found there. `engine/idle_work.py` imports them early, while
the host is idle.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Deferred:
    """Stands in for the function `name` of `module`, which is imported on the first call."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def load(self) -> Callable[..., Any]:
        """Import the module and return the function."""
        found: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return found

    def __call__(self, *arguments: Any) -> Any:
        """Import the module if necessary, and call the function."""
        return self.load()(*arguments)
