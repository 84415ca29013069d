"""S6: the selection of kept messages (R-116, R-120, R-128, R-131, R-309, R-310, R-416…R-422, R-551)."""

from __future__ import annotations

import pytest

from codecompanion.context.selection.select_window import running_turn, select_window
from codecompanion.context.strategy_parameters import SelectWindow
from codecompanion.context.work import Skipped, Work
from codecompanion.model.invariants import violations
from tests.unit.context.builders import assistant, chat, count, env, system, texts, tool, turns, user


def select(messages, *, target=0, window=100_000, manual=False, exists=lambda path: False, **params):
    environment = env(messages, window, target=target, manual=manual, exists=exists)
    outcome = select_window(Work(before=messages, messages=messages), SelectWindow(**params), environment)
    if isinstance(outcome, Work):
        assert violations(outcome.messages) == []
        order = [message.id for message in (*outcome.messages, *outcome.pending)]
        assert order == [message.id for message in messages if message.id in order]
    return outcome


def ids(messages):
    return [message.id for message in messages]


def total(messages):
    return sum(map(count, messages))


def test_by_default_only_protected_and_unanswered_messages_stay():
    """K8, R-551: this is the behaviour of the `codecompanion` policy."""
    messages = chat(system(), user("RULES", "rules"), user("q"), assistant("a"), user("pin", pinned=True), user("next"))
    work = select(messages)
    assert texts(work.messages) == ["You help.", "RULES"]
    assert texts(work.removed) == ["q", "a"]
    assert texts(work.pending) == ["pin", "next"]


def test_the_newest_messages_are_counted_without_system_prompt_rules_and_summary():
    """R-116: 4 messages of the conversation."""
    messages = chat(
        system(), user("RULES", "rules"), user("old summary", "compact_summary"),
        user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"), assistant("a3"),
    )  # fmt: skip
    work = select(messages, count=4)
    assert texts(work.messages) == ["You help.", "RULES", "q2", "a2", "q3", "a3"]
    assert texts(work.removed) == ["old summary", "q1", "a1"]


