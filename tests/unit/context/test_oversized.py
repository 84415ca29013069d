"""`fit_tool_results`: what is cut so that the next request fits, and what is left alone (R-524)."""

from __future__ import annotations

import msgspec

from codecompanion.context.oversized import FitToolResults, fit_tool_results
from codecompanion.context.work import Messages, Skipped, Work
from tests.unit.context.builders import assistant, chat, env, tool, user

NEWEST = FitToolResults(newest_only=True, least_share=0.10)


def loop(*results: str) -> Messages:
    """Return a question and one round of calls for each result; the last one has no reply yet."""
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


def test_head_and_tail_of_the_newest_result_stay_and_older_ones_are_whole():
    messages = loop("old " * 2_000, "<first>" + "new " * 4_000 + "<last>")
    work = fitted(messages, 3_000)
    assert isinstance(work, Work)
    assert work.messages[:-1] == messages[:-1]
    assert [message.id for message in work.cleared] == [messages[-1].id]
    assert work.messages[-1].text.startswith("<first>")
    assert work.messages[-1].text.endswith("<last>")
    assert "characters left out" in work.messages[-1].text
    assert env(messages, 4_000).measure(work.messages).tokens <= 3_000


def test_a_small_result_beside_a_huge_one_is_not_touched():
    messages = chat(
        user("read both"),
        assistant("", ("a", "read_file"), ("b", "read_file")),
        tool("a", "small " * 100),
        tool("b", "huge " * 8_000),
    )
    work = fitted(messages, 3_000)
    assert isinstance(work, Work)
    assert work.messages[2] == messages[2]


def test_a_new_result_is_not_cut_for_a_handful_of_tokens():
    """Seen as `1 tool result cleared · 8.8k → 8.8k tokens`: a broken prompt cache and a card for nothing."""
    messages = loop("old " * 4_000, "new " * 440)
    assert isinstance(fitted(messages, 2_000), Skipped)
    assert isinstance(fitted(messages, 2_000, FitToolResults()), Work)
