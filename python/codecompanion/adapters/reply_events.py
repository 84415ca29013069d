"""The events of one reply on their way from a decoder to the session, counted against the limits (issue 20).

Neighbouring pieces of one text are joined once, when they are taken, so a burst costs the host one event and the cost
is linear in the number of deltas. What a reply keeps in memory is charged here: `LimitHit` ends it.
"""

from __future__ import annotations

import msgspec

from codecompanion.adapters.base import ReasoningDelta, StreamEvent, TextDelta, ToolCallStarted
from codecompanion.formats.bounded import LimitHit, count_marks
from codecompanion.formats.byte_limits import MAX_ITEMS, MAX_REPLY_CHARS, MAX_TOOL_CALLS, MB, VALUE_BYTES


class ReplyEvents:
    """Collects events. `seen`: something of the reply has arrived; `kept_chars`: how much of it is kept."""

    def __init__(self) -> None:
        self.seen = False
        self.kept_chars = 0
        self._calls = self._items = 0
        self._events: list[StreamEvent] = []
        self._kind: tuple[type[TextDelta] | type[ReasoningDelta], str] | None = None
        self._pieces: list[str] = []

    def add_text(self, text: str, phase: str = "") -> None:
        """Take in a piece of text."""
        self._add((TextDelta, phase), text)

    def add_reasoning(self, text: str, field: str = ReasoningDelta("").field) -> None:
        """Take in a piece of reasoning."""
        self._add((ReasoningDelta, field), text)

    def put(self, event: StreamEvent) -> None:
        """Append an event of another kind."""
        self._join()
        self.seen = True
        self._events.append(event)

    def start_call(self, name: str) -> None:
        """Append the beginning of a tool call."""
        self.put(ToolCallStarted(name))

    def take(self) -> list[StreamEvent]:
        """Return the events since the last time."""
        self._join()
        events, self._events = self._events, []
        return events

    def charge(self, chars: int) -> None:
        """Count what is kept of the reply.

        Raises:
            LimitHit: it is more than any reply has.
        """
        self.kept_chars += chars
        if self.kept_chars > MAX_REPLY_CHARS:
            raise LimitHit(f"the reply is larger than {MAX_REPLY_CHARS // MB} MB")

    def charge_value(self, value: object) -> None:
        """Count JSON that is kept as it came: its text, and what its lists and objects take. Raises `LimitHit`."""
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
    """Raise `LimitHit` when a reply, or one part of it, has more parts than any."""
    if count > MAX_ITEMS:
        raise LimitHit(f"the reply has more than {MAX_ITEMS:,} parts")
