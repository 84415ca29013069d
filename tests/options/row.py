"""A row of the table: an option, another value, a scene, the configuration around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.options.desk import Desk, Given
from tests.options.host import LOOP

Scene = Callable[[Desk, Given], Any]
CHAT, TOOLS = "interactions.chat.opts", "interactions.chat.tools"


class Row(NamedTuple):
    """An option, another legal value as a Lua expression, the scene, and the configuration around it."""

    path: str
    value: str
    scene: Scene
    base: str = LOOP


def loop(more: str) -> str:
    """Return the base configuration of scenes with a host, overlaid with these fields of a Lua table."""
    return f"vim.tbl_deep_extend('force', {LOOP}, {{ {more} }})"


def in_chat(more: str) -> str:
    """Return the base configuration with these fields of `interactions.chat.opts`."""
    return loop(f"interactions = {{ chat = {{ opts = {{ {more} }} }} }}")


def in_tools(more: str) -> str:
    """Return the base configuration with these fields of `interactions.chat.tools`."""
    return loop(f"interactions = {{ chat = {{ tools = {{ {more} }} }} }}")
