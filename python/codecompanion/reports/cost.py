"""Writes `/cost`: the cost of a chat, the savings by cache and context management, expensive turns (R-356, R-359).

    title · total · Tokens per request · Tokens · Cache · Context management · Requests and tools · Budgets · Turns

Every figure comes from the log; savings are estimates and marked `~`. `context_sizes` defines the baseline of the chart
and the savings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from codecompanion.formats.model_name import model_name
from codecompanion.formats.plural import counted
from codecompanion.model.history import PolicyEvent
from codecompanion.reports.call_totals import Savings, Sums, estimate_savings, read_again, sum_calls
from codecompanion.reports.context_sizes import ContextSize, context_sizes, shaped_tokens, total_sent
from codecompanion.reports.drawn.size_chart import ChartLine, is_worth_drawing, size_chart
from codecompanion.reports.markdown import (
    Page,
    duration_text,
    one_line,
    page_text,
    share_text,
    table,
    tokens_text,
    usd_text,
)
from codecompanion.reports.money import (
    all_chats,
    all_tokens,
    costs_time,
    headline,
    is_unpriced,
    known_usd,
    no_price,
    price_setting,
    price_source,
    price_text,
    unknown_prices,
)
from codecompanion.reports.record import OTHER_PURPOSES, Call, Record, Stretch, failed_exit
from codecompanion.reports.spending_budgets import Budget

FENCE, CHART = "```", "## Tokens per request"
NARROW = 60
"""Window columns below which tables use shorter words."""
EMPTY = "Nothing has been sent yet."


class CostReport(msgspec.Struct, frozen=True):
    """The report as Markdown. `spans`: coloured ranges, as (0-based line, first byte, end, ink)."""

    text: str
    spans: tuple[tuple[int, int, int, str], ...] = ()


class LocalCounts(msgspec.Struct, frozen=True):
    """Local token counts of the messages in the context: by the estimate, and exactly by a vocabulary."""

    estimated: int
    exact: int
    vocabulary: str


def cost_report(
    record: Record,
    page: Page,
    budgets: Sequence[Budget] = (),
    everywhere: Budget | None = None,
    counts: LocalCounts | None = None,
    speeds: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> CostReport:
    """Return the report; `counts` is given with `tokenizer = "exact"`.

    `budgets` have the prices of the time; `everywhere`: the spending of all chats at today's prices.
    `speeds`: the current speed of the user's own servers, in words, by adapter and model.
    """
    calls = record.calls
    branch = [f"A branch of “{one_line(record.forked_from)}”; the copied requests are counted there.", ""]
    if not record.forked_from:
        branch = []
    if not calls:
        return CostReport("\n".join(["# Cost of this chat", "", *branch, EMPTY, *_budgets(budgets)]))
    sums, sizes = sum_calls(calls), context_sizes(record)
    savings = estimate_savings(record, sizes)
    chart = size_chart(sizes, page.width, ascii=page.ascii) if is_worth_drawing(sizes) else []
    lines = [
        f"# {headline(sums)}",
        "",
        *branch,
        *_summary(record, sums, everywhere, page),
        *_saved(sums, savings, page),
        *_requests(chart, sizes, savings),
        *_tokens(sums, page),
        *_counts(counts, page),
        *_time(calls, speeds, page),
        *_cache(calls, sums, page),
        *_management(savings),
        *_calls(record, sums),
        *_budgets(budgets),
        *_turns(record, sums, page),
    ]
    text = page_text(lines)
    return CostReport(text, _spans(text, chart))


def _spans(text: str, chart: Sequence[ChartLine]) -> tuple[tuple[int, int, int, str], ...]:
    """Return the coloured ranges of the chart at its position in the report."""
    if not chart:
        return ()
    lines = text.split("\n")
    first = lines.index(FENCE, lines.index(CHART)) + 1
    return tuple(
        (line, span.first, span.end, span.ink) for line, drawn in enumerate(chart, first) for span in drawn.spans
    )


def _requests(chart: Sequence[ChartLine], sizes: Sequence[ContextSize], savings: Savings) -> list[str]:
    """Return the chart and the two sums that it shows."""
    if not chart:
        return []
    lines = ["", CHART, "", FENCE, *(line.text for line in chart), FENCE]
    if not savings.tokens:
        return lines
    sent = total_sent(sizes)
    without = tokens_text(sent + savings.tokens)
    note = f"Sent: {tokens_text(sent)} tokens; without edits, compactions and shaping: ~{without}."
    if savings.too_large:
        those = counted(savings.too_large, "request") if savings.too_large > 1 else "One request"
        them = "count as a full window each" if savings.too_large > 1 else "counts as a full window"
        note += f" {those} would not have fit the window and {them}."
    return [*lines, "", note]


def _summary(record: Record, sums: Sums, everywhere: Budget | None, page: Page) -> list[str]:
    """Return the summary lines: number of requests, sum of all chats, source of the prices."""
    turns = len(record.turns)
    with_usage = sum(any(call.reported for call in turn.calls) for turn in record.turns)
    of_turns = f", {with_usage} of {counted(turns, 'turn')}" if with_usage < turns else ""
    reported = f" Usage reported for {sums.calls - sums.silent} of {counted(sums.calls, 'request')}{of_turns}."
    elsewhere = everywhere.unpriced - sums.unpriced if everywhere else 0
    tokens = "" if is_unpriced(sums) else f", {all_tokens(sums)}"  # otherwise the title
    lines = [
        f"{counted(sums.calls, 'request')} in {counted(turns, 'turn')}{tokens}.{reported if sums.silent else ''}"
        f"{all_chats(everywhere, sums) if everywhere else ''}"
    ]
    if sums.priced:
        lines.append(price_source(record.calls, page.price_table))
    if unknown := unknown_prices(record.calls, elsewhere):
        lines.append(
            f"{unknown} Add it to your configuration, in US dollars per million tokens, and restart Neovim; it also"
            " counts for requests already sent:"
        )
    if sums.local:
        adapters = sorted({call.adapter for call in record.calls if call.is_local})
        took = f", in {duration_text(sums.local_ms)}" if sums.local_ms else ""
        those = counted(sums.local, "request")
        lines.append(f"Answered by your own servers: {those} ({', '.join(adapters)}), no charge{took}.")
    if sums.included > sums.local:
        adapters = sorted({call.adapter for call in record.calls if call.is_included and not call.is_local})
        those = counted(sums.included - sums.local, "request")
        lines.append(f"Included in a plan: {those} ({', '.join(adapters)}), no token charge, not counted in budgets.")
    return [*lines, *price_setting(record.calls)]


def _saved(sums: Sums, savings: Savings, page: Page) -> list[str]:
    """Return the savings by source, in tokens and money.

    A table, because Markdown highlighters render text between two `~` in a sentence as strikethrough.
    """
    rows = []
    if sums.uses_cache and sums.priced:
        rows.append(("the cache", "-", f"~{usd_text(sums.uncached_usd - sums.usd)}"))
    if savings.tokens or savings.edits or savings.compactions:
        money = no_price(sums) if savings.usd is None else f"~{usd_text(savings.usd)}"
        rows.append(("context management", f"~{tokens_text(savings.tokens)} not sent", money))
    return ["", *_money_table(("saved by", "tokens", "money"), rows, sums, page)] if rows else []


def _money_table(head: Sequence[str], rows: Sequence[Sequence[str]], sums: Sums, page: Page) -> list[str]:
    """Return a table of figures whose last column is money, or without that column if no price is known."""
    end = len(head) - (not sums.priced)
    return table(head[:end], [row[:end] for row in rows], page.width, "l" + "r" * (end - 1))


def _tokens(sums: Sums, page: Page) -> list[str]:
    """Return the token counts of all requests, without those that are zero."""
    is_narrow = page.width < NARROW
    prompt = "" if is_narrow else "prompt, "
    prompts = [
        (f"{prompt}not cached", sums.input_tokens, sums.prompt_tokens, " of the prompts"),
        (f"{prompt}read from cache", sums.cache_read_tokens, sums.prompt_tokens, " of the prompts"),
        (f"{prompt}written to cache", sums.cache_write_tokens, sums.prompt_tokens, " of the prompts"),
    ]
    if not sums.uses_cache:
        prompts = [("prompts", sums.input_tokens, sums.total_tokens, " of all tokens")]
    figures = (
        *prompts,
        ("output", sums.output_tokens, sums.total_tokens, " of all tokens"),
        ("reasoning", sums.reasoning_tokens, sums.output_tokens, " of the output"),
    )
    rows = [
        (what, f"{n:,}", f"{share_text(n, whole)}{'' if is_narrow else of}" if _is_telling(n, whole) else "")
        for what, n, whole, of in figures
        if n
    ]
    if sums.estimated_tokens:
        not_above = "not above" if is_narrow else "an estimate, not included above"
        rows.append((f"{'' if is_narrow else 'prompts '}without usage", f"~{sums.estimated_tokens:,}", not_above))
    end = 3 if any(share for *_, share in rows) else 2
    head = ("what", "tokens", "share")[:end]
    return ["", "## Tokens", "", *table(head, [row[:end] for row in rows], page.width, "lr")]


def _is_telling(tokens: int, whole: int) -> bool:
    """Return whether a share is not rounded to 0 % or, although there are other tokens, to 100 %."""
    return whole > 0 and (tokens == whole or 0 < round(100 * tokens / whole) < 100)


def _counts(counts: LocalCounts | None, page: Page) -> list[str]:
    """Return the difference between the estimate and the exact count of the messages in the context."""
    if counts is None or not counts.exact:
        return []
    off = f"{(counts.estimated - counts.exact) / counts.exact:+.1%}".replace("%", " %")
    rows = [
        (f"exact ({counts.vocabulary})", f"{counts.exact:,}", ""),
        ("estimate", f"~{counts.estimated:,}", off),
    ]
    note = "Messages only. Models with other vocabularies count differently; provider reports correct for that."
    title = "## Messages in the context, counted here"
    return ["", title, "", *table(("by", "tokens", "difference"), rows, page.width, "lrr"), "", note]


def _time(calls: Sequence[Call], speeds: Mapping[tuple[str, str], str], page: Page) -> list[str]:
    """Return one line per model on the user's own servers, with the time it took."""
    own, rows, said = [call for call in calls if call.is_local], [], []
    for named in dict.fromkeys((call.adapter, call.model) for call in own):
        sums = sum_calls(call for call in own if (call.adapter, call.model) == named)
        if sums.local_ms:
            figures = (sums.input_tokens + sums.cache_write_tokens, sums.output_tokens)
            name = model_name(*named)
            rows.append((name, *map(tokens_text, figures), duration_text(sums.local_ms)))
            said += [f"- {name} now {speeds[named]}"] if named in speeds else []
    said += read_again(own)
    if not rows:
        return []
    lines = table(("model", "read", "written", "time"), rows, page.width, "lrrr")
    gap = [""] if said and len(lines) > len(rows) else []
    return ["", "## Time on your own servers", "", *lines, *gap, *said]


