"""Results that the model has not seen: the policy makes room for them.

If that is not enough, they are truncated (R-524).

A model got 795 of 1,650 tokens of a file while 6,000 of 8,192 were free, because the file was truncated
before older results were cleared; and results were truncated again in every request, each time a little more.
"""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.pipeline import prepare
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.shape_request import shape
from codecompanion.context.stage_report import Prepared
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message
from codecompanion.model.view import View, with_messages
from codecompanion.placeholders import kept_percent
from tests.unit.context.builders import (
    PARTS,
    SUMMARISES,
    assistant,
    count,
    drive,
    env,
    made,
    system,
    tool,
    turns,
    user,
)

WINDOWS = (4_000, 8_192, 64_000)
HANDS_OFF = ("cowork", "cowork_chat")
"""Policies that never clear anything in place of a handoff (R-408, R-411)."""
CLEARING = tuple(name for name in policy_names() if name not in HANDS_OFF)
LARGEST_RESULT = 10_000
"""Tokens; `cowork` truncates larger results (R-412)."""


def loop(*sizes: int, name: str = "read_file") -> list[Message]:
    """Return a question, then for each size a round of one call whose result has that many tokens."""
    rounds = [(assistant("", (f"c{i}", name)), tool(f"c{i}", text_of(i, size))) for i, size in enumerate(sizes)]
    return [system(), user("Never touch conf/prod. Read them."), *[message for each in rounds for message in each]]


def text_of(number: int, size: int) -> str:
    return (f"line {number} " * size)[: 4 * size]


