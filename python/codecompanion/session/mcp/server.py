"""Manages one MCP server of this host: starts it on demand, restarts it if it exits, and reports its state."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from codecompanion.formats.cutting import cut
from codecompanion.mcp.server_connection import Connection
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import (
    ElicitationRequest,
    Given,
    McpError,
    McpMissing,
    Offer,
    SamplingReply,
    SamplingRequest,
)
from codecompanion.session.mcp.running_calls import RunningCalls
from codecompanion.session.mcp.server_tools import ServerTool, server_tools
from codecompanion.session.mcp_config.server_entries import Entry
from codecompanion.tools.tool import Tool, ToolContext
from codecompanion.tools.tool_provider import NOT_STARTED

_log = logging.getLogger(__name__)
MIN_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
"""Initial and maximum delay before a restart, in seconds; it doubles with each restart until a call succeeds."""
MAX_RESTARTS = 5
LOG_LINES = 200


class ServerState(StrEnum):
    """State of a server, as shown on the status page."""

    OFF = "off"
    STOPPED = NOT_STARTED
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"


class HostServices(Protocol):
    """The host's services for a server."""

    def spec(self, entry: Entry) -> ServerSpec:
        """Return how to start the server now, and register its secrets so that they are hidden.

        Blocks; raises `McpError`.
        """

    def environment(self, spec: ServerSpec) -> Mapping[str, str]:
        """Return the complete environment for the server process."""

    def hide(self, text: str) -> str:
        """Return the text with keys removed."""

    def on_changed(self, server: Server) -> None:
        """Handle a change of the server's state or offer."""

    def roots(self, server: Server) -> Sequence[str]:
        """Return the folders the server may see."""

    async def sample(self, server: Server, chats: Sequence[str], request: SamplingRequest) -> SamplingReply:
        """Ask the user, then the model. `chats`: the chats with running calls, newest last. Raises `Refused`."""

    async def elicit(self, server: Server, chats: Sequence[str], request: ElicitationRequest) -> dict[str, Any] | None:
        """Ask the user for values. Raises `Refused`."""


