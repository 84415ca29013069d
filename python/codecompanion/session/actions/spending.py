"""Checks the budgets of a chat before a turn begins and after it ends (R-358).

Spending is read from the store's running total, so the cost of a check does not depend on the chat's length. Without
a budget, nothing is checked.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

from codecompanion.errors import StoreError
from codecompanion.model.history import UsageReported
from codecompanion.session.services import Services
from codecompanion.store.log.totals import Spent

if TYPE_CHECKING:
    from codecompanion.reports.spending_budgets import Budget


class Spending:
    """Checks the budgets of one chat."""

    def __init__(self, services: Services, chat_id: str) -> None:
        self._services, self._chat_id = services, chat_id
        self._warned: set[str] = set()
        self._has_said_unknown = False

    def budgets(self) -> tuple[Budget, Budget]:
        """Return the current budgets of this chat and of all chats; 0 = unlimited.

        Raises:
            StoreError: the spending cannot be read.
        """
        chat = self._services.settings.chat
        return (
            _budget("chat", chat.budget, chat.budget_warn, self._services.store.spent(self._chat_id)),
            _budget("total", chat.total_budget, chat.total_budget_warn, self._services.store.spent()),
        )

    def of_all_chats(self) -> Budget:
        """Return the spending of all chats, with the requests that had no price at the price they have now.

        It reads every such request, so it is for reports, not for checks.

        Raises:
            StoreError: the spending cannot be read.
        """
        chat, spent = self._services.settings.chat, self._services.store.spent()
        unpriced = self._services.store.unpriced() if spent.unpriced else []
        now = (priced_now(self._services, report).cost_usd for report in unpriced)
        costs = [cost for cost in now if cost is not None]
        spent = Spent(spent.usd + sum(costs), spent.unpriced - len(costs))
        return _budget("total", chat.total_budget, chat.total_budget_warn, spent)

    async def refusal(self, *adapters: str) -> str:
        """Return the reason why the budgets forbid a turn with these adapters, otherwise "".

        Free adapters are always allowed.
        """
        if not self._has_budget or self._are_included(adapters):
            return ""
        try:
            budgets = await asyncio.to_thread(self.budgets)
        except StoreError as error:
            return f"Nothing was sent: the remaining budget cannot be read ({error})."
        return next((budget.refusal() for budget in budgets if budget.is_used_up), "")

    async def warnings(self) -> list[str]:
        """Return the warnings that are due after a turn; each is returned only once."""
        if not self._has_budget:
            return []
        budgets = await asyncio.to_thread(self.budgets)
        due = [budget for budget in budgets if budget.is_close]
        fresh = [budget for budget in due if budget.scope not in self._warned]
        self._warned = {budget.scope for budget in due}
        return [budget.warning() for budget in fresh] or self._blind_warning(budgets)

    def _blind_warning(self, budgets: tuple[Budget, Budget]) -> list[str]:
        """Return a warning, only once, that some calls of this chat have no known price.

        Warnings about amounts already say so.
        """
        if self._has_said_unknown or not budgets[0].unpriced:
            return []
        self._has_said_unknown = True
        return [next(budget for budget in budgets if budget.limit_usd > 0).blind_warning()]

    def _are_included(self, adapters: tuple[str, ...]) -> bool:
        """Return whether subscriptions cover every model that a turn may call, including the utility model."""
        asked = [name for name in (*adapters, self._services.settings.context.utility) if name]
        return bool(adapters) and all(map(self._services.is_included, asked))

    @property
    def _has_budget(self) -> bool:
        chat = self._services.settings.chat
        return chat.budget > 0 or chat.total_budget > 0


def priced_now(services: Services, reported: UsageReported) -> UsageReported:
    """Return a report without a price at the price that its model has now; unchanged if that is unknown, too."""
    if reported.cost_usd is not None or reported.adapter not in services.adapters.names():
        return reported
    now = services.priced(reported)
    return reported if now.included else now


def _budget(scope: Literal["chat", "total"], limit: float, warn_at: float, spent: Spent) -> Budget:
    from codecompanion.reports.spending_budgets import Budget  # not needed at startup

    return Budget(scope=scope, limit_usd=limit, warn_at=warn_at, spent_usd=spent.usd, unpriced=spent.unpriced)
