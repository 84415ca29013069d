"""The tests in another order, to find those that pass only after certain others: `make test SHUFFLE=7`.

The modules change places, and in each of them its tests: fixtures of a module are still made once. The same seed gives
the same order in every worker of pytest-xdist, which asks for that, and in a run that looks for a failure again.
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
    """Return the items in the order that belongs to the seed."""
    chance = random.Random(seed)
    modules: dict[Path, list[Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    order = list(modules.values())
    chance.shuffle(order)
    for module in order:
        chance.shuffle(module)
    return [item for module in order for item in module]
