"""Chooses the stored state from which to restore a chat: the precedence of R-473, with fall-through (R-474…R-477).

    1 V2 checkpoint → 2 V2 snapshot → 3 legacy checkpoint → 4 legacy snapshot → 5 the events

An unreadable candidate falls through to the next. A candidate that is older than another and has fewer messages never
wins; the newest candidate with more messages does (R-474). Both times are reported. Legacy payloads are upgraded to V2
here, so that the next checkpoint stores them as V2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from codecompanion.context.checkpoints.stored_conversation import read_conversation
from codecompanion.errors import CodeCompanionError, StoreCorrupt
from codecompanion.model import checkpoint as payloads
from codecompanion.model.checkpoint import Snapshot, TranscriptState, UsageTotals
from codecompanion.model.messages import Message

Source = Literal[1, 2, 3, 4, 5]
NAMES: dict[Source, str] = {
    1: "the newest checkpoint",
    2: "the newest snapshot",
    3: "a checkpoint of an older format",
    4: "a snapshot of an older format",
    5: "the record of events",
}


class Candidate(msgspec.Struct, frozen=True):
    """A stored payload: its type and location, and its JSON object or the reason why that is missing."""

    kind: Literal["checkpoint", "snapshot"]
    where: str
    raw: dict[str, Any] | None = None
    problem: str = ""


class RestoredState(msgspec.Struct, frozen=True):
    """The state to restore. `raw` is the payload including unknown fields, or {} for events.

    `checkpoint_at`, `snapshot_at`: times (ms) of the V2 payloads found, or 0. `problems`: why earlier candidates were
    rejected.
    """

    source: Source
    messages: tuple[Message, ...]
    snapshot: Snapshot
    raw: dict[str, Any] = {}
    checkpoint_at: int = 0
    snapshot_at: int = 0
    problems: tuple[str, ...] = ()

    @property
    def upgraded(self) -> bool:
        """Return whether the state was read from an older format."""
        return self.source in (3, 4)


def choose(
    candidates: Sequence[Candidate],
    from_events: Callable[[], tuple[Message, ...]],
    usage: UsageTotals,
    *,
    named: bool = False,
) -> RestoredState | None:
    """Return the state in the documented order (R-473), or None if there is none.

    `from_events` builds the fallback conversation; `usage` is the usage reported by the events. `named`: the user chose
    the checkpoint among the candidates, so it wins even if it is old.
    """
    problems = [candidate.problem for candidate in candidates if candidate.problem]
    at = {"checkpoint": 0, "snapshot": 0}
    for candidate in candidates:
        if candidate.raw is not None and payloads.form_of(candidate.raw) == "v2":
            at[candidate.kind] = max(at[candidate.kind], _time(candidate.raw))
    found = _first(candidates, usage, problems, newest=not named)
    if found is not None:
        return msgspec.structs.replace(
            found, checkpoint_at=at["checkpoint"], snapshot_at=at["snapshot"], problems=tuple(problems)
        )
    messages = from_events()
    if not messages:
        return None
    snapshot = Snapshot(message_count=len(messages), usage_totals=usage)
    return RestoredState(5, messages, snapshot, problems=tuple(problems))


def _first(
    candidates: Sequence[Candidate], usage: UsageTotals, problems: list[str], *, newest: bool
) -> RestoredState | None:
    """Return the first readable state in the documented order, or the `newest` state that supersedes it (R-474)."""
    ordered = [
        (source, candidate, candidate.raw)
        for source, kind, form in _ORDER
        for candidate in candidates
        if candidate.raw is not None and candidate.kind == kind and payloads.form_of(candidate.raw) == form
    ]
    place, chosen = _readable(ordered, usage, problems)
    if chosen is None or not newest:
        return chosen
    newer = [entry for entry in ordered[place + 1 :] if _is_newer_and_longer(entry[2], chosen.raw)]
    return _readable(sorted(newer, key=lambda entry: -_time(entry[2])), usage, problems)[1] or chosen


def _readable(
    ordered: Sequence[tuple[Source, Candidate, dict[str, Any]]], usage: UsageTotals, problems: list[str]
) -> tuple[int, RestoredState | None]:
    """Return the first readable state and its position; add the errors of earlier candidates to `problems`."""
    for place, (source, candidate, raw) in enumerate(ordered):
        try:
            return place, _read(source, candidate, raw, usage)
        except CodeCompanionError as error:
            problems.append(str(error))
    return len(ordered), None


def _is_newer_and_longer(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether `one` is newer than `other` and has more messages.

    A payload without a time never counts as older.
    """
    return 0 < _time(other) < _time(one) and _length(one) > _length(other)


def _length(raw: Mapping[str, Any]) -> int:
    history = raw.get("conversationHistory")
    return len(history) if isinstance(history, list | tuple) else 0


_ORDER: tuple[tuple[Source, str, payloads.Form], ...] = (
    (1, "checkpoint", "v2"),
    (2, "snapshot", "v2"),
    (3, "checkpoint", "legacy"),
    (4, "snapshot", "legacy"),
)


def _read(source: Source, candidate: Candidate, raw: Mapping[str, Any], usage: UsageTotals) -> RestoredState:
    """Return the state of one payload.

    Raises:
        StoreCorrupt, InputError: the payload cannot be read.
    """
    snapshot = payloads.read(raw if source in (1, 2) else _upgraded(raw, candidate.where), Snapshot, candidate.where)
    if not snapshot.conversation_history:
        raise StoreCorrupt(f"{candidate.where} has no conversation")
    messages = read_conversation(snapshot.conversation_history, candidate.where)
    if source in (3, 4) and not (snapshot.usage_totals.input_tokens or snapshot.usage_totals.output_tokens):
        snapshot = msgspec.structs.replace(snapshot, usage_totals=usage)
    return RestoredState(source, messages, snapshot, dict(raw))


def _upgraded(raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a legacy payload in V2 form (R-476); fields of an unexpected type are skipped."""
    history = raw.get("conversationHistory")
    summary = TranscriptState(
        explicit_chat_summary_block=_text(raw.get("explicitChatSummaryBlock")),
        explicit_chat_summary_created_at=_number(raw.get("explicitChatSummaryCreatedAt")),
        explicit_chat_summary_source_message_count=_number(raw.get("explicitChatSummarySourceMessageCount")),
    )
    totals = raw.get("usageTotals")
    totals = totals if isinstance(totals, Mapping) else {}
    snapshot = Snapshot(
        timestamp=_time(raw),
        model_id=_text(raw.get("modelId")),
        title=_text(raw.get("title")),
        plan_summary=_text(raw.get("planSummary")),
        message_count=len(history) if isinstance(history, list) else 0,
        transcript=summary,
        usage_totals=UsageTotals(
            input_tokens=_number(totals.get("inputTokens")),
            output_tokens=_number(totals.get("outputTokens")),
            cost=_amount(totals.get("cost")),
        ),
    )
    if not isinstance(history, list) or not all(isinstance(entry, dict) for entry in history):
        raise StoreCorrupt(f"the conversation in {where} has an entry that is not a message")
    return {**msgspec.to_builtins(snapshot), "conversationHistory": history}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _amount(value: object) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else 0.0  # type: ignore[arg-type]


def _number(value: object) -> int:
    return int(_amount(value))


def _time(raw: Mapping[str, Any]) -> int:
    return _number(raw.get("timestamp"))
