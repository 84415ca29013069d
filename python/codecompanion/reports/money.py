"""Formats the cost of calls: an amount, "included in a plan", or the token count if no price is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codecompanion.formats.plural import counted
from codecompanion.reports.call_totals import Sums, sum_calls
from codecompanion.reports.markdown import INCLUDED, LOCAL, PRICE_UNKNOWN, duration_text, tokens_text, usd_text
from codecompanion.reports.record import Call
from codecompanion.reports.spending_budgets import Budget

BLOCK = """
```lua
opts = {{
  adapters = {{
    http = {{
{entries}
    }},
  }},
}},
```"""
EXAMPLE = "opts = { price = { input = 0.5, output = 1.5 } }"
UNKNOWN = "unknown"
"""Text for an unknown price in a column of costs."""


def headline(sums: Sums) -> str:
    """Return the title of the report: the cost or its known part, or the token count if no price is known."""
    return f"Cost of this chat: {all_tokens(sums) if is_unpriced(sums) else _cost(sums)}"


def all_tokens(sums: Sums) -> str:
    """Return the number of all tokens, including the estimated ones."""
    tokens, estimated = sums.total_tokens, sums.estimated_tokens
    return f"{f'~{tokens_text(tokens + estimated)}' if estimated else f'{tokens:,}'} tokens"


def is_unpriced(sums: Sums) -> bool:
    """Return whether the cost is unknown: no call has a price, and no plan includes them all."""
    return not sums.priced and not costs_time(sums) and no_price(sums) != INCLUDED


def _cost(sums: Sums) -> str:
    if costs_time(sums):
        return f"{duration_text(sums.local_ms)}, no charge" if sums.local_ms else "local, no charge"
    if not sums.priced:
        return "included in the plan"
    return f"{usd_text(sums.usd)}{' and more' if sums.unpriced else ''}"


def unknown_prices(calls: Sequence[Call], elsewhere: int = 0) -> str:
    """Return how many calls have no known price, of which models; "" if all have one.

    `elsewhere`: the number of such calls outside this chat.
    """
    unpriced = _unpriced(calls)
    if not unpriced:
        return ""
    count = "all requests" if len(unpriced) == len(calls) > 1 else counted(sum_calls(unpriced).unpriced, "request")
    models = ", ".join(sorted({call.model or call.adapter for call in unpriced}))
    others = f" and for {elsewhere:,} elsewhere" if elsewhere > 0 else ""
    return f"{PRICE_UNKNOWN.capitalize()} for {count} ({models}){others}."


def price_source(calls: Iterable[Call], table: str) -> str:
    """Return whose prices these calls have, and as of when; `table`: the name of the list of prices, if known."""
    source = f"your `opts.price`, otherwise the list prices{f' of {table}' if table else ''}"
    priced = [call for call in calls if call.cost_usd is not None and not call.is_included]
    later = sum(call.priced_later > 0 for call in priced)
    if later == len(priced):
        return f"Prices of today, which were unknown when the requests were sent: {source}."
    today = f"; today's for {counted(later, 'request')} whose price was unknown then" if later else ""
    return f"Prices when each request was sent{today}: {source}."


def price_setting(calls: Iterable[Call]) -> list[str]:
    """Return the configuration that sets the unknown prices of the calls, as a block of Lua; [] if there are none."""
    names = sorted({call.adapter for call in _unpriced(calls)})
    keys = [name if name.isidentifier() else f'["{name}"]' for name in names]
    entries = "\n".join(f"      {key} = {{\n        {EXAMPLE}, -- add this line\n      }}," for key in keys)
    return BLOCK.format(entries=entries).split("\n") if names else []


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
