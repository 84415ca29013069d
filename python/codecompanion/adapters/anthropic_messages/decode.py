"""Decodes the reply of a Messages endpoint, as stream payloads or as one JSON object, into stream events.

Pure and incremental; the transport is in `http/`. Sources: the API's page "Streaming", the SDK's event types and
recorded traffic. A reply is complete only with `message_stop` (lesson 39). Thinking and compaction are kept exactly as
received, with unknown fields; so are the blocks of tools that ran on the server, because a paused reply has to be sent
back whole. Citations are not kept: the model does not see them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.drafts import READ_EVENT, Draft, finish_calls, read_input
from codecompanion.adapters.anthropic_messages.usage import Counted, merge_usage, normalise_usage, read_server_edits
from codecompanion.adapters.base import (
    CompactionBegun,
    CompactionDone,
    Finished,
    ReasoningDone,
    StopReason,
    StreamEvent,
)
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.reply_decoder import ReplyDecoder, decode_payload
from codecompanion.adapters.sse import ErrorData
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import CompactionPart

THINKING_FIELD = "thinking"
"""The value of `ReasoningDelta.field` for all reasoning in this format."""
_GROWING = ("text", "thinking")
"""Fields of a block whose text counts toward the reply's size limit when it is emitted."""
_STOP_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "pause_turn": "paused",
    "compaction": "compacted",
    "refusal": "filtered",
    "model_context_window_exceeded": "window",
}


