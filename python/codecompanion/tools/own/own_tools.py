"""Provides the tools of the user's configuration, in Lua and in Python."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from codecompanion.errors import ConfigError
from codecompanion.settings_sections import OwnToolSettings
from codecompanion.tools.own.lua_tool import lua_tool
from codecompanion.tools.tool import Tool


class OwnTools:
    """The user's own tools. Python functions are loaded in a thread when the first chat starts."""

    source = "your configuration"
    key = "interactions.chat.tools"

    def __init__(
        self,
        given: Mapping[str, OwnToolSettings],
        tell: Callable[[str], None],
        failed: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Create the Lua tools.

        `tell` receives a sentence about each tool that cannot be loaded, `failed` about each call that failed.
        """
        self._failed = failed
        self._given = {name: one for name, one in sorted(given.items()) if one.settings.enabled}
        self._tell = tell
        self._made = {name: lua_tool(name, one) for name, one in self._given.items() if not one.python}
        self._tools = tuple(self._made.values())
        self._loaded: asyncio.Event | None = None

    def tools(self, root: Path) -> tuple[Tool, ...]:
        """Return the loaded tools."""
        del root
        return self._tools

    @property
    def is_settled(self) -> bool:
        """Return whether loading is complete."""
        return not any(one.python for one in self._given.values()) or (
            self._loaded is not None and self._loaded.is_set()
        )

    def may_bring(self, name: str, root: Path) -> bool:
        """Return whether the tool is a Python function that is not loaded yet."""
        del root
        return not self.is_settled and name in self._given and name not in self._made

    async def settle(self, root: Path) -> None:
        """Load the Python functions, which takes as long as their imports."""
        del root
        if self._loaded is None:
            self._loaded = asyncio.Event()
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._load, args=(loop,), name="tools of the user", daemon=True).start()
        await self._loaded.wait()

    def _load(self, loop: asyncio.AbstractEventLoop) -> None:
        from codecompanion.tools.own.python_tool import python_tool  # pydantic is not needed for anything else here

        made, sentences = dict[str, Tool](), list[str]()
        for name, one in self._given.items():
            if one.python:
                try:
                    made[name] = python_tool(name, one, self._failed)
                except ConfigError as error:
                    sentences.append(f"{error}. The other tools are not affected.")
        with contextlib.suppress(RuntimeError):  # the host has exited
            loop.call_soon_threadsafe(self._take, made, sentences)

    def _take(self, made: Mapping[str, Tool], sentences: list[str]) -> None:
        self._made |= made
        self._tools = tuple(self._made[name] for name in self._given if name in self._made)
        for sentence in sentences:
            self._tell(sentence)
        if self._loaded is not None:
            self._loaded.set()