def _cache(calls: Sequence[Call], whole: Sums, page: Page) -> list[str]:
    """Return one line per model: whether its provider reported cache use, and the savings.

    For a single model, the sums are already listed under “Tokens”.
    """
    names = dict.fromkeys((call.adapter, call.model) for call in calls)
    if len(names) < 2 or not whole.uses_cache:
        return []
    rows = []
    for adapter, model in names:
        sums = sum_calls(call for call in calls if (call.adapter, call.model) == (adapter, model))
        saved = no_price(sums)
        if sums.priced:
            saved = f"~{usd_text(sums.uncached_usd - sums.usd)}" if sums.uses_cache else "-"
        hits = share_text(sums.cache_read_tokens, sums.prompt_tokens)
        figures = (tokens_text(sums.cache_read_tokens), tokens_text(sums.cache_write_tokens), hits)
        rows.append((model_name(adapter, model), *(figures if sums.uses_cache else ("-", "-", "none reported")), saved))
    head = ("model", "read", "written", "hits", "saved")
    return ["", "## Cache", "", *_money_table(head, rows, whole, page)]


def _management(savings: Savings) -> list[str]:
    """Return the effects of edits, compactions and shaping; the savings are listed above."""
    if not savings.edits and not savings.compactions and not savings.tokens:
        return []
    lines = ["", "## Context management", ""]
    done = [
        *_some(savings.edits, "edit"),
        *_some(savings.compactions, "compaction"),
        *([f"{savings.undone} undone"] if savings.undone else []),
    ]
    lines += [f"- {', '.join(done)}"] if done else []
    if savings.shaped_tokens:
        lines.append(f"- ~{tokens_text(savings.shaped_tokens)} of the tokens were left out by shaping requests")
    if savings.broken_caches:
        lines.append(f"- changes invalidated the cache {counted(savings.broken_caches, 'time')}")
    if savings.usd is not None and savings.usd < 0:
        lines.append("- the changes have cost more than they saved so far; later requests will make up for it")
    return lines


