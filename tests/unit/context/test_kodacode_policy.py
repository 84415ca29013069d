"""The policy kodacode in the pipeline: R-304…R-313, R-319, R-323, R-324, R-326, table P4."""

from __future__ import annotations

import json
import math
import re

import msgspec
import pytest

from codecompanion.context.artifact.artifact import read_consolidated
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.thresholds import Room, target_tokens, threshold_tokens
from codecompanion.context.work import SummaryReply
from codecompanion.errors import ConfigError
from codecompanion.model.messages import SUMMARY_TAG
from tests.unit.context.builders import assistant, chat, count, run, system, tool, turns, user
from tests.unit.context.policy.written import policy_to_table

POLICY = load_policy("kodacode")


def total(messages):
    return sum(map(count, messages))


def window_for(messages, share):
    """Return the window of which these messages are `share`."""
    return math.floor(total(messages) / share)


def summary_in(messages):
    return [(index, message) for index, message in enumerate(messages) if message.tag == SUMMARY_TAG]


def outcomes(prepared):
    return [(report.stage.id, report.way.id, report.outcome) for report in prepared.reports]


def test_the_policy_is_a_table():
    """Pipeline 5.5: the table round-trips, even through JSON."""
    table = json.loads(json.dumps(policy_to_table(POLICY)))
    assert policy_from_table(table, "policy") == POLICY
    assert (POLICY.stages[0].trigger.at, POLICY.stages[0].target.at) == (0.8, 0.6)


@pytest.mark.parametrize(("more", "expected"), [(0, []), (-1, [("history", "semantic_closure", "changed")])])
def test_it_starts_strictly_above_the_trigger(more, expected):
    """R-305, R-307: `>`, not `>=`; the count is that of the raw replay."""
    messages = chat(*turns(30, 4000))
    size = total(messages)
    window = next(w for w in range(size, 2 * size) if math.floor(round(0.8 * w, 6)) == size) + more
    prepared, _ = run(messages, window + (0 if more == 0 else -1), policy=POLICY)
    assert outcomes(prepared) == expected


def test_all_finished_turns_but_two_are_summarised_if_that_is_enough():
    """R-308, R-309 (a), R-323: the summary starts the history, in the assistant's role; the last two turns stay raw."""
    messages = chat(system(), user("RULES", "rules"), *turns(12, 4000), user("and now?"))
    prepared, asked = run(messages, window_for(messages, 0.85), policy=POLICY)
    assert outcomes(prepared) == [("history", "semantic_closure", "changed")]
    ((index, summary),) = summary_in(prepared.messages)
    assert index == 2
    assert (summary.role, summary.text[:19]) == ("assistant", "Compaction Summary:")
    assert list(prepared.messages[3:]) == list(messages[-9:])
    assert asked == []
    details = prepared.reports[0].work.details
    assert details.update_reason == "semantic_closure"
    assert (details.frontier_turn_id, details.consolidated_turn_count) == ("turn-10", 10)


def test_all_finished_turns_are_summarised_if_two_are_too_large():
    """R-309 (b): the result is accepted unconditionally; the running turn is never summarised."""
    messages = chat(*turns(3, 400), *turns(2, 40_000), user("and now?"), assistant("", ("x", "read_file")),
                    tool("x", "y" * 400))  # fmt: skip
    prepared, _ = run(messages, window_for(messages, 0.85), policy=POLICY)
    assert outcomes(prepared) == [("history", "token_pressure", "changed")]
    assert [m.id for m in prepared.messages if m.tag != SUMMARY_TAG] == [m.id for m in messages[-3:]]
    assert prepared.reports[0].work.details.update_reason == "token_pressure"


def test_the_last_candidate_is_accepted_above_the_target():
    """R-309: a large running turn does not keep the others raw."""
    messages = chat(*turns(4, 4000), user("u" * 60_000))
    window = window_for(messages, 0.85)
    prepared, _ = run(messages, window, policy=POLICY)
    assert outcomes(prepared) == [("history", "token_pressure", "changed")]
    assert total(prepared.messages) > 0.6 * window
    assert prepared.messages[-1] == messages[-1]


