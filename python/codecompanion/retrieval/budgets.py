"""How many tokens of code a model is given: the table of R-244, what the user says, never too much of the window."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

MAX_SHARE_OF_WINDOW = 0.25
"""Gathered code never takes more of the real window than this; the question, its history and the reply need the rest.

A 4k window: 1,000 tokens of code. From 200k on the table alone decides.
"""
_VENDORS = regex(r"^(?:[a-z-]{2,20}\.){1,2}(?=[a-z])", re.IGNORECASE)
_SEPARATORS = str.maketrans("", "", "-_ ")


def token_budget(model: str, own: Mapping[str, int] | None = None, window: int = 0) -> int:
    """Return the budget of a model, in tokens; `own`: rows of the user's, which go before the table's.

    `window`: its context window in tokens, 0 = not known. It decides where no row has the model's name.

    The longest name counts that the model's name begins with, also after a vendor (`openai/gpt-4o-mini` → `gpt-4o`)
    and after a region and a vendor as Amazon's names have them (`us.anthropic.claude-…`).
    A row of the user's called `default` stands for all others.
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
    """Return the value of the row that the model's name begins with, 0 when there is none."""
    short = model.rpartition("/")[2]
    names = (model, short, _VENDORS.sub("", short))
    return next((int(rows[found]) for name in names if (found := _longest(name, rows))), 0)


def budget_in_window(budget: int, window: int) -> int:
    """Return the budget in a context window of so many tokens; 0 = the window is not known."""
    return min(budget, int(window * MAX_SHARE_OF_WINDOW)) if window > 0 else budget


def _longest(model: str, rows: Mapping[str, int]) -> str:
    name = _plain(model)
    fitting = [row for row in rows if row != "default" and _plain(row) and name.startswith(_plain(row))]
    return max(fitting, key=lambda row: len(_plain(row)), default="")


def _plain(name: str) -> str:
    return name.lower().translate(_SEPARATORS)
