"""Sums up calls (tokens, money, cache), and estimates the savings from context management (R-356, R-359).

Money is tokens × the list prices on the day of each call. A call without a known price is counted as such, never as $0;
a call that a subscription includes is counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.model.history import ViewChanged
from codecompanion.model.messages import Usage
from codecompanion.reports.context_sizes import ContextSize, context_sizes
from codecompanion.reports.record import Call, Record

PER_MILLION = 1_000_000
_LOSSES = {
    "": "the server no longer had them in its cache",
    "restart": "the server restarted or reloaded the model",
    "other_request": "another chat or request used the slot",
}
WARM_S = 300.0
"""Assumed lifetime of a provider's prompt cache after a request, in seconds."""


class Sums(msgspec.Struct):
    """Sums over calls. `unpriced`: calls with usage but no price; `silent`: calls that reported no usage at all.

    `included`: calls that cost no money and are neither of these: a subscription paid, or (`local`) the user's own
    server answered. `local_ms`: how long local calls took, as far as their ends were logged. `estimated_tokens`: our
    own count of the silent calls' prompts, which is in no other sum.
    """

    calls: int = 0
    round_trips: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    usd: float = 0.0
    uncached_usd: float = 0.0
    priced: int = 0
    unpriced: int = 0
    included: int = 0
    local: int = 0
    local_ms: int = 0
    silent: int = 0
    estimated_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """Return the total number of prompt tokens."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def total_tokens(self) -> int:
        """Return the total number of billed tokens."""
        return self.prompt_tokens + self.output_tokens

    @property
    def hit_ratio(self) -> float:
        """Return the share of the prompts that came from a cache, 0..1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def uses_cache(self) -> bool:
        """Return whether the provider reported any cache activity."""
        return self.cache_read_tokens > 0 or self.cache_write_tokens > 0


def sum_calls(calls: Iterable[Call]) -> Sums:
    """Return the sums over these calls."""
    sums = Sums()
    for call in calls:
        sums.calls += 1
        sums.round_trips += call.attempts
        if not call.reported:
            sums.silent += 1
            sums.estimated_tokens += call.estimated_tokens
            continue
        for usage in call.passes:
            _add(sums, usage)
        if call.is_local and call.ended is not None:
            sums.local_ms += call.ended.duration_ms
        for report in call.reported:
            if report.included:
                sums.included += 1
                sums.local += report.local
            elif report.cost_usd is None:
                sums.unpriced += 1
            else:
                sums.priced += 1
                sums.usd += report.cost_usd
                sums.uncached_usd += _uncached(call) if report.prices else report.cost_usd
    return sums


def read_again(calls: Iterable[Call]) -> list[str]:
    """Return one line per cause about tokens that the user's own servers had lost from their cache and read again."""
    tokens = Counter[str]()
    for again in (report.read_again for call in calls for report in call.reported if report.read_again):
        tokens[again.why] += again.tokens
    return [f"- read again: {count:,} tokens ({_LOSSES.get(why, _LOSSES[''])})" for why, count in tokens.items()]


def _add(sums: Sums, usage: Usage) -> None:
    sums.input_tokens += usage.input_tokens
    sums.output_tokens += usage.output_tokens
    sums.reasoning_tokens += usage.reasoning_tokens
    sums.cache_read_tokens += usage.cache_read_tokens
    sums.cache_write_tokens += usage.cache_write_tokens


def _uncached(call: Call) -> float:
    """Return the cost of the call as if all its prompts were plain input."""
    prices = call.prices
    if prices is None:
        return call.cost_usd or 0.0
    tokens = sum(usage.prompt_tokens * prices.input + usage.output_tokens * prices.output for usage in call.passes)
    return tokens / PER_MILLION


class Savings(msgspec.Struct):
    """The savings of edits and compactions, all estimates: tokens not sent, and money after all costs.

    `too_large`: requests that would not have fit the window without management; they count as the window's size. `usd`:
    the cost that the requests would have had with everything still in them, minus their actual cost and the cost of
    summaries; it includes caches broken by changes, so it may be negative. It is None without prices.
    """

    edits: int = 0
    compactions: int = 0
    undone: int = 0
    tokens: int = 0
    shaped_tokens: int = 0
    usd: float | None = None
    summary_usd: float = 0.0
    broken_caches: int = 0
    too_large: int = 0


def estimate_savings(record: Record, sizes: Sequence[ContextSize] | None = None) -> Savings:
    """Return the estimated savings of context management in the whole chat; `sizes` are its requests, if known.

    Tokens: the missing content of each request (`context_sizes`), at most up to the window. An answered call without
    usage counts for tokens, but not for money. The baseline for money is a request whose cache, if the provider was
    seen to have one, still contains the previous request.
    """
    savings = Savings()
    for change in (item for item in record.order if isinstance(item, ViewChanged)):
        if change.change_id in record.undone:
            savings.undone += change.kind in ("edited", "compacted")
            continue
        savings.edits += change.kind == "edited"
        savings.compactions += change.kind == "compacted"
    for call in (call for call in record.calls if call.purpose == "summary"):
        savings.summary_usd += call.cost_usd or 0.0
    _save(savings, context_sizes(record) if sizes is None else sizes)
    if savings.usd is not None:
        savings.usd -= savings.summary_usd
    return savings


def _save(savings: Savings, sizes: Sequence[ContextSize]) -> None:
    """Add the savings of each request."""
    last: Call | None = None
    changed = False
    for size in sizes:
        changed = changed or bool(size.marks)
        savings.shaped_tokens += min(size.shaped, size.saved)
        savings.tokens += size.saved
        savings.too_large += size.is_too_large
        call = size.call
        if not call.usage.prompt_tokens:
            continue
        money = _saved_usd(call, last, size.saved)
        if money is not None and size.saved:
            savings.usd = (savings.usd or 0.0) + money
        if changed and last is not None and call.usage.cache_read_tokens < last.usage.cache_read_tokens:
            savings.broken_caches += 1
        last, changed = call, False


def _saved_usd(call: Call, last: Call | None, missing: int) -> float | None:
    """Return the additional cost of the request with `missing` tokens still in it; None without prices."""
    prices, usage = call.prices, call.usage
    if prices is None:
        return None
    cached = last is not None and (usage.cache_read_tokens or last.usage.cache_read_tokens or usage.cache_write_tokens)
    whole = usage.prompt_tokens + missing
    warm = 0
    if last is not None and cached and last.model == call.model and call.ts - last.ts <= WARM_S:
        warm = min(whole, last.usage.prompt_tokens + missing)
    fresh_price = prices.cache_write if usage.cache_write_tokens and prices.cache_write else prices.input
    would = warm * prices.cache_read + (whole - warm) * fresh_price
    did = (
        usage.input_tokens * prices.input
        + usage.cache_read_tokens * prices.cache_read
        + usage.cache_write_tokens * prices.cache_write
    )
    return (would - did) / PER_MILLION
