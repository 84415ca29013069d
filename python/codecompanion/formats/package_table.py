"""Reads the TOML tables beside the code (word lists, weights, budgets), each one once, when it is first needed.

Pure code opens no files; it gets tables here, as it gets prompts from `prompts/`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


@cache
def package_table(name: str) -> dict[str, Any]:
    """Return the table in a file of the package, such as `retrieval/budgets.toml`. Do not change it: it is shared."""
    return tomllib.loads(_PACKAGE.joinpath(name).read_text("utf-8"))
