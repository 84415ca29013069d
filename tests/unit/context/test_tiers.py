"""Tiers of a stage: first fit, targets, starting points, alternative summary writers (R-114…R-119, R-309, K9)."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.work import SummaryReply
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from tests.unit.context.builders import assistant, chat, count, run, turns, user

SUMMARY: list[dict[str, Any]] = [
    {"use": "select_window"},
    {"use": "format_transcript"},
    {"use": "summarize_one"},
    {"use": "insert_summary"},
]
CLEAR: list[dict[str, Any]] = [{"use": "clear_tool_results", "older_than": {"count": 1}}]


def policy(*tiers: dict[str, Any], **fields: Any) -> Policy:
    """Return a policy of one stage with these tiers, due at half the window with a target of a quarter."""
    stage = {
        "id": "only",
        "event": "context_compacted",
        "trigger": {"at": 0.5},
        "target": {"at": 0.25},
        "manual": True,
        "tier": list(tiers),
        **fields,
    }
    return policy_from_table(
        {"name": "made_up", "description": "d", "default_window": 1000, "stage": [stage]}, "policies.made_up"
    )


TWO = policy(
    {"id": "cheap", "number": 1, "accept": "target", "step": CLEAR},
    {"id": "expensive", "number": 2, "from": "cheap", "step": SUMMARY},
)


def test_the_first_tier_that_fits_wins() -> None:
    """R-114: no model is asked if clearing is enough."""
    messages = chat(*turns(8, 4000))
    prepared, asked = run(messages, sum(map(count, messages)), policy=TWO)
    assert (prepared.reports[0].tier, prepared.reports[0].way.id, asked) == (1, "cheap", [])
    assert prepared.reports[0].problems == ()


def test_the_next_tier_starts_from_the_previous_result() -> None:
    """R-119: cleared tool results are not summarised again at full length."""
    messages = chat(*turns(8, 4000), *[m for i in range(40) for m in (user(f"q{i} " * 50), assistant(f"a{i} " * 50))])
    prepared, asked = run(messages, int(sum(map(count, messages)) / 0.9), policy=TWO)
    report = prepared.reports[0]
    assert (report.tier, report.way.id, report.outcome) == (2, "expensive", "changed")
    assert TOOL_RESULT_CLEARED in asked[0].request.prompt
    assert "more than the target" in report.problems[0]
    assert report.work is not None
    assert [m.id for m in report.work.before] == [m.id for m in messages]


def test_a_partial_success_is_kept_if_there_is_nothing_else_to_do() -> None:
    """The tokens freed by the cheap tier are kept if the next one has nothing to summarise."""
    skips = policy(
        {"id": "cheap", "number": 1, "accept": "target", "step": CLEAR},
        {"id": "none", "number": 2, "step": [{"use": "select_window", "min_total": 10**9}]},
    )
    messages = chat(*turns(8, 4000), user("q " * 30_000))
    prepared, _ = run(messages, sum(map(count, messages)), policy=skips)
    assert (prepared.reports[0].outcome, prepared.reports[0].way.id) == ("changed", "cheap")


def test_a_failure_after_a_partial_success_changes_nothing() -> None:
    """A failed compaction leaves the history as it was."""
    messages = chat(*turns(8, 4000), *[m for i in range(40) for m in (user(f"q{i} " * 50), assistant(f"a{i} " * 50))])
    window = int(sum(map(count, messages)) / 0.9)
    prepared, _ = run(messages, window, policy=TWO, script=lambda ask: SummaryReply(error="down"))
    assert prepared.reports[0].outcome == "failed"
    assert prepared.messages == messages


@pytest.mark.parametrize(
    "reply", [SummaryReply(error="down"), SummaryReply(text=""), SummaryReply(text="x", stop="length")]
)
def test_a_strategy_without_a_model_replaces_the_failed_one(reply: SummaryReply) -> None:
    """K9, R-434: the chain of summary writers ends with one that cannot fail that way."""
    made = policy({"id": "expensive", "on_fail": ["summarize_ledger"], "step": SUMMARY})
    messages = chat(*turns(8, 4000))
    prepared, asked = run(messages, int(sum(map(count, messages)) / 0.9), policy=made, script=lambda ask: reply)
    report = prepared.reports[0]
    assert asked
    assert report.outcome == "changed"
    assert report.asked
    assert report.work is not None
    assert report.work.details.summary_source == "summarize_ledger"
    assert report.work.details.failure
    assert [m.tag for m in prepared.messages] == [SUMMARY_TAG]


def test_tiers_before_the_first_summary_run_even_if_the_adapter_summarises() -> None:
    """K15: cheap stages stay on if the adapter compacts natively; summaries are left to it."""
    messages = chat(*turns(8, 4000), *[m for i in range(40) for m in (user(f"q{i} " * 50), assistant(f"a{i} " * 50))])
    window = int(sum(map(count, messages)) / 0.9)
    prepared, asked = run(messages, window, policy=TWO, automatic_summaries=False)
    assert asked == []
    assert (prepared.reports[0].way.id, prepared.reports[0].outcome) == ("cheap", "changed")


def test_a_stage_may_need_a_number_of_messages_for_a_manual_run() -> None:
    """R-145: with fewer messages the result is a sentence instead of a compaction."""
    made = policy({"id": "expensive", "step": SUMMARY}, manual_min_messages=6)
    prepared, asked = run(chat(user("a"), assistant("b " * 500)), 10**6, policy=made, manual=True)
    assert (prepared.reports[0].reason, prepared.reports[0].detail) == (
        "not_enough_messages",
        "not enough messages (minimum 6)",
    )
    assert asked == []
