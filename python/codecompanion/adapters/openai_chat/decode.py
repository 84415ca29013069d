"""Decodes the reply of a Chat Completions endpoint, as stream payloads or as one JSON object, into stream events.

Pure and incremental; the transport is in `http/`. Text deltas that arrive together are joined, so that a burst of
chunks costs the rest of the host one event. Source: the Chat Completions reference and recorded traffic.

When a reply is complete (lesson 39): all recorded streams of OpenAI, OpenRouter, DeepSeek and Hugging Face have a
`finish_reason` and then `data: [DONE]`; Copilot and Mistral were also recorded ending the HTTP body after the
`finish_reason`. A reply is therefore complete with a `finish_reason` followed by `[DONE]` or a clean end of the body.
`[DONE]` alone proves nothing: gateways append it to a reply that their upstream cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from codecompanion.adapters.base import (
    Finished,
    PromptRead,
    ReasoningDone,
    StopReason,
    StreamEvent,
)
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.reasoning_details import ReasoningDetails, copilot_entry
from codecompanion.adapters.openai_chat.tool_deltas import ToolCallAssembler, ToolDelta
from codecompanion.adapters.openai_chat.usage import normalise_usage, read_and_cached
from codecompanion.adapters.reply_decoder import ReplyDecoder, decode_payload
from codecompanion.adapters.reply_events import require_few_parts
from codecompanion.adapters.speed import read_timings
from codecompanion.adapters.sse import ErrorData
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

_STOP_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
    "refusal": "filtered",
}
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking")
MISTRAL_THINKING = "content.thinking"
"""`ReasoningDelta.field` for reasoning that arrived as a part of `content` (Mistral)."""
DETAILS_FIELD = "reasoning_details"
"""`ReasoningDelta.field` for reasoning that is sent back as the array that contained it (OpenRouter)."""


class _Delta(msgspec.Struct):
    content: Any = None
    refusal: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    reasoning_details: Any = None
    reasoning_text: Any = None
    reasoning_opaque: Any = None
    tool_calls: list[ToolDelta] | None = None


class _Choice(msgspec.Struct):
    index: int | None = None
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: Any = None
    usage: Any = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    base_resp: Any = None
    object: Any = None
    model: Any = None
    x_groq: Any = None
    prompt_progress: Any = None
    timings: Any = None
    done: Any = None


MAX_PROMPT_TOKENS = 10**9
_DECODER = typed.json_decoder(_Chunk)


class ChatDecoder(ReplyDecoder):
    """Decodes one reply; `origin` is attached to parts that only this endpoint can read."""

    def __init__(self, endpoint: Endpoint, new_id: Callable[[], str], origin: str = "") -> None:
        super().__init__(endpoint)
        self._origin = origin
        self._calls = ToolCallAssembler(new_id, self._out, origin)
        self._details = ReasoningDetails(self._out)
        self._finish_reason = ""
        self._is_whole = False
        """Whether the body is known to be complete: `[DONE]` arrived, or it is one JSON object."""
        self._usage: object = None
        self._model = ""

    def _read_whole(self, body: bytes) -> list[StreamEvent]:
        """Read a whole reply that is one JSON object (a gateway that does not stream)."""
        events = self._take([body])
        self._is_whole = True
        if self.problem is None:
            self._close(events)
        return events

    def _read(self, payload: bytes) -> None:
        if payload[:6] == b"[DONE]":
            self.seen_done = self._begun = self._is_whole = True
            return
        if type(payload) is ErrorData:
            self._fail(payload)
            return
        try:
            chunk = decode_payload(_DECODER, payload)
        except msgspec.ValidationError as error:
            self._refuse_event(f"a chunk does not match the Chat Completions format ({error})")
            return
        except NOT_READABLE:
            self._refuse_event("a chunk is not JSON")
            return
        if chunk.error or chunk.object == "error" or _has_failed(chunk.base_resp):
            self._fail(payload)
            return
        if chunk.usage is not None:
            self._usage = chunk.usage
        elif isinstance(chunk.x_groq, Mapping) and chunk.x_groq.get("usage"):
            self._usage = chunk.x_groq["usage"]
        if chunk.prompt_progress is not None and not self.seen_output:
            self._read_progress(chunk.prompt_progress)
        if chunk.timings is not None:
            self.timings = read_timings(chunk.timings)
        if chunk.choices:
            require_few_parts(len(chunk.choices))
            for choice in chunk.choices:
                self._read_choice(choice)
        elif chunk.done is not None and chunk.choices is None:
            self.problem = self._malformed(
                "it is in Ollama's own format, not Chat Completions; set env.chat_url to /v1/chat/completions"
            )
        if not self._model and isinstance(chunk.model, str):
            self._model, self._begun = chunk.model, True

    def _read_progress(self, progress: Any) -> None:
        """Read llama.cpp's prompt-processing progress; ignore values that are not counts."""
        told = progress if isinstance(progress, Mapping) else {}
        cached, tokens, total = told.get("cache", 0), told.get("processed"), told.get("total")
        if type(cached) is not int or type(tokens) is not int or type(total) is not int:
            return
        if 0 <= cached <= tokens < total < MAX_PROMPT_TOKENS:
            self._out.note(PromptRead(tokens - cached, total - cached))

    def _read_choice(self, choice: _Choice) -> None:
        delta = choice.delta or choice.message
        # More than one choice arrives only if the user requested it (`n`): the first is the reply. Copilot without
        # streaming splits text and calls over choices, none of which has an index.
        if choice.index:
            return
        if delta is not None:
            if delta.reasoning_content or delta.reasoning or delta.thinking or delta.reasoning_details:
                self._read_reasoning(delta)
            elif delta.reasoning_text or delta.reasoning_opaque:
                self._read_copilot(delta)
            content = delta.content
            if content:
                if type(content) is str:
                    self._out.add_text(content)
                else:
                    self._read_parts(content)
            elif delta.refusal and isinstance(delta.refusal, str):
                self._out.add_text(delta.refusal)
            if delta.tool_calls:
                self._read_calls(delta.tool_calls)
        if choice.finish_reason and isinstance(choice.finish_reason, str):
            self._finish_reason = choice.finish_reason
        if choice.usage is not None and self._usage is None:
            self._usage = choice.usage

    def _read_calls(self, deltas: list[ToolDelta]) -> None:
        require_few_parts(len(deltas))
        for delta in deltas:
            name = self._calls.add(delta)
            if name:
                self._out.start_call(name)

    def _read_reasoning(self, delta: _Delta) -> None:
        detailed = self._details.add(delta.reasoning_details)
        # Several servers send identical reasoning under two names.
        for field in REASONING_FIELDS:
            text = getattr(delta, field)
            if isinstance(text, str) and text:
                self._out.add_reasoning(text, DETAILS_FIELD if delta.reasoning_details else field)
                return
        if detailed:
            self._out.add_reasoning(detailed, DETAILS_FIELD)

    def _read_copilot(self, delta: _Delta) -> None:
        """Read Copilot's two reasoning fields, one readable and one encrypted."""
        text = self._details.add([copilot_entry(delta.reasoning_text, delta.reasoning_opaque)])
        if text:
            self._out.add_reasoning(text, DETAILS_FIELD)

    def _read_parts(self, parts: Any) -> None:
        """Read a list of content parts (Mistral: thinking and text)."""
        listed = parts if isinstance(parts, list) else [parts]
        require_few_parts(len(listed))
        for part in listed:
            if isinstance(part, str) and part:
                self._out.add_text(part)
            elif isinstance(part, Mapping) and part.get("type") == "thinking":
                thinking = part.get("thinking")
                pieces = thinking if isinstance(thinking, list) else [{"text": thinking}]
                require_few_parts(len(pieces))
                text = "".join(str(piece.get("text") or "") for piece in pieces if isinstance(piece, Mapping))
                if text:
                    self._out.add_reasoning(text, MISTRAL_THINKING)
            elif isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"]:
                self._out.add_text(part["text"])

    def _reason_of_the_parts(self) -> str:
        """Infer the stop reason of a reply that ended without one, because some servers omit it.

        Return "" if the reply is incomplete: its end is missing, nothing arrived, or a call is cut off.
        """
        if not self._is_whole or not self.seen_output or not self._calls.are_whole:
            return ""
        return "tool_calls" if self._calls else "stop"

    def _close(self, events: list[StreamEvent]) -> None:
        """Append `Finished`, or record why the reply is not complete."""
        reason = self._finish_reason or self._reason_of_the_parts()
        if not reason or reason == "error":
            self.problem = self._why_incomplete()
            return
        if self._calls.nameless:
            self.problem = self._malformed("a tool call has no name")
            return
        stop = _STOP_REASONS.get(reason, "stop")
        calls = () if stop == "filtered" else self._calls.finish(cut_by_limit=stop == "length")
        if calls and stop == "stop":
            stop = "tool_calls"
        elif stop == "tool_calls" and not calls:
            stop = "stop"
        if (details := self._details.as_json()) and stop != "filtered":
            # Details may arrive in pieces until the end, so the block is complete only now.
            events.append(ReasoningDone(self._origin, details))
        usage, read = read_and_cached(normalise_usage(self._usage), self._usage, self.timings)
        events.append(Finished(stop, calls, usage, self._model, read_tokens=read))


def _has_failed(base_resp: object) -> bool:
    """Return whether MiniMax reports a failure: a number other than 0, in any chunk."""
    return isinstance(base_resp, Mapping) and base_resp.get("status_code") not in (0, None)
