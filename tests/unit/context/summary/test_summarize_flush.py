"""The memory flush before anything is removed: R-408, R-409, R-446."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.strategy_parameters import SummarizeFlush
from codecompanion.context.summary.summarize_flush import summarize_flush
from codecompanion.context.thresholds import Room, Trigger, is_crossed, threshold_tokens
from codecompanion.context.work import Failed, LastFlush, Measure, Skipped, SummaryReply, Work
from codecompanion.errors import ConfigError
from tests.unit.context.builders import assistant, chat, env, system, user

SAID = chat(system(), user("x" * 2000), assistant("y" * 2000), user("z" * 2000), assistant("done"))


def run(messages=SAID, params=None, reply=None, **changes):
    """Return the outcome of the strategy, and its requests."""
    environment = env(messages, 100_000, **changes)
    steps = summarize_flush(Work(before=messages, messages=messages), params or SummarizeFlush(), environment)
    asked = []
    try:
        request = next(steps)
        while True:
            asked.append(request)
            request = steps.send(reply or SummaryReply(text="Decisions:\n- go"))
    except StopIteration as stop:
        return stop.value, asked


def test_a_flush_writes_a_summary_and_leaves_the_messages():
    """R-446: the summary goes to the effects; at most 220 tokens are requested."""
    work, asked = run()
    assert work.summary == "Decisions:\n- go"
    assert work.messages == SAID
    (request,) = asked
    assert request.max_output_tokens == 220
    for label in ("Decisions", "Open Loops", "Next Actions", "Key Findings"):
        assert label in request.prompt
    assert "z" * 100 in request.prompt
    assert "You help." not in request.prompt


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"last_flush": LastFlush(is_off=True)}, "memory_off"),
        ({"now": 1119.0, "last_flush": LastFlush(at=1000.0)}, "flushed_recently"),
        ({"now": 1120.0, "last_flush": LastFlush(at=1000.0)}, ""),
        ({"now": 9999.0, "last_flush": LastFlush(at=1.0, tokens=751)}, "nothing_new"),
        ({"now": 9999.0, "last_flush": LastFlush(at=1.0, tokens=750)}, ""),
        ({"now": 9999.0, "last_flush": LastFlush(at=1.0, tokens=5000)}, ""),
    ],
)
def test_a_flush_needs_time_and_new_messages(changes, reason):
    """R-446: it needs enabled memory, two minutes and 250 new tokens; after a compaction, everything is new."""
    outcome, asked = run(measure=lambda messages: Measure(1000, 1000), **changes)
    assert (outcome.reason if isinstance(outcome, Skipped) else "") == reason
    assert bool(asked) == (reason == "")


@pytest.mark.parametrize(("number", "flushes"), [(3, False), (4, True)])
def test_few_messages_are_not_flushed(number, flushes):
    """R-446: at least four messages are needed; the system prompt does not count."""
    said = chat(system(), *[user("x" * 2000) for _ in range(number)])
    outcome, _ = run(said)
    assert isinstance(outcome, Work) == flushes


def test_a_failing_model_affects_only_the_flush():
    """R-530: nothing is written from an unusable reply."""
    outcome, _ = run(reply=SummaryReply(error="no answer"))
    assert outcome == Failed("no answer", by_writer=True)


def test_the_input_is_limited():
    """R-446: a short summary does not read the whole window; the newest messages count."""
    said = chat(*[user(f"message {number} " + "x" * 5000) for number in range(60)])
    _, asked = run(said)
    assert len(asked) == 1
    assert len(asked[0].prompt) < 40_000
    assert "message 59" in asked[0].prompt
    assert "message 0 " not in asked[0].prompt


@pytest.mark.parametrize("tokens", [31, 601])
def test_the_reply_length_has_limits(tokens):
    """R-446: 32 to 600 tokens; outside is an error, never a silent change (lesson 13)."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"max_tokens": tokens}, SummarizeFlush)


@pytest.mark.parametrize(("slack", "flushes"), [(1200, False), (1199, True), (0, True), (5000, False)])
def test_less_than_1200_tokens_of_slack_cause_a_flush(slack, flushes):
    """R-446: fewer than 1200, as the documents say (the source takes 1200, too)."""
    stage = load_policy("cowork").stage("flush")
    room = Room(window=100_000)
    full = threshold_tokens(Trigger(at=1.0, basis=stage.trigger.basis), room)
    assert is_crossed(stage.trigger, Measure(full - slack, full - slack), room) is flushes
    assert stage.event == "memory_flushed"
    assert stage.effects.after == ("memory_flush", "daily_log")


def test_the_flush_precedes_everything_else():
    """R-408, R-409: it is the first stage of the policy and depends only on slack."""
    stages = load_policy("cowork").stages
    assert stages[0].id == "flush"
    assert stages[0].after == stages[0].unless == ()
    assert all(stage.effects.before == ("checkpoint",) for stage in stages[1:])


@pytest.mark.parametrize("effects", [{"before": ["chekpoint"]}, {"after": ["flush"]}, {"before": ["daily_log"]}])
def test_an_unknown_effect_is_an_error(effects):
    """The configuration error names the key; only a checkpoint can precede a change."""
    stage = {"id": "x", "effects": effects, "trigger": 0.5, "step": [{"use": "clear_tool_results"}]}
    with pytest.raises(ConfigError, match="effects"):
        load_policy("mine", {"mine": {"extends": "codecompanion", "stage": [stage]}})
