"""Defines a chat's stored state outside the log: schema `session_runtime_v2` (CoWork OS R-461, R-462, R-467).

A `Snapshot` is the state at one moment, a `Checkpoint` a snapshot with a structured summary and the exact text it is
based on. Keys are those of CoWork OS (camelCase, times in milliseconds), so that its files can be read. Payloads of
other versions may have more keys; `merge_unknown` copies these to the next payload written.
`context.checkpoints.snapshot` builds payloads, `store.files.checkpoints` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_type_hints

import msgspec

from codecompanion.errors import StoreCorrupt
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

SCHEMA, VERSION = "session_runtime_v2", 2
SNAPSHOT_EVENT = "conversation_snapshot"

Kind = Literal["snapshot", "pre_compaction", "periodic", "completion"]
SummarySource = Literal["snapshot", "compaction_summary", "completion", "fallback"]
Form = Literal["v2", "legacy"]


class _Group(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of all stored values; every field has a default, so that incomplete payloads can be read."""


class TranscriptState(_Group, frozen=True, kw_only=True):
    """The last user and assistant messages, and the cached summary of a chat that has one (R-459)."""

    last_user_message: str = ""
    last_assistant_text: str = ""
    explicit_chat_summary_block: str = ""
    explicit_chat_summary_created_at: int = 0
    explicit_chat_summary_source_message_count: int = 0


class ToolResultRef(_Group, frozen=True, kw_only=True):
    """One tool call and the message with its result."""

    call_id: str
    message_id: str = ""
    name: str = ""
    status: str = ""


class ToolingState(_Group, frozen=True, kw_only=True):
    """The number of runs of each tool, and the newest results."""

    usage_counts: dict[str, int] = {}
    results: tuple[ToolResultRef, ...] = ()


class FilesState(_Group, frozen=True, kw_only=True):
    """The files that were read: path → (cycle, bytes) of the last read."""

    read: dict[str, tuple[int, int]] = {}


class LoopState(_Group, frozen=True, kw_only=True):
    """The position of the agent loop, and its compactions."""

    cycle: int = 0
    compaction_count: int = 0
    last_compaction_at: int = 0
    last_compaction_tokens_before: int = 0
    last_compaction_tokens_after: int = 0
    last_pre_compaction_flush_at: int = 0
    last_pre_compaction_flush_token_count: int = 0


class RecoveryState(_Group, frozen=True, kw_only=True):
    """The last failed turn, and the number of failures since the last success."""

    last_failure: str = ""
    retries: int = 0


class QueueState(_Group, frozen=True, kw_only=True):
    """Messages waiting for a request boundary."""

    pending_follow_ups: tuple[str, ...] = ()


class VerificationState(_Group, frozen=True, kw_only=True):
    """The newest results of commands and diagnostics, as (title, status)."""

    last_results: tuple[tuple[str, str], ...] = ()


