"""A tool with a bug: it raises an error that no tool may raise."""

from __future__ import annotations

from typing import Any

from codecompanion.model.messages import ToolSpec
from codecompanion.tools.tool import Tool, ToolContext, ToolOutput


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    raise ZeroDivisionError("a bug of a tool")


RAISING_TOOL = Tool(
    spec=ToolSpec("breaks", "Breaks.", {"type": "object", "properties": {}, "additionalProperties": False}),
    run=_run,
    title=lambda arguments: "breaks",
    question=lambda arguments, context: None,
)