def test_without_finished_turns_there_is_no_plan():
    """R-310: a first turn of any size yields no plan, and neither does a summary with nothing new after it."""
    messages = chat(user("go"), assistant("", ("a", "read_file")), tool("a", "y" * 40_000))
    prepared, asked = run(messages, window_for(messages, 0.9), policy=POLICY)
    assert outcomes(prepared) == [("history", "token_pressure", "skipped"), ("running_turn", "", "skipped")]
    assert prepared.messages == messages
    assert asked == []


def test_the_next_summary_replaces_the_last_in_place():
    """R-313, R-319, R-323: there are never two summaries; the content of the earlier one is carried over."""
    messages = chat(*turns(12, 4000))
    window = window_for(messages, 0.85)
    first, _ = run(messages, window, policy=POLICY)
    artifact = json.loads(json.dumps(first.reports[0].work.artifact))
    later = chat(*messages, *turns(12, 4000))[len(messages) :]
    grown = (*first.messages, *later)
    second, _ = run(grown, window, policy=POLICY, artifact=artifact)
    ((index, _),) = summary_in(second.messages)
    assert index == 0
    consolidated = read_consolidated(json.loads(json.dumps(second.reports[0].work.artifact)))
    assert consolidated is not None
    assert consolidated.frontier_turn_id == "turn-22"
    assert [e.source_turn_ids[0] for e in consolidated.artifact.completed_episodes] == [
        f"turn-{i}" for i in range(1, 23)
    ]


def test_a_failing_utility_model_does_not_stop_it():
    """R-321: compaction completes with the runtime summary."""
    messages = chat(*turns(12, 4000))
    prepared, asked = run(
        messages,
        window_for(messages, 0.85),
        policy=POLICY,
        has_utility=True,
        script=lambda ask: SummaryReply(error="no"),
    )
    assert len(asked) == 1
    assert outcomes(prepared) == [("history", "semantic_closure", "changed")]
    assert prepared.reports[0].work.details.summary_source == "runtime"


def test_a_manual_run_keeps_two_turns_unless_they_exceed_the_target():
    """R-326: the trigger is not checked; 0 turns stay raw only if two are too large."""
    messages = chat(*turns(8, 4000))
    prepared, _ = run(messages, 1_000_000, policy=POLICY, manual=True)
    assert outcomes(prepared) == [("history", "semantic_closure", "changed")]
    assert prepared.reports[0].work.details.update_reason == "manual_request"
    assert [m.id for m in prepared.messages[1:]] == [m.id for m in messages[-8:]]
    tight, _ = run(messages, 2_000, policy=POLICY, manual=True)
    assert outcomes(tight) == [("history", "token_pressure", "changed")]
    assert len(tight.messages) == 1


def test_a_manual_run_without_a_finished_turn_does_nothing():
    """R-326: the result is "nothing to summarise", and nothing changes."""
    prepared, _ = run(chat(user("hello")), 1_000_000, policy=POLICY, manual=True)
    (report,) = prepared.reports
    assert (report.outcome, report.reason) == ("skipped", "nothing_to_summarise")
    assert "nothing to summarise" in report.detail


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 60_000),
        ({"compaction.trigger": 0.5}, 40_000),  # target ≥ trigger: trigger − 0.10
        ({"compaction.trigger": 0.08}, 4_000),  # that would be nothing: half of the trigger
        ({"compaction.target": 0.3}, 30_000),
        ({"compaction.target": 0.9}, 70_000),
        ({"compaction.trigger": 50_000, "compaction.target": 60_000}, 45_000),  # tokens: trigger − limit / 20
        ({"compaction.trigger": 4_000, "compaction.target": 60_000}, 1),
    ],
)
def test_the_target_stays_below_the_trigger(options, expected):
    """R-306: this is true for any setting of the user's."""
    for stage in with_options(POLICY, options, "k").stages:
        assert target_tokens(stage.trigger, stage.target, stage.target_gap, Room(window=100_000)) == expected


