"""Runs the tests in a different order, to find those that pass only after certain others: `make test SHUFFLE=7`.

The modules are shuffled, and the tests within each module, so module fixtures are still created once. The same seed
gives the same order in every worker, as pytest-xdist requires, and in a run that reproduces a failure.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar


class _InModule(Protocol):
    @property
    def path(self) -> Path: ...


Item = TypeVar("Item", bound=_InModule)


def shuffle(items: Iterable[Item], seed: int) -> list[Item]:
    """Return the items in the order determined by the seed."""
    chance = random.Random(seed)
    modules: dict[Path, list[Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    order = list(modules.values())
    chance.shuffle(order)
    for module in order:
        chance.shuffle(module)
    return [item for module in order for item in module]
