"""Lists a server's offer (tools, resources, prompts) page by page, with limits on the data that it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from codecompanion.formats.cutting import cut
from codecompanion.mcp.server_types import McpPrompt, McpResource, McpTool, Offer

MAX_ITEMS = 10_000
MAX_PAGES = 200
MAX_NAME_CHARS = 200
MAX_ABOUT_CHARS = 1_000
"""Maximum characters of descriptions that only the user reads; tool descriptions are truncated elsewhere."""
_HINTS = (
    ("read_only_hint", True, "read-only"),
    ("destructive_hint", True, "destructive"),
    ("idempotent_hint", True, "idempotent"),
    ("open_world_hint", True, "reaches external systems"),
)


async def list_offer(client: Any) -> Offer:
    """Return the server's current offer. Raises the SDK's exceptions."""
    able = client.server_capabilities
    left_out: list[str] = []
    tools: Iterable[Any] = ()
    prompts: Iterable[Any] = ()
    resources: Iterable[Any] = ()
    templates: Iterable[Any] = ()
    if able.tools is not None:
        tools = await _pages(client.list_tools, lambda page: page.tools, "tools", left_out)
    if able.prompts is not None:
        prompts = await _pages(client.list_prompts, lambda page: page.prompts, "prompts", left_out)
    if able.resources is not None:
        resources = await _pages(client.list_resources, lambda page: page.resources, "resources", left_out)
        templates = await _pages(
            client.list_resource_templates, lambda page: page.resource_templates, "addresses", left_out, needed=False
        )
    return Offer(
        tools=tuple(map(_tool, tools)),
        resources=(*map(_resource, resources), *map(_template, templates)),
        prompts=tuple(map(_prompt, prompts)),
        left_out=tuple(left_out),
    )


async def _pages(
    ask: Callable[..., Any], items: Callable[[Any], list[Any]], what: str, left_out: list[str], *, needed: bool = True
) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    try:
        for _ in range(MAX_PAGES):
            page = await ask(cursor=cursor)
            found += items(page)
            cursor = page.next_cursor
            if not cursor or len(found) >= MAX_ITEMS:
                break
    except Exception as error:
        if needed or getattr(error, "code", None) != -32601:  # method not found: many servers have no templates
            raise
    if cursor or len(found) > MAX_ITEMS:
        left_out.append(f"More than {min(len(found), MAX_ITEMS):,} {what} are offered; the rest are ignored")
    return found[:MAX_ITEMS]


def _tool(tool: Any) -> McpTool:
    notes = tool.annotations
    hints = tuple(words for name, value, words in _HINTS if notes is not None and getattr(notes, name) is value)
    title = tool.title or (notes.title if notes is not None else "") or ""
    return McpTool(
        name=tool.name,
        title=cut(title, MAX_NAME_CHARS),
        description=tool.description or "",
        schema=tool.input_schema,
        hints=hints,
    )


def _resource(resource: Any) -> McpResource:
    return McpResource(
        uri=resource.uri,
        name=cut(resource.title or resource.name or "", MAX_NAME_CHARS),
        description=cut(resource.description or "", MAX_ABOUT_CHARS),
        mime=cut(resource.mime_type or "", MAX_NAME_CHARS),
    )


def _template(template: Any) -> McpResource:
    return McpResource(
        uri=template.uri_template,
        name=cut(template.title or template.name or "", MAX_NAME_CHARS),
        description=cut(template.description or "", MAX_ABOUT_CHARS),
        mime=cut(template.mime_type or "", MAX_NAME_CHARS),
        is_template=True,
    )


def _prompt(prompt: Any) -> McpPrompt:
    return McpPrompt(
        name=prompt.name,
        description=cut(prompt.description or prompt.title or "", MAX_ABOUT_CHARS),
        arguments=tuple(
            (argument.name, bool(argument.required), cut(argument.description or "", MAX_ABOUT_CHARS))
            for argument in prompt.arguments or ()
        ),
    )
