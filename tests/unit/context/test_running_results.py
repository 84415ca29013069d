"""In a loop the older results of the running turn are cleared first; a summary follows if that is not enough.

Question and plan stay word for word, and so do the newest rounds, up to a quarter of the window. Between two
turns, in a manual run, and with editing off, the behaviour is unchanged.
"""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.pipeline import prepare
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.shape_request import shape
from codecompanion.context.stage_report import Ask
from codecompanion.model.invariants import pair_tool_calls, violations
from codecompanion.model.messages import Message
from codecompanion.model.view import View, with_messages
from tests.unit.context.builders import (
    PARTS,
    SUMMARISES,
    assistant,
    count,
    drive,
    env,
    made,
    run,
    system,
    texts,
    tool,
    turns,
    user,
)

WINDOW = 20_000
QUESTION, PLAN = (
    "Rename `berth` to `slip` everywhere.\n## but not in the API",
    "I will go through the files one by one.",
)
SUMMARISE = ("cowork", "cowork_chat")
"""Policies whose document requires a summary even in the middle of a loop (R-408, R-416)."""


def loop(rounds: int, size: int, said: str = "") -> list[Message]:
    """Return a running turn: a question, a plan, and rounds with results of that many tokens."""
    made = [user(QUESTION)]
    for i in range(rounds):
        made += [assistant(said if i else PLAN, (f"c{i}", "run_command")), result(i, size)]
    return made


def result(number: int, size: int) -> Message:
    return tool(f"c{number}", (f"r{number} " * (4 * size))[: 4 * size])


def for_summary(asked: list[Ask]) -> list[Ask]:
    """Return the requests for summaries that replace messages; a memory flush is not one of them (R-446)."""
    return [ask for ask in asked if ask.stage.event == "context_compacted"]


def asked_of(policy: str, messages: tuple[Message, ...], window: int = WINDOW) -> tuple[tuple[Message, ...], int]:
    """Return the request as sent, and the number of summary requests for it."""
    chosen = load_policy(policy)
    prepared, asked = run(messages, window, policy=chosen)
    here = env(messages, window)
    return shape(prepared.messages, PARTS, chosen, here).messages, len(for_summary(asked))


@pytest.mark.parametrize("policy", [name for name in policy_names() if name not in SUMMARISE])
def test_a_loop_of_mostly_results_continues_without_a_summary(policy):
    """No model is asked; text and the newest rounds stay, and the request is much smaller."""
    messages = made(system(), user("hi"), assistant("hello"), *loop(47, 400))
    assert 0.9 * WINDOW < sum(map(count, messages)) < WINDOW
    request, asked = asked_of(policy, messages)
    assert asked == 0
    assert sum(map(count, request)) < 0.66 * WINDOW
    assert violations(request) == []
    said = [(m.role, m.text) for m in messages if m.role != "tool"]
    assert [(m.role, m.text) for m in request if m.role != "tool"] == said
    assert request[-2:] == messages[-2:]


@pytest.mark.parametrize("policy", SUMMARISE)
def test_a_loop_of_results_is_summarised_if_the_document_says_so(policy):
    """R-411: truncating large results was not enough. The newest rounds stay, and every call has its result."""
    messages = made(system(), user("hi"), assistant("hello"), *loop(47, 400))
    request, asked = asked_of(policy, messages)
    assert asked == 1
    assert not any(message.edited for message in request)
    assert violations(request) == []
    assert request[-2:] == messages[-2:]


