"""Defines the event types of a chat's append-only log, and their encoding (R-003, R-301).

`LogEvent`s record what happened and are stored by `store.log.event_rows`; the next request is derived from them
(`model.view`). Every change of the view other than appending is one `ViewChanged` event whose operations name message
ids, so it can be undone by projecting without it (R-545). All payloads are in this one file, which defines the format.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import msgspec

from codecompanion.formats import typed
from codecompanion.model.change_report import NO_REPORT, ChangeReport
from codecompanion.model.messages import Message, Usage

ChangeKind = Literal[
    "edited", "compacted", "detached", "cleared", "pinned", "unpinned", "restored",
    "regenerated", "rules_reread", "repaired", "tools_chosen",
]  # fmt: skip


class Payload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Base of all log payloads."""


class ChatCreated(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="chat_created"):
    """The first event of every chat; `purpose` as in `requests.OpenChat`, or "" for a chat with a buffer."""

    adapter: str
    model: str
    policy: str
    cwd: str
    purpose: str = ""


class TitleSet(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="title_set"):
    """The chat's title: the first words of its first message, or the user's own (`by_user`)."""

    title: str
    by_user: bool = False


class ChatForked(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="chat_forked"):
    """The chat was branched: all events before this one are a copy of chat `from_chat`, where their cost is counted.

    `at_message`: the message that was edited and is not in the copy, or "" if the whole chat was copied. `family`: the
    first chat of the tree of branches.
    """

    from_chat: str
    family: str
    at_message: str = ""
    from_title: str = ""


class ModelSet(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="model_set"):
    """The chat switched to another adapter or model."""

    adapter: str
    model: str


class PolicySet(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="policy_set"):
    """The chat switched to another policy; "" means the configured one."""

    policy: str


class PauseEnded(Payload, frozen=True, omit_defaults=True, tag="pause_ended"):
    """The pause after an undo ended, because the user requested a compaction, even if nothing could be compacted."""


class MessageAdded(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="message_added"):
    """A message was appended to history and view. `submit`: the id of the editor's submit that added it."""

    message: Message
    submit: str = ""


