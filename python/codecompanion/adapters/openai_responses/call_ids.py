"""Converts call ids to the accepted form: at most 64 letters, digits, `_` and `-`, each used once per request (R-517).

Ids of other providers may be longer, and actual histories repeat them. The n-th use of an id always yields an identical
result, so that an unchanged history keeps its bytes.
"""

from __future__ import annotations

import hashlib

from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message

MAX_ID_LENGTH = 64
_VALID = regex(rf"[A-Za-z0-9_-]{{1,{MAX_ID_LENGTH}}}")


class CallIds:
    """The ids of one request, assigned message by message, in order."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._uses: dict[str, int] = {}
        self._current: dict[str, str] = {}

    def assign(self, message: Message) -> tuple[str, ...]:
        """Return the wire ids of the message's calls, or the id of the call that it answers; () for other messages."""
        if message.role == "tool":
            own = message.tool_call_id or ""
            return (self._current.get(own) or _shorten(own),)
        if not message.tool_calls:
            return ()
        self._current = {call.id: self._next(call.id) for call in message.tool_calls}
        return tuple(self._current[call.id] for call in message.tool_calls)

    def _next(self, call_id: str) -> str:
        base = _shorten(call_id)
        count = self._uses.get(call_id, 0) + 1
        wire_id = base if count == 1 else _suffixed(base, count)
        while wire_id in self._taken:
            count += 1
            wire_id = _suffixed(base, count)
        self._uses[call_id] = count
        self._taken.add(wire_id)
        return wire_id


def _shorten(call_id: str) -> str:
    if _VALID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:40]}"


def _suffixed(base: str, count: int) -> str:
    tail = f"_{count}"
    return base[: MAX_ID_LENGTH - len(tail)] + tail
