"""The answers of the loopback server, as lists of bytes, pauses and breaks: the exact bytes on the wire.

`reply(…)` produces the bytes of a real Chat Completions stream; every fault is an argument. An answer is data: a test
that needs other bytes builds an `Answer` itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.providers.loopback.answers import CLOSE, DROP, Answer, Faults, Part, failure, json_answer, plain, silence
from tests.providers.loopback.token_count import count

__all__ = [
    "CLOSE",
    "DROP",
    "Answer",
    "Call",
    "Counted",
    "answer_from",
    "counted",
    "failure",
    "plain",
    "reply",
    "silence",
    "whole_reply",
]


@dataclass(frozen=True)
class Call:
    """A tool call of a scripted reply; `arguments` is JSON text. If `id` is "", the deltas have no id."""

    name: str
    arguments: str = "{}"
    id: str = ""
    index: int | None = None


@dataclass
class _Stream:
    model: str
    created: int = 1_700_000_000
    events: list[bytes] = field(default_factory=list)
    line_end: bytes = b"\n"

    def add(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> None:
        self.add_chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}], **more)

    def add_chunk(self, choices: list[Any], **more: Any) -> None:
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": self.created, "model": self.model}
        self.add_data(json.dumps({**chunk, "choices": choices, **more}, ensure_ascii=False, separators=(",", ":")))

    def add_data(self, text: str) -> None:
        self.events.append(b"data: " + text.encode() + self.line_end * 2)


def reply(
    text: str = "",
    *,
    calls: Sequence[Call] = (),
    reasoning: str = "",
    reasoning_field: str = "reasoning_content",
    model: str = "test-model",
    chunk_chars: int = 4,
    finish: str | None = None,
    usage: dict[str, Any] | None = None,
    done: bool = True,
    crlf: bool = False,
    split_bytes: int = 0,
    one_chunk: bool = False,
    delay_s: float = 0.0,
    gate: asyncio.Event | None = None,
    gate_after: int = 1,
    break_after: int | None = None,
    break_with: Part = DROP,
    insert: bytes = b"",
    insert_at: int = 0,
    whole_arguments: bool = False,
    content_type: str = "text/event-stream; charset=utf-8",
) -> Answer:
    """Return a streamed reply.

    finish: None for the appropriate finish reason. usage: a final chunk with this report. split_bytes: cut the stream
    into parts of this size, each its own HTTP chunk; one_chunk: send everything at once. delay_s: pause before each
    event. gate: wait for it after `gate_after` events. break_after: `break_with` after that many events. insert: raw
    bytes before event `insert_at`.
    """
    stream = _Stream(model, line_end=b"\r\n" if crlf else b"\n")
    stream.add({"role": "assistant", "content": "", "refusal": None})
    for start in range(0, len(reasoning), chunk_chars):
        stream.add({reasoning_field: reasoning[start : start + chunk_chars]})
    for start in range(0, len(text), chunk_chars):
        stream.add({"content": text[start : start + chunk_chars]})
    for delta in interleave(calls, chunk_chars, whole=whole_arguments):
        stream.add({"tool_calls": [delta]})
    stream.add({}, finish or ("tool_calls" if calls else "stop"))
    if usage is not None:
        stream.add_chunk([], usage=usage)
    if done:
        stream.add_data("[DONE]")
    faults = Faults(delay_s, gate, gate_after, break_after, None, break_with, insert, insert_at, split_bytes, one_chunk)
    return Answer(parts=faults.applied(stream.events), content_type=content_type)


def interleave(calls: Sequence[Call], chunk_chars: int, *, whole: bool = False) -> list[dict[str, Any]]:
    """Return tool-call deltas as OpenAI sends parallel calls, but interleaved: one fragment of each call in turn."""
    queues: list[list[dict[str, Any]]] = []
    for position, call in enumerate(calls):
        index = position if call.index is None else call.index
        first: dict[str, Any] = {"index": index, "type": "function", "function": {"name": call.name, "arguments": ""}}
        if call.id:
            first["id"] = call.id
        if whole:
            first["function"]["arguments"] = call.arguments
            queues.append([first])
            continue
        pieces = [call.arguments[k : k + chunk_chars] for k in range(0, len(call.arguments), chunk_chars)]
        queues.append([first, *({"index": index, "function": {"arguments": piece}} for piece in pieces)])
    deltas: list[dict[str, Any]] = []
    while any(queues):
        deltas.extend(queue.pop(0) for queue in queues if queue)
    return deltas


def whole_reply(text: str, *, calls: Sequence[Call] = (), usage: dict[str, Any] | None = None) -> Answer:
    """Return a reply that is one JSON object, as sent by gateways that cannot stream."""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    finish = "tool_calls" if calls else "stop"
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}]
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "test-model", "choices": choices, "usage": usage}
    return json_answer(body)


@dataclass(frozen=True)
class Counted:
    """A reply for which the server computes the usage: tokens read, tokens cached, tokens written."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """More arguments of `reply`; a reply that is not streamed has none."""

    def usage(self, prompt_tokens: int, cached_tokens: int) -> dict[str, Any]:
        """Return the usage of this reply to a prompt of `prompt_tokens` tokens."""
        reasoning = count(self.arguments.get("reasoning", ""))
        said = count(self.text) + sum(count(call.name) + count(call.arguments) for call in self.calls)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": said + reasoning,
            "total_tokens": prompt_tokens + said + reasoning,
            "prompt_tokens_details": {"cached_tokens": cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": reasoning, "audio_tokens": 0},
        }

    def answer(self, usage: dict[str, Any] | None, *, streams: bool) -> Answer:
        """Return the answer with that usage."""
        if streams:
            return reply(self.text, calls=self.calls, usage=usage, **self.arguments)
        return whole_reply(self.text, calls=self.calls, usage=usage)


def counted(text: str = "", *, calls: Sequence[Call] = (), **arguments: Any) -> Counted:
    """Return a reply with the server's own usage; the arguments are those of `reply`."""
    return Counted(text, tuple(calls), arguments)


def answer_from(entry: dict[str, Any]) -> Answer | Counted:
    """Return the answer described by an entry of a JSON script."""
    arguments = dict(entry)
    kind = arguments.pop("kind", "reply")
    if "calls" in arguments:
        arguments["calls"] = [Call(**call) for call in arguments["calls"]]
    for name in ("insert", "body"):
        if isinstance(arguments.get(name), str):
            arguments[name] = arguments[name].encode()
    makers = {
        "reply": reply,
        "whole_reply": whole_reply,
        "counted": counted,
        "failure": failure,
        "plain": plain,
        "silence": silence,
    }
    answer: Answer | Counted = makers[kind](**arguments)  # type: ignore[operator]
    return answer
