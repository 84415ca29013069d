"""Tools that are described differently than when the user allowed them always: the permission ends, and it is said.

A server could be allowed as something harmless and become something else. The key of a grant holds the description's
fingerprint, so an old grant covers nothing; here it is taken out of the list and the user is told why it asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from codecompanion.session.chat.chat import Chat
from codecompanion.session.mcp.server import Server
from codecompanion.wire.events import Severity


class ChangedTools:
    """Looks over the grants of the open chats."""

    def __init__(self, chats: Callable[[], Mapping[str, Chat]]) -> None:
        self._chats = chats

    def look_at(self, server: Server) -> None:
        """Take back grants for tools of this server that are other ones now."""
        for tool in server.tools:
            for chat in self._chats().values():
                desk = chat.desk
                for key in desk.approvals.always:
                    if key.startswith(f"{tool.name}:") and key != tool.grant_key:
                        desk.approvals = desk.approvals.without(f"always:{key}")
                        chat.grants.keep(desk.approvals)
                        text = f"{tool.name} of the MCP server {server.name} is described differently than when you"
                        chat.notice(Severity.WARN, f"{text} allowed it always: it asks again.")