def _some(count: int, noun: str, nouns: str = "") -> list[str]:
    """Return the count with its noun, or [] for zero."""
    return [counted(count, noun, nouns) if nouns else counted(count, noun)] if count else []


def _calls(record: Record, sums: Sums) -> list[str]:
    """Return the counts of requests and tools, without those that are zero."""
    asides = {"summaries": "summary", **{words: purpose for purpose, words in OTHER_PURPOSES.items()}}
    failed = sum(call.ended is not None and call.ended.result == "failed" for call in record.calls)
    outcomes = Counter(
        "with a failing command" if failed_exit(ran) else ran.status
        for stretch in record.stretches
        for ran in stretch.tools
    )
    lines = []
    retries = _some(sums.round_trips - sums.calls, "retry", "retries")
    if wrong := [*retries, *([f"{failed} failed"] if failed else [])]:
        lines.append(f"- {counted(sums.round_trips, 'round trip')}: {', '.join(wrong)}")
    for words, purpose in asides.items():
        if calls := [call for call in record.calls if call.purpose == purpose]:
            costs = sum_calls(calls)
            price = f", {usd_text(costs.usd)}" if costs.priced else ""
            lines.append(
                f"- {counted(len(calls), 'request')} for {words}: {tokens_text(costs.total_tokens)} tokens{price}"
            )
    updates = sum(change.kind == "compacted" for stretch in record.stretches for change in stretch.changes)
    pruned = sum(_has_pruned(event) for stretch in record.stretches for event in stretch.named)
    if passes := [*_some(updates, "summary update"), *_some(pruned, "pruning pass", "pruning passes")]:
        lines.append(f"- {', '.join(passes)}")
    packet = sum(shaped_tokens(call, "packet") for call in record.calls)
    left_out = sum(shaped_tokens(call, "packet_omitted") for call in record.calls)
    if packet or left_out:
        lines.append(f"- context packet: {tokens_text(packet)} tokens sent, {tokens_text(left_out)} left out")
    if outcomes:
        said = ", ".join(f"{count} {status}" for status, count in sorted(outcomes.items()))
        lines.append(f"- {counted(sum(outcomes.values()), 'tool call')}: {said}")
    return ["", "## Requests and tools", "", *lines] if lines else []


