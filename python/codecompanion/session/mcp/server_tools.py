"""Turns a server's tools into chat tools, which are named, described and checked like others; each call needs approval.

The user can turn off approval for the server or the tool. Of the server's own text, the model receives only the tool
descriptions, truncated. The server's hints (`readOnlyHint` …) are shown in the approval and have no effect.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.cutting import cut
from codecompanion.mcp.server_spec import ServerSpec, ToolChoice
from codecompanion.mcp.server_types import Given, McpTool
from codecompanion.model.messages import ToolSpec
from codecompanion.model.provenance import named
from codecompanion.session.mcp.tool_names import model_names
from codecompanion.session.mcp.tool_schema import UnusableSchema, is_readable, usable_schema
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.approval import HIDDEN
from codecompanion.tools.builtin.wording import fits_one_line
from codecompanion.tools.tool import ApprovalQuestion, Tool, ToolContext, ToolOutput

MAX_TOOLS = 128
"""Maximum number of tools that the strictest provider accepts in one request; further tools are left out."""
MAX_DESCRIPTION_CHARS = 2_000
_TITLE_CHARS = 60

IsSettled = Callable[[], bool]
Call = Callable[[str, dict[str, Any], ToolContext], Awaitable[Given]]


class ServerTool(msgspec.Struct, frozen=True, kw_only=True):
    """A server's tool, with the chat tool made from it.

    `problem`: why it cannot be offered to chats, or "" if it can.
    """

    server: str
    own_name: str
    name: str
    fingerprint: str
    hints: tuple[str, ...] = ()
    enabled: bool = True
    asks: bool = True
    problem: str = ""
    tool: Tool | None = None

    @property
    def grant_key(self) -> str:
        """Return the scope of an "always" grant: this tool with its current description."""
        return f"{self.name}:until the server changes it{HIDDEN}{self.fingerprint}"


def server_tools(
    spec: ServerSpec, offered: Iterable[McpTool], call: Call, is_settled: IsSettled = lambda: True
) -> tuple[ServerTool, ...]:
    """Return the tools of a server, sorted by name, including tools that cannot be offered, with the reason.

    `is_settled` is false after the server has announced changed tools and before they are listed; until then, no
    "always" grant applies.
    """
    by_name = {tool.name: tool for tool in offered}
    names = model_names(spec.name, by_name)
    made, room = [], MAX_TOOLS
    for own_name in sorted(by_name):
        one = _server_tool(spec, by_name[own_name], names[own_name], call, is_settled)
        if one.enabled and not one.problem:
            if room <= 0:
                problem = f"the server offers more than {MAX_TOOLS} tools; disable the ones you do not need"
                one = msgspec.structs.replace(one, problem=problem, tool=None)
            room -= 1
        made.append(one)
    return tuple(made)


def fingerprint_of(tool: McpTool) -> str:
    """Return a short hash of everything that the model sees of a tool."""
    said = json.dumps([tool.name, tool.title, tool.description, tool.schema, tool.hints], sort_keys=True)
    return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _server_tool(spec: ServerSpec, tool: McpTool, name: str, call: Call, is_settled: IsSettled) -> ServerTool:
    choice = spec.tools.get(tool.name, ToolChoice())
    asks = spec.require_approval_before if choice.require_approval_before is None else choice.require_approval_before
    if not is_readable(tool.schema):
        problem = "its schema is nested too deeply"
        return ServerTool(server=spec.name, own_name=tool.name, name=name, fingerprint="", problem=problem)
    made = ServerTool(
        server=spec.name,
        own_name=tool.name,
        name=name,
        fingerprint=fingerprint_of(tool),
        hints=tool.hints,
        enabled=choice.enabled is not False,
        asks=asks,
    )
    try:
        parameters = usable_schema(tool.schema)
    except UnusableSchema as error:
        return msgspec.structs.replace(made, problem=str(error))
    timeout_s = spec.timeout_s if choice.timeout_s is None else choice.timeout_s
    return msgspec.structs.replace(made, tool=_tool(made, tool, parameters, timeout_s, call, is_settled))


def _tool(
    made: ServerTool, tool: McpTool, parameters: dict[str, Any], timeout_s: float, call: Call, is_settled: IsSettled
) -> Tool:
    about = tool.description.strip() or tool.title or f"The tool {tool.name} of the MCP server {made.server}."
    settings = ToolSettings(
        enabled=made.enabled, require_approval_before=made.asks, allowed_in_yolo_mode=False, timeout_s=timeout_s
    )

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        given = await call(made.own_name, arguments, context)
        return await _output(made, given, context)

    def title(arguments: dict[str, Any]) -> str:
        return f"{made.name} {cut(_one_line(arguments), _TITLE_CHARS)}".rstrip()

    def question(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion:
        claims = f"{', '.join(made.hints)}, according to the server" if made.hints else ""
        is_renamed = made.name != f"{made.server}__{tool.name}"
        renamed = f"its own name: {tool.name}" if is_renamed else ""
        asked = json.dumps(arguments, ensure_ascii=False, indent=None if fits_one_line(arguments) else 2)
        about = " · ".join(filter(None, (renamed, claims)))
        return ApprovalQuestion(
            key=made.grant_key if is_settled() else f"{made.name}:while its description is being read again",
            title=f"{made.name if is_renamed else tool.name} of the MCP server {made.server}",
            body=f"{asked}\n{about}" if about else asked,
            filetype="text",
        )

    return Tool(
        spec=ToolSpec(made.name, cut(about, MAX_DESCRIPTION_CHARS), parameters),
        run=run,
        title=title,
        question=question,
        effect="execute",
        keeps_time=True,
        settings=settings,
        server=made.server,
    )


async def _output(made: ServerTool, given: Given, context: ToolContext) -> ToolOutput:
    """Return the result of a call; its images are attached to the next request, with a note in the text for each."""
    notes = []
    for number, image in enumerate(given.images, 1):
        name = f"{made.name} image {number}.{image.mime.rpartition('/')[2]}"
        try:
            await context.chat.attach_image(name, image.content, named("server", made.server))
            notes.append(f"[The image `{name}` is attached after this result.]")
        except InputError as error:
            notes.append(f"[An image is left out: {error}.]")
    return ToolOutput(text="\n".join(filter(None, (given.text, *notes))), is_error=given.is_error)


def _one_line(arguments: dict[str, Any]) -> str:
    return " ".join(str(value) for value in arguments.values())[: 4 * _TITLE_CHARS].replace("\n", " ")
