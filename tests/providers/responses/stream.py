"""A response as its events or as one JSON object, as recorded from the endpoint: fields, order, sequence numbers.

`render` turns a `Reply` into an `Answer` and enters its items into the ledger. Recorded details that can confuse
clients are kept: deltas carry an `obfuscation`, the encrypted content of a reasoning item differs in `added`, in `done`
and in the finished response, and there is no `[DONE]` at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, assert_never

from tests.providers.loopback.answers import Answer
from tests.providers.loopback.token_count import count
from tests.providers.responses.answers import Call, Compacted, Declined, Failing, Item, Reply, Text, Thought
from tests.providers.responses.ledger import PREFIXES, Ledger

Event = dict[str, Any]
CREATED_AT = 1_700_000_000
_OBFUSCATION = "QkZc7rTnVd0wLx"


@dataclass
class Rendering:
    """One response that is being given."""

    reply: Reply
    body: Mapping[str, Any]
    ledger: Ledger
    response_id: str = ""
    output: list[dict[str, Any]] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    reasoning_tokens: int = 0

    def __post_init__(self) -> None:
        self.response_id = self.response_id or self.ledger.new_id("resp")
        for number, item in enumerate(self.reply.items):
            is_cut = self.reply.incomplete is not None and number == len(self.reply.items) - 1
            self.output.append(self._finished(item, "incomplete" if is_cut else "completed"))
            self.tokens[self.output[-1]["id"]] = _tokens_of(item)
        self.reasoning_tokens = sum(item.tokens for item in self.reply.items if isinstance(item, Thought))

    @property
    def output_tokens(self) -> int:
        """Return the number of generated tokens, including reasoning."""
        return sum(self.tokens.values())

    def response(self, status: str, usage: Mapping[str, Any] | None, **more: Any) -> dict[str, Any]:
        """Return the response object with this status."""
        body = self.body
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": CREATED_AT,
            "status": status,
            "background": False,
            "completed_at": CREATED_AT + 1 if status == "completed" else None,
            "error": None,
            "incomplete_details": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "max_tool_calls": None,
            "model": body.get("model"),
            "output": [],
            "parallel_tool_calls": body.get("parallel_tool_calls", True),
            "previous_response_id": body.get("previous_response_id"),
            "prompt_cache_key": body.get("prompt_cache_key"),
            "reasoning": {"effort": "medium", "summary": None, **(body.get("reasoning") or {})},
            "service_tier": "default",
            "store": body.get("store") is not False,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": body.get("tool_choice", "auto"),
            "tools": body.get("tools") or [],
            "top_logprobs": 0,
            "top_p": 1.0,
            "truncation": body.get("truncation") or "disabled",
            "usage": usage,
            "user": None,
            "metadata": body.get("metadata") or {},
            **more,
        }

    def final(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        """Return the finished response, with its items encrypted again."""
        output = [self._sealed_again(item) for item in self.output]
        if self.reply.incomplete:
            details = {"reason": self.reply.incomplete}
            return self.response("incomplete", usage, output=output, incomplete_details=details)
        return self.response("completed", usage, output=output)

    def events(self, usage: Mapping[str, Any]) -> list[bytes]:
        """Return the stream, event by event."""
        start = [
            {"type": f"response.{name}", "response": self.response("in_progress", None)}
            for name in ("created", "in_progress")
        ]
        queues = [self._item_events(*pair) for pair in enumerate(zip(self.reply.items, self.output, strict=True))]
        failing = self.reply.failing
        final = self.final(usage)
        events = [*start, *_in_order(queues, mixed=self.reply.interleaved)]
        if failing:
            events = [*events[: failing.after], self._failure(failing)]
        else:
            events.append({"type": f"response.{final['status']}", "response": final})
        return [_as_bytes(event, number) for number, event in enumerate(events)]

    def failed(self, failing: Failing) -> dict[str, Any]:
        """Return the failed response."""
        return self.response("failed", None, error={"code": failing.code, "message": failing.message})

    def _failure(self, failing: Failing) -> Event:
        if not failing.as_event:
            return {"type": "response.failed", "response": self.failed(failing)}
        error = {"code": failing.code, "message": failing.message, "param": None}
        return (
            {"type": "error", "error": {"type": "invalid_request_error", **error}}
            if failing.nested
            else ({"type": "error", **error})
        )

    def _finished(self, item: Item, status: str) -> dict[str, Any]:
        kind = _kind(item)
        own = self.ledger.new_id(PREFIXES[kind], self.response_id)
        base = {"id": own, "type": kind}
        match item:
            case Text() | Declined():
                phase = {"phase": item.phase} if isinstance(item, Text) and item.phase else {}
                return {**base, "status": status, "content": [_part(item, item.text)], **phase, "role": "assistant"}
            case Thought():
                sealed = {"encrypted_content": self.ledger.seal(own, _sealed_chars(item))}
                seal = sealed if self._seals_reasoning else {}
                summary = [{"type": "summary_text", "text": text} for text in item.summary]
                return {**base, "content": [], **seal, "summary": summary}
            case Call():
                call_id = item.call_id or self.ledger.new_id("call")
                return {**base, "status": status, "arguments": item.arguments, "call_id": call_id, "name": item.name}
            case Compacted():
                return {**base, "encrypted_content": self.ledger.seal(own, _sealed_chars(item))}
            case _:
                assert_never(item)

    @property
    def _seals_reasoning(self) -> bool:
        return "reasoning.encrypted_content" in (self.body.get("include") or ())

    def _sealed_again(self, item: dict[str, Any], *, finished: bool = True) -> dict[str, Any]:
        if "encrypted_content" not in item:
            return item
        chars = len(item["encrypted_content"])
        return {**item, "encrypted_content": self.ledger.seal(item["id"], chars, finished=finished)}

    def _item_events(self, index: int, pair: tuple[Item, dict[str, Any]]) -> list[Event]:
        item, finished = pair
        own = {"item_id": finished["id"], "output_index": index}
        empty = {"content": [], "summary": [], "arguments": "", "status": "in_progress"}
        missing = {key: value for key, value in empty.items() if key in finished}
        started = {**self._sealed_again(finished, finished=False), **missing}
        match item:
            case Text() | Declined():
                middle = self._message_events(item, {**own, "content_index": 0})
            case Thought():
                middle = [event for pair in enumerate(item.summary) for event in self._summary_events(*pair, own)]
            case Call():
                name = "response.function_call_arguments"
                middle = self._deltas(f"{name}.delta", item.arguments, own)
                middle.append({"type": f"{name}.done", **own, "arguments": item.arguments})
            case Compacted():
                # "Emitted when new summary content is sampled for a compaction trigger"; not seen for a threshold.
                times = 2 if _has_trigger(self.body) else 0
                middle = [{"type": "response.compaction.compacting", **own} for _ in range(times)]
            case _:
                assert_never(item)
        return [
            {"type": "response.output_item.added", "output_index": index, "item": started},
            *middle,
            {"type": "response.output_item.done", "output_index": index, "item": finished},
        ]

    def _message_events(self, item: Text | Declined, own: Event) -> list[Event]:
        name, key = ("output_text", "text") if isinstance(item, Text) else ("refusal", "refusal")
        more: Event = {"logprobs": []} if isinstance(item, Text) else {}
        return [
            {"type": "response.content_part.added", **own, "part": _part(item, "")},
            *({**event, **more} for event in self._deltas(f"response.{name}.delta", item.text, own)),
            {"type": f"response.{name}.done", **own, key: item.text, **more},
            {"type": "response.content_part.done", **own, "part": _part(item, item.text)},
        ]

    def _summary_events(self, number: int, text: str, own: Event) -> list[Event]:
        own = {**own, "summary_index": number}
        name = "response.reasoning_summary_text"
        return [
            {"type": "response.reasoning_summary_part.added", **own, "part": {"type": "summary_text", "text": ""}},
            *self._deltas(f"{name}.delta", text, own),
            {"type": f"{name}.done", **own, "text": text},
            {"type": "response.reasoning_summary_part.done", **own, "part": {"type": "summary_text", "text": text}},
        ]

    def _deltas(self, kind: str, text: str, own: Event) -> list[Event]:
        size = self.reply.chunk_chars
        hides = (self.body.get("stream_options") or {}).get("include_obfuscation") is not False
        more = {"obfuscation": _OBFUSCATION} if hides else {}
        return [{"type": kind, **own, "delta": text[k : k + size], **more} for k in range(0, len(text), size)]


def render(rendering: Rendering, usage: Mapping[str, Any]) -> Answer:
    """Return the answer, as a stream if the request asks for one."""
    reply = rendering.reply
    if rendering.body.get("stream"):
        return Answer(parts=reply.faults.applied(rendering.events(usage)))
    value = rendering.failed(reply.failing) if reply.failing else rendering.final(usage)
    parts = reply.faults.applied([json.dumps(value, ensure_ascii=False).encode()])
    return Answer(content_type="application/json", parts=parts)


def _kind(item: Item) -> str:
    match item:
        case Text() | Declined():
            return "message"
        case Thought():
            return "reasoning"
        case Call():
            return "function_call"
        case Compacted():
            return "compaction"
        case _:
            assert_never(item)


def _tokens_of(item: Item) -> int:
    match item:
        case Text() | Declined():
            return count(item.text)
        case Thought() | Compacted():
            return item.tokens
        case Call():
            return count(item.name) + count(item.arguments)
        case _:
            assert_never(item)


def _sealed_chars(item: Thought | Compacted) -> int:
    """Return the length of encrypted content, from recordings of reasoning up to 2,500 tokens and two compactions."""
    return round(1_060 + 6.2 * item.tokens if isinstance(item, Thought) else 1_000 + 9 * item.tokens)


def _part(item: Text | Declined, text: str) -> Event:
    if isinstance(item, Declined):
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _has_trigger(body: Mapping[str, Any]) -> bool:
    given = body.get("input")
    return isinstance(given, list) and bool(given) and given[-1].get("type") == "compaction_trigger"


def _in_order(queues: list[list[Event]], *, mixed: bool) -> Iterable[Event]:
    """Return the events of all items, one item after the other or alternating between the items."""
    rounds = zip_longest(*queues) if mixed else queues
    return [event for events in rounds for event in events if event is not None]


def _as_bytes(event: Event, number: int) -> bytes:
    text = json.dumps({**event, "sequence_number": number}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {text}\n\n".encode()
