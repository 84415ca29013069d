"""Handles a server's requests and notifications: model replies, input from the user, folders, logs.

Requests that are not granted are refused with protocol errors, so that the server can continue.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from codecompanion.formats.cutting import cut
from codecompanion.mcp import content
from codecompanion.mcp.server_types import ElicitationRequest, McpError, Refused, ServerListener, Unaskable

_REFUSED = -1
"""The specified error code for a request that the user rejected."""
_CHANGES = (
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
)


class Callbacks:
    """Implements the SDK's callbacks for one session."""

    def __init__(self, listener: ServerListener, on_list_changed: Callable[[], None]) -> None:
        self._listener, self._on_list_changed = listener, on_list_changed

    async def sample(self, context: Any, params: Any) -> Any:
        """Answer `sampling/createMessage`."""
        from mcp.types import CreateMessageResult, ErrorData, TextContent

        try:
            reply = await self._listener.sample(content.sampling_request(params))
        except (Refused, McpError) as error:
            return ErrorData(code=_REFUSED, message=str(error))
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=reply.text),
            model=reply.model,
            stop_reason="maxTokens" if reply.was_cut else "endTurn",
        )

    async def elicit(self, context: Any, params: Any) -> Any:
        """Answer `elicitation/create`."""
        from mcp.types import INVALID_PARAMS, ElicitResult, ErrorData

        schema = getattr(params, "requested_schema", None) or {}
        fields = schema.get("properties", {})
        required = schema.get("required")
        request = ElicitationRequest(
            message=params.message,
            fields=fields if isinstance(fields, dict) else {},
            required=tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else (),
            url=str(getattr(params, "url", "") or ""),
        )
        try:
            values = await self._listener.elicit(request)
        except Refused:
            return ElicitResult(action="decline")
        except Unaskable as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        if values is None:
            return ElicitResult(action="cancel")
        return ElicitResult(action="accept", content=None if request.url else values)

    async def list_roots(self, context: Any) -> Any:
        """Answer `roots/list`."""
        from mcp.types import ListRootsResult, Root

        roots = [Root(uri=Path(folder).as_uri(), name=Path(folder).name) for folder in self._listener.roots()]  # type: ignore[arg-type]
        return ListRootsResult(roots=roots)

    async def log(self, params: Any) -> None:
        """Handle `notifications/message`."""
        logger = f"{cut(' '.join(params.logger.split()), 60)}: " if params.logger else ""
        self._listener.on_log(params.level, logger + content.log_text(params.data))

    async def notice(self, message: Any) -> None:
        """Handle notifications without a callback of their own, and transport errors."""
        if isinstance(message, Exception):
            self._listener.on_log("warning", f"a message could not be read: {type(message).__name__}")
        elif message.method in _CHANGES:
            self._on_list_changed()
