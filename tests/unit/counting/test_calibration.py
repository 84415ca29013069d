"""From estimate to provider tokens: the learned ratio, the bounds, and when to ask a provider (R-505)."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.counting.calibration import (
    FIGURES,
    MARKS_DENSITY,
    Calibration,
    Count,
    is_plausible,
    wants_provider_count,
)
from codecompanion.counting.tokens import CONSTANT, WEIGHTS, count_marks

TOKENS = st.integers(-(10**7), 10**7)


@pytest.mark.parametrize(
    ("model", "ratio"),
    [
        ("claude-2.1", 1.22), ("claude-3-5-sonnet-20241022", 1.22), ("anthropic/claude-sonnet-4.5", 1.22),
        ("claude-sonnet-4-20250514", 1.22), ("anthropic.claude-opus-4-6-v1:0", 1.22), ("claude-opus-4-7", 1.5),
        ("claude-opus-4.10", 1.5), ("Claude-Sonnet-5", 1.5), ("claude-fable-5-20260701", 1.5), ("claude", 1.5),
        ("gpt-5.5", 1.0), ("gemini-3-pro", 1.0), ("", 1.0),
    ],
)  # fmt: skip
def test_a_model_without_reports_starts_with_its_familys_ratio(model: str, ratio: float) -> None:
    """Claude's tokenizer changed with 4.7; a date is not a version."""
    assert Calibration.for_model(model) == Calibration(ratio, marks=0.22 if ratio > 1 else 0.0)


def test_code_and_prose_have_separate_ratios() -> None:
    """Claude splits punctuation more: its ratio fits the usual density; GPT's fits every density."""
    claude, gpt = Calibration.for_model("claude-opus-4-5"), Calibration.for_model("gpt-4o")
    prose, usual, code = (claude.size(1000, marks) for marks in (100, 610, 900))
    assert prose < usual == 1220 < code
    assert {gpt.size(1000, marks) for marks in (0, 610, 5000)} == {1000}
    assert claude.size(1000, 0) >= 610
    learned = claude.learn(code, 1000, 900)
    assert abs(learned.ratio - 1.22) < 0.001
    assert claude.learn(code, 1000).ratio > 1.23


def test_the_ratio_follows_the_reports() -> None:
    calibration = Calibration(1.5)
    for _ in range(40):
        calibration = calibration.learn(1200, 1000)
    assert abs(calibration.ratio - 1.2) < 0.02
    assert calibration.weight == 40_000


def test_the_framing_of_messages_is_learned_from_short_ones() -> None:
    """A chat template that adds 6 tokens to each message: known within a token after five short questions."""
    calibration = Calibration()
    for tokens in (28, 35, 31, 26, 40):
        calibration = calibration.learn(tokens + 6, tokens, messages=1)
    assert abs(calibration.size(30, 0, messages=1) - 36) < 1
    assert abs(calibration.size(1000, 0, messages=1) / 1006 - 1) < 0.03
    assert calibration.size(30, 0) < 33


def test_long_messages_teach_the_ratio_and_hardly_the_framing() -> None:
    calibration = Calibration()
    for _ in range(10):
        calibration = calibration.learn(2400, 2000, messages=1)
    assert abs(calibration.ratio - 1.2) < 0.02
    assert abs(calibration.framing) < 2


@given(st.lists(st.tuples(TOKENS, TOKENS, st.integers(0, 50)), max_size=12))
def test_learned_figures_are_always_sound(reports: list[tuple[int, int, int]]) -> None:
    calibration = Calibration()
    for observed, estimated, messages in reports:
        calibration = calibration.learn(observed, estimated, messages=messages)
        assert calibration.is_sound


def test_a_long_report_teaches_more_than_a_short_one() -> None:
    start = Calibration(1.0)
    assert start.learn(150, 100).ratio < start.learn(1500, 1000).ratio < start.learn(15_000, 10_000).ratio < 1.5


def test_a_calibration_from_many_reports_is_not_erased_by_one() -> None:
    assert Calibration(1.2, 10**6).learn(4000, 2000).ratio < 1.3 < Calibration(1.2).learn(4000, 2000).ratio


@pytest.mark.parametrize(("observed", "estimated"), [(-5, 1000), (0, 1000), (400, 1000), (2600, 1000)])
def test_a_report_without_information_about_the_tokenizer_is_ignored(observed: int, estimated: int) -> None:
    assert Calibration(1.2, 3).learn(observed, estimated) == Calibration(1.2, 3)


def test_short_texts_calibrate_together() -> None:
    """In a small window no text is long."""
    one = Calibration(1.0).learn(44, 40)
    assert one.ratio == 1.0
    assert one.learn(44, 40) == Calibration(1.0).learn(88, 80)


@given(TOKENS, TOKENS)
def test_one_absurd_report_cannot_distort_the_ratio(observed: int, estimated: int) -> None:
    assert 0.5 <= Calibration(1.0).learn(observed, estimated).ratio <= 2.5


def test_the_extra_of_a_first_request_is_learned_and_added() -> None:
    """Anthropic adds some 350 to 500 tokens of its own when there are tools."""
    calibration = Calibration(1.2).learn_extra(400)
    assert calibration.count(1000).tokens == 1600
    assert calibration.learn_extra(500).extra == 450


def test_only_schemas_cost_less_than_their_estimate() -> None:
    """Recorded for GPT: schemas cost a third of their JSON. A calibration subtracts at most three quarters of it."""
    cheap = Calibration(1.0).learn_extra(-400, schemas=1000)
    assert cheap.extra == -400
    assert cheap.count(1500, schemas=1000).tokens == 1100
    assert cheap.count(1500, schemas=0).tokens == 1500
    assert cheap.count(120, schemas=100).tokens == 45
    assert Calibration(1.0).learn_extra(-5000, schemas=1000).extra == -750
    assert Calibration(1.0).learn_extra(-400).extra == 0


