"""Queues events for the editor: merges them, splits them into batches, and paces them by the editor's reported cost.

One flush is one RPC call with one JSON array (the cost is per object, not per byte). Consecutive chunks of a chat's
reply become one event. This module does not use pynvim, a clock, or threads apart from one lock; the bridge does.

Pacing. The editor answers a flush with the milliseconds that it took. The next flush of *streamed text* waits clamp(4 x
smoothed cost, 25 ms, 250 ms), so that drawing takes at most a fifth of the editor's time; everything else (an answer, a
state, the first chunk after a pause) and the rest of a burst waits only as long as the last flush took. A batch is
limited to a cost of about `TARGET_MS`, so no flush stalls typing.

Order. Each chat gets its events in order, except for the older pieces of a restored chat: they are sent when nothing
else is waiting, because each belongs above everything already drawn. So a message to a chat of 50,000 messages does not
have to wait until all of them are drawn.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import msgspec

from codecompanion.wire.events import ChatOpened, Event, Reasoning, Redrawn, Restored, Text

SLICE_CHARS = 4096  # pieces are stored in slices of this size, so that a batch can be split cheaply
TARGET_MS = 4.0
FIRST_LIMIT_BYTES = 16_384
MIN_LIMIT_BYTES, MAX_LIMIT_BYTES = 2_048, 65_536
MIN_TEXT_GAP_MS, MAX_GAP_MS, TEXT_GAP_FACTOR = 25.0, 250.0, 4.0
MIN_GAP_MS = 2.0
_SMOOTHING = 0.3
_EVENT_OVERHEAD_BYTES = 60  # `{"type":"text","chat":"…","text":""},`

_encoder = msgspec.json.Encoder()


class _Run(msgspec.Struct):
    """Consecutive chunks of one chat's reply (or reasoning), to which more may be added."""

    kind: type[Text] | type[Reasoning]
    chat: str
    parts: deque[str] = msgspec.field(default_factory=deque)


def _encode(event: Event) -> bytes:
    try:
        return _encoder.encode(event)
    except UnicodeEncodeError:  # a restored message, file name or tool output with invalid UTF-8
        return _encoder.encode(_mended(msgspec.to_builtins(event)))


def _mended(value: Any) -> Any:
    """Return the value with every lone surrogate in its strings joined or replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: _mended(item) for key, item in value.items()}
    return [_mended(item) for item in value] if isinstance(value, list) else value


def _encode_piece(kind: type[Text] | type[Reasoning], chat: str, text: str) -> bytes:
    try:
        return _encoder.encode(kind(chat=chat, text=text))
    except UnicodeEncodeError:  # a provider split an emoji's escape into lone surrogates; adjacent halves are joined
        return _encoder.encode(kind(chat=chat, text=_mended(text)))


class Outbox:
    """A thread-safe queue of events that hands out JSON batches."""

    def __init__(self) -> None:
        self._items: deque[_Run | bytes] = deque()
        self._open: dict[str, _Run] = {}
        self._pressing = 0
        self._older: deque[tuple[str, bytes]] = deque()
        """(chat, encoded event) pairs of older pieces, which belong above the pieces already drawn."""
        self._lock = threading.Lock()

    def put(self, event: Event) -> None:
        """Append `event`, encoded on the caller's thread.

        Raises:
            TypeError: a field of the event cannot be encoded as JSON.
        """
        if isinstance(event, Text | Reasoning):
            self._put_piece(type(event), event.chat, event.text)
            return
        encoded = _encode(event)
        with self._lock:
            if isinstance(event, Restored) and not event.first:
                self._older.append((event.chat, encoded))
                return
            if isinstance(event, Redrawn | ChatOpened):  # the whole chat is sent again
                self._older = deque(piece for piece in self._older if piece[0] != event.chat)
            self._open.pop(event.chat, None)
            self._items.append(encoded)
            self._pressing += 1

    def _put_piece(self, kind: type[Text] | type[Reasoning], chat: str, text: str) -> None:
        slices = [text[start : start + SLICE_CHARS] for start in range(0, len(text), SLICE_CHARS)]
        with self._lock:
            run = self._open.get(chat)
            if run is None or run.kind is not kind:
                run = _Run(kind, chat)
                self._open[chat] = run
                self._items.append(run)
            run.parts.extend(slices)

    @property
    def is_empty(self) -> bool:
        """Return whether the queue is empty."""
        with self._lock:
            return not self._items and not self._older

    @property
    def is_pressing(self) -> bool:
        """Return whether anything other than streamed text is waiting."""
        with self._lock:
            return self._pressing > 0 or bool(self._older)

    def take(self, limit_bytes: int) -> str | None:
        """Return the next batch as a JSON array of about `limit_bytes` (at least one event), or None if empty."""
        batch: list[bytes] = []
        size = 0
        with self._lock:
            while self._items and (size < limit_bytes or not batch):
                item = self._items[0]
                if isinstance(item, bytes):
                    if batch and size + len(item) > limit_bytes:
                        break
                    encoded = item
                    self._pressing -= 1
                    self._items.popleft()
                else:
                    encoded = self._take_piece(item, limit_bytes - size)
                    if not item.parts:
                        self._items.popleft()
                        if self._open.get(item.chat) is item:
                            del self._open[item.chat]
                batch.append(encoded)
                size += len(encoded)
            # At least one, if half of the room is left, so that a streaming reply does not delay them; an event that
            # was too large for this batch has priority.
            while self._older and not self._waits_whole() and (not batch or size < limit_bytes // 2):
                batch.append(self._older.popleft()[1])
                size += len(batch[-1])
        return f"[{b','.join(batch).decode()}]" if batch else None

    def _waits_whole(self) -> bool:
        return bool(self._items) and isinstance(self._items[0], bytes)

    @staticmethod
    def _take_piece(run: _Run, limit_bytes: int) -> bytes:
        taken: list[str] = []
        size = _EVENT_OVERHEAD_BYTES
        while run.parts and (size < limit_bytes or not taken):
            part = run.parts.popleft()
            taken.append(part)
            size += len(part)
        return _encode_piece(run.kind, run.chat, "".join(taken))


class Pacer:
    """Computes the delay before the next flush and its size limit from the reported costs."""

    def __init__(self) -> None:
        self._cost_ms = 0.0
        self._ms_per_byte = TARGET_MS / FIRST_LIMIT_BYTES
        self.limit_bytes = FIRST_LIMIT_BYTES

    def record(self, cost_ms: float, size_bytes: int) -> None:
        """Learn from a flush of `size_bytes` that cost the editor `cost_ms`."""
        self._cost_ms += _SMOOTHING * (cost_ms - self._cost_ms)
        if size_bytes < MIN_LIMIT_BYTES:
            return  # a small batch shows the cost of an event, not of a byte
        self._ms_per_byte += _SMOOTHING * (cost_ms / size_bytes - self._ms_per_byte)
        affordable = int(TARGET_MS / max(self._ms_per_byte, 1e-9))
        self.limit_bytes = min(max(affordable, MIN_LIMIT_BYTES), MAX_LIMIT_BYTES)

    @property
    def text_gap_s(self) -> float:
        """Return the seconds between two flushes of a stream."""
        return min(max(TEXT_GAP_FACTOR * self._cost_ms, MIN_TEXT_GAP_MS), MAX_GAP_MS) / 1000

    @property
    def gap_s(self) -> float:
        """Return the seconds between two flushes if anything other than a stream is waiting, or during a burst."""
        return min(max(self._cost_ms, MIN_GAP_MS), MAX_GAP_MS) / 1000