@pytest.mark.parametrize("fixed", [0, 3000])
def test_results_are_cleared_from_the_oldest_only_down_to_the_target(fixed):
    """R-510 [decided 3]: this is independent of the rest of the request."""
    messages = made(system("x" * 4 * fixed), *loop(46 - fixed // 400, 400))
    request, _ = asked_of("codecompanion", messages)
    results = [a == b for a, b in zip(messages, request, strict=True) if a.role == "tool"]
    assert results == sorted(results)
    assert 0.65 * WINDOW - 400 < sum(map(count, request)) <= 0.65 * WINDOW


def test_the_newest_rounds_stay_up_to_a_quarter_of_the_window():
    """An edit keeps the part of a loop that a compaction would keep.

    If it misses the target that way, a summary follows.
    """
    messages = made(system("x" * 4 * 9_000), *loop(26, 400))
    prepared, asked = run(messages, WINDOW)
    assert len(asked) == 1
    assert not any(message.edited for message in prepared.messages)
    kept = [message for message in prepared.messages if message.role == "tool"]
    assert 0.2 * WINDOW < sum(map(count, kept)) <= 0.25 * WINDOW
    assert kept == [message for message in messages if message.role == "tool"][-len(kept) :]


@pytest.mark.parametrize("policy", ["codecompanion", *SUMMARISE])
def test_a_loop_of_mostly_text_is_summarised(policy):
    """Clearing would free little: the model is asked at once about everything, and no result is cleared first."""
    messages = made(system(), *loop(30, 40, said="because of this and that " * 100))
    assert sum(map(count, messages)) > 0.9 * WINDOW
    prepared, asked = run(messages, WINDOW, policy=load_policy(policy))
    assert len(asked) >= 1
    assert "r1 r1" in "".join(m.text for ask in asked for m in ask.request.subject)
    assert [report.stage.id for report in prepared.reports if report.work and report.work.cleared] == []
    request = texts(prepared.messages)
    assert QUESTION in request
    assert PLAN in request
    assert prepared.messages[-2:] == messages[-2:]


@pytest.mark.parametrize("policy", ["codecompanion", *SUMMARISE])
@pytest.mark.parametrize("window", [16_000, 200_000])
def test_a_loop_of_hundreds_of_rounds_is_edited_and_later_compacted(policy, window):
    """Not every round is edited: an edit frees at least a fifth of the window, and text accumulates."""
    rounds = made(*loop(300, window // 40, said="Next one. " + "why " * (window // 200)))
    messages, done, last = rounds[:3], list[str](), 0
    for number in range(3, len(rounds), 2):
        messages = (*messages, *rounds[number : number + 2])
        before = sum(message.tokens for message in messages)
        new_id = lambda purpose, n=number: f"{purpose}-{n}"  # noqa: E731
        prepared, asked = run(messages, window, policy=load_policy(policy), new_id=new_id)
        request = prepared.messages
        size = sum(map(count, request))
        assert size <= window
        assert request[-2:] == messages[-2:]
        assert {QUESTION, PLAN} <= set(texts(request))
        if request != messages:
            done.append("compacted" if for_summary(asked) else "edited")
            assert before - size >= 0.2 * window, f"round {number}: {done[-1]}, {before - size} freed"
            assert number - last >= 10, f"{done[-1]} at {last} and at {number}"
            last = number
        messages = tuple(msgspec.structs.replace(message, tokens=count(message)) for message in request)
    assert done.count("compacted") >= 2
    if policy in SUMMARISE:
        assert "edited" not in done
    else:
        assert done.count("edited") >= done.count("compacted")


def test_between_two_turns_the_chat_is_compacted_as_before():
    """The turn is over: its results are not cleared, and the user's next question is unchanged."""
    messages = made(system(), *loop(44, 400), assistant("Done."), user("And now?"))
    prepared, asked = run(messages, WINDOW)
    assert len(asked) == 1
    assert "r1 r1" in "".join(m.text for m in asked[0].request.subject)
    assert texts(prepared.messages)[-1] == "And now?"


def test_a_message_that_steers_the_loop_changes_nothing():
    messages = made(system(), *loop(44, 400))
    steered = (*messages, Message(id="steer", role="user", content="Tests, too.", cycle=messages[-1].cycle))
    prepared, asked = run(steered, WINDOW, cycle=messages[-1].cycle)
    assert asked == []
    assert texts(prepared.messages)[-1] == "Tests, too."
    assert sum(map(count, prepared.messages)) < 0.66 * WINDOW


def test_results_of_excluded_tools_stay():
    """R-512: `editing.exclude_tools` applies here, too."""
    policy = load_policy("mine", {"mine": {"extends": "codecompanion", "editing": {"exclude_tools": ["run_command"]}}})
    _, asked = run(made(system(), *loop(44, 400)), WINDOW, policy=policy)
    assert len(asked) == 1


def test_with_editing_disabled_nothing_is_cleared():
    """Lesson 13: off is off."""
    policy = load_policy("mine", {"mine": {"extends": "codecompanion", "editing": {"trigger": False}}})
    _, asked = run(made(system(), *loop(44, 400)), WINDOW, policy=policy)
    assert len(asked) == 1


def test_a_manual_compact_compacts():
    """R-533: `/compact` is a request for a summary."""
    prepared, asked = run(made(system(), *turns(3), *loop(44, 400)), WINDOW, manual=True)
    assert len(asked) == 1
    assert not any(m.edited for m in prepared.messages)


def test_a_change_the_user_just_undid_is_not_repeated():
    """R-545: edits are paused, so a loop is not cleared under another name."""
    messages = made(system(), *loop(44, 400))
    view, policy = with_messages(View(), messages), load_policy("codecompanion")
    paused = frozenset({"context_edited"})
    prepared, asked = drive(prepare(view, policy, env(messages, WINDOW), paused=paused), SUMMARISES)
    assert len(asked) == 1
    assert not any(m.edited for m in prepared.messages)


def test_if_the_provider_compacts_a_loop_is_still_cleared():
    """R-534, K15: editing always runs on our side."""
    messages = made(system(), *loop(44, 400))
    prepared, asked = run(messages, WINDOW, automatic_summaries=False)
    assert asked == []
    assert sum(map(count, prepared.messages)) < 0.66 * WINDOW
    pairs = pair_tool_calls(prepared.messages)
    assert len(pairs.call_of) == 44