class Server:
    """An MCP server and its connection. `root`: the folder whose chats it serves, None = all chats."""

    def __init__(self, entry: Entry, host: HostServices, root: Path | None = None) -> None:
        self.entry, self._host, self.root = entry, host, root
        self.name, self.is_on = entry.name, entry.settings.enabled
        self.state = ServerState.STOPPED if self.is_on else ServerState.OFF
        self.problem = ""
        self.lacks_packages = False
        """Whether the server failed because Python packages are not installed; this is reported once for all servers.
        """
        self.log: deque[str] = deque(maxlen=LOG_LINES)
        self.older_lines = 0
        """The number of lines dropped from `log`."""
        self.connection: Connection | None = None
        self.tools: tuple[ServerTool, ...] = ()
        self.joined: tuple[Tool, ...] = ()
        """The tools offered to chats; the same objects until something changes."""
        self._switched: dict[str, bool] = {}
        self._starting: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.calls = RunningCalls()
        self._restarts = 0

    @property
    def offer(self) -> Offer:
        """Return the server's current offer: its tools, resources and prompts."""
        return self.connection.offer if self.connection is not None else Offer()

    # ---- starting and ending

    def start(self) -> asyncio.Task[None] | None:
        """Start the server unless it is running, starting or off; return the task that starts it, or None."""
        if not self.is_on or self.state is ServerState.READY:
            return None
        if self._starting is None or self._starting.done():
            self._enter(ServerState.STARTING)
            self._starting = asyncio.get_running_loop().create_task(self._start(), name=f"mcp start {self.name}")
        return self._starting

    async def restart(self) -> None:
        """Stop the server and start it again immediately."""
        self._restarts = 0
        await self.stop()
        self.is_on = True
        self.start()

    async def stop(self, *, off: bool = False) -> None:
        """Stop the server; `off`: do not start it again until the user asks for it."""
        self.is_on = self.is_on and not off
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
            self._starting = None
        await self._close()
        self._enter(ServerState.STOPPED if self.is_on else ServerState.OFF)

    async def aclose(self) -> None:
        """Stop the server permanently; return when its process has exited."""
        await self.stop(off=True)
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _start(self, pause_s: float = 0.0) -> None:
        try:
            if pause_s:
                await asyncio.sleep(pause_s)
                self._enter(ServerState.STARTING)
            spec = await asyncio.to_thread(self._host.spec, self.entry)
            connection = Connection(spec, self._host.environment(spec), _Listener(self, self._host))
            await connection.open()
        except McpError as error:
            self.lacks_packages = isinstance(error, McpMissing)
            self._enter(ServerState.FAILED, self._with_last_output(str(error)))
            return
        except asyncio.CancelledError:
            raise
        except Exception as error:
            _log.error("mcp %s", self.name, exc_info=error)
            self._enter(ServerState.FAILED, f"it cannot be started: {type(error).__name__}")
            return
        self.connection, self.lacks_packages = connection, False
        self.take_offer()
        self._enter(ServerState.READY)

    async def _close(self) -> None:
        connection, self.connection = self.connection, None
        self.take_offer()
        if connection is not None:
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            await asyncio.shield(task)

    def ended(self, problem: str) -> None:
        """Handle a lost connection: restart the server after a delay, up to `MAX_RESTARTS` times."""
        if self.connection is None or not problem:
            return
        self.connection = None
        self.take_offer()
        self._enter(ServerState.FAILED, self._with_last_output(problem))
        if self._restarts >= MAX_RESTARTS or not self.is_on:
            return
        pause_s = min(MAX_PAUSE_S, MIN_PAUSE_S * 2**self._restarts)
        self._restarts += 1
        self._starting = asyncio.get_running_loop().create_task(self._start(pause_s), name=f"mcp again {self.name}")

    def _enter(self, state: ServerState, problem: str = "") -> None:
        self.state, self.problem = state, self._host.hide(problem)
        if problem:
            self.note("error", problem)
            _log.warning("mcp %s: %s", self.name, self.problem)
        self._host.on_changed(self)

    def _with_last_output(self, problem: str) -> str:
        """Append the server's last output to the problem; it often shows the cause."""
        last = next((line.partition(": ")[2] for line in reversed(self.log) if line.startswith("stderr: ")), "")
        return f"{problem}; it printed: {cut(last, 160)}" if last.strip() and "ended" in problem else problem

    def note(self, level: str, text: str) -> None:
        """Add a line to the server's log on the status page."""
        line = self._host.hide(f"{level}: {text}")
        self.older_lines += len(self.log) == LOG_LINES
        self.log.append(line)
        _log.debug("mcp %s %s", self.name, line)

    # ---- its offer

    def take_offer(self) -> None:
        """Convert the server's tools to chat tools."""
        connection = self.connection
        self.tools = (
            ()
            if connection is None
            else server_tools(connection.spec, connection.offer.tools, self._call, self._is_settled)
        )
        self._join()

    def _is_settled(self) -> bool:
        """Return whether the listed tools are current; false while they are being listed again."""
        return self.connection is None or not self.connection.has_unread_changes

    def switch(self, tool: str, on: bool) -> None:
        """Turn one tool, named as the server names it, on or off until Neovim exits."""
        self._switched[tool] = on
        self._join()
        self._host.on_changed(self)

    def is_offered(self, tool: ServerTool) -> bool:
        """Return whether the tool is offered to chats."""
        return not tool.problem and self._switched.get(tool.own_name, tool.enabled)

    def _join(self) -> None:
        self.joined = tuple(one.tool for one in self.tools if one.tool is not None and self.is_offered(one))

    # ---- requests to it

    async def _call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> Given:
        def progress(done: float, total: float | None, message: str) -> None:
            part = f"{done:g}/{total:g}" if total else f"{done:g}"
            words = cut(" ".join(f"{part} {self._host.hide(message)}".split()), 80)
            context.chat.progress(f"running {self.name}: {tool} · {words}")

        given: Given = await self.ask(
            lambda connection: connection.call(tool, arguments, _NO_LIMIT_S, progress),
            context.timeout_s,
            context.chat_id,
        )
        self._restarts = 0
        return given

    async def ask(self, how: Callable[[Connection], Any], limit_s: float, chat_id: str = "") -> Any:
        """Send a request to the server on behalf of a waiting chat; time spent asking the user does not count.

        Raises:
            McpError: the server is not running or did not answer in time; the message names it.
        """
        connection = self.connection
        if connection is None:
            why = f": {self.problem}" if self.problem else ""
            raise McpError(f"The MCP server {self.name} is {self.state.value}{why}.")
        try:
            async with self.calls.running(chat_id, limit_s):
                return await how(connection)
        except TimeoutError as error:
            late = f"The MCP server {self.name} did not answer within {limit_s:g} s; the call was stopped."
            raise McpError(late) from error
        except McpError as error:
            raise McpError(self._host.hide(f"The MCP server {self.name}: {error}.")) from error


_NO_LIMIT_S = 86_400.0
"""The timeout given to the SDK, in seconds; `ask` enforces the real limit, which excludes time spent asking the user.
"""


class _Listener:
    """Forwards the events of one connection to its server."""

    def __init__(self, server: Server, host: HostServices) -> None:
        self._server, self._host = server, host

    async def on_changed(self) -> None:
        self._server.take_offer()
        self._host.on_changed(self._server)

    def on_log(self, level: str, text: str) -> None:
        self._server.note(level, text)

    def on_ended(self, problem: str) -> None:
        self._server.ended(problem)

    def roots(self) -> Sequence[str]:
        return self._host.roots(self._server)

    async def sample(self, request: SamplingRequest) -> SamplingReply:
        calls = self._server.calls
        with calls.pause_time_limits() as chats:
            return await calls.answer_to(self._host.sample(self._server, chats, request))

    async def elicit(self, request: ElicitationRequest) -> dict[str, Any] | None:
        calls = self._server.calls
        with calls.pause_time_limits() as chats:
            return await calls.answer_to(self._host.elicit(self._server, chats, request))
