"""Counting (R-505, lesson 42): the text estimate and the size of a message."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.counting.size_classes import PAGE_TOKENS, UNKNOWN_IMAGE_TOKENS
from codecompanion.counting.tokens import MessageCounter, chars4, estimate_text
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolSpec,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=400)
PROSE = "The server keeps every message in a log, so that nothing is lost when it is restarted.\n"


@given(ANY_TEXT)
def test_any_text_counts_between_one_token_and_its_bytes(text: str) -> None:
    """This includes lone surrogates, NUL and emoji; only empty text counts 0."""
    tokens = estimate_text(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    assert tokens == 0 if not text else 1 <= tokens <= size


@given(ANY_TEXT, st.integers(2, 30))
def test_a_repeated_text_counts_about_n_times(text: str, times: int) -> None:
    """Estimates add up: n copies cost n times as much, except for tokens joined at the seams."""
    once, many = estimate_text(text), estimate_text(text * times)
    assert many <= times * (once + 6)


def test_a_longer_prose_text_never_counts_less() -> None:
    text = PROSE * 3
    counts = [estimate_text(text[:length]) for length in range(0, len(text), 10)]
    assert counts == sorted(counts)


def test_ordinary_prose_is_close_to_the_truth() -> None:
    """o200k_base gives 19 tokens for the sentence."""
    assert abs(estimate_text(PROSE * 100) - 1900) <= 95


def test_one_estimate_serves_every_policy_and_is_closer_than_the_formulas_of_the_documents() -> None:
    """R-113, R-405 as built here: neither formula is used; this estimate is closer, and corrected by usage reports."""
    text, truth = PROSE * 100, 1900
    codebuddy, cowork = math.ceil(len(text) / 3.5 * 1.1), math.ceil(len(text) / 4)
    ours = abs(estimate_text(text) - truth)
    assert 3 * ours < abs(cowork - truth) < abs(codebuddy - truth)
    assert estimate_text("") == 0


@given(ANY_TEXT)
def test_chars4_is_a_quarter_of_the_characters_rounded_up(text: str) -> None:
    assert chars4(text) == math.ceil(len(text) / 4)


def test_everything_sent_is_counted() -> None:
    """Lesson 42: 45,000 tokens of tool-call arguments were once estimated as 484."""
    count = MessageCounter().message
    base = count(Message(id="m", role="assistant"))
    text = PROSE * 50
    size = estimate_text(text)
    assert count(Message(id="m", role="assistant", content=text)) == base + size
    assert count(Message(id="m", role="assistant", tool_calls=(ToolCall("1", "edit", text),))) > base + size
    assert count(Message(id="m", role="assistant", content=(ReasoningPart(text), TextPart(text)))) == base + 2 * size
    assert count(Message(id="m", role="tool", content=text, tool_call_id="1")) > base + size


def test_content_other_than_text_is_counted_by_its_size_class() -> None:
    """R-505: base64 is never counted as text."""
    count = MessageCounter().message
    base, blob = count(Message(id="m", role="user")), "A" * 10**6

    def part(part: Part) -> int:
        return count(Message(id="m", role="user", content=(part,))) - base

    assert part(ImagePart(url="data:image/png;base64," + blob)) == UNKNOWN_IMAGE_TOKENS
    assert part(DocumentPart(size_bytes=10**6, pages=3)) == 3 * PAGE_TOKENS
    assert part(CompactionPart("p", blob, text=PROSE)) == part(TextPart(PROSE))
    assert part(CompactionPart("p", blob, text=PROSE, tokens=77)) == 77
    assert part(CallMark(0)) == 0


def test_encrypted_reasoning_counts_its_content_instead_of_the_displayed_text() -> None:
    """Recorded: 16,376 characters cost 2,496 tokens (GPT-5), and 1,060 cost none."""
    count = MessageCounter().message
    base = count(Message(id="m", role="assistant"))

    def reasoning(text: str, encrypted: str) -> int:
        return count(Message(id="m", role="assistant", content=(ReasoningPart(text, encrypted=encrypted),))) - base

    assert abs(reasoning("", "A" * 16_376) - 2496) <= 100
    assert reasoning("", "A" * 1000) == 0
    assert reasoning(PROSE, "A" * 1050) == reasoning(PROSE, "") == estimate_text(PROSE)


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
