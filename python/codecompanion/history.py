"""History versus view: the append-only log of a chat and its projection, the next request (R-003, R-301).

`History` is what happened (`LogEvent`s, stored by `store.sessions`); `View` is what will be sent. A view is made by
folding `apply` over the events; every change of the view other than appending is one `ViewChanged` event whose
operations name message ids, so that it can be undone by projecting without it (R-545).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from codecompanion.messages import Message, Usage

ChangeKind = Literal["edited", "compacted", "detached", "cleared", "regenerated", "rules_reread", "restored"]


class Payload(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Base of all log payloads."""


class ChatCreated(Payload, tag="chat_created"):
    """First event of every chat."""

    adapter: str
    model: str
    policy: str
    cwd: str


class TitleSet(Payload, tag="title_set"):
    """The chat's title (the first words of the first user message until something better is known)."""

    title: str


class ModelSet(Payload, tag="model_set"):
    """The chat talks to another adapter or model from here on."""

    adapter: str
    model: str


class MessageAdded(Payload, tag="message_added"):
    """A message joins history and view, at the end, or before message `before` (a summary spliced in, R-531)."""

    message: Message


class UsageReported(Payload, tag="usage_reported"):
    """What the provider counted for the call that gave `message_id`."""

    message_id: str
    adapter: str
    model: str
    usage: Usage
    estimated_prompt_tokens: int


class Insertion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message put into the view after message `after` ("" = at the very front)."""

    message: Message
    after: str = ""


class ViewChanged(Payload, tag="view_changed"):
    """One change of the view: messages removed, replaced in place, inserted. The originals stay in the log.

    `report` holds what the user is told (`cleared`, `call_ids`, `trigger`, `summariser`, `duration_ms` …).
    """

    change_id: str
    kind: ChangeKind
    removed: tuple[str, ...] = ()
    replaced: tuple[Message, ...] = ()
    inserted: tuple[Insertion, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    report: dict[str, Any] = {}


class ChangeUndone(Payload, tag="change_undone"):
    """The change `change_id` no longer counts; `redone` brings it back."""

    change_id: str
    redone: bool = False


class CompactionBegan(Payload, tag="compaction_started"):
    """A compaction runs; without an ending it gets a synthetic `CompactionEnded` on load (reason interrupted)."""

    compaction_id: str
    trigger: Literal["proactive", "reactive", "manual"]
    summariser: str
    tokens_before: int


class CompactionEnded(Payload, tag="compaction_failed"):
    """A compaction ended without changing anything. A successful one ends with its `ViewChanged`."""

    compaction_id: str
    reason: str
    cancelled: bool = False


class TurnBegan(Payload, tag="turn_started"):
    """A user turn: one cycle (R-508)."""

    turn_id: str
    cycle: int


class TurnEnded(Payload, tag="turn_ended"):
    """Control went back to the user."""

    turn_id: str
    reason: Literal["done", "stopped", "failed", "limit", "interrupted"]
    error: str = ""


class RequestSent(Payload, tag="request_sent"):
    """What one provider request was: for `/trace`."""

    turn_id: str
    adapter: str
    model: str
    messages: int
    estimated_tokens: int
    purpose: Literal["chat", "summary"] = "chat"


class ToolRan(Payload, tag="tool_ran"):
    """How a tool call went; the result itself is a `MessageAdded`."""

    call_id: str
    message_id: str
    name: str
    title: str
    summary: str
    status: Literal["ok", "error", "cancelled", "rejected"]
    duration_ms: int


EventPayload = (
    ChatCreated
    | TitleSet
    | ModelSet
    | MessageAdded
    | UsageReported
    | ViewChanged
    | ChangeUndone
    | CompactionBegan
    | CompactionEnded
    | TurnBegan
    | TurnEnded
    | RequestSent
    | ToolRan
)


class LogEvent(msgspec.Struct, frozen=True):
    """One stored event. `seq` rises by 1 within the chat, `ts` is seconds since the epoch."""

    seq: int
    ts: float
    payload: EventPayload


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[EventPayload] = msgspec.json.Decoder(EventPayload)


def encode_payload(payload: EventPayload) -> bytes:
    """Return the payload as JSON."""
    return _ENCODER.encode(payload)


def decode_payload(data: bytes | str) -> EventPayload:
    """Return the payload from JSON; raises `msgspec.MsgspecError` when it is damaged."""
    return _DECODER.decode(data)


def payload_type(payload: EventPayload) -> str:
    """Return the type name stored beside the payload (`message_added`)."""
    return str(payload.__struct_config__.tag)
