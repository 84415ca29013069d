"""Formats the cost of calls: an amount, "included in a plan", or the token count if no price is known."""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.formats.plural import counted
from codecompanion.reports.call_totals import Sums, sum_calls
from codecompanion.reports.markdown import INCLUDED, LOCAL, PRICE_UNKNOWN, duration_text, tokens_text, usd_text
from codecompanion.reports.record import Call
from codecompanion.reports.spending_budgets import Budget

EXAMPLE = "opts = { price = { input = 0.5, output = 1.5 } }"
UNKNOWN = "unknown"
"""Text for an unknown price in a column of costs."""


def headline(sums: Sums) -> str:
    """Return the title of the report: the cost or its known part, or the token count if no price is known."""
    if is_unpriced(sums):
        tokens, estimated = sums.total_tokens, sums.estimated_tokens
        return f"Cost of this chat: {f'~{tokens_text(tokens + estimated)}' if estimated else f'{tokens:,}'} tokens"
    return f"Cost of this chat: {_cost(sums)}"


def is_unpriced(sums: Sums) -> bool:
    """Return whether the cost is unknown: no call has a price, and no plan includes them all."""
    return not sums.priced and not costs_time(sums) and no_price(sums) != INCLUDED


def _cost(sums: Sums) -> str:
    if costs_time(sums):
        return f"{duration_text(sums.local_ms)}, no charge" if sums.local_ms else "local, no charge"
    if not sums.priced:
        return "included in the plan"
    return f"{usd_text(sums.usd)}{' and more' if sums.unpriced else ''}"


def unknown_prices(calls: Iterable[Call], elsewhere: int = 0) -> str:
    """Return how many calls have no known price, of which models; "" if all have one.

    `elsewhere`: the number of such calls in other chats.
    """
    unpriced = _unpriced(calls)
    if not unpriced:
        return ""
    models = ", ".join(sorted({call.model or call.adapter for call in unpriced}))
    others = f" and for {elsewhere:,} in other chats" if elsewhere > 0 else ""
    return f"{PRICE_UNKNOWN.capitalize()} for {counted(sum_calls(unpriced).unpriced, 'request')} ({models}){others}."


def price_setting(calls: Iterable[Call]) -> list[str]:
    """Return the configuration that sets the unknown prices of the calls, as a block of Lua; [] if there are none."""
    names = sorted({call.adapter for call in _unpriced(calls)})
    keys = [name if name.isidentifier() else f'["{name}"]' for name in names]
    price = (f"    {key} = {{\n      {EXAMPLE}, -- add this line\n    }}," for key in keys)
    return ["", "```lua", "adapters = {", "  http = {", *price, "  },", "},", "```"] if names else []


def all_chats(total: Budget, sums: Sums) -> str:
    """Return the sum of all chats, if this chat is only a part of it and the sum is not listed under “Budgets”."""
    if total.limit_usd or (usd_text(total.spent_usd) == usd_text(sums.usd) and total.unpriced <= sums.unpriced):
        return ""
    unknown = f"{PRICE_UNKNOWN} for {counted(total.unpriced, 'request')}"
    if not total.spent_usd:
        return "" if sums.unpriced else f" All chats: {unknown}."
    more = "" if not total.unpriced else " and more" if sums.unpriced else f", {unknown}"
    return f" All chats: {usd_text(total.spent_usd)}{more}."


def _unpriced(calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if call.reported and call.cost_usd is None]


def no_price(sums: Sums) -> str:
    """Return the text shown instead of an amount if no payment is known."""
    return free(sums) if sums.included and not sums.unpriced else PRICE_UNKNOWN


def costs_time(sums: Sums) -> bool:
    """Return whether the user's own servers answered all calls, so that they cost time instead of money."""
    return sums.local > 0 and sums.local == sums.included and not sums.unpriced and not sums.priced


def free(sums: Sums) -> str:
    """Return why calls cost nothing: a plan includes them, or the user's own servers answered them all."""
    return LOCAL if sums.local == sums.included else INCLUDED


def known_usd(sums: Sums) -> float:
    """Return the cost of the calls as a sort key, or -1 unless it is known for all of them."""
    return sums.usd if sums.priced and not sums.unpriced else -1.0


def price_text(sums: Sums) -> str:
    """Return the table cell with the cost of calls: money, or the time of the user's own servers."""
    if sums.local_ms and costs_time(sums):
        return duration_text(sums.local_ms)
    if not sums.priced:
        return UNKNOWN if sums.unpriced else free(sums) if sums.included else "-"
    return f"{usd_text(sums.usd)}{'+' if sums.unpriced else ''}"
