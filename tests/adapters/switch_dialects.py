"""Differences between compatible endpoints that matter to a chat from elsewhere: their messages and their refusals.

Sources are the providers' own pages, mistral-common's validator and 400 errors reported by users of other clients.
Mistral accepts call ids of nine letters and digits, and no user message directly after a tool result. Gemini requires a
signature on the first call of each of its replies in the current turn. OpenRouter requires `reasoning_details`
unchanged. Kimi requires `reasoning_content` with every call. OpenAI rejects long ids, which vLLM creates.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tests.adapters.switch_story import Step
from tests.providers.chat.answers import Call, Counted, interleave
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.answers import DROP, Answer
from tests.providers.loopback.server import Received
from tests.providers.openai.refusal import Refusal

_ANY_SIGNATURE = "skip_thought_signature_validator"


@dataclass
class Dialect:
    """The dialect of one endpoint. `made` contains the seals it issued, so that it recognises them."""

    salt: str = ""
    made: dict[str, Any] = field(default_factory=dict)

    def deltas(self, step: Step, number: int) -> Iterator[dict[str, Any]]:
        """Yield the deltas of a reply."""
        yield {"role": "assistant", "content": "", "refusal": None}
        if step.thinking is not None:
            yield from self.thinking(step.thinking, number)
        size = 4 if step.ending == "cut" else 400
        for start in range(0, len(step.text), size):
            yield {"content": step.text[start : start + size]}
        calls = [
            Call(call.name, call.arguments, self.call_id(call.id, f"{number}-{k}", call.name))
            for k, call in enumerate(step.calls)
        ]
        signed = False
        for delta in interleave(calls, 300):
            if "id" in delta and not signed:
                delta, signed = self.signed(delta, number), True
            yield {"tool_calls": [delta]}

    def thinking(self, text: str, number: int) -> Iterator[dict[str, Any]]:
        """Yield the deltas of reasoning."""
        yield {"reasoning_content": text}

    def call_id(self, written: str, number: str, name: str) -> str:
        """Return the id of a call; at this endpoint the model writes it."""
        return written or f"call_{number}"

    def signed(self, delta: dict[str, Any], number: int) -> dict[str, Any]:
        """Return the delta that starts the first call of a reply."""
        return delta

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the reason for refusing messages that OpenAI accepts, or "" if they are accepted."""
        return ""

    def seal(self, number: int) -> str:
        """Return an unguessable text."""
        return hashlib.sha256(f"{self.salt}:{number}".encode()).hexdigest()


class OpenAI(Dialect):
    """Accepts ids of at most 40 characters; its own are shorter."""

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        for number, message in enumerate(messages):
            for index, call in enumerate(message.get("tool_calls") or ()):
                if len(call["id"]) > 40:
                    text = f"Expected a string with maximum length 40, but got a string with length {len(call['id'])}"
                    return f"Invalid 'messages[{number}].tool_calls[{index}].id': string too long. {text} instead."
        return ""


class VLLM(Dialect):
    """Long ids."""

    def call_id(self, written: str, number: str, name: str) -> str:
        return f"chatcmpl-tool-{hashlib.md5(f'{self.salt}{number}'.encode(), usedforsecurity=False).hexdigest()}"


class Mistral(Dialect):
    """Sends thinking as part of `content`, and takes ids of nine letters and digits.

    Requires an assistant message between a tool result and a user message.
    """

    def thinking(self, text: str, number: int) -> Iterator[dict[str, Any]]:
        yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}

    def call_id(self, written: str, number: str, name: str) -> str:
        return hashlib.sha256(f"{self.salt}{number}".encode()).hexdigest()[:9]

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        for before, message in pairwise(messages):
            if before["role"] == "tool" and message["role"] in ("user", "system"):
                return f"Unexpected role '{message['role']}' after role 'tool'"
        if messages[-1]["role"] not in ("user", "tool"):
            return "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
        ids = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        for call_id in [*ids, *(call["id"] for message in messages for call in message.get("tool_calls") or ())]:
            if not re.fullmatch("[a-zA-Z0-9]{9}", call_id):
                return f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."
        return ""


