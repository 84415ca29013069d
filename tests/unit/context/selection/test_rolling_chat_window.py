"""S18: a chat without tools consists of a cached summary and its newest messages (R-456…R-458)."""

from __future__ import annotations

import pytest

from codecompanion.context.selection.rolling_chat_window import rolling_chat_window
from codecompanion.context.strategy_parameters import RollingChatWindow
from codecompanion.context.work import CacheState, Skipped, Work
from codecompanion.model.invariants import violations
from tests.unit.context.builders import assistant, chat, env, system, texts, tool, user

COLD, WARM, FREE = CacheState(), CacheState(warm_tokens=2_000), CacheState(warm_tokens=2_000, read_price=0)


def roll(messages, window=100_000, *, manual=False, cache=COLD, **params):
    work = Work(before=messages, messages=messages)
    known = env(messages, window, manual=manual, cache=cache, now=1.0)
    outcome = rolling_chat_window(work, RollingChatWindow(**params), known)
    if isinstance(outcome, Work):
        assert violations(outcome.messages) == []
    return outcome


def talk(number, size=200):
    return [(user if i % 2 == 0 else assistant)(f"{i:<{size}}") for i in range(number)]


@pytest.mark.parametrize(("history", "rolls"), [(23, False), (24, True)])
def test_a_summary_is_due_from_24_messages_on(history, rolls):
    """R-457: the current message does not count."""
    messages = chat(system(), *talk(history), user("now"))
    messages = messages if history % 2 == 0 else chat(system(), assistant("hi"), *talk(history - 1), user("now"))
    outcome = roll(messages)
    assert isinstance(outcome, Work) is rolls
    if rolls:
        assert len(outcome.messages) == 1 + 16
        assert len(outcome.removed) == history - 16
        assert texts(outcome.pending) == ["now"]


@pytest.mark.parametrize(("history", "size", "rolls"), [(18, 2700, True), (18, 2400, False), (16, 9000, False)])
def test_or_from_12_000_tokens_on_once_a_message_left_the_window(history, size, rolls):
    """R-457: only if the history has more than 16 messages."""
    assert isinstance(roll(chat(*talk(history, size), user("now"))), Work) is rolls


@pytest.mark.parametrize(("since", "rolls"), [(22, False), (24, True)])
def test_the_cached_summary_is_reused_until_8_messages_have_left_the_window(since, rolls):
    """R-458 [proposed]: every message is either in the window or in the summary."""
    messages = chat(user("CACHED", "compact_summary"), *talk(since, 3000), user("now"))
    outcome = roll(messages)
    assert isinstance(outcome, Work) is rolls
    if rolls:
        assert texts(outcome.removed)[0] == "CACHED"
        assert len(outcome.removed) == 1 + 8
        assert [m.id for m in (*outcome.removed, *outcome.messages, *outcome.pending)] == [m.id for m in messages]
    else:
        assert isinstance(outcome, Skipped)


def test_tool_blocks_are_not_part_of_a_chat():
    """R-457: text stays, but calls and results are moved into the summary."""
    messages = chat(*talk(24), user("q"), assistant("I look", ("c", "read")), tool("c", "r"), assistant("done"))
    outcome = roll(messages)
    assert all(message.role != "tool" and not message.tool_calls for message in outcome.messages)
    assert texts(outcome.messages)[-2:] == ["I look", "done"]
    assert [message.text for message in outcome.removed if message.role == "tool"] == ["r"]
    assert any(message.tool_calls for message in outcome.removed)


def test_a_running_tool_loop_is_unchanged():
    """R-456: this is for chats, not for tasks."""
    messages = chat(*talk(24), user("q"), assistant("", ("c", "read")), tool("c", "r"))
    assert roll(messages).reason == "in_tool_loop"


def test_protected_messages_stay_complete():
    """K8: a pinned result is protected, too, together with its call."""
    messages = chat(
        user("RULES", "rules"), user("pin", pinned=True), assistant("", ("c", "read")), tool("c", "r", pinned=True),
        *talk(24),
    )  # fmt: skip
    outcome = roll(messages)
    assert outcome.messages[:4] == messages[:4]
    assert len(outcome.messages) == 4 + 16


@pytest.mark.parametrize("manual", [False, True])
def test_a_summary_is_not_rewritten_from_itself_alone(manual):
    """The messages outside the window are pinned and stay, so only the summary would be summarised."""
    pinned = [user(f"keep {i} " * 50, pinned=True) for i in range(9)]
    messages = chat(user("CACHED " * 400, "compact_summary"), *pinned, *talk(16, 3000), user("now"))
    assert isinstance(roll(messages, manual=manual), Skipped)


def test_a_manual_run_starts_once_a_message_left_the_window():
    """R-533."""
    assert isinstance(roll(chat(*talk(18, 400)), manual=True), Work)
    assert isinstance(roll(chat(*talk(16)), manual=True), Skipped)


def test_text_shorter_than_a_summary_stays():
    """Lesson 9."""
    assert roll(chat(*talk(24, 40), user("now"))).reason == "window_not_full"


@pytest.mark.parametrize(("window", "is_due"), [(100_000, False), (5_000, True)])
def test_messages_cheaper_to_send_than_to_summarise_stay(window, is_due):
    """8 messages of 100 tokens are outside the window; a summary needs 12,000 tokens, or 12 % of a small window."""
    messages = chat(*talk(24, 400), user("now"))
    worth = {"min_tokens": 12_000, "min_share": 0.12}
    assert isinstance(roll(messages, window, cache=WARM, **worth), Work) is is_due
    assert isinstance(roll(messages, window, cache=WARM, manual=True, **worth), Work)
    assert isinstance(roll(messages, window, **worth), Work), "nothing is cached that could be lost"


@pytest.mark.parametrize(("window", "size", "is_due"), [(4_000, 400, False), (3_000, 400, True), (60_000, 2_000, True)])
def test_a_free_cache_is_kept_until_the_window_fills_up(window, size, is_due):
    """24 messages of 100 tokens are 0.6 and 0.8 of the windows; in large windows, `trigger_tokens` decides."""
    messages = chat(*talk(24, size), user("now"))
    assert isinstance(roll(messages, window, cache=FREE, min_full=0.8), Work) is is_due
    assert isinstance(roll(messages, window, cache=FREE, min_full=0.8, manual=True), Work)
    assert isinstance(roll(messages, window, cache=WARM, min_full=0.8), Work), "its tokens cost money"
    assert isinstance(roll(messages, window, min_full=0.8), Work), "nothing is cached that could be lost"