class ServerEdited(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Content that a provider left out of a request (R-541): the provider's term for it, and its tokens and items."""

    kind: str
    cleared_tokens: int = 0
    cleared_items: int = 0


class Prices(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """List prices of a model in US dollars per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0


class ReadTwice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Prompt tokens that the user's own server had to reread, and why (`restart`, `other_request`, "" if unknown)."""

    tokens: int
    why: str = ""


class UsageReported(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="usage_reported"):
    """The provider's token counts for the call that produced `message_id`.

    `other_passes`: calls billed with it that are not part of the context (R-538), such as the provider's compaction.
    An empty `usage`: they produced no reply, but a compaction (`message_id`) or what the `purpose` names. `cost_usd`:
    the total at the prices of that day, None if unknown; `prices`: those for a prompt of that size. `included`: free of
    charge, as a subscription covers it or (`local`) the user's own server answered. `request_id`: the `RequestSent`.
    """

    message_id: str
    adapter: str
    model: str
    usage: Usage
    estimated_prompt_tokens: int
    other_passes: tuple[Usage, ...] = ()
    server_edits: tuple[ServerEdited, ...] = ()
    cost_usd: float | None = None
    prices: Prices | None = None
    included: bool = False
    local: bool = False
    request_id: str = ""
    read_again: ReadTwice | None = None
    purpose: Literal["", "sampling", "gathering"] = ""


class Insertion(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A message inserted into the view after message `after` ("" = at the very beginning)."""

    message: Message
    after: str = ""


class ViewChanged(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="view_changed"):
    """One change of the view: messages removed, replaced in place, inserted. The originals stay in the log.

    `tools`: the tools and groups now chosen (`session.toolbox.tool_groups`); () means as configured, None that this
    change does not choose tools.
    """

    change_id: str
    kind: ChangeKind
    removed: tuple[str, ...] = ()
    replaced: tuple[Message, ...] = ()
    inserted: tuple[Insertion, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    report: ChangeReport = NO_REPORT
    tools: tuple[str, ...] | None = None


class ChangeUndone(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="change_undone"):
    """The change `change_id` was undone or, with `redone`, restored.

    `by_user` is false if a provider's own compaction was discarded with its provider (R-542); redo is then not offered.
    """

    change_id: str
    redone: bool = False
    by_user: bool = False


class CompactionStarted(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="compaction_started"):
    """A compaction began; if it has no end event, a `CompactionFailed` (reason interrupted) is added on load.

    `failed_event`: the policy's own name for that end, or "" if it has none (R-332).
    """

    compaction_id: str
    trigger: Literal["proactive", "reactive", "manual"]
    summariser: str
    tokens_before: int
    failed_event: str = ""


class CompactionFailed(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="compaction_failed"):
    """A compaction ended without changing anything. A successful compaction ends with its `ViewChanged`."""

    compaction_id: str
    reason: str
    cancelled: bool = False


class TurnStarted(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="turn_started"):
    """A user turn, which is one cycle (R-508), began."""

    turn_id: str
    cycle: int


class TurnEnded(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="turn_ended"):
    """The turn ended, and control is back with the user."""

    turn_id: str
    reason: Literal["done", "stopped", "failed", "limit", "interrupted"]
    error: str = ""


class Shaping(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How a request's messages differ from the view, as changes since the previous request (R-328).

    `replaced`: messages sent instead of those with the same ids; `packets`: sent before the turn of their cycle;
    `dropped`: ids no longer sent. `whole`: relative to the view itself, not to the previous request.
    """

    replaced: tuple[Message, ...] = ()
    packets: tuple[Message, ...] = ()
    dropped: tuple[str, ...] = ()
    whole: bool = False


class RequestSent(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="request_sent"):
    """One provider request, for `/trace` and the inspector.

    `mix`: the estimate by parts: `prompt` (instructions), `conversation`, `tools`. `shaping`: content left out of only
    this request, in tokens: `prompt`, `tools`, `results`, `packet`, `packet_omitted`. `limits`: the size of the
    `window`, and the thresholds of an `edit` and a `compaction`, in tokens; unknown or disabled ones are omitted.
    `prompt` and `tools` name the stored system prompt and tool schemas, "" in logs of earlier versions. A summary
    request has one message, named by `prompt`, and is described by `asked`; `in_place`: the message followed the chat.
    """

    turn_id: str
    adapter: str
    model: str
    messages: int
    estimated_tokens: int
    purpose: Literal["chat", "summary"] = "chat"
    asked: str = ""
    request_id: str = ""
    mix: dict[str, int] = {}
    shaping: dict[str, int] = {}
    limits: dict[str, int] = {}
    prompt: str = ""
    tools: str = ""
    shaped: Shaping | None = None
    max_output_tokens: int = 0
    compact_at: int = 0
    in_place: bool = False


class Retry(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A failed attempt of a request: the reason, and the delay before the next attempt."""

    reason: str
    wait_ms: int = 0


class RequestEnded(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="request_ended"):
    """A provider request ended: its stop reason, `failed` or `stopped`. Without this event it was interrupted."""

    request_id: str
    result: str
    duration_ms: int
    error: str = ""
    retries: tuple[Retry, ...] = ()


class ChangeShown(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A file change as shown in a tool's fold; `diff` is truncated to the displayed part."""

    change_id: str
    path: str
    added: int
    removed: int
    diff: str = ""


class ToolRan(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="tool_ran"):
    """The outcome of a tool call; the result itself is a `MessageAdded`."""

    call_id: str
    message_id: str
    name: str
    title: str
    summary: str
    status: Literal["ok", "error", "cancelled", "rejected"]
    duration_ms: int
    change: ChangeShown | None = None


FileChangeState = Literal["written", "unsaved", "failed", "unknown", "interrupted"]


class HunksGone(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename={"hunks": "places"}):
    """Hunks of a tool's change that are missing from its file, as 0-based indexes; `of`: the number of all hunks.

    Logs have them under `places`, the name that earlier versions read.
    """

    change_id: str
    hunks: tuple[int, ...]
    of: int


class FileChangeStarted(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="file_change_started"):
    """A file is about to be changed. `before` and `after`: the sha256 of the contents, or "" if there is no file.

    `path`: absolute; `name`: the displayed path. A file may exist although `before` is "", if it is too large to be
    kept or a symbolic link to `link`. `reverts`: the changes that this one undoes; `gone`: the hunks of the tools'
    changes that are missing afterwards. This event does not change the view.
    """

    change_id: str
    path: str
    name: str
    turn_id: str = ""
    call_id: str = ""
    before: str = ""
    after: str = ""
    mode: int = 0
    link: str = ""
    reverts: tuple[str, ...] = ()
    gone: tuple[HunksGone, ...] = ()


class FileChangeEnded(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="file_change_ended"):
    """A file change ended; without this event the host was interrupted, and the file is in either state.

    `unsaved`: the change was made in the editor's buffer, which had unsaved changes. `after`: the actual content if it
    differs from the requested content (format on save).
    """

    change_id: str
    state: FileChangeState
    after: str = ""
    added: int = 0
    removed: int = 0
    reason: str = ""


class PolicyEvent(Payload, frozen=True, omit_defaults=True, kw_only=True, tag="policy_event"):
    """An event of a policy under its own documented name (R-328, R-423, R-453).

    `context.named_events` defines the names and builds the `fields` (plain JSON values). Events of one compaction carry
    its `compaction_id` (R-332). These events do not change the view.
    """

    name: str
    fields: dict[str, Any] = {}
    compaction_id: str = ""


EventPayload = (
    ChatCreated
    | TitleSet
    | ChatForked
    | ModelSet
    | PolicySet
    | PauseEnded
    | MessageAdded
    | UsageReported
    | ViewChanged
    | ChangeUndone
    | CompactionStarted
    | CompactionFailed
    | TurnStarted
    | TurnEnded
    | RequestSent
    | RequestEnded
    | ToolRan
    | FileChangeStarted
    | FileChangeEnded
    | PolicyEvent
)


class LogEvent(msgspec.Struct, frozen=True, gc=False):
    """One stored event. `seq` rises by 1 within the chat; `ts`: seconds since the epoch."""

    seq: int
    ts: float
    payload: EventPayload


_ENCODER = msgspec.json.Encoder()


@cache
def _decoder() -> msgspec.json.Decoder[EventPayload]:
    return typed.json_decoder(EventPayload)  # reads the annotations of all types, so not at startup


def encode_payload(payload: EventPayload) -> bytes:
    """Return the payload as JSON."""
    return _ENCODER.encode(payload)


def decode_payload(data: bytes | str) -> EventPayload:
    """Return the payload from JSON; raises `msgspec.MsgspecError` or `UnicodeDecodeError` if it is damaged."""
    return _decoder().decode(data)


def payload_type(payload: EventPayload) -> str:
    """Return the type name stored beside the payload (`message_added`)."""
    return str(payload.__struct_config__.tag)