@pytest.mark.parametrize("value", [0, -1, 1, "much", True])
def test_an_invalid_threshold_is_refused(value):
    """R-306 in the sense of lesson 13: the user's value is not replaced by a default; an error names the key."""
    with pytest.raises(ConfigError, match=r"context_management\.compaction\.trigger"):
        with_options(POLICY, {"compaction": {"trigger": value}}, "context_management")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compaction_threshold": 0.7}, (70_000, 60_000)),
        ({"compaction_target_threshold": 0.5}, (80_000, 50_000)),
        ({"compaction_threshold": "70%", "compaction_target_threshold": "30k"}, (70_000, 30_000)),
        ({"sessions": {"compaction_threshold": 0.7, "compaction_target_threshold": 0.5}}, (70_000, 50_000)),
        ({"sessions.compaction_threshold": 0.7}, (70_000, 60_000)),
        ({"compaction_threshold": 0.5}, (50_000, 40_000)),  # the default target stays below it
        ({"compaction_threshold": 0.7, "compaction.trigger": 0.7}, (70_000, 60_000)),
    ],
)
def test_the_documents_names_are_options(options, expected):
    """R-305 [decided]: the options are `compaction_threshold` and `compaction_target_threshold`."""
    room = Room(window=100_000)
    for stage in with_options(POLICY, options, "k").stages:
        target = target_tokens(stage.trigger, stage.target, stage.target_gap, room)
        assert (threshold_tokens(stage.trigger, room), target) == expected


@pytest.mark.parametrize(
    ("options", "key", "said"),
    [
        ({"compaction_threshold": 0.7, "compaction": {"trigger": 0.8}}, "compaction_threshold",
         "0.7, but cm.compaction.trigger is 0.8: both set the same option; expected only one of them"),
        ({"compaction": {"target": 0.5}, "compaction_target_threshold": 0.4}, "compaction_target_threshold",
         "0.4, but cm.compaction.target is 0.5: both set the same option; expected only one of them"),
        ({"compaction_threshold": 0.6, "compaction_target_threshold": 0.6}, "compaction_target_threshold",
         "0.6 is not below the threshold (0.6); expected a smaller value"),
        ({"compaction_target_threshold": "90%", "compaction": {"trigger": 0.8}}, "compaction_target_threshold",
         "'90%' is not below the threshold (0.8); expected a smaller value"),
        ({"compaction_threshold": 1}, "compaction_threshold", "1 would mean one token"),
    ],
)  # fmt: skip
def test_contradictory_thresholds_are_refused(options, key, said):
    """R-305, lesson 13: nothing is guessed or silently reordered; the sentence names both."""
    with pytest.raises(ConfigError) as caught:
        with_options(POLICY, options, "cm")
    assert str(caught.value).startswith(f"cm.{key}: {said}")


def test_a_users_own_policy_may_use_the_documents_names():
    """R-305: they override the extended policy, and the user's settings for all chats override them."""
    own = {"own": {"extends": "kodacode", "compaction_threshold": 0.7, "compaction_target_threshold": 0.4}}
    policy = load_policy("own", own, "policies")
    assert (policy.stages[0].trigger.at, policy.stages[0].target.at) == (0.7, 0.4)
    assert with_options(policy, {"compaction": {"trigger": 0.9}}, "k").stages[0].trigger.at == 0.9


def test_values_of_older_documents_are_possible_but_not_defaults():
    """R-362: the older values (40,000 protected, 20,000 to save, ten turns kept, 0.9) are not required."""
    assert not {"40000", "20000", "10", "0.9"} & set(re.findall(r"[0-9.]+", json.dumps(policy_to_table(POLICY))))
    old = {"old": {"extends": "kodacode", "compaction.trigger": 0.9}}
    assert [stage.trigger.at for stage in load_policy("old", old, "policies").stages] == [0.9, 0.9]


def test_a_shaped_view_is_not_stored():
    """Pipeline 5.7, R-304: the pipeline neither sees nor stores the placeholders of a shaped view."""
    messages = chat(*turns(12, 4000))
    frozen = msgspec.json.encode(messages)
    prepared, _ = run(messages, 10 * total(messages), policy=POLICY)
    assert prepared.messages == messages
    assert msgspec.json.encode(messages) == frozen
    assert not any(message.edited for message in prepared.messages)
