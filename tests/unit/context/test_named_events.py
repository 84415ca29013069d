"""Named events of the policies: their fields are the documented ones, and their figures those of the stage."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.context.named_events import Occasion, fields_of, run_metadata
from codecompanion.context.policy.policy import EVENT_NAMES, PolicyEventName, Stage
from codecompanion.context.shaping.request_parts import compile_prompt, count_prior_turns, request_mix, text_bytes
from codecompanion.context.stage_report import StageReport
from codecompanion.context.thresholds import Trigger
from codecompanion.context.work import Details, Measure, Messages, Work
from codecompanion.model.messages import RULES_TAG, SUMMARY_TAG, Message, ToolSpec, with_changes

TOOL = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {}})


def said(id: str, text: str = "words", role: Any = "user", turn: str = "t1", **fields: Any) -> Message:
    return Message(id=id, role=role, content=text, turn_id=turn, tokens=len(text), **fields)


def report(before: Messages, after: Messages, **changes: Any) -> StageReport:
    def size(messages: Messages) -> int:
        return sum(message.tokens for message in messages)

    fields: dict[str, Any] = {
        "stage": Stage(id="proactive", event="context_compacted", trigger=Trigger(at=1.0), tiers=()),
        "outcome": "changed",
        "trigger": "proactive",
        "before": Measure(size(before), size(before)),
        "after": Measure(size(after), size(after)),
        "work": Work(before=before, messages=after, summary="so far"),
    }
    return StageReport(**{**fields, **changes})


TALK = (said("a"), said("r", "x" * 50, "tool", tool_call_id="c"), said("b", turn="t2"))


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_every_event_can_be_built_from_an_occasion_and_is_plain_json(name: PolicyEventName) -> None:
    """Each name has a builder that needs only an occasion; the result survives the log and the wire."""
    for occasion in (
        Occasion(),
        Occasion(report=report(TALK, TALK[2:]), window=1000, sent=TALK, raw=TALK, turn_id="t2"),
    ):
        fields = fields_of(name, occasion)
        assert fields
        assert json.loads(json.dumps(fields)) == fields


def test_a_history_compaction_reports_its_limits_and_its_failure() -> None:
    """R-331: started and failed have the same figures; failed adds reason and detail."""
    failed = report(TALK, TALK, outcome="failed", work=None, detail="no model answered")
    occasion = Occasion(report=failed, window=900, trigger_tokens=720, target_tokens=540)
    started = fields_of("context_compaction_started", occasion)
    assert started == {
        "scope": "history",
        "input_limit_tokens": 900,
        "trigger_tokens": 720,
        "target_tokens": 540,
        "estimated_request_tokens": 60,
    }
    assert fields_of("context_compaction_failed", occasion) == {
        **started,
        "reason": "artifact_generation_failed",
        "detail": "no model answered",
    }
    pressed = Occasion(report=failed, reason="input_limit_pressure", detail="720 of 900")
    assert fields_of("context_compaction_failed", pressed)["reason"] == "input_limit_pressure"


def test_an_updated_history_summary_has_artifact_budget_and_attribution() -> None:
    """R-325, R-327: the durable update contains its source data and its author."""
    work = Work(
        before=TALK,
        messages=TALK[2:],
        summary="# Goal",
        artifact={"session_objective": "ship"},
        details=Details(frontier_turn_id="t1", consolidated_turn_count=4, newly_consolidated_turn_count=1),
    )
    occasion = Occasion(report=report(TALK, TALK[2:], work=work, asked=True), model="small", duration_ms=12)
    fields = fields_of("session_history_continuation_updated", occasion)
    assert fields["activity_text"] == "History summary updated: 1 turn"
    assert (fields["frontier_turn_id"], fields["consolidated_turn_count"]) == ("t1", 4)
    assert fields["artifact"] == {"session_objective": "ship"}
    assert fields["rendered_summary"] == "# Goal"
    assert fields["input_budget"]["consolidated_request_tokens"] == 5
    assert fields["attribution"]["model"] == "small"
    assert fields["attribution"]["summary_source"] == "model"
    assert fields["update_reason"] == "token_pressure"
    manual = fields_of("session_history_continuation_updated", Occasion(trigger="manual"))
    assert manual["update_reason"] == "manual_request"


def test_a_summarised_context_reports_the_removed_amount_and_proactive() -> None:
    """R-453: the fields are complete; a reactive run omits `proactive`."""
    summary = said("s", "short", tag=SUMMARY_TAG)
    changed = report(TALK, (summary, TALK[2]))
    fields = fields_of("context_summarized", Occasion(report=changed, window=1000))
    assert (fields["summary"], fields["removedCount"]) == ("so far", 2)
    assert (fields["tokensBefore"], fields["tokensAfter"]) == (60, 10)
    assert fields["proactive"] is True
    assert "proactive" not in fields_of("context_summarized", Occasion(report=changed, trigger="reactive"))


def test_the_metadata_of_a_run_distinguishes_truncation_from_removal() -> None:
    """R-423, R-411: the metadata contain the kind, the counts and the size after each of the two steps."""
    shorter = with_changes(TALK[1], content="x" * 10, tokens=10)
    cut = report(TALK, (TALK[0], shorter, TALK[2]))
    metadata = run_metadata(Occasion(report=cut, available=1000))
    assert metadata["kind"] == "tool_truncation_only"
    assert metadata["truncatedToolResults"] == {"didTruncate": True, "count": 1, "tokensAfter": 20}
    assert fields_of("context_tools_truncated", Occasion(report=cut)) == {"count": 1, "before": 60, "after": 20}
    both = run_metadata(Occasion(report=report(TALK, (shorter, TALK[2])), available=1000))
    assert both["kind"] == "message_removal"
    assert both["removedMessages"] == {"didRemove": True, "count": 1, "tokensAfter": 15, "messages": ["a"]}
    assert both["availableTokens"] == 1000
    assert run_metadata(Occasion(report=report(TALK, TALK)))["kind"] == "none"


def test_the_window_status_names_the_level() -> None:
    """R-144: the status contains level, use and window, and whether and how the chat was compacted."""
    on = Occasion(tokens=850, window=1000, compacted=True, tier=2, sent_tokens=400)
    status = fields_of("context_window_status", on)
    assert status == {
        "warningLevel": "warning",
        "usageTokens": 850,
        "budgetTokens": 1000,
        "compacted": True,
        "tier": 2,
        "sentTokens": 400,
    }


def test_a_missed_target_is_reported_with_its_figures() -> None:
    """R-136, R-422, R-472: this includes a request over budget, a missed target and a failed checkpoint."""
    over = Occasion(report=report(TALK, TALK), target_tokens=40, tier=4)
    assert fields_of("context_still_over_budget", over) == {"tokens": 60, "budget_tokens": 40, "tier": 4}
    assert fields_of("pinned_over_target", over) == {"pinned_tokens": 60, "target_tokens": 40}
    assert fields_of("checkpoint_failed", Occasion(reason="disk full")) == {"reason": "disk full"}
    flushed = Occasion(kind="compaction", targets=("memory", "daily_log"), text="abc")
    assert fields_of("memory_flushed", flushed) == {
        "kind": "compaction",
        "targets": ["memory", "daily_log"],
        "characters": 3,
    }


def test_a_recovery_counts_its_attempts() -> None:
    """R-451: one attempt is reported as started, completed or failed."""
    occasion = Occasion(report=report(TALK, TALK[2:]), attempt=2, target_tokens=30, reason="nothing left")
    assert fields_of("context_capacity_recovery_started", occasion) == {
        "attempt": 2,
        "tokensBefore": 60,
        "targetTokens": 30,
    }
    completed = fields_of("context_capacity_recovery_completed", occasion)
    assert (completed["tokensAfter"], completed["removedCount"]) == (5, 2)
    assert fields_of("context_capacity_recovery_failed", occasion)["reason"] == "nothing left"


SENT = (
    said("system", "You help.", "system", turn=""),
    said("rules", "Be brief.", turn="", tag=RULES_TAG, path="AGENTS.md"),
    said("s", "so far", turn="", tag=SUMMARY_TAG),
    said("u1", "old question"),
    said("u2", "new question", turn="t2"),
)


def test_a_compiled_prompt_names_its_layers_and_its_cacheable_part() -> None:
    """R-329: every byte of the request is in one fragment of one layer; the running turn is the dynamic suffix."""
    compiled = compile_prompt(SENT, (TOOL,), "t2")
    layers = {layer["name"]: layer for layer in compiled["layers"]}
    assert list(layers) == ["instructions", "tools", "summary", "history", "turn"]
    assert compiled["base_instructions"] == len("You help.")
    assert compiled["instructions"] == len("You help.Be brief.")
    assert compiled["dynamic_suffix"] == len("new question") == layers["turn"]["bytes"]
    assert compiled["cacheable_prefix"] + compiled["dynamic_suffix"] == sum(layer["bytes"] for layer in layers.values())
    rules = next(fragment for fragment in compiled["fragments"] if fragment["key"] == "rules")
    assert rules == {
        "kind": "rules",
        "source": "AGENTS.md",
        "stability": "session",
        "layer": "instructions",
        "key": "rules",
        "label": "AGENTS.md",
        "bytes": 9,
        "tokens": 9,
    }
    assert compile_prompt(SENT, (), "t2", compact=True)["shape"] == "compact"


def test_the_mix_of_a_request_counts_every_message_once() -> None:
    """R-357: the parts are prompt, conversation and tool surface."""
    mix = request_mix(SENT, 7, lambda message: 100)
    assert mix == {"prompt": 18, "conversation": 6 + 12 + 12, "tools": 7}


def test_pruned_shortened_and_complete_turns_are_distinguished() -> None:
    """R-330: which turns a request replays raw, compacted or not at all, with sizes and ids."""
    raw = (said("a"), said("b", "12345678", turn="t2"), said("c", "whole", turn="t3"), said("d", turn="t4"))
    sent = (with_changes(raw[1], content="123"), *raw[2:])
    assert count_prior_turns(raw, sent, "t4") == {
        "prior_turns": 2,
        "prior_input_bytes": 8,
        "raw_prior_turns": 1,
        "raw_input_bytes": 5,
        "compacted_prior_turns": 1,
        "compacted_input_bytes": 3,
        "omitted_prior_turns": 1,
        "omitted_input_bytes": 5,
        "turn_ids": ["t1"],
    }


@given(st.lists(st.tuples(st.integers(1, 5), st.text(max_size=20), st.sampled_from(["keep", "shorten", "drop"]))))
def test_no_turn_is_counted_twice_and_no_byte_invented(messages: list[tuple[int, str, str]]) -> None:
    """R-330: all figures are ≥ 0, the turns add up, and the request matches the figures."""
    raw = tuple(said(f"m{i}", text, turn=f"t{turn}") for i, (turn, text, _) in enumerate(messages))
    sent = tuple(
        with_changes(message, content="") if how == "shorten" else message
        for message, (_, _, how) in zip(raw, messages, strict=True)
        if how != "drop"
    )
    figures = count_prior_turns(raw, sent, "t5")
    prior = {message.turn_id for message in raw} - {"t5"}
    assert all(value >= 0 for value in figures.values() if isinstance(value, int))
    assert figures["prior_turns"] + figures["omitted_prior_turns"] == len(prior)
    assert figures["prior_input_bytes"] == sum(text_bytes(m) for m in sent if m.turn_id != "t5")
    assert set(figures["turn_ids"]) == prior - {message.turn_id for message in sent}