class UsageTotals(_Group, frozen=True, kw_only=True):
    """The total cost of the chat; `cost` in US dollars, as far as prices were known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class Snapshot(_Group, frozen=True, kw_only=True):
    """The state of a chat. `conversation_history` is the view, in the transcript format; `timestamp` in ms."""

    schema: str = SCHEMA
    version: int = VERSION
    timestamp: int = 0
    chat_id: str = ""
    title: str = ""
    cwd: str = ""
    adapter: str = ""
    model_id: str = ""
    policy: str = ""
    message_count: int = 0
    conversation_history: tuple[dict[str, Any], ...] = ()
    plan_summary: str = ""
    transcript: TranscriptState = TranscriptState()
    tooling: ToolingState = ToolingState()
    files: FilesState = FilesState()
    loop: LoopState = LoopState()
    recovery: RecoveryState = RecoveryState()
    queues: QueueState = QueueState()
    worker: dict[str, Any] = {}
    verification: VerificationState = VerificationState()
    usage_totals: UsageTotals = UsageTotals()


class StructuredSummary(_Group, frozen=True, kw_only=True):
    """The compact half of a checkpoint (R-467, R-471)."""

    source: SummarySource = "snapshot"
    raw_text: str = ""
    decisions: tuple[str, ...] = ()
    open_loops: tuple[str, ...] = ()
    next_actions: tuple[str, ...] = ()
    key_findings: tuple[str, ...] = ()


class Span(_Group, frozen=True, kw_only=True):
    """An extract of one message (R-468, R-469): `text` is exactly `message[start:end]`, in characters.

    `truncated`: the message is longer. `excerpt`: the text for display, with whitespace collapsed, truncated.
    """

    source_type: str = "task_message"
    object_id: str = ""
    task_id: str = ""
    timestamp: int = 0
    type: str = ""
    excerpt: str = ""
    text: str = ""
    start: int = 0
    end: int = 0
    truncated: bool = False
    seq: int = 0


class EvidencePacket(_Group, frozen=True, kw_only=True):
    """The verbatim half of a checkpoint. `span_hash` covers the whole messages, before any truncation."""

    generated_at: int = 0
    span_hash: str = ""
    span_count: int = 0
    spans: tuple[Span, ...] = ()


class SourceMetadata(_Group, frozen=True, kw_only=True):
    """The event that triggered the checkpoint, and the number of messages exchanged before it."""

    trigger_event_type: str = ""
    meaningful_exchange_count: int = 0


class Checkpoint(Snapshot, frozen=True, kw_only=True):
    """A snapshot with its summary and its evidence (R-467)."""

    id: str = ""
    checkpoint_kind: Kind = "snapshot"
    source_event_id: str = ""
    source_timestamp: int = 0
    resume_strategy: str = "checkpoint"
    structured_summary: StructuredSummary = StructuredSummary()
    evidence_packet: EvidencePacket = EvidencePacket()
    dedupe_hash: str = ""
    source_metadata: SourceMetadata = SourceMetadata()


S = TypeVar("S", bound=Snapshot)
_ENCODER = json.JSONEncoder(separators=(",", ":"))
_AT_ONCE = 250
"""Maximum items of a long list encoded at once, which takes about a millisecond."""


def form_of(raw: object) -> Form | None:
    """Return whether a decoded payload is V2 or legacy (R-474), or None if it is neither."""
    if not isinstance(raw, Mapping):
        return None
    if raw.get("schema") == SCHEMA and raw.get("version") == VERSION:
        return "v2"
    return "legacy" if isinstance(raw.get("conversationHistory"), list) else None


def decode(stored: bytes, where: str) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        StoreCorrupt: the file has no JSON object; the message names the file.
    """
    try:
        raw = json.loads(stored)
    except NOT_READABLE as error:  # bytes that are not UTF-8 are also a ValueError
        raise StoreCorrupt(f"{where} is damaged ({error})") from error
    if not isinstance(raw, dict):
        raise StoreCorrupt(f"{where} is damaged (no JSON object)")
    return raw


def read(raw: Mapping[str, Any], kind: type[S], where: str) -> S:
    """Return a V2 payload as a value; unknown keys are left to `merge_unknown`.

    Raises:
        StoreCorrupt: a known key has a value of the wrong type; the message names the file and the key.
    """
    try:
        return typed.convert(_without_nulls(raw), kind)
    except msgspec.ValidationError as error:
        raise StoreCorrupt(f"{where} is damaged: {error}") from error


def write(payload: Snapshot, previous: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the payload as a JSON object, with the unknown keys of `previous` (R-462)."""
    fresh: dict[str, Any] = msgspec.to_builtins(payload)
    # A snapshot may follow a checkpoint, whose additional keys are also known.
    return merge_unknown(fresh, previous or {}, Checkpoint)


def encode(raw: Mapping[str, Any]) -> bytes:
    """Return the JSON of a payload; lone surrogates are escaped."""
    return _ENCODER.encode(raw).encode("ascii")


def encode_in_slices(raw: Mapping[str, Any]) -> bytes:
    """Return the JSON of a large payload, encoding long lists in slices, so that other threads can run in between."""
    return _written(raw).encode("ascii")


def _written(value: Any) -> str:
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{_ENCODER.encode(key)}:{_written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple) and len(value) > _AT_ONCE:
        slices = (value[start : start + _AT_ONCE] for start in range(0, len(value), _AT_ONCE))
        return "[" + ",".join(_ENCODER.encode(some)[1:-1] for some in slices) + "]"
    return _ENCODER.encode(value)


def encode_each(values: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return the JSON of each value, encoded in one call, which is faster than one call per value."""
    found: list[bytes] = []
    for start in range(0, len(values), _AT_ONCE):
        some = values[start : start + _AT_ONCE]
        # Values are separated by empty strings; inside a string the quotes would be escaped.
        apart = _ENCODER.encode([one for value in some for one in (value, "")])[1:-4].split(',"",')
        # A list in a value may also contain an empty string.
        found += [one.encode("ascii") for one in apart] if len(apart) == len(some) else map(encode, some)
    return found


def merge_unknown(fresh: dict[str, Any], previous: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return `fresh` with the keys of `previous` that `kind` does not have, including those inside its groups."""
    known = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    types = get_type_hints(kind)
    merged = {key: value for key, value in previous.items() if key not in known}
    for key, value in fresh.items():
        group, before = types[known[key]], previous.get(key)
        is_group = isinstance(group, type) and issubclass(group, msgspec.Struct)
        merged[key] = merge_unknown(value, before, group) if is_group and isinstance(before, Mapping) else value
    return merged


def _without_nulls(value: Any) -> Any:
    """Return the value without keys that are null; other writers use null for missing values."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value
