"""The answers of a loopback server, as lists of bytes, pauses and breaks: the exact bytes on the wire.

Common to all providers: plain bodies, JSON, failures, silence, and faults in an event stream. An answer is data: a test
that needs other bytes builds an `Answer` itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

DROP = "drop"
"""In `Answer.parts`: break the TCP connection here."""
CLOSE = "close"
"""In `Answer.parts`: close the connection here without the end of the HTTP body."""
END = "end"
"""As `Faults.break_with`: end the HTTP body here as if it were complete."""

Part = bytes | float | asyncio.Event | str


@dataclass(frozen=True)
class Answer:
    """One HTTP answer. `parts`: bytes to send, seconds to wait, an event to wait for, `DROP` or `CLOSE`.

    With `content_length` the body is sent with that header; otherwise each bytes part is one HTTP chunk.
    """

    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    parts: tuple[Part, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    content_length: bool = False


@dataclass(frozen=True)
class Faults:
    """Faults of an event stream.

    delay_s: pause before each event. gate: wait for it after `gate_after` events. break_after: `break_with` after that
    many events; break_at_byte: after that many bytes. insert: raw bytes before event `insert_at`. split_bytes: cut the
    stream into parts of this size, each its own HTTP chunk; one_chunk: send everything at once.
    """

    delay_s: float = 0.0
    gate: asyncio.Event | None = None
    gate_after: int = 1
    break_after: int | None = None
    break_at_byte: int | None = None
    break_with: Part = DROP
    insert: bytes = b""
    insert_at: int = 0
    split_bytes: int = 0
    one_chunk: bool = False

    def applied(self, events: Sequence[bytes]) -> tuple[Part, ...]:
        """Return the parts of an answer that streams these events."""
        if self.break_at_byte is not None:
            whole = b"".join(events)
            assert self.break_at_byte < len(whole), f"the stream has only {len(whole)} bytes"
            events = [whole[: self.break_at_byte]]
        elif self.insert:
            events = [*events[: self.insert_at], self.insert, *events[self.insert_at :]]
        parts: list[Part] = []
        for count, event in enumerate(events):
            if self.break_after is not None and count == self.break_after:
                break
            if self.gate is not None and count == self.gate_after:
                parts.append(self.gate)
            if self.delay_s:
                parts.append(self.delay_s)
            parts.append(event)
        broken = self.break_after is not None or self.break_at_byte is not None
        if broken and self.break_with != END:
            parts.append(self.break_with)
        return tuple(_joined(parts, self.split_bytes) if self.one_chunk or self.split_bytes else parts)


def _joined(parts: Sequence[Part], size: int) -> list[Part]:
    """Join consecutive bytes, and cut them into parts of `size` bytes unless it is 0."""
    joined: list[Part] = []
    buffer = b""
    for part in (*parts, ""):
        if isinstance(part, bytes):
            buffer += part
            continue
        if buffer:
            joined.extend([buffer] if not size else [buffer[k : k + size] for k in range(0, len(buffer), size)])
            buffer = b""
        if part != "":
            joined.append(part)
    return joined


def failure(
    status: int,
    message: str,
    *,
    code: str | None = None,
    type: str = "invalid_request_error",
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Answer:
    """Return an error answer with OpenAI's body."""
    body = {"error": {"message": message, "type": type, "param": param, "code": code}}
    return json_answer(body, status=status, headers=headers)


def json_answer(body: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Return a JSON answer."""
    return plain(json.dumps(body).encode(), content_type="application/json", status=status, headers=headers)


def plain(
    body: bytes, *, content_type: str = "text/event-stream", status: int = 200, headers: dict[str, str] | None = None
) -> Answer:
    """Return an answer with exactly these bytes."""
    return Answer(status, content_type, (body,), tuple((headers or {}).items()), content_length=True)


def silence() -> Answer:
    """Return an answer that never comes: the server reads the request and waits until the client goes away."""
    return Answer(parts=(asyncio.Event(),))
