"""Writes the answer of `context`: the result of a preparation, as one JSON object (`:help codecompanion-cli`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codecompanion.context.policy.policy import Policy
from codecompanion.context.shape_request import Shaped
from codecompanion.context.stage_report import Ask, Prepared, StageReport
from codecompanion.context.thresholds import room_of, warning_level
from codecompanion.context.work import Env, Messages
from codecompanion.model.history import PolicyEvent
from codecompanion.model.messages import Message, with_changes
from codecompanion.model.transcript_format import Transcript, write_message
from codecompanion.session.compaction.announcer import Announcer

_ACTIONS = {"context_edited": "edited", "context_compacted": "compacted", "memory_flushed": "flushed"}


def write_answer(
    transcript: Transcript, policy: Policy, name: str, env: Env, prepared: Prepared, shaped: Shaped, asked: list[Ask]
) -> dict[str, Any]:
    """Return the documented JSON object; `name` is the policy as requested.

    The messages are those of the request: text that shaping omitted from this request alone is a placeholder (R-338).
    """
    before, after = env.measure(transcript.messages).tokens, shaped.measure.tokens
    changed = prepared.changed
    actions = ["repaired"] if prepared.repair.changed else []
    actions += [_ACTIONS[report.event] for report in changed]
    actions += ["shaped"] if shaped.pruned else []
    compacted = "compacted" in actions
    return {
        "policy": name,
        "window": env.window,
        "actions": actions,
        "before": {"messages": len(transcript.messages), "tokens": before},
        "after": {"messages": len(shaped.messages), "tokens": after},
        "messages": _written(transcript, shaped.messages),
        "events": [
            *_events(prepared, asked),
            *_named_events(policy, env, transcript.messages, prepared, asked),
            *_shaping(shaped),
            *_too_large(after, env),
        ],
        "result": {
            "compacted": compacted,
            "originalCount": len(transcript.messages),
            "finalCount": len(shaped.messages),
            "originalTokens": before,
            "finalTokens": after,
            "tier": max((report.tier for report in changed), default=0),
            "warningLevel": warning_level(before, env.window),
        },
    }


def _too_large(tokens: int, env: Env) -> Iterable[Mapping[str, Any]]:
    """Yield an event for a request that exceeds the window, which a chat would not send."""
    if tokens + env.reserve > env.window:
        sentence = f"the request has {tokens:,} tokens, too many for the window of {env.window:,}"
        yield {"type": "request_too_large", "tokens": tokens, "window": env.window, "detail": sentence}


def _shaping(shaped: Shaped) -> Iterable[Mapping[str, Any]]:
    """Yield an event if shaping omitted text from this request alone."""
    if shaped.pruned:
        sizes = {"tokens_before": shaped.raw.tokens, "tokens_after": shaped.measure.tokens}
        yield {"type": "request_shaped", "pruned": shaped.pruned, **sizes}


def _written(transcript: Transcript, messages: Messages) -> list[dict[str, Any]]:
    """Return the messages as objects; an unchanged message is written exactly as it was read (R-511).

    Unchanged messages keep their cycle; changed and inserted messages have a cycle of their own, so that a summary
    shows which cycles have passed.
    """
    read = {message.id: message for message in transcript.messages}
    return [
        dict(transcript.originals[message.id])
        if message.id in read and _same(read[message.id], message)
        else write_message(message, transcript.originals.get(message.id))
        for message in messages
    ]


def _same(read: Message, now: Message) -> bool:
    return with_changes(read, tokens=0) == with_changes(now, tokens=0)


def _events(prepared: Prepared, asked: list[Ask]) -> Iterable[Mapping[str, Any]]:
    """Yield the events in order, under the names of the log."""
    if prepared.repair.changed:
        yield {
            "type": "pairs_repaired",
            "completed": len(prepared.repair.completed),
            "dropped": len(prepared.repair.dropped),
        }
    for report in prepared.reports:
        if report.event == "memory_flushed":
            continue
        if report.event == "context_edited":
            if report.work is not None:
                cleared = report.work.cleared
                yield {
                    "type": "context_edited",
                    "cleared": len(cleared),
                    "tokens_before": report.before.tokens,
                    "tokens_after": report.after.tokens,
                    "call_ids": [message.tool_call_id for message in cleared],
                }
            continue
        yield from _compaction_events(report, [ask for ask in asked if ask.stage.id == report.stage.id])


def _named_events(
    policy: Policy, env: Env, messages: Messages, prepared: Prepared, asked: list[Ask]
) -> Iterable[Mapping[str, Any]]:
    """Yield the events under the policy's own names, as a chat would log them."""
    triggers = [trigger for stage in policy.stages for trigger in (stage.trigger, stage.target)]
    room = room_of(env, messages, *triggers)
    announcer = Announcer("", policy, room, exact=False, limit_source="user", emit=lambda event: None)
    events: list[PolicyEvent] = []
    for report in prepared.reports:
        asks = [ask for ask in asked if ask.stage.id == report.stage.id]
        if asks:
            events += announcer.started(asks[0], report.stage.id)
        elif report.event == "context_compacted" and report.removed_messages:
            events += announcer.began(report, report.stage.id)
        if report.work is not None:
            events += announcer.changed(report, report.stage.id, "", 0)
        elif report.outcome == "failed" and asks:
            events += announcer.failed(report.stage.id, report.before.tokens, report.detail, report.stage.id)
    events += announcer.status(prepared)
    for event in events:
        yield {"type": event.name, **event.fields}


def _compaction_events(report: StageReport, asked: list[Ask]) -> Iterable[Mapping[str, Any]]:
    if asked:
        yield {
            "type": "compaction_started",
            "trigger": report.trigger,
            "tokens_before": report.before.tokens,
            "calls": len(asked),
        }
    if report.work is not None:
        yield {
            "type": "context_compacted",
            "trigger": report.trigger,
            "messages": len(report.work.removed),
            "tokens_before": report.before.tokens,
            "tokens_after": report.after.tokens,
        }
    elif report.outcome == "failed":
        yield {"type": "compaction_failed", "trigger": report.trigger, "reason": report.detail}
    else:
        yield {
            "type": "compaction_skipped",
            "trigger": report.trigger,
            "reason": report.reason,
            "detail": report.detail,
        }
