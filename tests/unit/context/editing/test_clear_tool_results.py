"""Context editing: R-508…R-516."""

from __future__ import annotations

import pytest

from codecompanion.context.editing.clear_tool_results import clear_tool_results
from codecompanion.context.strategy_parameters import ClearToolResults, OlderThan, RawTail
from codecompanion.context.work import Skipped, Work
from codecompanion.model.messages import with_changes
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from tests.unit.context.builders import assistant, chat, env, system, tool, turns, user

PARAMS = ClearToolResults(older_than=OlderThan("cycles", 3), exclude_tools=("memory",))


def clear(messages, params=PARAMS):
    return clear_tool_results(Work(before=messages, messages=messages), params, env(messages, 1000))


def test_the_placeholder_equals_the_documents():
    """R-513."""
    expected = "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
    assert expected == TOOL_RESULT_CLEARED


def test_results_of_all_but_the_newest_three_cycles_are_cleared():
    """R-510: while cycle N runs, the cycles N, N-1 and N-2 are kept."""
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


def test_excluded_tools_are_identified_by_the_call_of_a_result():
    """R-512: ids repeat in real chats, so the name is resolved by position."""
    messages = chat(
        user("a"), assistant("", ("same", "memory")), tool("same", "M" * 400),
        user("b"), assistant("", ("same", "read_file")), tool("same", "R" * 400),
        user("c"), user("d"), user("e"),
    )  # fmt: skip
    work = clear(messages)
    assert work.messages[2].text == "M" * 400
    assert work.messages[5].text == TOOL_RESULT_CLEARED


def test_a_result_without_a_cycle_is_not_cleared():
    """R-512."""
    messages = tuple(with_changes(m, cycle=None) if m.role == "tool" else m for m in chat(*turns(6)))
    assert isinstance(clear(messages), Skipped)


@pytest.mark.parametrize(
    ("length", "cleared"), [(len(TOOL_RESULT_CLEARED), False), (len(TOOL_RESULT_CLEARED) + 1, True)]
)
def test_a_result_not_longer_than_the_placeholder_is_not_cleared(length, cleared):
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


def test_the_cleared_result_is_recounted():
    """R-512: the cached count of the original must not be kept."""
    messages = tuple(with_changes(m, tokens=999) for m in chat(*turns(4)))
    work = clear(messages)
    cleared = [m for m in work.messages if m.edited]
    assert [m.tokens for m in cleared] == [25]
    assert [m.text for m in work.cleared] == [messages[2].text]


def test_with_zero_kept_cycles_the_running_one_is_cleared_too():
    work = clear(chat(*turns(2)), ClearToolResults(older_than=OlderThan("cycles", 0)))
    assert sum(m.edited for m in work.messages) == 2


def by_messages(**fields):
    """Return the parameters of tier 1 (R-117)."""
    defaults = {"older_than": OlderThan("messages", 4), "min_size": 200, "template": "tool_result_truncated"}
    return ClearToolResults(**{**defaults, **fields})


@pytest.mark.parametrize(("length", "cleared"), [(200, False), (201, True)])
def test_a_result_over_200_characters_states_its_length(length, cleared):
    """R-117: the comparison is strict, the text is exact (with an em dash), and the call id stays."""
    messages = chat(user("a"), assistant("", ("c", "t")), tool("c", "é" * length), user("b"), user("c"), user("d"),
                    assistant("e"))  # fmt: skip
    work = clear(messages, by_messages())
    assert isinstance(work, Skipped) is not cleared
    if cleared:
        assert work.messages[2].text == "[Tool result truncated \u2014 originally 201 chars]"
        assert work.messages[2].tool_call_id == "c"


@pytest.mark.parametrize(("after", "cleared"), [(3, False), (4, True)])
def test_the_newest_four_messages_are_counted_without_the_system_prompt(after, cleared):
    """R-116: system messages among them do not count."""
    late = [user(f"u{i}") for i in range(after)]
    messages = chat(
        system(), user("a"), assistant("", ("c", "t")), tool("c", "x" * 400),
        *late[:1], system("[Conversation Summary"), *late[1:],
    )  # fmt: skip
    assert isinstance(clear(messages, by_messages()), Skipped) is not cleared


