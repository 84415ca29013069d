"""Which recordings a run plays: a sample by default, the same each time; `EXTERNAL=all` (`make external`) all of them.

A change of a policy, of the ledger or of a wire format deserves all of them: 8 minutes of CPU instead of 2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

ALL = os.environ.get("EXTERNAL") == "all"


def sampled(items: Sequence[Item], count: int) -> list[Item]:
    """Return all items, or `count` of them spread evenly: the files of one kind of agent are adjacent."""
    if ALL or len(items) <= count:
        return list(items)
    return [items[number * len(items) // count] for number in range(count)]
