"""Sums and savings: nothing is invented, nothing counted twice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.history import ChangeUndone, LogEvent, UsageReported
from codecompanion.model.messages import Usage
from codecompanion.reports.call_totals import estimate_savings, sum_calls

from .logs import LogWriter, price, read_log, worked_chat

SIZES = st.integers(0, 200_000)
USAGES = st.builds(Usage, SIZES, SIZES, SIZES, SIZES)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), USAGES, st.booleans()),
        st.tuples(st.just("summary"), USAGES, st.booleans()),
        st.tuples(st.just("failed"), st.just(Usage()), st.just(True)),
        st.tuples(st.just("edited"), USAGES, st.just(True)),
        st.tuples(st.just("turn"), st.just(Usage()), st.just(True)),
    ),
    max_size=30,
)


def played(steps: list[tuple[str, Usage, bool]]) -> LogWriter:
    log = LogWriter()
    log.begin("question")
    for kind, usage, priced in steps:
        match kind:
            case "call":
                log.call(usage, priced=priced)
            case "summary":
                log.summary_call(usage, priced)
            case "failed":
                log.call(result="failed", error="no network")
            case "edited":
                log.change("edited", usage.prompt_tokens, usage.prompt_tokens // 2)
            case _:
                log.end()
                log.begin("another")
    return log


@given(STEPS)
def test_the_totals_equal_the_usage_reports(steps: list[tuple[str, Usage, bool]]) -> None:
    """R-356, R-360: every token and cent of the log is counted exactly once, and belongs to one stretch."""
    log = played(steps)
    reports = [event.payload for event in log.events if isinstance(event.payload, UsageReported)]
    passes = [one for report in reports for one in (report.usage, *report.other_passes)]
    record = read_log(log.events)
    sums = sum_calls(record.calls)
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        assert getattr(sums, name) == sum(getattr(usage, name) for usage in passes)
    assert sums.usd == pytest.approx(sum(report.cost_usd or 0 for report in reports))
    assert sums.unpriced == sum(report.cost_usd is None for report in reports)
    assert sums.calls == sum(kind in ("call", "summary", "failed") for kind, _, _ in steps)
    assert len([call for call in record.order if not hasattr(call, "change_id")]) == sums.calls


@given(STEPS)
def test_reading_a_log_in_two_parts_only_adds(steps: list[tuple[str, Usage, bool]]) -> None:
    """A report never shrinks as the chat grows."""
    events = played(steps).events
    half = sum_calls(read_log(events[: len(events) // 2]).calls)
    whole = sum_calls(read_log(events).calls)
    assert half.total_tokens <= whole.total_tokens
    assert half.usd <= whole.usd + 1e-9


def test_the_cache_saves_the_difference_to_plain_input() -> None:
    """R-356: the saving is the cost of the prompts without a cache, minus their actual cost."""
    log = LogWriter()
    log.begin("q")
    cached = Usage(input_tokens=1_000, cache_read_tokens=9_000, output_tokens=100)
    log.call(cached)
    sums = sum_calls(read_log(log.events).calls)
    assert sums.usd == pytest.approx(price(cached))
    assert sums.uncached_usd == pytest.approx(price(Usage(input_tokens=10_000, output_tokens=100)))
    assert sums.hit_ratio == 0.9


def long_chat(*, cached: bool) -> LogWriter:
    """Return a chat with an edit that frees 80,000 tokens before four more calls."""
    log = LogWriter()
    log.begin("q")

    def call(old: int, new: int) -> None:
        log.call(Usage(new, cache_read_tokens=old) if cached else Usage(old + new))

    call(0, 100_000)
    log.change("edited", 100_000, 20_000)
    call(0, 21_000)
    for _ in range(3):
        call(20_000, 2_000)
    return log


def test_unsent_tokens_are_counted_in_every_later_request() -> None:
    savings = estimate_savings(read_log(long_chat(cached=False).events))
    assert savings.tokens == 4 * 80_000
    assert savings.usd == pytest.approx(4 * 80_000 * 3 / 1e6)


def test_breaking_a_cache_is_part_of_the_cost() -> None:
    """Lesson 22: with a warm cache the first requests after an edit are more expensive, not cheaper."""
    savings = estimate_savings(read_log(long_chat(cached=True).events))
    assert savings.usd is not None
    assert savings.usd < estimate_savings(read_log(long_chat(cached=False).events)).usd  # type: ignore[operator]
    first = LogWriter()
    first.begin("q")
    first.call(Usage(10_000, cache_read_tokens=90_000))
    first.change("edited", 100_000, 60_000)
    first.call(Usage(61_000, cache_read_tokens=0))
    only_first = estimate_savings(read_log(first.events))
    assert only_first.usd is not None
    assert only_first.usd < 0
    assert only_first.broken_caches == 1


def test_tokens_removed_by_a_compaction_are_added_to_those_of_edits() -> None:
    """Without management the second request would have 90,000 tokens: each was removed once, by one of the two."""
    log = LogWriter()
    log.begin("q")
    log.change("edited", 90_000, 60_000)
    log.call(Usage(60_000))
    log.change("compacted", 60_000, 10_000)
    log.call(Usage(10_000))
    assert estimate_savings(read_log(log.events)).tokens == 30_000 + 80_000


def test_tokens_over_the_window_are_not_savings() -> None:
    """Lesson 60: a request that would not fit the window without management counts as large as the window."""
    log = LogWriter()
    log.begin("q")
    log.change("compacted", 90_000, 10_000)
    log.call(Usage(10_000), limits={"window": 100_000})
    log.call(Usage(30_000))
    savings = estimate_savings(read_log(log.events))
    assert (savings.tokens, savings.too_large) == (80_000 + 70_000, 1)
    assert savings.usd == pytest.approx(150_000 * 3 / 1e6)


@pytest.mark.parametrize(("redone", "saved", "undone"), [(False, 0, 1), (True, 30_000, 0)])
def test_an_undone_change_saves_nothing(redone: bool, saved: int, undone: int) -> None:
    log = LogWriter()
    log.begin("q")
    change = log.change("edited", 90_000, 60_000)
    log.add(ChangeUndone(change_id=change))
    if redone:
        log.add(ChangeUndone(change_id=change, redone=True))
    log.call(Usage(60_000))
    savings = estimate_savings(read_log(log.events))
    assert (savings.tokens, savings.undone) == (saved, undone)


def test_shaping_saves_tokens_only_in_its_own_request() -> None:
    """R-338, R-354, R-356: fragments, schemas, results and an omitted packet count.

    A packet that was sent saves nothing.
    """
    log = LogWriter()
    log.begin("q")
    log.call(Usage(10_000), shaping={"results": 500, "tools": 100, "packet_omitted": 40, "packet": 30})
    log.call(Usage(10_000))
    savings = estimate_savings(read_log(log.events))
    assert (savings.tokens, savings.shaped_tokens) == (640, 640)
    assert savings.usd == pytest.approx(640 * 3 / 1e6)


def test_calls_without_usage_count_by_estimate() -> None:
    """R-356: a local server without usage reports still saves tokens; failed calls do not count."""
    log = LogWriter()
    log.begin("q")
    log.change("edited", 90_000, 60_000)
    for result in ("stop", "failed", "stopped", "tool_calls"):
        log.call(result=result)
    sums, savings = sum_calls(read_log(log.events).calls), estimate_savings(read_log(log.events))
    assert (sums.silent, sums.estimated_tokens, sums.total_tokens) == (4, 2_000, 0)
    assert (savings.tokens, savings.usd) == (2 * 30_000, None)


def test_summaries_are_deducted_from_the_savings() -> None:
    record = read_log(worked_chat().events)
    savings = estimate_savings(record)
    assert savings.summary_usd == pytest.approx(price(Usage(30_000, 1_500)))


def test_a_log_of_an_older_version_yields_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-360: calls and totals do not change without request ids and request ends."""
    import msgspec

    from codecompanion.model.history import RequestEnded, RequestSent

    old: list[LogEvent] = []
    for event in worked_chat().events:
        payload: Any = event.payload
        if isinstance(payload, RequestEnded):
            continue
        if isinstance(payload, RequestSent | UsageReported):
            payload = msgspec.structs.replace(payload, request_id="")
        old.append(LogEvent(event.seq, event.ts, payload))
    before, now = read_log(old), read_log(worked_chat().events)
    assert sum_calls(before.calls).total_tokens == sum_calls(now.calls).total_tokens
    assert [len(turn.calls) for turn in before.turns] == [len(turn.calls) for turn in now.turns]
    assert [call.purpose for call in before.calls] == [call.purpose for call in now.calls]