def test_four_messages_or_fewer_are_unchanged():
    """R-118."""
    messages = chat(system(), user("a"), assistant("", ("c", "t")), tool("c", "x" * 400), assistant("b"))
    assert isinstance(clear(messages, by_messages()), Skipped)


KODA = ClearToolResults(
    older_than=OlderThan("tool_step", 1), min_size=511, size_unit="bytes", include_errors=False,
    tools=("read", "search"), exclude_tools=("read",), template="older_output_pruned",
)  # fmt: skip


def step(call, name, text, **fields):
    return [assistant("", (call, name)), tool(call, text, **fields)]


def test_results_before_the_newest_tool_step_of_the_running_turn_are_pruned():
    """R-339, R-341: the exact text names the turn, with normalised white space.

    Only listed tools are pruned, and no errors.
    """
    messages = chat(
        user("one"), *step("old", "search", "x" * 600), assistant("done"),
        user("two"), *step("a b", "search", "x" * 600), *step("r", "read", "x" * 600), *step("g", "grep", "x" * 600),
        *step("e", "search", "x" * 600, is_error=True), *step("new", "search", "x" * 600),
    )  # fmt: skip
    work = clear(messages, KODA)
    assert [m.text for m in work.messages if m.edited] == [
        "[older retained output from search turn-2 a b pruned for prompt budget]"
    ]


@pytest.mark.parametrize(("text", "cleared"), [("é" * 255 + "x", False), ("é" * 256, True)])
def test_sizes_can_be_bytes(text, cleared):
    """R-340: results of at least 512 bytes are pruned."""
    messages = chat(user("q"), *step("a", "search", text), *step("b", "search", "new"))
    assert isinstance(clear(messages, KODA), Skipped) is not cleared


def test_between_turns_nothing_is_pruned():
    """R-341 applies only to a running turn."""
    messages = chat(user("q"), *step("a", "search", "x" * 600), *step("b", "search", "y"), assistant("done"))
    assert isinstance(clear(messages, KODA), Skipped)


def finished_turns(number, size=2400):
    """Return finished turns with one call and a reply each, then an unanswered question.

    Each result has `size` / 4 tokens.
    """
    made = []
    for i in range(number):
        made += [user("q"), *step(f"c{i}", "search", "x" * size, is_error=i == 0), assistant("a")]
    return chat(*made, user("now"))


RAW = ClearToolResults(
    older_than=OlderThan("turns", 1), min_size=511, size_unit="bytes", template="older_output_pruned",
    stop_when=RawTail(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("window", "target", "cap", "expected"),
    [
        (100_000, 0, 0, 0),  # 12,500 may stay raw
        (16_000, 0, 0, 1),  # 2,000 may, of about 2,440
        (8_000, 0, 0, 3),  # 1,000 may; the newest finished turn is not touched
        (16_000, 2_600, 0, 2),  # half the target
        (100_000, 0, 1_900, 1),  # the cap
    ],
)
def test_finished_turns_are_pruned_from_the_oldest_until_the_rest_is_within_the_budget(window, target, cap, expected):
    """R-342: the budget is limit / 8, at most target / 2.

    Errors are pruned, too (R-339: as `error`), but the newest finished turn is not.
    """
    messages = finished_turns(4)
    params = ClearToolResults(
        **{**{f: getattr(RAW, f) for f in RAW.__struct_fields__}, "stop_when": RawTail(max_tokens=cap)}
    )
    outcome = clear_tool_results(Work(before=messages, messages=messages), params, env(messages, window, target=target))
    edited = [] if isinstance(outcome, Skipped) else [m.text for m in outcome.messages if m.edited]
    words = ["error", "output", "output"]
    assert edited == [
        f"[older retained {words[i]} from search turn-{i + 1} c{i} pruned for prompt budget]" for i in range(expected)
    ]


def test_a_pruned_result_is_not_pruned_again():
    """R-343."""
    once = clear(finished_turns(4), RAW)
    assert isinstance(clear(once.messages, RAW), Skipped)
