"""Sets the token budget for gathered code: the table of R-244, the user's setting, and a cap by context window."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

MAX_SHARE_OF_WINDOW = 0.25
"""Maximum share of the real context window for gathered code; the question, its history and the reply need the rest.

A 4k window leaves 1,000 tokens for code; from 200k on, only the table matters.
"""
_VENDORS = regex(r"^(?:[a-z-]{2,20}\.){1,2}(?=[a-z])", re.IGNORECASE)
_SEPARATORS = str.maketrans("", "", "-_ ")


def token_budget(model: str, own: Mapping[str, int] | None = None, window: int = 0) -> int:
    """Return the budget of a model, in tokens; `own`: the user's rows, which take precedence over the table.

    `window`: the model's context window in tokens, 0 = unknown. It is used if no row matches the model's name.

    The longest row name that is a prefix of the model's name wins, even if the prefix follows a vendor
    (`openai/gpt-4o-mini` → `gpt-4o`), or a region and a vendor as in Amazon's names (`us.anthropic.claude-…`). A user
    row called `default` applies to all other models.
    """
    table = package_table("retrieval/budgets.toml")
    for rows in (own or {}, table["models"]):
        if found := _named(model, rows):
            return found
    if "default" in (own or {}):
        return int((own or {})["default"])
    window = window or _named(model, table["windows"])
    return next((budget for least, budget in table["by_window"] if window >= least), int(table["default"]))


def _named(model: str, rows: Mapping[str, int]) -> int:
    """Return the value of the row whose name is the longest prefix of the model's name, or 0."""
    short = model.rpartition("/")[2]
    names = (model, short, _VENDORS.sub("", short))
    return next((int(rows[found]) for name in names if (found := _longest(name, rows))), 0)


def budget_in_window(budget: int, window: int) -> int:
    """Return the budget, limited by a context window of `window` tokens (0 = unknown)."""
    return min(budget, int(window * MAX_SHARE_OF_WINDOW)) if window > 0 else budget


def _longest(model: str, rows: Mapping[str, int]) -> str:
    name = _plain(model)
    fitting = [row for row in rows if row != "default" and _plain(row) and name.startswith(_plain(row))]
    return max(fitting, key=lambda row: len(_plain(row)), default="")


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
