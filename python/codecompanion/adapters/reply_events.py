"""Collects the events of one reply between decoder and session, and counts them against the limits.

Adjacent text chunks are joined once, when the events are taken: a burst becomes one event for the host, and the cost is
linear in the number of deltas. The reply's memory is counted here; `LimitHit` ends the reply.
"""

from __future__ import annotations

import msgspec

from codecompanion.adapters.base import ReasoningDelta, StreamEvent, TextDelta, ToolCallStarted
from codecompanion.formats.bounded import LimitHit, count_marks
from codecompanion.formats.byte_limits import MAX_ITEMS, MAX_REPLY_CHARS, MAX_TOOL_CALLS, MB, VALUE_BYTES


class ReplyEvents:
    """Collects events. `seen`: part of the reply has arrived; `kept_chars`: the number of characters stored so far."""

    def __init__(self) -> None:
        self.seen = False
        self.kept_chars = 0
        self._calls = self._items = 0
        self._events: list[StreamEvent] = []
        self._kind: tuple[type[TextDelta] | type[ReasoningDelta], str] | None = None
        self._pieces: list[str] = []

    def add_text(self, text: str, phase: str = "") -> None:
        """Append a chunk of text."""
        self._add((TextDelta, phase), text)

    def add_reasoning(self, text: str, field: str = ReasoningDelta("").field) -> None:
        """Append a chunk of reasoning."""
        self._add((ReasoningDelta, field), text)

    def put(self, event: StreamEvent) -> None:
        """Append an event of another type."""
        self._join()
        self.seen = True
        self._events.append(event)

    def start_call(self, name: str) -> None:
        """Append the start of a tool call."""
        self.put(ToolCallStarted(name))

    def note(self, event: StreamEvent) -> None:
        """Append an event that is not part of the reply."""
        self._join()
        self._events.append(event)

    def take(self) -> list[StreamEvent]:
        """Return the events since the last call."""
        self._join()
        events, self._events = self._events, []
        return events

    def charge(self, chars: int) -> None:
        """Add to the number of stored characters in the reply.

        Raises: LimitHit: the total exceeds the limit.
        """
        self.kept_chars += chars
        if self.kept_chars > MAX_REPLY_CHARS:
            raise LimitHit(f"the reply is larger than {MAX_REPLY_CHARS // MB} MB")

    def charge_value(self, value: object) -> None:
        """Count JSON stored as received: its text, and the memory of its lists and objects. Raises `LimitHit`."""
        if isinstance(value, str):
            self.charge(len(value))
            return
        text = msgspec.json.encode(value)
        self.charge(len(text) + VALUE_BYTES * count_marks(text))

    def charge_call(self) -> None:
        """Count a tool call. Raises `LimitHit`."""
        self._calls += 1
        if self._calls > MAX_TOOL_CALLS:
            raise LimitHit(f"the reply has more than {MAX_TOOL_CALLS} tool calls")
        self.charge_item()

    def charge_item(self) -> None:
        """Count a content block or item. Raises `LimitHit`."""
        self._items += 1
        require_few_parts(self._items)

    def _add(self, kind: tuple[type[TextDelta] | type[ReasoningDelta], str], text: str) -> None:
        self.charge(len(text))
        if self._kind != kind:
            self._join()
            self._kind = kind
        self._pieces.append(text)
        self.seen = True

    def _join(self) -> None:
        if self._kind is not None:
            kind, name = self._kind
            self._events.append(kind("".join(self._pieces), name))
            self._kind, self._pieces = None, []


def require_few_parts(count: int) -> None:
    """Raise `LimitHit` if a reply, or one part of it, has too many parts."""
    if count > MAX_ITEMS:
        raise LimitHit(f"the reply has more than {MAX_ITEMS:,} parts")
