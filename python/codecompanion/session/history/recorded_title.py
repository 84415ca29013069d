"""Builds the one-line title of a tool call: from its tool, or from its arguments if the tool is unknown."""

from __future__ import annotations

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import ToolCall
from codecompanion.session.history.limit_tool_calls import one_line
from codecompanion.tools.tool_registry import ToolRegistry


def title_of_call(tools: ToolRegistry, call: ToolCall) -> str:
    """Return the title of a call, as given by its tool if the tool is known."""
    try:
        return one_line(tools.get(call.name).title(tools.validate(call.name, call.arguments)))
    except ToolError:
        return one_line(recorded_title(call))


def recorded_title(call: ToolCall) -> str:
    """Return the title of a call to an unknown tool: the tool name and the beginning of the argument values."""
    arguments = " ".join(_values_of(call.arguments[:1_000]).split())
    return f"{call.name} {arguments[:60]}{'…' if len(arguments) > 60 else ''}"


def _values_of(arguments: str) -> str:
    """Return the argument values without their names, or the text unchanged if it is not a JSON object."""
    try:
        given = msgspec.json.decode(arguments)
    except NOT_READABLE:
        return arguments
    if not isinstance(given, dict):
        return arguments
    return " ".join(str(value) for value in given.values() if isinstance(value, (str, int, float)))
