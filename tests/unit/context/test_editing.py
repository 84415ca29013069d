"""Context editing: R-508…R-516."""

from __future__ import annotations

import pytest

from codecompanion.context.editing import ClearToolResults, OlderThan, clear_tool_results
from codecompanion.context.work import Skipped, Work
from codecompanion.messages import with_changes
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from tests.unit.context.builders import assistant, chat, env, tool, turns, user

PARAMS = ClearToolResults(older_than=OlderThan("cycles", 3), exclude_tools=("memory",))


def clear(messages, params=PARAMS):
    return clear_tool_results(Work(before=messages, messages=messages), params, env(messages, 1000))


def test_the_placeholder_is_the_one_the_document_prints():
    """R-513."""
    expected = "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
    assert expected == TOOL_RESULT_CLEARED


def test_results_of_all_but_the_newest_three_cycles_are_cleared():
    """R-510: while cycle N runs the kept ones are N, N-1, N-2."""
    messages = chat(*turns(5))
    work = clear(messages)
    results = [m for m in work.messages if m.role == "tool"]
    assert [m.text == TOOL_RESULT_CLEARED for m in results] == [True, True, False, False, False]
    assert [m.edited for m in results] == [True, True, False, False, False]


def test_everything_but_old_tool_results_stays_byte_identical():
    """R-511."""
    messages = chat(*turns(6))
    work = clear(messages)
    changed = [i for i, (a, b) in enumerate(zip(messages, work.messages, strict=True)) if a != b]
    assert all(messages[i].role == "tool" for i in changed)
    assert len(changed) == 3
    assert all(work.messages[i].tool_call_id == messages[i].tool_call_id for i in changed)


def test_a_second_run_clears_nothing():
    """R-512: idempotent."""
    once = clear(chat(*turns(6)))
    assert isinstance(clear(once.messages), Skipped)


def test_the_input_is_not_changed():
    messages = chat(*turns(6))
    copy = tuple(with_changes(m) for m in messages)
    clear(messages)
    assert messages == copy


def test_excluded_tools_are_found_by_the_call_a_result_answers():
    """R-512: ids repeat in real chats, so the name is resolved by position."""
    messages = chat(
        user("a"), assistant("", ("same", "memory")), tool("same", "M" * 400),
        user("b"), assistant("", ("same", "read_file")), tool("same", "R" * 400),
        user("c"), user("d"), user("e"),
    )  # fmt: skip
    work = clear(messages)
    assert work.messages[2].text == "M" * 400
    assert work.messages[5].text == TOOL_RESULT_CLEARED


def test_a_result_without_a_cycle_is_left_alone():
    """R-512."""
    messages = tuple(with_changes(m, cycle=None) if m.role == "tool" else m for m in chat(*turns(6)))
    assert isinstance(clear(messages), Skipped)


@pytest.mark.parametrize(
    ("length", "cleared"), [(len(TOOL_RESULT_CLEARED), False), (len(TOOL_RESULT_CLEARED) + 1, True)]
)
def test_a_result_not_longer_than_the_placeholder_is_left_alone(length, cleared):
    """R-514: clearing it would make the request grow."""
    messages = chat(user("a"), assistant("", ("c", "t")), tool("c", "x" * length), user("b"), user("c"), user("d"))
    work = clear(messages)
    assert isinstance(work, Skipped) is not cleared


def test_a_pinned_result_is_protected():
    """K8."""
    messages = chat(
        user("a"), assistant("", ("c", "t")), tool("c", "x" * 400, pinned=True), user("b"), user("c"), user("d")
    )
    assert isinstance(clear(messages), Skipped)


def test_the_cleared_result_is_counted_again():
    """R-512: the cached count of the original must not live on."""
    messages = tuple(with_changes(m, tokens=999) for m in chat(*turns(4)))
    work = clear(messages)
    cleared = [m for m in work.messages if m.edited]
    assert [m.tokens for m in cleared] == [25]
    assert [m.text for m in work.cleared] == [messages[2].text]


def test_zero_kept_cycles_clear_the_running_one_too():
    work = clear(chat(*turns(2)), ClearToolResults(older_than=OlderThan("cycles", 0)))
    assert sum(m.edited for m in work.messages) == 2
