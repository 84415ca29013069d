"""The table printed by `make attack`: each suite records how many attacks it tried and how many were held off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.table import KEY

Tally = Callable[..., None]


@pytest.fixture
def tally(record_property: Callable[[str, Any], None]) -> Tally:
    """Return `tally(name, tried=…, held=…)`, which records one row of the table."""

    def record(name: str, *, tried: int, held: int) -> None:
        assert 0 <= held <= tried, f"{name}: {held} of {tried}"
        assert tried, f"{name}: nothing was tried"
        record_property(KEY, [name, tried, held])

    return record
