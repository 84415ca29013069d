"""`fit_tool_results`: truncation that makes the next request fit, and its exceptions (R-524)."""

from __future__ import annotations

import msgspec

from codecompanion.context.editing.clear_tool_results import clear_tool_results
from codecompanion.context.editing.fit_tool_results import fit_tool_results
from codecompanion.context.editing.truncate_tool_results import truncate_tool_results
from codecompanion.context.strategy_parameters import ClearToolResults, FitToolResults, OlderThan, TruncateToolResults
from codecompanion.context.work import Messages, Skipped, Work
from codecompanion.placeholders import RESULT_CUT, kept_percent, original_chars
from tests.unit.context.builders import assistant, chat, env, tool, user

HERE = env((), 4_000)
NEWEST = FitToolResults(newest_only=True, min_share=0.10)


def loop(*results: str) -> Messages:
    """Return a question and one round of calls for each result; the last round has no reply yet."""
    rounds = [[assistant("", (f"c{i}", "read_file")), tool(f"c{i}", text)] for i, text in enumerate(results)]
    return chat(user("read them"), *[message for each in rounds for message in each])


def fitted(messages: Messages, target: int, params: FitToolResults = NEWEST) -> Work | Skipped:
    outcome = fit_tool_results(
        Work(before=messages, messages=messages),
        params,
        msgspec.structs.replace(env(messages, 4_000), target=target),
    )
    assert isinstance(outcome, Work | Skipped)
    return outcome


def test_the_newest_result_keeps_head_and_tail_and_older_ones_are_complete():
    messages = loop("old " * 2_000, "<first>" + "new " * 4_000 + "<last>")
    work = fitted(messages, 3_000)
    assert isinstance(work, Work)
    assert work.messages[:-1] == messages[:-1]
    assert [message.id for message in work.cleared] == [messages[-1].id]
    assert work.messages[-1].text.startswith("<first>")
    assert work.messages[-1].text.endswith("<last>")
    assert "characters left out" in work.messages[-1].text
    assert env(messages, 4_000).measure(work.messages).tokens <= 3_000


def test_a_small_result_beside_a_huge_one_is_unchanged():
    messages = chat(
        user("read both"),
        assistant("", ("a", "read_file"), ("b", "read_file")),
        tool("a", "small " * 100),
        tool("b", "huge " * 8_000),
    )
    work = fitted(messages, 3_000)
    assert isinstance(work, Work)
    assert work.messages[2] == messages[2]


def test_a_new_result_is_not_truncated_for_a_handful_of_tokens():
    """Doing so broke the prompt cache and showed a useless card: `1 tool result cleared · 8.8k → 8.8k tokens`."""
    messages = loop("old " * 4_000, "new " * 440)
    assert isinstance(fitted(messages, 2_000), Skipped)
    assert isinstance(fitted(messages, 2_000, FitToolResults()), Work)


def test_a_result_truncated_twice_has_one_note_about_everything_missing():
    """A second truncation used to add its own note, about its own part only."""
    messages = loop("<first>" + "new " * 4_000 + "<last>")
    whole = len(messages[-1].text)
    once = fitted(messages, 3_000)
    assert isinstance(once, Work)
    twice = fitted(once.messages, 1_500)
    assert isinstance(twice, Work)
    text, left_out = twice.messages[-1].text, twice.messages[-1].left_out
    assert text.count("characters left out") == 1
    assert f"{left_out:,} characters left out" in text
    assert len(text) - len(RESULT_CUT.format(chars=left_out)) + left_out == whole == original_chars(twice.messages[-1])
    assert text.startswith("<first>")
    assert text.endswith("<last>")
    assert (kept_percent(once.messages[-1]), kept_percent(twice.messages[-1])) == (74, 36)


def test_a_truncated_result_can_still_be_cleared():
    """It is not a placeholder; its placeholder states the original length."""
    messages = loop("new " * 4_000, "newer")
    cut = fitted(messages, 1_000, FitToolResults())
    assert isinstance(cut, Work)
    truncated = truncate_tool_results(
        Work(before=messages, messages=messages), TruncateToolResults(max_tokens=500), HERE
    )
    assert isinstance(truncated, Work)
    params = ClearToolResults(older_than=OlderThan(unit="rounds", count=1), template="tool_result_truncated")
    for work in (cut, truncated):
        assert work.messages[2].left_out
        cleared = clear_tool_results(work, params, HERE)
        assert isinstance(cleared, Work)
        assert cleared.messages[2].text == "[Tool result truncated — originally 16000 chars]"
        assert (cleared.messages[2].edited, cleared.messages[2].left_out) == (True, 0)
        assert clear_tool_results(cleared, params, HERE) == Skipped(
            "nothing_to_clear", "no tool result is old enough to be cleared"
        )
