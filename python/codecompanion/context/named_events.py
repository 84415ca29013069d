"""Builds the fields of the policies' named events (`policy.policy.PolicyEventName` lists the events).

The events are KodaCode's R-327…R-331, CoWork's R-411, R-422, R-423, R-451, R-453, R-461, R-472, R-473, and CodeBuddy's
R-136, R-144. Field names are those of the products. `fields_of` is pure: the session decides when an event is due, logs
it as a `PolicyEvent` and sends it to the editor, which fires `User CodeCompanion<NameInCamelCase>`
(`chat/state/policy_autocmds.lua`). Sizes are token counts of the whole request, 0 if unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never, cast

import msgspec

from codecompanion.context.policy.policy import PolicyEventName
from codecompanion.context.shaping.request_parts import NO_TURNS, LeftOut, compile_prompt, count_prior_turns
from codecompanion.context.stage_report import StageReport
from codecompanion.context.thresholds import warning_level
from codecompanion.context.work import Details, Trigger
from codecompanion.model.checkpoint import SCHEMA
from codecompanion.model.checkpoint import VERSION as SCHEMA_VERSION
from codecompanion.model.history import PolicyEvent
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolSpec

Fields = dict[str, Any]
_SNAPSHOT_FIELDS: Fields = {"messageCount": 0, "checkpointKind": "snapshot", "estimatedSizeBytes": 0}
_RESTORED_FIELDS: Fields = {
    "source": 0,
    "chat": "",
    "messages": 0,
    "upgraded": False,
    "checkpointAt": 0,
    "snapshotAt": 0,
    "note": "",
}
VERSION = 1
"""Version of the event, the artifact and its rendered form (R-325)."""


class Occasion(msgspec.Struct, frozen=True, kw_only=True):
    """The values that are known when an event is due; each event uses those it needs.

    `report`: the stage that ran. `tokens`: the size of the request before the stage (otherwise taken from the report).
    `available`: CoWork's name for window − 8000 − system prompt (R-402). `sent`: the shaped request, of `sent_tokens`,
    with a short prompt if `is_compact`; `raw`: the same request without shaping; both include the system prompt.
    `left_out`: earlier turns missing from `raw`. `turn_id`: the running turn. `model`, `duration_ms`: the author of the
    summary, and the duration of the compaction. `limit_source`: the source of the window size. `kind`, `targets`,
    `text`: a memory flush. `more`: the fields of a snapshot or a restored session.
    """

    report: StageReport | None = None
    trigger: Trigger = "proactive"
    tokens: int = 0
    window: int = 0
    available: int = 0
    trigger_tokens: int = 0
    target_tokens: int = 0
    tier: int = 0
    compacted: bool = False
    attempt: int = 1
    reason: str = ""
    detail: str = ""
    model: str = ""
    duration_ms: int = 0
    exact: bool = False
    limit_source: str = ""
    sent_tokens: int = 0
    is_compact: bool = False
    sent: tuple[Message, ...] = ()
    raw: tuple[Message, ...] = ()
    left_out: LeftOut = NO_TURNS
    tools: tuple[ToolSpec, ...] = ()
    turn_id: str = ""
    kind: str = ""
    targets: tuple[str, ...] = ()
    text: str = ""
    more: Fields = msgspec.field(default_factory=dict)

    @property
    def before(self) -> int:
        """Return the size of the request before the stage."""
        return self.tokens or (self.report.before.tokens if self.report else 0)

    @property
    def after(self) -> int:
        """Return the size of the request after the stage."""
        return self.report.after.tokens if self.report else self.tokens

    @property
    def details(self) -> Details:
        """Return the details reported by the strategies."""
        return self.report.details if self.report else Details()


def events_of(names: Iterable[str], on: Occasion, compaction_id: str = "") -> tuple[PolicyEvent, ...]:
    """Return the events with these names that apply, ready to be logged; empty names are skipped."""
    known = [cast(PolicyEventName, name) for name in names if name]
    return tuple(
        PolicyEvent(name=name, fields=fields_of(name, on), compaction_id=compaction_id)
        for name in known
        if applies(name, on)
    )


def fields_of(name: PolicyEventName, on: Occasion) -> Fields:
    """Return the fields of the named event as plain JSON values."""
    match name:
        case "context_compaction_started":
            return _history_pressure(on)
        case "context_compaction_failed":
            return {**_history_pressure(on), "reason": _failure(on), "detail": on.detail or _detail(on)}
        case "session_history_continuation_updated":
            return _history_update(on)
        case "prompt_compiled":
            return compile_prompt(on.sent, on.tools, on.turn_id, compact=on.is_compact)
        case "context_pruned":
            return count_prior_turns(on.raw, on.sent, on.turn_id, on.left_out)
        case "context_summarized":
            return _summarized(on)
        case "context_tools_truncated":
            return {"count": len(truncated_results(on.report)), "before": on.before, "after": on.after}
        case "pinned_over_target":
            return {"pinned_tokens": on.tokens or on.after, "target_tokens": on.target_tokens}
        case "context_window_status":
            return {
                "warningLevel": warning_level(on.tokens or on.after, on.window),
                "usageTokens": on.tokens or on.after,
                "budgetTokens": on.window,
                "compacted": on.compacted,
                "tier": on.tier,
                "sentTokens": on.sent_tokens or on.tokens or on.after,
            }
        case "context_still_over_budget":
            return {"tokens": on.after, "budget_tokens": on.target_tokens, "tier": on.tier}
        case (
            "context_capacity_recovery_started"
            | "context_capacity_recovery_completed"
            | "context_capacity_recovery_failed"
        ):
            return _recovery(name, on)
        case "checkpoint_failed":
            return {"reason": on.reason}
        case "memory_flushed":
            return {"kind": on.kind, "targets": list(on.targets), "characters": len(on.text)}
        case "conversation_snapshot":
            return {"schema": SCHEMA, "version": SCHEMA_VERSION, **_chosen(on, _SNAPSHOT_FIELDS)}
        case "session_restored":
            return _chosen(on, _RESTORED_FIELDS)
        case _:
            assert_never(name)


def applies(name: PolicyEventName, on: Occasion) -> bool:
    """Return whether the event applies; a stage lists every event that it may cause."""
    match name:
        case "context_summarized":
            return bool(removed_messages(on.report))
        case "context_tools_truncated":
            return bool(truncated_results(on.report)) and not removed_messages(on.report)
        case "pinned_over_target":
            return bool(on.details.pinned_over_target)
        case "context_still_over_budget":
            return bool(on.target_tokens) and on.after > on.target_tokens
        case _:
            return True


def _chosen(on: Occasion, fields: Fields) -> Fields:
    """Return these fields with the values that the caller chose, or else their defaults."""
    return {name: on.more.get(name, default) for name, default in fields.items()}


def run_metadata(on: Occasion) -> Fields:
    """Return the steps of a run in order, as CoWork records them (R-423)."""
    truncated, gone = truncated_results(on.report), removed_messages(on.report)
    saved = sum(old.tokens - new.tokens for old, new in truncated)
    kind = "message_removal" if gone else "tool_truncation_only" if truncated else "none"
    return {
        "availableTokens": on.available,
        "originalTokens": on.before,
        "truncatedToolResults": {
            "didTruncate": bool(truncated),
            "count": len(truncated),
            "tokensAfter": on.before - saved,
        },
        "removedMessages": {
            "didRemove": bool(gone),
            "count": len(gone),
            "tokensAfter": on.before - saved - sum(message.tokens for message in gone),
            "messages": [message.id for message in gone],
        },
        "kind": kind,
    }


def truncated_results(report: StageReport | None) -> list[tuple[Message, Message]]:
    """Return the tool results that stayed in the list with changed content, as pairs of before and after."""
    if report is None or report.work is None:
        return []
    now = {message.id: message for message in report.work.messages}
    pairs = [(message, now[message.id]) for message in report.work.before if message.id in now]
    return [(old, new) for old, new in pairs if old.role == "tool" and old.content != new.content]


def removed_messages(report: StageReport | None) -> list[Message]:
    """Return the messages that left the list, without replaced summaries."""
    if report is None or report.work is None:
        return []
    kept = {message.id for message in report.work.messages}
    return [message for message in report.work.before if message.id not in kept and message.tag != SUMMARY_TAG]


def _history_pressure(on: Occasion) -> Fields:
    return {
        "scope": "history",
        "input_limit_tokens": on.window,
        "trigger_tokens": on.trigger_tokens,
        "target_tokens": on.target_tokens,
        "estimated_request_tokens": on.before,
    }


def _failure(on: Occasion) -> str:
    """Return why a history compaction failed, in KodaCode's words (R-331)."""
    if on.reason:
        return on.reason
    failed = on.report is not None and on.report.outcome == "failed"
    return "artifact_generation_failed" if failed else "input_limit_unreachable"


