"""Revokes "always" grants for tools whose description has changed since, and tells the user.

A tool could be approved as something harmless and then change. The key of a grant contains the description's
fingerprint, so an old grant no longer applies; this module removes it from the list, and the user sees why the tool
asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codecompanion.session.chat.chat import Chat
from codecompanion.session.mcp.server import Server
from codecompanion.wire.events import Severity


class ChangedTools:
    """Checks the grants of the open chats."""

    def __init__(self, chats: Callable[[], Mapping[str, Chat]]) -> None:
        self._chats = chats

    def look_at(self, server: Server) -> None:
        """Revoke grants for tools of this server that have changed."""
        for tool in server.tools:
            for chat in self._chats().values():
                desk = chat.desk
                for key in desk.approvals.always:
                    if key.startswith(f"{tool.name}:") and key != tool.grant_key:
                        desk.approvals = desk.approvals.without(f"always:{key}")
                        chat.grants.keep(desk.approvals)
                        text = f"The description of {tool.name} (MCP server {server.name}) has changed since you"
                        chat.notice(Severity.WARN, f"{text} chose “always”. It will ask again.")