def _has_pruned(event: PolicyEvent) -> bool:
    """Return whether the event reports a request that did not replay every turn unchanged."""
    figures = event.fields.get("compacted_prior_turns", 0), event.fields.get("omitted_prior_turns", 0)
    return event.name == "context_pruned" and any(figures)


def _budgets(budgets: Sequence[Budget]) -> list[str]:
    """Return a line per budget."""
    rows = [f"- {budget.line()}" for budget in budgets if budget.limit_usd > 0]
    return ["", "## Budgets", "", *rows] if rows else []


def _turns(record: Record, whole: Sums, page: Page) -> list[str]:
    """Return the turns: most expensive first, then those without a price, by time and then tokens."""
    stretches = [stretch for stretch in record.stretches if stretch.calls]
    summed = [(stretch, sum_calls(stretch.calls)) for stretch in stretches]
    summed.sort(
        key=lambda pair: (
            -known_usd(pair[1]),
            -pair[1].local_ms,
            -pair[1].total_tokens - pair[1].estimated_tokens,
            pair[0].number,
        )
    )
    cost, first_is = ("cost", "most expensive") if whole.priced else ("time", "longest")
    has_cost = whole.priced > 0 or costs_time(whole)
    is_one = len(summed) == 1  # its cost is the title, its hits are above
    hidden = {*((cost,) if is_one or not has_cost else ()), *(() if whole.uses_cache and not is_one else ("hits",))}
    rows = [
        {
            "turn": str(stretch.number) if stretch.number else "-",
            cost: price_text(sums),
            "prompt": _prompt(sums),
            "hits": share_text(sums.cache_read_tokens, sums.prompt_tokens) if sums.uses_cache else "-",
            "output": tokens_text(sums.output_tokens),
            "requests": str(sums.calls),
            "question": _name(stretch),
        }
        for stretch, sums in summed
    ]
    head = [name for name in rows[0] if name not in hidden]
    lines = ["", "## Turns" if is_one else f"## Turns, {first_is if has_cost else 'largest'} first", ""]
    first, sums = summed[0]
    if sums.priced and first.number and not is_one:
        lines += [f"Turn {first.number} was the most expensive; `/trace {first.number}` shows it.", ""]
    cells = [[row[name] for name in head] for row in rows]
    return [*lines, *table(head, cells, page.width, "r" * (len(head) - 1))]


def _prompt(sums: Sums) -> str:
    mark = "~" if sums.estimated_tokens else ""
    return f"{mark}{tokens_text(sums.prompt_tokens + sums.estimated_tokens)}"


def _name(stretch: Stretch) -> str:
    if stretch.number:
        return one_line(stretch.question)
    return f"(after turn {stretch.follows})" if stretch.follows else "(before the first turn)"
