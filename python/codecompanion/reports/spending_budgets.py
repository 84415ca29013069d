"""Computes budgets in US dollars: for one chat, and for all chats together (R-358). 0 = unlimited.

A used-up budget ends the next turn before anything is sent. Calls without a known price cannot be counted: the spending
is then a lower bound, and the user is informed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.formats.plural import counted
from codecompanion.reports.markdown import usd_text

CHAT_KEY, TOTAL_KEY = "interactions.chat.opts.budget", "interactions.chat.opts.total_budget"


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One budget and its spending. `warn_at`: the share (0..1) of `limit_usd` at which to warn, 0 = no warning."""

    scope: Literal["chat", "total"]
    limit_usd: float
    warn_at: float
    spent_usd: float
    unpriced: int = 0

    @property
    def key(self) -> str:
        """Return the key of the option that sets the budget."""
        return CHAT_KEY if self.scope == "chat" else TOTAL_KEY

    @property
    def whose(self) -> str:
        """Return the scope of the budget, in words."""
        return "this chat" if self.scope == "chat" else "all chats"

    @property
    def is_used_up(self) -> bool:
        """Return whether the budget is used up."""
        return self.limit_usd > 0 and self.spent_usd >= self.limit_usd

    @property
    def is_close(self) -> bool:
        """Return whether the warning is due."""
        return self.limit_usd > 0 and 0 < self.warn_at * self.limit_usd <= self.spent_usd

    def refusal(self) -> str:
        """Return the sentence that ends a refused turn."""
        return (
            f"The budget of {self.whose} is used up: {usd_text(self.spent_usd)} of {usd_text(self.limit_usd)}. Nothing"
            f" was sent; raise {self.key} to continue."
        )

    def warning(self) -> str:
        """Return the warning about the share of the budget that is used."""
        share = round(100 * self.spent_usd / self.limit_usd)
        return (
            f"{share} % of the budget of {self.whose} is used: {usd_text(self.spent_usd)} of {usd_text(self.limit_usd)}"
            f" ({self.key}).{self._uncounted()}"
        )

    def blind_warning(self) -> str:
        """Return the warning that the budget cannot limit this chat because a price is unknown."""
        return (
            f"Price unknown: the budget of {self.whose} ({usd_text(self.limit_usd)}, {self.key}) cannot count all"
            " requests of this chat. `/cost` names the option that sets the price."
        )

    def line(self) -> str:
        """Return the line for `/cost`."""
        name = "This chat" if self.scope == "chat" else "All chats"
        if self.unpriced and not self.spent_usd:
            return f"{name}: a budget of {usd_text(self.limit_usd)}.{self._uncounted()}"
        share = round(100 * self.spent_usd / self.limit_usd)
        warned = f", warning from {round(100 * self.warn_at)} %" if self.warn_at else ""
        least = "at least " if self.unpriced else ""
        state = "**used up**" if self.is_used_up else f"{least}{share} %"
        of = f"{usd_text(self.spent_usd)} of {usd_text(self.limit_usd)}"
        return f"{name}: {of} ({state}{warned}).{self._uncounted()}"

    def _uncounted(self) -> str:
        if not self.unpriced:
            return ""
        verb = "is" if self.unpriced == 1 else "are"
        return f" {counted(self.unpriced, 'request')} without a known price {verb} not counted."
