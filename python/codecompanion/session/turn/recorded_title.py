"""What names a call of which nothing but the call itself is known: its tool is not there, or is somebody else's."""

from __future__ import annotations

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import ToolCall


def recorded_title(call: ToolCall) -> str:
    """Return a fold title for a call whose tool is not ours: the name and the start of its arguments' values."""
    arguments = " ".join(_values_of(call.arguments[:1_000]).split())
    return f"{call.name} {arguments[:60]}{'…' if len(arguments) > 60 else ''}"


def _values_of(arguments: str) -> str:
    """Return the values of flat arguments without their names; what is none, as it is."""
    try:
        given = msgspec.json.decode(arguments)
    except NOT_READABLE:
        return arguments
    if not isinstance(given, dict):
        return arguments
    return " ".join(str(value) for value in given.values() if isinstance(value, (str, int, float)))