def _detail(on: Occasion) -> str:
    return on.report.detail if on.report else ""


def _history_update(on: Occasion) -> Fields:
    """Return the fields of the update event for the history summary (R-325); the strategy reports the turns covered."""
    from codecompanion.context.summary_text.strip_additions import as_written  # not needed at startup

    details, work = on.details, on.report.work if on.report else None
    fresh = details.newly_consolidated_turn_count or 0
    reason = "manual_request" if on.trigger == "manual" else "token_pressure"
    return {
        "event_version": VERSION,
        "artifact_version": VERSION,
        "renderer_version": VERSION,
        "frontier_turn_id": details.frontier_turn_id or "",
        "consolidated_turn_count": details.consolidated_turn_count or 0,
        "newly_consolidated_turn_count": fresh,
        "update_reason": details.update_reason or reason,
        "activity_text": f"History summary updated: {fresh} {'turn' if fresh == 1 else 'turns'}",
        "artifact": (work.artifact if work else None) or {},
        "rendered_summary": as_written(work.summary) if work else "",
        "input_budget": {
            "input_limit_tokens": on.window,
            "trigger_tokens": on.trigger_tokens,
            "target_tokens": on.target_tokens,
            "estimated_request_tokens": on.before,
            "consolidated_request_tokens": on.after,
        },
        "attribution": {
            "model": on.model,
            "input_limit_source": on.limit_source,
            "measurement_source": "provider" if on.exact else "estimate",
            "summary_source": details.summary_source or ("model" if on.report and on.report.asked else "runtime"),
            "algorithm": details.algorithm or (on.report.stage.id if on.report else ""),
            "duration_ms": on.duration_ms,
        },
    }


def _summarized(on: Occasion) -> Fields:
    """Return CoWork's event fields (R-453).

    A reactive run has no `proactive`, and `tokensAfter` includes the summary.
    """
    work = on.report.work if on.report else None
    proactive: Fields = {"proactive": True} if on.trigger == "proactive" else {}
    return {
        "summary": work.summary if work else "",
        "removedCount": len(removed_messages(on.report)),
        "tokensBefore": on.before,
        "tokensAfter": on.after,
        "metadata": run_metadata(on),
        **proactive,
    }


def _recovery(name: str, on: Occasion) -> Fields:
    common: Fields = {"attempt": on.attempt, "tokensBefore": on.before}
    if name.endswith("started"):
        return {**common, "targetTokens": on.target_tokens}
    if name.endswith("completed"):
        return {**common, "tokensAfter": on.after, "removedCount": len(removed_messages(on.report))}
    return {**common, "reason": on.reason or on.detail or _detail(on)}