class Gemini(Dialect):
    """Signed calls."""

    def call_id(self, written: str, number: str, name: str) -> str:
        return f"function-call-{number}"

    def signed(self, delta: dict[str, Any], number: int) -> dict[str, Any]:
        seal = self.seal(number)
        self.made[seal] = True
        return {**delta, "extra_content": {"google": {"thought_signature": seal}}}

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        running = max(k for k, message in enumerate(messages) if message["role"] == "user")
        for number, message in enumerate(messages):
            calls = message.get("tool_calls") or ()
            given = [((call.get("extra_content") or {}).get("google") or {}).get("thought_signature") for call in calls]
            if any(seal is not None and seal != _ANY_SIGNATURE and seal not in self.made for seal in given):
                return "Thought signature is not valid."
            if given and given[0] is None and number > running:
                return "Function call is missing a thought_signature in functionCall parts."
        return ""


class OpenRouter(Dialect):
    """Requires reasoning to be sent back as the array in which it arrived."""

    def thinking(self, text: str, number: int) -> Iterator[dict[str, Any]]:
        readable = {"type": "reasoning.text", "text": text, "index": 0, "format": "anthropic-claude-v1"}
        sealed = {"type": "reasoning.encrypted", "data": self.seal(number), "index": 1, "id": f"rs_{number}"}
        self.made[json.dumps([readable, sealed], sort_keys=True)] = True
        yield {"reasoning": text, "reasoning_details": [readable]}
        yield {"reasoning_details": [sealed]}

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        for message in messages:
            details = message.get("reasoning_details")
            if details is not None and json.dumps(details, sort_keys=True) not in self.made:
                return "Invalid `reasoning_details`: they must be passed back unmodified."
        return ""


class Kimi(Dialect):
    """Requires reasoning with every call that is sent back; its ids contain dots and colons."""

    def call_id(self, written: str, number: str, name: str) -> str:
        return f"functions.{name}:{number}"

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str:
        for number, message in enumerate(messages):
            if message.get("tool_calls") and "reasoning_content" not in message:
                return f"reasoning_content is missing in assistant tool call message at index {number}"
        return ""


@dataclass(frozen=True)
class DialectStep(Counted):
    """A story step in a dialect, with the server's own usage figures."""

    dialect: Dialect = field(default_factory=Dialect)
    step: Step = field(default_factory=Step)
    number: int = 0

    def answer(self, usage: dict[str, Any] | None, *, streams: bool) -> Answer:
        """Return the stream."""
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "test-model"}
        finish = {"length": "length"}.get(self.step.ending, "tool_calls" if self.step.calls else "stop")
        choices = [{"index": 0, "delta": d, "finish_reason": None} for d in self.dialect.deltas(self.step, self.number)]
        parts: list[Any] = [_event({**base, "choices": [choice]}) for choice in choices]
        if self.step.ending == "cut":
            return Answer(parts=(*parts[:-2], DROP))
        parts.append(_event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
        if usage is not None:
            parts.append(_event({**base, "choices": [], "usage": usage}))
        return Answer(parts=(b"".join(parts) + b"data: [DONE]\n\n",))


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode("utf-8", "replace") + b"\n\n"


class DialectServer(ChatServer):
    """A Chat Completions server that also refuses the requests its dialect refuses."""

    def __init__(self, dialect: Dialect, **options: Any) -> None:
        super().__init__(**options)
        self.dialect = dialect

    def _refusal(self, request: Received) -> Refusal | None:
        refusal = super()._refusal(request)
        words = "" if refusal is not None else self.dialect.refusal(request.json["messages"])
        code = "string_above_max_length" if "string too long" in words else None
        return Refusal(400, words, code) if words else refusal
