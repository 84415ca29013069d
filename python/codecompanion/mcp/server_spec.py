"""Defines how a server is started or reached, wherever it was configured, with `${…}` already expanded."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's settings for one tool of a server; None means the setting of the server's entry."""

    enabled: bool | None = None
    require_approval_before: bool | None = None
    timeout_s: float | None = None


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A server: `command` for stdio or `url` for HTTP. `source`: the file that defines it, or "" for the configuration.

    `tools`: the user's settings by the server's own tool names. `require_approval_before`: whether its tools ask first.
    """

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = {}
    enabled: bool = True
    tools: Mapping[str, ToolChoice] = {}
    require_approval_before: bool = True
    timeout_s: float = 60.0
    start_timeout_s: float = 30.0
    source: str = ""

    def __repr__(self) -> str:
        return f"ServerSpec({self.name!r})"  # env and headers contain keys