class MessagesDecoder(ReplyDecoder):
    """Decodes one reply; `origin` is attached to parts that only this endpoint can read."""

    def __init__(self, endpoint: Endpoint, origin: str, new_id: Callable[[], str]) -> None:
        super().__init__(endpoint)
        self._origin, self._new_id = origin, new_id
        self._drafts: dict[int, Draft] = {}
        self._calls: list[Draft] = []
        self._stop_reason = ""
        self._usage: object = None
        self._edits: object = None
        self._model = ""

    def _read_whole(self, body: bytes) -> list[StreamEvent]:
        """Read a whole reply that is one JSON object."""
        try:
            message = msgspec.json.decode(body)
        except NOT_READABLE:
            self.problem = self._malformed("it is not JSON")
            return []
        if not isinstance(message, Mapping) or message.get("type") == "error" or "error" in message:
            self._fail(body)
            return []
        if not isinstance(message.get("content"), list):
            self.problem = self._malformed("it does not match the Messages API format")
            return []
        self._begin_message(message)
        for index, block in enumerate(message["content"]):
            self._begin_block(index, block)
            self._end_block(index)
        self._end_message(message, message)
        self.seen_done = True
        events = self._collect()
        if self.problem is None:
            self._close(events)
        return events

    @property
    def counted(self) -> Counted:
        """Return the token counts that the endpoint has reported so far."""
        return normalise_usage(self._usage)

    def _read(self, payload: bytes) -> None:
        if type(payload) is ErrorData:
            self._fail(payload)
            return
        if payload[:6] == b"[DONE]":
            # Gateways in front of other providers append OpenAI's end marker; ours is `message_stop`.
            return
        try:
            event = decode_payload(READ_EVENT, payload)
        except msgspec.ValidationError:
            self._refuse_event("an event does not match the Messages API format")
            return
        except NOT_READABLE:
            self._refuse_event("an event is not JSON")
            return
        match event.type:
            case "content_block_delta":
                self._read_delta(event.index, event.delta)
            case "content_block_start":
                self._begin_block(event.index, event.content_block)
            case "content_block_stop":
                self._end_block(event.index)
            case "message_start":
                self._begin_message(event.message)
            case "message_delta":
                self._end_message(event.delta, {"usage": event.usage, "context_management": event.context_management})
            case "message_stop":
                self.seen_done = True
            case "error":
                self._fail(payload)
            case None:
                check = f"check {self._endpoint.remedies.check_address}"
                self.problem = self._malformed(f"it is not a Messages API event stream; {check}")
            # `ping`, and event types added later, carry no required information.

    def _begin_message(self, message: Any) -> None:
        self._begun = True
        if isinstance(message, Mapping):
            self._usage = merge_usage(self._usage, message.get("usage"))
            if isinstance(message.get("model"), str):
                self._model = message["model"]

    def _end_message(self, delta: Any, reported: Mapping[str, Any]) -> None:
        if isinstance(delta, Mapping) and isinstance(delta.get("stop_reason"), str):
            self._stop_reason = delta["stop_reason"]
        self._usage = merge_usage(self._usage, reported.get("usage"))
        if reported.get("context_management") is not None:
            self._edits = reported["context_management"]

    def _begin_block(self, index: Any, block: Any) -> None:
        if not isinstance(block, dict) or not isinstance(index, int):
            self.problem = self._malformed("a content block lacks a type or an index")
            return
        self._out.charge_item()
        self._out.charge_value({name: value for name, value in block.items() if name not in _GROWING})
        draft = self._drafts[index] = Draft(block)
        match draft.kind:
            case "text":
                self._add_text(block.get("text"))
            case "thinking":
                self._add_thinking(draft, block.get("thinking"))
            case "tool_use":
                self._out.charge_call()
                self._calls.append(draft)
                self._out.start_call(str(block.get("name") or ""))
            case "compaction":
                self._out.put(CompactionBegun())
            case _:
                pass
        self._out.seen = self._out.seen or draft.kind != "text"

    def _read_delta(self, index: Any, delta: Any) -> None:
        draft = self._drafts.get(index) if isinstance(index, int) else None
        if draft is None or not isinstance(delta, Mapping):
            self.problem = self._malformed("a delta does not belong to any content block")
            return
        match delta.get("type"):
            case "text_delta":
                self._add_text(delta.get("text"))
            case "thinking_delta":
                self._add_thinking(draft, delta.get("thinking"))
            case "input_json_delta":
                piece = str(delta.get("partial_json") or "")
                self._out.charge(len(piece))
                draft.json.write(piece)
            case "signature_delta":
                self._out.charge_value(delta.get("signature"))
                draft.block["signature"] = delta.get("signature")
            case "compaction_delta":
                # The whole summary arrives at once; missing fields are unchanged.
                told = {name: value for name, value in delta.items() if name != "type" and value is not None}
                self._out.charge_value(told)
                draft.block.update(told)

    def _end_block(self, index: Any) -> None:
        draft = self._drafts.pop(index, None) if isinstance(index, int) else None
        if draft is None:
            return
        match draft.kind:
            case "text" | "tool_use":
                return
            case "thinking":
                draft.block["thinking"] = draft.text.getvalue()
                if draft.block.get("signature"):
                    self._encrypt(draft.block)
            case "compaction":
                self._out.put(self._compaction(draft.block))
            case _:
                if json := draft.json.getvalue():
                    draft.block["input"] = read_input(json)
                self._encrypt(draft.block)

    def _encrypt(self, block: Mapping[str, Any]) -> None:
        self._out.put(ReasoningDone(self._origin, msgspec.json.encode(block).decode()))

    def _compaction(self, block: Mapping[str, Any]) -> CompactionDone:
        text = block.get("content")
        if not isinstance(text, str) or not text.strip():
            return CompactionDone(None)
        return CompactionDone(CompactionPart(self._origin, msgspec.json.encode([block]).decode(), text))

    def _add_text(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._out.add_text(text)

    def _add_thinking(self, draft: Draft, text: Any) -> None:
        if not isinstance(text, str) or not text:
            return
        draft.text.write(text)
        self._out.add_reasoning(text, THINKING_FIELD)

    def _close(self, events: list[StreamEvent]) -> None:
        """Append `Finished`, or record why the reply is not complete."""
        if not self.seen_done:
            self.problem = self._why_incomplete()
            return
        if any(not draft.block.get("name") for draft in self._calls):
            self.problem = self._malformed("a tool call has no name")
            return
        stop = _STOP_REASONS.get(self._stop_reason, "stop")
        calls = () if stop == "filtered" else finish_calls(self._calls, self._new_id, cut=stop in ("length", "window"))
        if calls and stop == "stop":
            stop = "tool_calls"
        elif stop == "tool_calls" and not calls:
            stop = "stop"
        counted, edits = self.counted, read_server_edits(self._edits)
        events.append(Finished(stop, calls, counted.reply, self._model, counted.other_passes, edits))
