"""A user's own tool in Lua: the editor runs it and returns the result."""

from __future__ import annotations

from typing import Any

from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import OwnToolSettings
from codecompanion.tools.own.approval_question import question_of, title_of
from codecompanion.tools.tool import Tool, ToolContext, ToolOutput

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


def lua_tool(name: str, given: OwnToolSettings) -> Tool:
    """Return a tool that runs in the editor; its schema is kept as the user wrote it, and checked when offered."""

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        fields = {"arguments": arguments, "root": str(context.root), "chat": context.chat_id}
        answer = await context.editor.run_tool(name, fields, context.timeout_s)
        return ToolOutput(text=answer.text, summary="failed" if answer.is_error else "", is_error=answer.is_error)

    return Tool(
        spec=ToolSpec(name, given.description, as_schema(given.parameters)),
        run=run,
        title=title_of(name),
        question=question_of(name),
        effect="execute",
        keeps_time=True,
        settings=given.settings,
    )


def as_schema(given: Any) -> Any:
    """Convert a schema from Lua; empty tables become lists or objects, depending on their position."""
    if given is None or given in ({}, []):
        return NO_ARGUMENTS
    return _repaired(given)


def _repaired(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return {} if schema == [] else schema
    fixed = dict(schema)
    for name in ("properties", "$defs", "patternProperties"):
        inner = fixed.get(name)
        if inner == []:
            fixed[name] = {}
        elif isinstance(inner, dict):
            fixed[name] = {key: _repaired(value) for key, value in inner.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(fixed.get(name), (dict, list)):
            fixed[name] = _repaired(fixed[name])
    for name in ("anyOf", "oneOf", "allOf"):
        if isinstance(fixed.get(name), list):
            fixed[name] = [_repaired(choice) for choice in fixed[name]]
    for name in ("required", "enum"):
        if fixed.get(name) == {}:
            fixed[name] = []
    if fixed.get("type") == "object":
        fixed.setdefault("properties", {})
    return fixed
