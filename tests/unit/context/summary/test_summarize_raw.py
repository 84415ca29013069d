"""S12 `summarize_raw`: what stands in the summary's place when nobody wrote one (R-434)."""

from __future__ import annotations

from codecompanion.context.strategy_parameters import FormatTranscript, SummarizeRaw
from codecompanion.context.summary.summarize_raw import LABEL, summarize_raw
from codecompanion.context.transcript.format_transcript import format_transcript
from codecompanion.context.work import Skipped, Work
from tests.unit.context.builders import assistant, chars4, chat, count, env, user


def raw(messages, window, **params):
    environment = env(messages, window)
    work = Work(before=messages, messages=(), removed=messages)
    work = format_transcript(work, FormatTranscript(style="lines", previous_summary="lead"), environment)
    return summarize_raw(work, SummarizeRaw(**params), environment)


def test_a_short_transcript_stands_as_it_is():
    """R-434: labelled, nothing lost."""
    work = raw(chat(user("q"), assistant("a")), 128_000, share_of_removed=100.0)
    assert work.summary == LABEL + "--- Turn 1 ---\n[user] q\n--- Turn 2 ---\n[assistant] a"
    assert "raw, truncated" in LABEL


def test_it_has_the_size_of_a_summary():
    """R-427, R-434: at 16K at most 640 tokens, and the user's words go last."""
    messages = chat(*[m for i in range(60) for m in (user(f"wish {i}"), assistant("x" * 400))])
    work = raw(messages, 16_000)
    assert chars4(work.summary) <= 640
    assert work.details.summary_budget_tokens == 640
    assert "wish 0" in work.summary
    assert "wish 59" in work.summary


def test_the_previous_summary_is_in_it():
    """R-424, R-434: a failure loses nothing that an earlier summary had told."""
    work = raw(chat(user("We chose sqlite.", "compact_summary"), user("q" * 9000), assistant("a" * 9000)), 16_000)
    assert "We chose sqlite." in work.summary
    assert chars4(work.summary) <= 640


def test_it_is_at_most_half_of_what_it_stands_for():
    """Lesson 9: raw text that saves nothing helps nobody."""
    messages = chat(*[m for i in range(8) for m in (user(f"wish {i} " * 9), assistant("x" * 100))])
    assert chars4(raw(messages, 200_000).summary) <= sum(map(count, messages)) // 2


def test_nothing_removed_is_nothing_to_tell():
    assert isinstance(raw((), 16_000), Skipped)
