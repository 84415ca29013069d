"""The order of `make test SHUFFLE=seed`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.shuffled import shuffle


class Item(NamedTuple):
    path: Path
    number: int


ITEMS = [Item(Path(f"test_{module}.py"), number) for module in "abcdefgh" for number in range(9)]


def test_a_seed_is_an_order_of_modules_and_of_the_tests_in_each() -> None:
    """Every worker of a run has to find the same order."""
    once = shuffle(ITEMS, 7)
    assert once == shuffle(ITEMS, 7) != shuffle(ITEMS, 8)
    assert sorted(once) == ITEMS
    modules = [(path, [item.number for item in inside]) for path, inside in groupby(once, lambda item: item.path)]
    assert len(modules) == 8, "the tests of a module stay together"
    assert modules != sorted(modules)
    assert all(numbers != sorted(numbers) for _, numbers in modules)
