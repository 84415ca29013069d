"""Builds the snapshot and the checkpoint of a chat from its log (R-461…R-463, R-467).

`read_tally` adds events to running totals; a session keeps the tally and passes only new events. Pure: the session
supplies the time and writes the result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.context.checkpoints.event_conversation import usage_from_events
from codecompanion.context.checkpoints.evidence_packet import is_meaningful
from codecompanion.context.checkpoints.stored_conversation import MAX_TEXT_CHARS, cut_text
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model import checkpoint, history
from codecompanion.model.messages import Message, is_typed_by_user

MAX_RESULTS, MAX_VERIFICATIONS = 50, 8
LAST_TEXT_CHARS = 4000
EDIT_TOOLS = frozenset({"insert_edit", "create_file", "delete_file"})
CHECK_TOOLS = frozenset({"run_command", "get_diagnostics"})


class Tally(msgspec.Struct):
    """Running totals over the log of one chat, for its snapshot; updated by `read_tally`."""

    last_seq: int = 0
    last_change: int = 0
    """Sequence number of the last entry that changed the conversation in the snapshot."""
    title: str = ""
    cwd: str = ""
    adapter: str = ""
    model: str = ""
    policy: str = ""
    cycle: int = 0
    meaningful: int = 0
    edits: int = 0
    last_user: str = ""
    last_assistant: str = ""
    last_failure: str = ""
    retries: int = 0
    compactions: int = 0
    last_compaction: tuple[int, int, int] = (0, 0, 0)
    """Time (ms) of the last compaction, and the token counts before and after it."""
    summarised: int = 0
    """Number of messages summarised so far."""
    usage: checkpoint.UsageTotals = msgspec.field(default_factory=checkpoint.UsageTotals)
    tool_counts: dict[str, int] = msgspec.field(default_factory=dict)
    results: list[checkpoint.ToolResultRef] = msgspec.field(default_factory=list)
    checks: list[tuple[str, str]] = msgspec.field(default_factory=list)
    files: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    fresh_files: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """The entries of `files` that are not in a checkpoint yet."""
    _reads: dict[str, str] = msgspec.field(default_factory=dict)


def read_tally(tally: Tally, events: Iterable[history.LogEvent]) -> None:
    """Add events to the tally, skipping those it has already read."""
    fresh = [event for event in events if event.seq > tally.last_seq]
    forked = max((event.seq for event in fresh if isinstance(event.payload, history.ChatForked)), default=0)
    if forked:  # copied requests were paid for in another chat
        tally.usage = checkpoint.UsageTotals()
    used = usage_from_events([event for event in fresh if event.seq > forked])
    tally.usage = checkpoint.UsageTotals(
        input_tokens=tally.usage.input_tokens + used.input_tokens,
        output_tokens=tally.usage.output_tokens + used.output_tokens,
        cost=tally.usage.cost + used.cost,
    )
    for event in fresh:
        _read(tally, event)
        tally.last_seq = event.seq
        if isinstance(event.payload, history.MessageAdded | history.ViewChanged | history.ChangeUndone):
            tally.last_change = event.seq


def _read(tally: Tally, event: history.LogEvent) -> None:
    match event.payload:
        case history.ChatCreated(adapter=adapter, model=model, policy=policy, cwd=cwd):
            tally.adapter, tally.model, tally.policy, tally.cwd = adapter, model, policy, cwd
        case history.ModelSet(adapter=adapter, model=model):
            tally.adapter, tally.model = adapter, model
        case history.TitleSet(title=title):
            tally.title = title
        case history.MessageAdded(message=message):
            _read_message(tally, message)
        case history.ToolRan() as ran:
            _read_tool(tally, ran)
        case history.TurnEnded(reason=reason, error=error):
            failed = reason in ("failed", "limit")
            tally.retries = tally.retries + 1 if failed else 0
            tally.last_failure = error if failed else tally.last_failure
        case history.ViewChanged(kind="compacted") as change:
            tally.compactions += 1
            tally.last_compaction = (round(event.ts * 1000), change.tokens_before, change.tokens_after)
            tally.summarised += change.report.messages or 0
        case _:
            return


def _read_message(tally: Tally, message: Message) -> None:
    tally.cycle = max(tally.cycle, message.cycle or 0)
    if is_meaningful(message) and (message.role == "assistant" or is_typed_by_user(message)):
        tally.meaningful += 1
        if message.role == "user":
            tally.last_user = cut_text(message.text, LAST_TEXT_CHARS)
        else:
            tally.last_assistant = cut_text(message.text, LAST_TEXT_CHARS)
    for call in message.tool_calls:
        path = _path_of(call.arguments) if call.name == "read_file" else ""
        if path:
            tally._reads[call.id] = path
    path = tally._reads.pop(message.tool_call_id or "", "") if message.role == "tool" else ""
    if path and not message.is_error:
        tally.files[path] = (message.cycle or 0, len(message.text.encode("utf-8", "surrogatepass")))
        tally.fresh_files[path] = tally.files[path]


def _read_tool(tally: Tally, ran: history.ToolRan) -> None:
    tally.tool_counts[ran.name] = tally.tool_counts.get(ran.name, 0) + 1
    ref = checkpoint.ToolResultRef(call_id=ran.call_id, message_id=ran.message_id, name=ran.name, status=ran.status)
    tally.results = [*tally.results, ref][-MAX_RESULTS:]
    if ran.name in CHECK_TOOLS:
        tally.checks = [*tally.checks, (ran.title, ran.summary or ran.status)][-MAX_VERIFICATIONS:]
    if ran.name in EDIT_TOOLS and ran.status == "ok":
        tally.edits += 1


def _path_of(arguments: str) -> str:
    try:
        path = json.loads(arguments).get("path", "")
    except (*NOT_READABLE, AttributeError):  # a model may write arguments that are not an object
        return ""
    return path if isinstance(path, str) else ""


def build_snapshot(
    tally: Tally,
    count: int,
    summary: Message | None,
    chat_id: str,
    now_ms: int,
    *,
    pending: Sequence[str] = (),
    last_flush: tuple[int, int] = (0, 0),
) -> checkpoint.Snapshot | None:
    """Return the state of a chat with `count` messages in view, or None if it is empty (R-463).

    The conversation and the files read are not included: they are stored incrementally (`model.conversation_lines`).
    `pending`: queued messages; `last_flush`: time (ms) and token count of the last memory flush. The `summary` in the
    view is stored separately (R-459).
    """
    if not count:
        return None
    at, before, after = tally.last_compaction
    return checkpoint.Snapshot(
        timestamp=now_ms,
        chat_id=chat_id,
        title=tally.title,
        cwd=tally.cwd,
        adapter=tally.adapter,
        model_id=tally.model,
        policy=tally.policy,
        message_count=count,
        transcript=_transcript(tally, summary),
        tooling=checkpoint.ToolingState(usage_counts=dict(tally.tool_counts), results=tuple(tally.results)),
        loop=checkpoint.LoopState(
            cycle=tally.cycle,
            compaction_count=tally.compactions,
            last_compaction_at=at,
            last_compaction_tokens_before=before,
            last_compaction_tokens_after=after,
            last_pre_compaction_flush_at=last_flush[0],
            last_pre_compaction_flush_token_count=last_flush[1],
        ),
        recovery=checkpoint.RecoveryState(last_failure=tally.last_failure, retries=tally.retries),
        queues=checkpoint.QueueState(pending_follow_ups=tuple(pending)),
        verification=checkpoint.VerificationState(last_results=tuple(tally.checks)),
        usage_totals=tally.usage,
    )


def _transcript(tally: Tally, summary: Message | None) -> checkpoint.TranscriptState:
    """Return the last user and assistant messages, and the summary in the view."""
    last = checkpoint.TranscriptState(last_user_message=tally.last_user, last_assistant_text=tally.last_assistant)
    if summary is None:
        return last
    return msgspec.structs.replace(
        last,
        explicit_chat_summary_block=cut_text(summary.text, MAX_TEXT_CHARS),
        explicit_chat_summary_created_at=round(summary.ts * 1000),
        explicit_chat_summary_source_message_count=tally.summarised,
    )


def build_checkpoint(
    snapshot: checkpoint.Snapshot,
    kind: checkpoint.Kind,
    checkpoint_id: str,
    summary: checkpoint.StructuredSummary,
    packet: checkpoint.EvidencePacket,
    *,
    trigger: str,
    source_event_id: str = "",
    meaningful: int = 0,
) -> checkpoint.Checkpoint:
    """Return a checkpoint that combines a snapshot, a structured summary and an evidence packet (R-467)."""
    fields: Mapping[str, Any] = {name: getattr(snapshot, name) for name in checkpoint.Snapshot.__struct_fields__}
    return checkpoint.Checkpoint(
        **fields,
        id=checkpoint_id,
        checkpoint_kind=kind,
        source_event_id=source_event_id,
        source_timestamp=snapshot.timestamp,
        structured_summary=summary,
        evidence_packet=packet,
        dedupe_hash=packet.span_hash,
        source_metadata=checkpoint.SourceMetadata(trigger_event_type=trigger, meaningful_exchange_count=meaningful),
    )


def is_periodic_due(before: int, now: int, every: int) -> bool:
    """Return whether a multiple of `every` meaningful messages lies between `before` and `now` (R-464, R-465)."""
    return every > 0 and now // every > before // every


def is_worth_completing(tally: Tally) -> bool:
    """Return whether a finished chat did some work: it changed a file, or its last answer is long (R-466)."""
    return tally.edits > 0 or len(tally.last_assistant) >= NON_TRIVIAL_CHARS


NON_TRIVIAL_CHARS = 160
