"""The answers of the fake Messages server: the content of a reply (`Reply`), and the bytes of a message.

A reply is data without token counts and signatures; the server adds those when the request is known. Faults that do not
depend on the request (an error, raw bytes, silence) are an `Answer`. The order of events and their fields match
recorded streams: `message_start`, blocks with a `ping` after the first has begun, `message_delta`, `message_stop`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.providers.anthropic.refusals import TYPES, Refusal
from tests.providers.loopback.answers import CLOSE, DROP, END, Answer, Faults, json_answer, plain, silence

REQUEST_ID = "req_0000loopback"


@dataclass(frozen=True)
class Text:
    """A text block."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A signed thinking block; an empty text is thinking that is not displayed."""

    text: str = ""


@dataclass(frozen=True)
class Redacted:
    """A redacted thinking block."""


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` is JSON text, streamed as it is. If `id` is "", the server generates one."""

    name: str
    arguments: str = "{}"
    id: str = ""


Piece = Text | Thinking | Redacted | Call


@dataclass(frozen=True)
class Reply:
    """One scripted reply. If `stop` is None, it is derived from the content.

    summary: the text of a compaction before this reply, None for the server's own text; if the request pauses after it,
    the rest of the reply is omitted. compaction_fails: the compaction writes nothing (`content: null`). An on-demand
    compaction also takes its summary from `summary`; if `stop` is set, it ends with that instead, without a block.
    usage: fields that replace the server's counts.
    """

    pieces: tuple[Piece, ...] = ()
    stop: str | None = None
    summary: str | None = None
    compaction_fails: bool = False
    chunk_chars: int = 4
    faults: Faults = field(default_factory=Faults)
    usage: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Said:
    """A block of the finished message; `arguments` is the JSON text of a call as it is streamed."""

    block: dict[str, Any]
    arguments: str = ""
    whole: bool = False
    """Whether the block is streamed completely in its `content_block_start`, without deltas."""


def reply(
    text: str = "",
    *,
    thinking: str | None = None,
    calls: Sequence[Call] = (),
    stop: str | None = None,
    summary: str | None = None,
    compaction_fails: bool = False,
    chunk_chars: int = 4,
    usage: Mapping[str, Any] | None = None,
    **faults: Any,
) -> Reply:
    """Return the usual reply: thinking, text, calls; `faults` are the arguments of `Faults`."""
    pieces: list[Piece] = [Thinking(thinking)] if thinking is not None else []
    pieces.extend([Text(text)] if text else [])
    return Reply((*pieces, *calls), stop, summary, compaction_fails, chunk_chars, Faults(**faults), dict(usage or {}))


def failure(
    status: int, message: str = "", *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Return an error answer: 429, 500, 529 …; `code` as in `compaction_unavailable`."""
    refusal = Refusal(status, message or TYPES[status].replace("_", " ").capitalize(), code)
    return json_answer(refusal.body(REQUEST_ID), status=status, headers={"request-id": REQUEST_ID, **(headers or {})})


def rate_limited(retry_after_s: str = "1") -> Answer:
    """Return a 429 with a retry time."""
    text = "This request would exceed your organization's rate limit of input tokens per minute."
    return failure(429, text, headers={"retry-after": retry_after_s})


def error_event(kind: str = "overloaded_error", message: str = "Overloaded") -> bytes:
    """Return an error event for the middle of a stream (`Faults.insert`)."""
    error = {"type": "error", "error": {"details": None, "type": kind, "message": message}, "request_id": REQUEST_ID}
    return _event("error", error)


def broken_by_error(after: int, kind: str = "overloaded_error", message: str = "Overloaded") -> dict[str, Any]:
    """Return the faults of a stream that ends with an error event after `after` events."""
    return {"insert": error_event(kind, message), "insert_at": after, "break_after": after + 1, "break_with": END}


def render(
    message: Mapping[str, Any], said: Sequence[Said], start_usage: Mapping[str, Any], wanted: Reply, *, stream: bool
) -> Answer:
    """Return the bytes of a finished message. `start_usage`: the usage in `message_start`."""
    if not stream:
        body = json.dumps({**message, "content": [one.block for one in said]}, ensure_ascii=False).encode()
        return Answer(content_type="application/json", parts=wanted.faults.applied([body]))
    events = list(_events(message, said, start_usage, wanted.chunk_chars))
    return Answer(parts=wanted.faults.applied(events))


def _events(
    message: Mapping[str, Any], said: Sequence[Said], start_usage: Mapping[str, Any], chunk_chars: int
) -> Iterator[bytes]:
    own = {"context_management", "usage", "stop_reason", "stop_sequence", "stop_details"}
    begun = {key: value for key, value in message.items() if key not in own}
    begun |= {"content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None, "usage": start_usage}
    if "context_management" in message:
        begun["context_management"] = None
    yield _event("message_start", {"type": "message_start", "message": begun})
    for index, one in enumerate(said):
        start = {"type": "content_block_start", "index": index, "content_block": _begun_block(one)}
        yield _event("content_block_start", start)
        if index == 0:
            yield _event("ping", {"type": "ping"})
        for delta in () if one.whole else _deltas(one, chunk_chars):
            yield _event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        yield _event("content_block_stop", {"type": "content_block_stop", "index": index})
    final: dict[str, Any] = {
        "type": "message_delta",
        "delta": {key: message[key] for key in ("stop_reason", "stop_sequence", "stop_details")},
        "usage": {key: value for key, value in message["usage"].items() if key in _DELTA_USAGE},
    }
    if "context_management" in message:
        final["context_management"] = message["context_management"]
    yield _event("message_delta", final)
    yield _event("message_stop", {"type": "message_stop"})


_DELTA_USAGE = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "output_tokens_details",
    "iterations",
)


def _begun_block(one: Said) -> dict[str, Any]:
    if one.whole:
        return one.block
    match one.block["type"]:
        case "text":
            return {"type": "text", "text": ""}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "tool_use":
            return {**one.block, "input": {}}
        case "compaction":
            return {"type": "compaction", "content": None}
        case _:
            return one.block


def _deltas(one: Said, chunk_chars: int) -> Iterator[dict[str, Any]]:
    block = one.block
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in _pieces(block["text"], chunk_chars))
        case "thinking":
            for piece in _pieces(block["thinking"], chunk_chars):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            # A call without arguments streams nothing else (recorded).
            for piece in _pieces(one.arguments if one.arguments != "{}" else "", chunk_chars):
                yield {"type": "input_json_delta", "partial_json": piece}
        case "compaction":
            yield {"type": "compaction_delta", **{key: value for key, value in block.items() if key != "type"}}


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(name: str, content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "surrogatepass")


def scripted(entry: Mapping[str, Any]) -> Reply | Answer:
    """Return the answer of a JSON script's entry: `kind` and the arguments of the function of that name."""
    arguments = dict(entry)
    kind = arguments.pop("kind", "reply")
    if "calls" in arguments:
        arguments["calls"] = [Call(**call) for call in arguments["calls"]]
    if "broken_by_error" in arguments:
        arguments |= broken_by_error(**arguments.pop("broken_by_error"))
    for name in ("insert", "body"):
        if isinstance(arguments.get(name), str):
            arguments[name] = arguments[name].encode()
    makers: dict[str, Any] = {
        "reply": reply,
        "failure": failure,
        "rate_limited": rate_limited,
        "plain": plain,
        "silence": silence,
    }
    answer: Reply | Answer = makers[kind](**arguments)
    return answer


__all__ = [
    "CLOSE",
    "DROP",
    "END",
    "Call",
    "Redacted",
    "Reply",
    "Said",
    "Text",
    "Thinking",
    "broken_by_error",
    "error_event",
    "failure",
    "plain",
    "rate_limited",
    "render",
    "reply",
    "scripted",
    "silence",
]
