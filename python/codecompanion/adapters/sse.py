"""Decodes server-sent events as Chat Completions endpoints send them: arbitrary chunks of bytes → JSON payloads.

Based on the event-stream format of the HTML standard, and recorded traffic. Differences from the standard, all seen in
practice: an event without its closing blank line still counts (recorded Copilot and Mistral streams end this way), two
JSON objects on consecutive `data:` lines are two events (from servers that send no blank lines), and a line `error:
{…}` is an error payload (llama.cpp). This module does not interpret payloads.
"""

from __future__ import annotations

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.bounded import LimitHit
from codecompanion.formats.byte_limits import MAX_EVENT_BYTES, MAX_EVENTS, MB, VALUE_BYTES
from codecompanion.formats.outside_text import NOT_READABLE

_BOM = b"\xef\xbb\xbf"
_STRAY_LIMIT = 2_000
_TRIED_LINES = 16


class ErrorData(bytes):
    """A payload that the server marked as an error (`event: error`, or an `error:` line)."""


class SseDecoder:
    """An incremental decoder: call `feed` for every chunk, then `finish` once.

    `stray` keeps the beginning of a body that was not an event stream (a web page, plain JSON), for the error message.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._pending: list[bytes] = []
        self._event = b""
        self._pending_bytes = self._tried_bytes = self._events = 0
        self._started = False
        self._swallow_line_feed = False
        self.stray = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the payloads that this chunk completes, in order.

        Raises: LimitHit: a line, an event or the number of events exceeds its limit.
        """
        if self._swallow_line_feed and piece:
            self._swallow_line_feed = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        if b"\n" not in piece and b"\r" not in piece:
            # A long line arrives in many pieces: joining each time would be quadratic.
            if piece:
                self._held += piece
                self._require_end(len(self._held))
            return []
        buffer = bytes(self._held + piece) if self._held else piece
        if b"\r" in buffer:
            # A single CR also ends a line; a CR at the end of a piece may be half of a CRLF.
            self._swallow_line_feed = buffer.endswith(b"\r")
            buffer = buffer.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = buffer.split(b"\n")
        rest = lines.pop()
        self._held = bytearray(rest)
        payloads = self._read_lines(lines)
        self._events += len(payloads)
        if self._events > MAX_EVENTS:
            raise LimitHit(f"the reply has more than {MAX_EVENTS:,} events")
        self._require_end(self._pending_bytes)
        if not rest and self._pending and self._pending[-1].endswith(b"}"):
            self._dispatch_when_whole(payloads)
        return payloads

    def finish(self) -> list[bytes]:
        """Return the remaining payloads, from a last line without a line ending or an event without a blank line."""
        last = bytes(self._held)
        self._held = bytearray()
        payloads = self._read_lines([last]) if last else []
        self._dispatch(payloads)
        return payloads

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        payloads: list[bytes] = []
        pending = self._pending
        if not self._started and lines:
            self._started = True
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            if line.startswith(b"data:"):
                data = line[6:] if line.startswith(b"data: ") else line[5:]
                # `}` followed by `{` does not occur inside a JSON document: it separates two.
                if pending and pending[-1].endswith(b"}") and data[:1] in (b"{", b"["):
                    self._dispatch(payloads)
                pending.append(data)
                self._pending_bytes += len(data) + VALUE_BYTES
            elif not line:
                if pending or self._event:
                    self._dispatch(payloads)
            else:
                self._read_other_line(line, payloads)
        return payloads

    def _read_other_line(self, line: bytes, payloads: list[bytes]) -> None:
        name, colon, value = line.partition(b":")
        if name == b"event":
            self._event = value.strip()
        elif name == b"error" and colon:
            payloads.append(ErrorData(value.strip()))
        elif name not in (b"", b"id", b"retry", b"data") and len(self.stray) < _STRAY_LIMIT:
            self.stray += line[: _STRAY_LIMIT - len(self.stray)] + b"\n"

    def _dispatch(self, payloads: list[bytes]) -> None:
        pending = self._pending
        if pending:
            payload = pending[0] if len(pending) == 1 else b"\n".join(pending)
            if payload.strip():
                payloads.append(ErrorData(payload) if self._event == b"error" else payload)
            pending.clear()
            self._pending_bytes = self._tried_bytes = 0
        self._event = b""

    def _dispatch_when_whole(self, payloads: list[bytes]) -> None:
        """Dispatch data that is already complete JSON, without waiting for a blank line that may never arrive."""
        if len(self._pending) > _TRIED_LINES and self._pending_bytes < 2 * self._tried_bytes:
            return  # retry a multi-line event when it has doubled: every time would be quadratic
        self._tried_bytes = self._pending_bytes
        try:
            typed.read_json(b"\n".join(self._pending), type=msgspec.Raw)
        except NOT_READABLE:
            return
        self._dispatch(payloads)

    def _require_end(self, size: int) -> None:
        if size > MAX_EVENT_BYTES:
            raise LimitHit(f"one event of the reply is larger than {MAX_EVENT_BYTES // MB} MB")
