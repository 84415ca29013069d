"""S11: a description of the conversation's shape: R-134, R-135."""

from __future__ import annotations

import pytest

from codecompanion.context.strategy_parameters import DescribePlain
from codecompanion.context.transcript.describe_plain import describe_plain
from codecompanion.context.work import Skipped, Work
from codecompanion.placeholders import quote_request
from tests.unit.context.builders import assistant, chat, env, tool, turns, user


def describe(*messages):
    removed = chat(*messages)
    return describe_plain(Work(before=removed, messages=(), removed=removed), DescribePlain(), env(removed, 1000))


def test_the_lines_equal_the_documents():
    """R-134: the header has an em dash, calls are counted by tool messages, and there is one topic per user message."""
    work = describe(user("  fix the parser  \nplease"), assistant("", ("a", "t")), tool("a", "x"), assistant("ok"))
    assert work.summary == (
        "[Conversation context \u2014 4 earlier messages removed to fit context window]\n"
        "User messages: 1, Assistant responses: 2, Tool calls: 1\n"
        "Topics discussed:\n"
        "- fix the parser"
    )


def test_without_a_user_message_there_are_no_topics():
    """R-134."""
    work = describe(assistant("one"), assistant("two"))
    assert work.summary == (
        "[Conversation context \u2014 2 earlier messages removed to fit context window]\n"
        "User messages: 0, Assistant responses: 2, Tool calls: 0"
    )


@pytest.mark.parametrize(("length", "expected"), [(80, "t" * 80), (81, "t" * 77 + "...")])
def test_a_long_topic_is_truncated_to_77_characters(length, expected):
    """R-134."""
    assert describe(user("t" * length)).summary.endswith(f"\n- {expected}")


def test_only_the_first_ten_topics_are_listed():
    """R-134: the counts cover all messages."""
    lines = describe(*turns(12)).summary.splitlines()
    assert lines[1] == "User messages: 12, Assistant responses: 24, Tool calls: 12"
    assert lines[3:] == [f"- question {i}" for i in range(10)]


def test_with_nothing_older_there_is_nothing_to_compact():
    """R-135 [proposed]."""
    assert describe() == Skipped("nothing_to_compact", describe().detail)
    assert isinstance(describe(user("Below is a summary of a previous conversation:\n\nS", "compact_summary")), Skipped)


def test_an_earlier_summary_is_kept():
    """No model will write it again (lesson 14); descriptions of descriptions do not pile up."""
    earlier = user("[Conversation Summary — 9 earlier messages compacted]\n\nThe port is 8089." + quote_request("go"),
                   "compact_summary")  # fmt: skip
    first = describe(earlier, user("next"), assistant("ok"))
    assert first.summary == (
        "[Conversation context \u2014 3 earlier messages removed to fit context window]\n"
        "User messages: 1, Assistant responses: 1, Tool calls: 0\n"
        "Topics discussed:\n"
        "- next\n\n"
        "Earlier summary:\n"
        "The port is 8089."
    )
    second = describe(user(first.summary, "compact_summary"), user("third"))
    kept = "The port is 8089.\nTopics before that:\n- next"
    assert second.summary.endswith(f"- third\n\nEarlier summary:\n{kept}")
    third = describe(user(second.summary, "compact_summary"), assistant("done"))
    assert third.summary.endswith(f"Tool calls: 0\n\nEarlier summary:\n{kept}\n- third")
    fourth = describe(user(third.summary, "compact_summary"), user("fifth"))
    assert fourth.summary.endswith(f"- fifth\n\nEarlier summary:\n{kept}\n- third")
    assert fourth.summary.count("Earlier summary:") == 1


def test_every_later_description_lists_the_questions():
    """5.5: no user message is lost without a description; the topics continue if there was no summary before them."""
    first = describe(user("alpha"), assistant("ok"))
    second = describe(user(first.summary, "compact_summary"), user("beta"))
    third = describe(user(second.summary, "compact_summary"), assistant("ok"))
    assert third.summary.endswith("Earlier summary:\nTopics before that:\n- alpha\n- beta")
