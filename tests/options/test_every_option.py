"""Every option has an effect: each has a scene in which another legal value makes a visible difference.

A scene is a function of the configuration that returns its observable results: request bytes, text on the screen,
files. `OPTIONS=twice` plays each scene twice with the base configuration, to ensure that only the option makes a
difference; `make ci` plays it once.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

import pytest

from tests.options.desk import Desk, Given
from tests.options.meaning_scenes import found_by_meaning
from tests.options.table import ROWS, Row, Scene
from tools.docgen.schema import Option, read_schema, walk

TWICE = os.environ.get("OPTIONS") == "twice"


@cache
def schema() -> dict[str, Option]:
    """Return the options that have a value, by path; a user-defined name is replaced by `mine`."""
    found = walk(read_schema().schema)
    return {re.sub(r"<\w+>", "mine", path): option for path, option in found if not option.children}


def test_every_option_has_a_row() -> None:
    """A new option without a row fails, and so does a row without an option."""
    rows, options = {row.path for row in ROWS}, set(schema())
    assert options - rows == set(), "options without a row"
    assert rows - options == set(), "rows without an option"
    assert len(rows) == len(ROWS), "options with two rows"


def _param(row: Row) -> Any:
    """Return the pytest parameter of a row.

    `make ci` plays only two of the rows that need vectors of a whole project.
    """
    is_long = row.scene is found_by_meaning and not row.path.endswith((".model", ".vector_weight"))
    return pytest.param(row, marks=pytest.mark.thorough("makes vectors of a project") if is_long else ())


@pytest.fixture(scope="session")
def seen() -> dict[tuple[Scene, str], Any]:
    """Return the cached results of scenes with their base configuration, by scene and configuration."""
    return {}


@pytest.mark.slow("about 600 configurations, each played in a host or an editor: three minutes")
@pytest.mark.parametrize("row", list(map(_param, ROWS)), ids=lambda row: row.path)
def test_another_value_changes_something(row: Row, options_desk: Desk, seen: dict[tuple[Scene, str], Any]) -> None:
    key = (row.scene, row.base)
    if key not in seen:
        seen[key] = row.scene(options_desk, Given(row.base))
        if TWICE:
            first, seen[key] = seen[key], row.scene(options_desk, Given(row.base))
            # The first play of a process loads modules and grammars, which a screen can show.
            is_steady = seen[key] == first or seen[key] == row.scene(options_desk, Given(row.base))
            assert is_steady, "the scene differs by itself"
    assert row.scene(options_desk, Given(row.base, row.path, row.value)) != seen[key]
