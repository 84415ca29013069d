"""Decodes the reply of a Responses endpoint, as typed stream events or as one JSON object, into our stream events.

Pure and incremental; the transport is in `http/`. Source: the streaming reference and recorded traffic.

A reply is complete only with `response.completed` or `response.incomplete` (lesson 39). Content other than text,
refusals, reasoning, function calls and compactions (searches, code, MCP) is dropped: such tools are never requested,
and without storage their items could not be sent back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.base import Finished, StopReason, StreamEvent
from codecompanion.adapters.errors.error_map import Endpoint, error_from_payload
from codecompanion.adapters.openai_chat.usage import normalise_usage
from codecompanion.adapters.openai_responses.reply_items import Drafts, ItemBody
from codecompanion.adapters.reply_decoder import ReplyDecoder, decode_payload
from codecompanion.adapters.sse import ErrorData
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "length", "content_filter": "filtered"}
# No other event was recorded between the beginning and the end of a compaction.
_OF_COMPACTIONS = ("response.output_item.done", "response.compaction.compacting")
_CUT_STATES = ("cancelled", "queued", "in_progress")


class _Response(msgspec.Struct):
    status: Any = None
    model: Any = None
    output: list[msgspec.Raw] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    delta: Any = None
    text: Any = None
    arguments: Any = None
    item_id: Any = None
    output_index: Any = None
    summary_index: Any = None
    content_index: Any = None
    item: msgspec.Raw = msgspec.Raw(b"")
    response: _Response | None = None
    error: Any = None


_EVENT = typed.json_decoder(_Event)
_RESPONSE = typed.json_decoder(_Response)


class ResponsesDecoder(ReplyDecoder):
    """Decodes one reply; `origin` is attached to parts that only this endpoint can read."""

    def __init__(self, endpoint: Endpoint, origin: str) -> None:
        super().__init__(endpoint)
        self._drafts = Drafts(self._out, origin)
        self._model = ""
        self._last: _Response | None = None

    def _read_whole(self, body: bytes) -> list[StreamEvent]:
        """Read a whole reply that is one JSON object (an endpoint that does not stream)."""
        try:
            response = _RESPONSE.decode(body)
        except NOT_READABLE as error:
            self.problem = self._malformed(f"it does not match the Responses format ({error})")
            return []
        if response.error and response.status != "completed":
            self.problem = error_from_payload(body, self._endpoint)
            return []
        if response.output is None and not response.status:
            self.problem = self._malformed("it does not match the Responses format")
            return []
        self._end(response)
        events = self._collect()
        if self.problem is None:
            self._close(events)
        return events

    def _collect(self) -> list[StreamEvent]:
        if self._at_end:
            self._drafts.release_compaction()
        return super()._collect()

    def _flush(self) -> None:
        self._drafts.release_compaction()

    def _read(self, payload: bytes) -> None:
        if payload[:6] == b"[DONE]":
            return
        try:
            event = decode_payload(_EVENT, payload)
        except msgspec.ValidationError as error:
            self._refuse_event(f"an event does not match the Responses format ({error})")
            return
        except NOT_READABLE:
            self._refuse_event("an event is not JSON")
            return
        if type(payload) is ErrorData or event.type == "error" or (event.error and not event.type):
            self._fail(payload)
            return
        if event.response is not None and isinstance(event.response.model, str):
            self._model = event.response.model
        self._dispatch(event)

    def _dispatch(self, event: _Event) -> None:
        drafts = self._drafts
        if event.type not in _OF_COMPACTIONS:
            drafts.release_compaction()
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                drafts.add_text(_key(event), event.delta, refusal=event.type == "response.refusal.delta")
            case "response.function_call_arguments.delta":
                drafts.add_arguments(_key(event), event.delta)
            case "response.function_call_arguments.done":
                drafts.set_arguments(_key(event), event.arguments)
            case "response.reasoning_summary_text.delta":
                drafts.add_reasoning(_key(event), event.delta, _part("summary", event.summary_index))
            case "response.reasoning_text.delta":
                drafts.add_reasoning(_key(event), event.delta, _part("content", event.content_index))
            case "response.output_item.added":
                self._item(event, whole=False)
            case "response.output_item.done":
                self._item(event, whole=True)
            case "response.compaction.compacting":
                drafts.begin_compaction()
            case "response.completed" | "response.incomplete" | "response.failed" | "response.done":
                self._end(event.response or _Response(status=event.type.partition(".")[2]))
            case "response.created" | "response.in_progress" | "response.queued":
                self._begun = True
            case _:
                # Ignored: ends of parts, which add nothing, and progress of tools that were not requested.
                pass

    def _item(self, event: _Event, *, whole: bool) -> None:
        try:
            body = typed.read_json(event.item, type=ItemBody)
        except NOT_READABLE as error:
            self.problem = self._malformed(f"an item does not match the Responses format ({error})")
            return
        self._drafts.take_item(_key(event), body, bytes(event.item), whole=whole)

    def _end(self, response: _Response) -> None:
        """Read the final response, and add its items that were not streamed."""
        if response.status == "failed" or (response.error and response.status != "completed"):
            self._fail(msgspec.json.encode({"error": response.error or {"message": "the response failed"}}))
            return
        for index, raw in enumerate(response.output or ()):
            body = typed.read_json(raw, type=ItemBody)
            self._drafts.take_rest(index, body, bytes(raw))
        if isinstance(response.model, str):
            self._model = response.model
        self._last = response
        self.seen_done = True

    def _close(self, events: list[StreamEvent]) -> None:
        """Append `Finished`, or record why the reply is not complete."""
        response = self._last
        if response is None:
            self.problem = self._why_incomplete()
            return
        if response.status in _CUT_STATES:
            self.problem = self._cut(f"the provider ended the reply ({response.status}).")
            return
        stop: StopReason = "stop"
        if response.status == "incomplete":
            details = response.incomplete_details
            reason = details.get("reason") if isinstance(details, Mapping) else None
            stop = _INCOMPLETE.get(str(reason), "length")
        elif self._drafts.refused:
            stop = "filtered"
        calls = () if stop == "filtered" else self._drafts.calls(cut_by_limit=stop == "length")
        if calls is None:
            self.problem = self._malformed("a tool call lacks a name or an id")
            return
        if calls and stop == "stop":
            stop = "tool_calls"
        events.append(Finished(stop, calls, normalise_usage(response.usage), self._model))


def _part(kind: str, index: object) -> str:
    return f"{kind} {index}" if isinstance(index, int) else kind


def _key(event: _Event) -> Any:
    """Return the key of an item in a reply: its index, or its id if the endpoint sends no index."""
    return next((key for key in (event.output_index, event.item_id) if isinstance(key, int | str)), None)