def test_one_outlier_does_not_change_a_settled_calibration() -> None:
    """Lesson 58: an outlier is clipped and weighs at most half; twenty outliers mean that the tokenizer changed."""
    settled = Calibration(1.2, 20_000)
    assert abs(settled.learn(48_000, 20_000).ratio / 1.2 - 1) < 0.11
    assert abs(settled.learn(11_000, 20_000).ratio / 1.2 - 1) < 0.11
    changed = settled
    for _ in range(20):
        changed = changed.learn(36_000, 20_000)
    assert abs(changed.ratio / 1.8 - 1) < 0.05
    extra = Calibration(1.2).learn_extra(400)
    assert extra.learn_extra(60_000).extra <= 400 + 456


@given(st.integers(0, 10**7), st.floats(0.5, 2.5), st.integers(0, 10**5), st.floats(-5000, 5000))
def test_the_bounds_contain_the_count(estimated: int, ratio: float, weight: int, extra: float) -> None:
    count = Calibration(ratio, weight, extra).count(estimated)
    assert 0 <= count.lower <= count.tokens <= count.upper
    assert not count.exact


def test_only_a_side_that_was_too_narrow_widens_at_once() -> None:
    """An outlier is forgotten after about fifty reports, not at once; a side never widens without limit."""
    start, count = Calibration(1.2), Count(tokens=1000, lower=900, upper=1100)
    missed = start.learn_doubt(count, 1250)
    assert missed.above == 2.5
    assert missed.below < 1
    for _ in range(50):
        missed = missed.learn_doubt(count, 1000)
    assert 1.3 < missed.above < 1.4
    for _ in range(30):
        missed = missed.learn_doubt(count, 10**6)
    assert missed.above == 6
    assert start.learn_doubt(Count(tokens=5, lower=5, upper=5, exact=True), 900) == start


def test_an_often_inaccurate_endpoint_keeps_its_wide_band() -> None:
    """A wide band is narrowed only by reports that would have been in the usual band."""
    wide, count = Calibration(1.2, above=4.0), Count(tokens=1000, lower=900, upper=1400)
    for _ in range(50):
        wide = wide.learn_doubt(count, 1300)
    assert wide.above > 2.6


@pytest.mark.parametrize(
    "damage",
    [
        {"ratio": 9.0},
        {"ratio": 0.0},
        {"above": 0.0},
        {"below": 99.0},
        {"weight": -1},
        {"extra": float("nan")},
        {"extra": 1e300},
        {"extra": float("-inf")},
        {"weight": 10**18},
        {"weight": 2.5},
        {"ratio": "abc"},
        {"above": b"1"},
        {"ratio": None},
        {"weight": "many"},
        {"framing": float("nan")},
        {"framing": 1e6},
        {"framed": -1.0},
    ],
    ids=str,
)
def test_figures_that_learning_cannot_produce_are_detected(damage: dict[str, Any]) -> None:
    assert Calibration(1.2, 5, 300.0).is_sound
    assert not msgspec.structs.replace(Calibration(1.2, 5, 300.0), **damage).is_sound


def test_an_underscore_counts_three_marks() -> None:
    assert (count_marks("a_b"), count_marks("a-b"), count_marks("a b")) == (3, 1, 0)


def test_the_version_of_stored_figures_belongs_to_this_estimator() -> None:
    """A refit of the estimator increments `FIGURES`: ratios learned with the old one are invalid for the new one."""
    made_of = repr((WEIGHTS, CONSTANT, MARKS_DENSITY)).encode()
    assert (FIGURES, zlib.crc32(made_of)) == (1, 3387298119)


def test_known_sizes_narrow_the_bounds() -> None:
    new, learned = Calibration(1.2).count(10_000), Calibration(1.2, 5000).count(10_000)
    assert new.lower < learned.lower < learned.upper < new.upper


@pytest.mark.parametrize(
    ("lower", "tokens", "upper", "threshold", "asked"),
    [
        (80_000, 90_000, 100_000, 95_000, True), (80_000, 90_000, 100_000, 80_000, True),
        (80_000, 90_000, 100_000, 100_001, False), (80_000, 90_000, 100_000, 79_999, False),
        (89_900, 90_000, 90_100, 90_000, False), (90_000, 90_000, 90_000, 90_000, False),
    ],
)  # fmt: skip
def test_the_provider_is_asked_if_a_threshold_is_within_over_a_percent_of_doubt(
    lower: int, tokens: int, upper: int, threshold: int, asked: bool
) -> None:
    """R-312: the estimate is used first; the provider is not asked if its answer could not change the decision."""
    count = Count(tokens=tokens, lower=lower, upper=upper)
    assert wants_provider_count(count, [1, threshold]) is asked
    assert not wants_provider_count(count, [])


@pytest.mark.parametrize(("threshold", "asked"), [(79_999, False), (100_500, True), (100_501, False)])
def test_the_provider_is_asked_when_what_comes_may_reach_a_threshold(threshold: int, asked: bool) -> None:
    """An idle chat is counted for the message that comes next."""
    count = Count(tokens=90_000, lower=80_000, upper=100_000)
    assert wants_provider_count(count, [threshold], coming=500) is asked


def test_a_history_that_was_cut_is_not_plausible() -> None:
    assert is_plausible(1200, 1000)
    assert is_plausible(0, 10)
    assert not is_plausible(-3000, 1000)
    assert not is_plausible(3310, 25)
