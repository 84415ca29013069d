"""Counting (R-505, lesson 42): the text estimate, what a message adds up to, and the meter on top of both."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall, ToolSpec
from codecompanion.tokens import (
    UNKNOWN_IMAGE_TOKENS,
    Anchor,
    Calibration,
    MessageCounter,
    Meter,
    chars4,
    estimate_text,
    image_tokens,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=400)
PROSE = "The server keeps every message in a log, so that nothing is lost when it is restarted.\n"


@given(ANY_TEXT)
def test_any_text_counts_between_one_token_and_its_bytes(text: str) -> None:
    """Lone surrogates, NUL and emoji included; only the empty text is 0."""
    tokens = estimate_text(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    assert tokens == 0 if not text else 1 <= tokens <= size


@given(ANY_TEXT, st.integers(2, 30))
def test_a_repeated_text_counts_about_as_often(text: str, times: int) -> None:
    """Estimates add up: n copies cost n times as much, except for what joins at the seams."""
    once, many = estimate_text(text), estimate_text(text * times)
    assert many <= times * (once + 6)


def test_a_longer_prose_text_never_counts_less() -> None:
    text = PROSE * 3
    counts = [estimate_text(text[:length]) for length in range(0, len(text), 10)]
    assert counts == sorted(counts)


def test_ordinary_prose_is_close_to_the_truth() -> None:
    """o200k_base gives 19 tokens for the sentence."""
    assert abs(estimate_text(PROSE * 100) - 1900) <= 95


@given(ANY_TEXT)
def test_chars4_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    assert chars4(text) == math.ceil(len(text) / 4)


def test_everything_that_is_sent_is_counted() -> None:
    """Lesson 42: 45,000 tokens of tool-call arguments were once estimated as 484."""
    count = MessageCounter().message
    base = count(Message(id="m", role="assistant"))
    text = PROSE * 50
    size = estimate_text(text)
    assert count(Message(id="m", role="assistant", content=text)) == base + size
    assert count(Message(id="m", role="assistant", tool_calls=(ToolCall("1", "edit", text),))) > base + size
    assert count(Message(id="m", role="assistant", content=(ReasoningPart(text), TextPart(text)))) == base + 2 * size
    assert count(Message(id="m", role="tool", content=text, tool_call_id="1")) > base + size


def test_images_count_by_size_not_by_their_data() -> None:
    small, large = ImagePart(width=256, height=256), ImagePart(width=4000, height=3000)
    assert image_tokens(small) < image_tokens(large) == 1600
    assert image_tokens(ImagePart(url="data:image/png;base64," + "A" * 10**6)) == UNKNOWN_IMAGE_TOKENS
    assert image_tokens(ImagePart(detail="low", width=4000, height=3000)) == 85


def test_tool_schemas_are_counted() -> None:
    spec = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
    assert MessageCounter().tools([spec, spec]) == 2 * MessageCounter().tools([spec]) > 20


def test_chars4_counts_text_and_calls_and_nothing_else() -> None:
    counter = MessageCounter.chars4()
    call = ToolCall("id", "grep", '{"q":1}')
    message = Message(id="m", role="assistant", content=(TextPart("12345"), ImagePart()), tool_calls=(call, call))
    assert counter.message(message) == 2 + 3 + 3
    assert counter.message(Message(id="m", role="user")) == 0
    assert counter.tools([ToolSpec("a", "b", {})]) == 0


def test_a_cached_count_is_used() -> None:
    messages = (Message(id="a", role="user", content="word " * 100, tokens=7), Message(id="b", role="user"))
    counter = MessageCounter()
    assert counter.count_messages(messages) == 7 + counter.message(messages[1])


def test_before_the_first_report_the_learned_ratio_scales_the_estimate() -> None:
    count = Meter(Calibration(1.5, 3)).count(1000)
    assert count.tokens == 1500
    assert count.upper > 1500
    assert not count.exact


def test_a_report_is_taken_as_it_is_until_something_is_added() -> None:
    meter = Meter().report(5000, 4000)
    assert meter.anchor == Anchor(5000, 4000)
    assert meter.count(4000).tokens == 5000
    assert meter.count(4000).exact
    assert meter.count(4000).upper == 5000
    later = meter.count(4400)
    assert later.tokens == 5000 + round(400 * meter.calibration.ratio)
    assert not later.exact
    assert later.upper > later.tokens


def test_what_an_edit_removed_is_subtracted() -> None:
    meter = Meter(Calibration(1.2, 9), Anchor(50_000, 40_000))
    assert meter.count(30_000).tokens == 38_000
    assert not meter.count(30_000).exact


def test_a_missing_usage_report_changes_nothing() -> None:
    meter = Meter(Calibration(1.2, 2), Anchor(100, 90))
    assert meter.report(0, 500) == meter


def test_claude_starts_higher_and_the_ratio_follows_the_reports() -> None:
    calibration = Calibration.for_model("anthropic/claude-opus-9")
    assert calibration.ratio == 1.35
    assert Calibration.for_model("gpt-9").ratio == 1.0
    for _ in range(30):
        calibration = calibration.learn(1200, 1000)
    assert abs(calibration.ratio - 1.2) < 0.001
    assert calibration.samples == 30


@given(st.integers(-(10**7), 10**7), st.integers(-(10**7), 10**7))
def test_one_absurd_report_cannot_run_away_with_the_ratio(observed: int, estimated: int) -> None:
    """Estimator.md: what is learned is clipped to 0.5–2.5."""
    assert 0.5 <= Calibration(1.0).learn(observed, estimated).ratio <= 2.5


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7), st.floats(0.5, 2.5))
def test_the_upper_bound_is_never_below_the_count(reported: int, estimated: int, now: int, ratio: float) -> None:
    for anchor in (None, Anchor(reported, estimated)):
        count = Meter(Calibration(ratio, 1), anchor).count(now)
        assert 0 <= count.tokens <= count.upper
