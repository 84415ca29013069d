"""Decodes replies for every wire format, from arbitrary chunks of bytes to payloads and stream events.

A reply is complete only with its end marker (lesson 39). This module creates the error messages for a body that ends
without a marker, for an error within it, and for a body that is not an event stream. The format interprets the
payloads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from codecompanion.adapters.base import StreamEvent
from codecompanion.adapters.errors.error_map import Endpoint, error_from_payload, provider_message
from codecompanion.adapters.reply_events import ReplyEvents
from codecompanion.adapters.speed import Timings
from codecompanion.adapters.sse import SseDecoder
from codecompanion.errors import AdapterError, MalformedReply, StreamCut
from codecompanion.formats.bounded import LimitHit, has_too_many_values
from codecompanion.formats.byte_limits import MAX_JSON_VALUES
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex

T = TypeVar("T")

_ESCAPES = regex(rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})")
_ERROR_WORDS = (b'"error"', b'"message"', b'"detail"')


def decode_payload(decoder: msgspec.json.Decoder[T], payload: bytes) -> T:
    """Decode a payload; a partial character becomes U+FFFD, because servers split characters between tokens.

    Raises: msgspec.ValidationError: the payload has another structure. msgspec.DecodeError, RecursionError,
    MemoryError: the payload is not JSON.
    """
    if b"\\ud" in payload or b"\\uD" in payload:
        payload = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], payload)
    if not payload.isascii():
        payload = payload.decode("utf-8", "replace").encode()
    return decoder.decode(payload)


class ReplyDecoder(ABC):
    """Decodes the bytes passed to `feed`; call `finish` at the end of the body.

    Errors do not interrupt `feed`: earlier events are returned first, and the error is in `problem`. `seen_done`: the
    end marker has arrived; `seen_output`: part of the reply has arrived. `kept_chars` grows only with the reply,
    because keep-alives are not progress.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sse = SseDecoder()
        self._at_end = False
        self._begun = False
        self._out = ReplyEvents()
        self.seen_done = False
        self.problem: AdapterError | None = None
        self.timings: Timings | None = None
        """The server's own timings of the reply."""

    def feed(self, piece: bytes) -> list[StreamEvent]:
        """Read bytes of an event stream; return the events that they complete."""
        try:
            payloads = self._sse.feed(piece)
        except LimitHit as hit:
            self.problem = self._over_limit(hit)
            return self._collect()
        return self._take(payloads)

    @property
    def seen_output(self) -> bool:
        """Return whether part of the reply has arrived."""
        return self._out.seen

    @property
    def kept_chars(self) -> int:
        """Return the number of stored characters of the reply."""
        return self._out.kept_chars

    def finish(self) -> list[StreamEvent]:
        """Handle a clean end of the body: return the last events, with `Finished` if the reply is complete."""
        self._at_end = True
        events = self._take(self._sse.finish())
        if self.problem is None:
            with self._reading():
                self._close(events)
        return events

    def read_json(self, body: bytes) -> list[StreamEvent]:
        """Read a whole reply that is one JSON object (an endpoint that does not stream)."""
        events = list[StreamEvent]()
        if not body.strip():
            self.problem = self._why_incomplete()
            return events
        with self._reading():
            _require_few_values(body)
            events = self._read_whole(body)
        return events

    @abstractmethod
    def _read_whole(self, body: bytes) -> list[StreamEvent]:
        """Read a whole reply; return its events."""

    @abstractmethod
    def _read(self, payload: bytes) -> None:
        """Read one payload."""

    def _collect(self) -> list[StreamEvent]:
        """Return the events since the last call."""
        return self._out.take()

    def _flush(self) -> None:  # noqa: B027
        """Emit text that was held back, so that `seen_output` is correct afterwards."""

    @abstractmethod
    def _close(self, events: list[StreamEvent]) -> None:
        """Append `Finished`, or record in `problem` why the reply is not complete."""

    def _take(self, payloads: list[bytes]) -> list[StreamEvent]:
        for payload in payloads:
            if self.problem is not None or self.seen_done:
                break
            with self._reading():
                _require_few_values(payload)
                self._read(payload)
        return self._collect()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn unreadable or oversized content into a broken reply, so that the chat can continue."""
        try:
            yield
        except LimitHit as hit:
            self.problem = self._over_limit(hit)
        except NOT_READABLE as error:
            self.problem = self._malformed(f"a part of it cannot be parsed ({error or 'it is too large'})")

    def _refuse_event(self, sentence: str) -> None:
        """Record why a payload cannot be parsed; a partial payload at the end of the body has another message."""
        if not self._at_end:
            self.problem = self._malformed(sentence)

    def _fail(self, payload: bytes) -> None:
        """Record an error that the provider reported in its reply."""
        self._flush()
        if self.seen_output:
            said = provider_message(payload, self._endpoint)
            self.problem = self._cut(f"the provider aborted the reply: {said}")
        else:
            self.problem = error_from_payload(payload, self._endpoint)

    def _why_incomplete(self) -> AdapterError:
        """Return the error for a body that ended without an end marker."""
        if self.seen_output:
            return self._cut("the reply was incomplete.")
        if self._begun:
            return self._cut(f"the stream ended before the reply began. {self._endpoint.remedies.after_loss}")
        stray = self._sse.stray.strip()
        if stray.startswith(b"{") and any(word in stray for word in _ERROR_WORDS):
            return error_from_payload(stray, self._endpoint)
        if stray:
            return self._malformed(f"the reply is not an event stream; check {self._endpoint.remedies.check_address}")
        return self._cut(f"the reply was empty. {self._endpoint.remedies.after_loss}")

    def _cut(self, sentence: str) -> StreamCut:
        return StreamCut(self._endpoint.say(sentence))

    def _over_limit(self, hit: LimitHit) -> StreamCut:
        """Return the error for a reply that would be cut off again on a retry."""
        error = self._cut(f"{hit}.")
        error.retryable = False
        return error

    def _malformed(self, sentence: str) -> MalformedReply:
        return MalformedReply(self._endpoint.say(f"the reply cannot be read: {sentence}."))


def _require_few_values(payload: bytes) -> None:
    if has_too_many_values(payload):
        raise LimitHit(f"a part of the reply has more than {MAX_JSON_VALUES:,} values")
