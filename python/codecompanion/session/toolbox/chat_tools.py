"""The tools of one chat: what the providers bring for its folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from codecompanion.tools.registry import ToolRegistry
from codecompanion.tools.toolbox import Toolbox


class ChatTools:
    """What of the toolbox one chat gets. `root` says which folder the chat works in."""

    def __init__(self, toolbox: Toolbox, root: Callable[[], Path] = Path) -> None:
        self._toolbox, self.root = toolbox, root

    def offered(self) -> ToolRegistry:
        """Return the tools that may be offered in this chat now."""
        return self._toolbox.registry(self.root())

    async def settle(self) -> None:
        """Wait a few seconds for providers that are not ready."""
        await self._toolbox.settle(self.root())
