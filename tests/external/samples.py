"""The recordings that a run plays: by default a sample, the same each time; with `EXTERNAL=all` (`make external`) all.

A change to a policy, the ledger or a wire format should run all of them: 8 minutes of CPU time instead of 2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

ALL = os.environ.get("EXTERNAL") == "all"


def sampled(items: Sequence[Item], count: int) -> list[Item]:
    """Return all items, or `count` of them spread evenly, because the files of one kind of agent are adjacent."""
    if ALL or len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
