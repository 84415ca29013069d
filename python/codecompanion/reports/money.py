"""Formats the cost of calls: an amount, "included in a plan", or the token count if no price is known."""

from __future__ import annotations

from collections.abc import Iterable

from codecompanion.formats.plural import counted
from codecompanion.reports.call_totals import Sums, sum_calls
from codecompanion.reports.markdown import INCLUDED, LOCAL, PRICE_UNKNOWN, duration_text, tokens_text, usd_text
from codecompanion.reports.record import Call

EXAMPLE = "{ input = 0.5, output = 1.5 }"
UNKNOWN = "unknown"
"""Text for an unknown price in a column of costs."""


def headline(sums: Sums) -> str:
    """Return the title of the report: the cost or its known part, or the token count if no price is known."""
    if is_unpriced(sums):
        tokens, estimated = sums.total_tokens, sums.estimated_tokens
        return f"Usage of this chat: {f'~{tokens_text(tokens + estimated)}' if estimated else f'{tokens:,}'} tokens"
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


def unknown_prices(calls: Iterable[Call]) -> list[str]:
    """Return a sentence on the calls without a known price, and the options that set it; [] if there are none."""
    unpriced = [call for call in calls if call.reported and call.cost_usd is None]
    if not unpriced:
        return []
    count = sum_calls(unpriced).unpriced
    models = ", ".join(sorted({call.model or call.adapter for call in unpriced}))
    names = sorted({call.adapter for call in unpriced})
    keys = [f".{name}" if name.isidentifier() else f'["{name}"]' for name in names]
    return [
        f"{PRICE_UNKNOWN.capitalize()} for {counted(count, 'request')} ({models}). To set it for new requests, in US"
        " dollars per million tokens, put in setup():",
        *(f"`adapters.http{key}.opts.price = {EXAMPLE}`" for key in keys),
    ]


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