def prepared(messages: tuple[Message, ...], window: int, policy: Policy, **changes: object) -> tuple[Prepared, int]:
    """Return the next request and the number of summary requests."""
    paused = changes.pop("paused", frozenset())
    here = env(messages, window, reserve=window // 10, **changes)
    if policy.shape:
        here = msgspec.structs.replace(here, sent=lambda given: shape(given, PARTS, policy, here).measure)
    view = with_messages(View(cycle=here.cycle), messages)
    done, asked = drive(prepare(view, policy, here, paused=paused), SUMMARISES)  # type: ignore[arg-type]
    request = shape(done.messages, PARTS, policy, here).messages
    assert not violations(request)
    assert sum(map(count, request)) <= window - window // 10
    return done, sum(ask.stage.event == "context_compacted" for ask in asked)


def results(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.role == "tool"]


def stages(done: Prepared) -> list[str]:
    return [report.stage.id for report in done.reports if report.work is not None and report.event != "memory_flushed"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", policy_names())
def test_a_new_result_is_complete_if_older_ones_make_room(name, window):
    """Each of five results takes a fifth of the window: the policy's own stages keep the fifth complete."""
    messages = made(*loop(*[window // 5] * 5))
    policy = load_policy(name)
    done, asked = prepared(messages, window, policy)
    newest, is_too_long = done.messages[-1], name == "cowork" and window // 5 > LARGEST_RESULT
    assert newest == messages[-1] or (is_too_long and newest.tokens <= LARGEST_RESULT)
    assert set(stages(done)) <= {stage.id for stage in policy.stages}
    request = shape(done.messages, PARTS, policy, env(done.messages, window)).messages
    assert sum(map(count, request)) < 0.7 * window
    if name in HANDS_OFF:
        assert asked == 1 or is_too_long
        assert [message for message in results(done.messages) if message.edited and not message.left_out] == []
    elif name != "adaptive":  # which leaves the newest messages alone
        assert asked == 0


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", HANDS_OFF)
def test_beside_one_larger_than_the_window_older_results_join_the_handoff(name, window):
    """R-411: they are not cleared instead. The new one is truncated as if it were alone."""
    messages = made(*loop(*[window // 12] * 8, 3 * window))
    done, asked = prepared(messages, window, load_policy(name))
    newest = done.messages[-1]
    assert asked == 1
    assert stages(done)[0] == "newest_results"
    assert [message for message in results(done.messages) if message.edited and not message.left_out] == []
    is_too_long = name == "cowork" and window > 3 * LARGEST_RESULT
    least = 0.9 * LARGEST_RESULT if is_too_long else 0.7 * window
    assert least < newest.tokens <= (LARGEST_RESULT if is_too_long else 0.8 * window)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", CLEARING)
def test_a_result_larger_than_the_window_is_truncated_to_the_remaining_room(name, window):
    """The newest older results stay, up to a tenth of the window; the rest of the window is for the new one."""
    messages = made(*loop(*[window // 12] * 8, 3 * window))
    done, asked = prepared(messages, window, load_policy(name))
    newest = done.messages[-1]
    assert asked == 0
    assert newest.text.startswith("line 8 ")
    assert newest.left_out > 0
    assert not newest.edited
    assert 0.65 * window < newest.tokens < 0.8 * window
    older = results(done.messages)[:-1]
    assert 0 < sum(message.tokens for message in older if not message.edited) <= 0.1 * window
    assert [message for message in older if message.left_out] == []
    assert sum(map(count, done.messages)) > 0.75 * window


@pytest.mark.parametrize("name", CLEARING)
def test_all_older_results_are_cleared_if_that_keeps_the_new_one_complete(name):
    """Keeping older results up to a tenth of the window would truncate the new one or require a summary."""
    messages = made(*loop(*[600] * 5, 6_300 if name == "kodacode" else 6_700))
    done, asked = prepared(messages, 8_192, load_policy(name))
    assert asked == 0
    assert done.messages[-1] == messages[-1]
    assert all(message.edited for message in results(done.messages)[:-1])


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", policy_names())
def test_in_a_loop_of_ten_no_result_is_cleared_twice(name, window):
    """Under `kodacode`, ten results used to be truncated again in every request and reported as newly cleared."""
    policy, view = load_policy(name), made(*loop())
    rounds = made(*loop(*[window // 5] * 10))[2:]
    told: list[str] = []
    for number in range(0, 20, 2):
        view = (*view, *rounds[number : number + 2])
        new_id = lambda purpose, n=number: f"{purpose}-{n}"  # noqa: E731
        done, _ = prepared(view, window, policy, new_id=new_id)
        if name != "cowork" or window // 5 <= LARGEST_RESULT:
            assert done.messages[-1] == view[-1], "nobody has seen it yet"
        told += [message.id for report in done.reports if report.work for message in report.work.cleared]
        view = tuple(msgspec.structs.replace(message, tokens=count(message)) for message in done.messages)
    assert len(told) == len(set(told))


@pytest.mark.parametrize("name", policy_names())
def test_results_that_arrive_together_are_truncated_once_and_none_is_cleared_unseen(name):
    """Of ten calls in one reply, `codebuddy` used to clear six before the model had seen their results."""
    calls = assistant("", *[(f"c{i}", "read_file") for i in range(10)])
    messages = made(system(), user("Read them."), calls, *[tool(f"c{i}", text_of(i, 1_600)) for i in range(10)])
    done, asked = prepared(messages, 8_192, load_policy(name))
    assert asked == 0
    assert stages(done) == ["newest_results"]
    assert [message.edited for message in results(done.messages)] == [False] * 10
    assert {kept_percent(message) for message in results(done.messages)} <= set(range(36, 42))


@pytest.mark.parametrize("name", ["adaptive", "codecompanion", "cowork", "cowork_chat"])
def test_tokens_freed_by_a_compaction_are_for_new_results_too(name):
    """In a chat of text at 95 % of the window, a file of 60 % used to be truncated to a tenth before the compaction."""
    talk = [message for i in range(19) for message in (user(f"{i}? {'why ' * 200}"), assistant("because " * 100))]
    messages = made(system(), *talk, user("Read it."), assistant("", ("c", "read_file")), tool("c", text_of(0, 4_800)))
    done, _ = prepared(messages, 8_192, load_policy(name))
    cut = [message for message in done.messages if message.id == messages[-1].id]
    assert count(cut[0]) > 0.28 * 8_192
    cards = [report for report in done.reports if report.event == "context_compacted" and report.work is not None]
    assert len(cards) == 1
    assert cards[0].after.tokens == sum(map(count, done.messages))


def test_if_nothing_may_be_cleared_new_results_are_truncated_at_once():
    """Lesson 13, R-545: disabled editing stays off, and a change that the user just undid is not repeated."""
    off = load_policy("mine", {"mine": {"extends": "codecompanion", "editing": {"trigger": False}}})
    messages = made(*loop(*[1_600] * 5))
    for policy, paused in ((off, frozenset()), (load_policy("codecompanion"), frozenset({"context_edited"}))):
        done, _ = prepared(messages, 8_192, policy, paused=paused)
        assert not any(message.edited for message in done.messages)


def test_results_of_excluded_tools_stay():
    """R-512: the policy's exclusions apply here, too."""
    spare = load_policy("mine", {"mine": {"extends": "codecompanion", "editing": {"exclude_tools": ["read_file"]}}})
    done, _ = prepared(made(*loop(*[1_600] * 4, 1_000)), 8_192, spare)
    assert not any(message.edited for message in done.messages)


def test_finished_turns_count_as_older():
    """Results read for an earlier answer are cleared before those the model just requested."""
    messages = made(system(), *turns(3, 6_400), *loop(4_400)[1:])
    done, asked = prepared(messages, 8_192, load_policy("codecompanion"))
    assert asked == 0
    assert done.messages[-1] == messages[-1]
    assert done.messages[3].edited