def test_pending_messages_count_among_the_newest():
    """R-116: they are the newest."""
    messages = chat(user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"))
    work = select(messages, count=3)
    assert (texts(work.messages), texts(work.pending)) == (["q2", "a2"], ["q3"])


def test_the_boundary_moves_before_a_call():
    """R-128: 4 is a minimum if the boundary falls between a call and its results."""
    messages = chat(
        user("q"), assistant("", ("c1", "read"), ("c2", "read")), tool("c1", "r1"), tool("c2", "r2"),
        assistant("x"), user("q2"), assistant("a2"),
    )  # fmt: skip
    work = select(messages, count=4)
    assert ids(work.messages) == ["m1", "m2", "m3", "m4", "m5", "m6"]
    assert ids(work.removed) == ["m0"]


@pytest.mark.parametrize(("number", "removed"), [(5, None), (6, ["m0", "m1"])])
def test_a_short_chat_stays(number, removed):
    """R-120: fewer than 6 messages are not summarised."""
    messages = chat(*[user(f"q{i}") if i % 2 == 0 else assistant(f"a{i}") for i in range(number)])
    outcome = select(messages, count=4, min_total=6, min_older=2, keep_pending=False)
    assert (None if isinstance(outcome, Skipped) else ids(outcome.removed)) == removed
    if isinstance(outcome, Skipped):
        assert outcome.reason == "too_few_messages"


def test_one_older_message_is_too_few():
    """R-120: at least 2 must be older than the newest 4."""
    messages = chat(*[user(f"q{i}") if i % 2 == 0 else assistant(f"a{i}") for i in range(6)])
    outcome = select(messages, count=5, min_total=6, min_older=2)
    assert isinstance(outcome, Skipped)
    assert outcome.reason == "too_few_messages"


@pytest.mark.parametrize(("older", "removed"), [(2, 1), (5, 2), (6, 3)])
def test_half_takes_the_oldest_half_rounded_down(older, removed):
    """R-131: floor(k/2) of the k messages that are older than the last 4."""
    messages = chat(*[user(f"q{i}") if i % 2 == 0 else assistant(f"a{i}") for i in range(older + 4)])
    work = select(messages, count=4, half=True, keep_pending=False)
    assert ids(work.removed) == [f"m{i}" for i in range(removed)]


def test_half_separates_no_call_from_its_result():
    """R-131, R-132: a result in the newer half keeps its call."""
    messages = chat(
        user("q"), assistant("", ("c", "read")), tool("c", "r"), assistant("x"),
        user("q2"), assistant("a2"), user("q3"), assistant("a3"),
    )  # fmt: skip
    work = select(messages, count=4, half=True)
    assert ids(work.removed) == ["m0"]


def test_turns_keep_the_requested_completed_ones_and_always_the_running_one():
    """R-309: all completed turns except the last 2 are summarised; the running turn never is."""
    messages = chat(*turns(4, 8), user("now"), assistant("", ("c9", "read")), tool("c9", "half done"))
    work = select(messages, unit="turns", count=2, keep_pending=False)
    assert [m.text for m in work.removed if m.role == "user"] == ["question 0", "question 1"]
    assert [m.text for m in work.messages if m.role == "user"] == ["question 2", "question 3", "now"]
    assert work.request == ""
    nothing_completed = select(messages, unit="turns", count=0, keep_pending=False)
    assert [m.text for m in nothing_completed.messages if m.role == "user"] == ["now"]


def test_between_turns_there_is_no_running_turn():
    """R-309, R-326: if 0 turns are kept, all completed turns are removed."""
    messages = chat(*turns(3, 8))
    assert running_turn(messages) is None
    outcome = select(messages, unit="turns", count=0)
    assert outcome.messages == ()
    assert len(outcome.removed) == len(messages)


def test_a_truncated_turn_that_continues_is_running():
    """R-309: continuing a truncated reply opens no turn."""
    messages = chat(user("q"), assistant("part"), user("Go on.", "go_on"), user("image", "image"))
    assert running_turn(messages) == 1


def test_without_a_completed_turn_beyond_the_summary_there_is_nothing_to_do():
    """R-310."""
    messages = chat(user("SUMMARY", "compact_summary"), user("now"), assistant("", ("c", "read")), tool("c", "r"))
    outcome = select(messages, unit="turns", count=0)
    assert isinstance(outcome, Skipped)
    assert outcome.reason == "nothing_to_summarise"


def test_cycles_keep_the_newest_ones():
    """K7: the unit is a parameter."""
    messages = chat(*turns(4, 8))
    work = select(messages, unit="cycles", count=1)
    assert [m.text for m in work.messages if m.role == "user"] == ["question 3"]


def numbered(number, size=400):
    """Return user and assistant messages of `size` characters each."""
    return [(user if i % 2 == 0 else assistant)(f"{i:<{size}}") for i in range(number)]


def test_filling_keeps_the_first_and_as_many_of_the_newest_as_fit():
    """R-416: messages are added from the newest backwards until the next one would exceed the target."""
    messages = chat(system("S" * 40), *numbered(11))
    work = select(messages, target=10 + 100 * 4, fill=True, keep_first=True, keep_pending=False)
    assert ids(work.messages) == ["m0", "m1", "m9", "m10", "m11"]
    one_more = select(messages, target=10 + 100 * 5, fill=True, keep_first=True, keep_pending=False)
    assert ids(one_more.messages) == ["m0", "m1", "m8", "m9", "m10", "m11"]


def test_in_a_small_window_half_of_the_room_is_left_for_the_summary():
    """The system prompt has 10 tokens, each other message 100."""
    messages = chat(system("s" * 40), *numbered(11))
    params = {"target": 10 + 100 * 4, "fill": True, "keep_pending": False, "spares_below": 6000}
    assert ids(select(messages, window=6000, **params).messages) == ["m0", "m8", "m9", "m10", "m11"]
    assert ids(select(messages, window=5999, **params).messages) == ["m0", "m10", "m11"]


def test_filling_stops_at_the_first_that_does_not_fit():
    """R-416: a smaller message before it is not added, either."""
    messages = chat(*numbered(3), assistant("B" * 4000), *numbered(2))
    work = select(messages, target=800, fill=True, keep_pending=False)
    assert ids(work.messages) == ["m4", "m5"]


def test_filling_keeps_or_drops_a_call_and_its_result_together():
    """R-417."""
    messages = chat(user("q" * 400), assistant("", ("c", "read")), tool("c", "r" * 400), assistant("x" * 400))
    pair = total(messages[1:3])
    without = select(messages, target=100 + pair - 1, fill=True)
    assert ids(without.messages) == ["m3"]
    within = select(messages, target=100 + pair, fill=True)
    assert ids(within.messages) == ["m1", "m2", "m3"]


def test_two_messages_are_never_removed():
    """R-417."""
    outcome = select(chat(user("q" * 4000), assistant("a" * 4000)), target=10, fill=True)
    assert isinstance(outcome, Skipped)


def test_pinned_messages_and_given_tags_stay_and_are_counted():
    """R-416, R-420, R-421: messages are protected by their pin or by a tag."""
    messages = chat(
        user("first " * 10), user("shared " * 10, "shared_context"), user("pin " * 10, pinned=True), *numbered(8)
    )
    work = select(messages, target=230, fill=True, keep_first=True, keep_tags=("shared_context",))
    assert ids(work.messages) == ["m0", "m1", "m2", "m10"]


def test_pinned_messages_over_the_target_are_reported_and_the_open_question_stays():
    """R-422: everything else is removed except the last user message and its open tool pairs."""
    messages = chat(
        user("first", pinned=True), user("P" * 4000, pinned=True), *numbered(6), user("now"),
        assistant("", ("c1", "read")), tool("c1", "old result"), assistant("", ("c2", "read")), tool("c2", "fresh"),
    )  # fmt: skip
    work = select(messages, target=500, fill=True, keep_first=True)
    assert [m.text[:10] for m in work.messages] == ["first", "P" * 10, "now", "", "fresh"]
    assert work.details.pinned_over_target == 1002
    again = select(work.messages, target=500, fill=True, keep_first=True)
    assert isinstance(again, Skipped)


def test_a_kept_question_in_progress_is_not_quoted():
    """R-551: only words that leave the view are quoted."""
    messages = chat(*numbered(6), user("now"), assistant("", ("c1", "read")), tool("c1", "result"))
    assert select(messages, target=150, fill=True).request == ""
    assert select(messages, count=2).request == "now"


def test_messages_about_the_files_in_use_stay_up_to_their_share():
    """R-416: the oldest come first, up to 15 % of the target."""
    about = [assistant(f"I changed /src/app/main.py. {i:<372}") for i in range(3)]
    messages = chat(user("first"), *about, *numbered(12), user("look at /src/app/main.py"))
    size = count(about[0])
    work = select(messages, target=int(size * 2 / 0.15) + 1, fill=True, keep_first=True, active_path_share=0.15)
    assert {"m1", "m2"} < set(ids(work.messages))
    assert "m3" in ids(work.removed)


def test_a_pair_about_a_file_in_use_is_kept_whole_or_not_at_all():
    """R-418."""
    pair = [assistant("", ("c", "read")), tool("c", "content of /src/app/main.py " + "x" * 1000)]
    messages = chat(user("first"), *pair, *numbered(12), user("look at /src/app/main.py"))
    params = {"target": 1300, "fill": True, "keep_first": True}
    assert {"m1", "m2"} <= set(ids(select(messages, active_path_share=0.2, **params).removed))
    assert {"m1", "m2"} <= set(ids(select(messages, active_path_share=0.25, **params).messages))


def test_relative_paths_count_if_they_exist():
    """R-419 [proposed]."""
    messages = chat(user("first"), assistant("lua/init.lua is done"), *numbered(12), user("see lua/init.lua."))
    params = {"target": 500, "fill": True, "keep_first": True, "active_path_share": 0.15}
    assert "m1" in ids(select(messages, exists=lambda path: path == "lua/init.lua", **params).messages)
    assert "m1" in ids(select(messages, **params).removed)


def test_a_manual_target_is_the_same_share_of_the_current_size():
    """R-533: /compact below the trigger still frees tokens."""
    messages = chat(*numbered(21))
    assert isinstance(select(messages, target=5000, window=10_000, fill=True), Skipped)
    work = select(messages, target=5000, window=10_000, fill=True, manual=True, keep_pending=False)
    assert total(work.messages) == 1000


def test_the_live_summary_is_never_kept_at_any_position():
    """R-424: it is an input of the next summary, even if another policy put it last."""
    messages = chat(*numbered(6), user("SUMMARY", "compact_summary"), user("q"), assistant("a"))
    for params in ({"count": 4}, {"fill": True, "target": 300}, {"count": 4, "half": True}):
        work = select(messages, **params)
        assert "SUMMARY" in texts(work.removed)
        assert "SUMMARY" not in texts(work.messages)
