"""Tables that ship as TOML beside the code: word lists, weights, budgets. Each is read once, when first asked for.

Pure code opens no files; it asks here, as it asks for a prompt (`prompts/`).
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


@cache
def package_table(name: str) -> dict[str, Any]:
    """Return the table in a file of the package, such as `retrieval/budgets.toml`. Nobody changes what comes back."""
    return tomllib.loads(_PACKAGE.joinpath(name).read_text("utf-8"))
