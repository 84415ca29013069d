"""Manages a connection to one MCP server; the only module that uses the SDK's session.

A separate task opens, keeps and closes the connection, because the task that entered the SDK's scopes must also leave
them. Requests may come from any task of the loop; cancelling one notifies the server (`notifications/cancelled`).
Results are not checked against the server's own output schema, because its patterns and references are untrusted, and
the results are treated as data anyway.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import codecompanion
from codecompanion.formats.cutting import cut
from codecompanion.mcp import content
from codecompanion.mcp.callbacks import Callbacks
from codecompanion.mcp.explain_errors import explain, is_gone
from codecompanion.mcp.http import http_streams
from codecompanion.mcp.list_offer import list_offer
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import Given, McpError, Offer, ServerListener
from codecompanion.mcp.stdio import stdio_streams

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
CLOSE_S = 10.0
REFRESH_EVERY_S = 0.5
"""Minimum seconds between two refreshes, for servers that keep reporting changed tools."""

OnProgress = Callable[[float, float | None, str], None]


class Connection:
    """A connection to the server in `spec`. `env`: its complete environment (stdio only)."""

    def __init__(self, spec: ServerSpec, env: Mapping[str, str], listener: ServerListener) -> None:
        self.spec, self._env, self._listener = spec, env, listener
        self.offer = Offer()
        self.server_name = self.server_version = self.protocol = ""
        self._client: Any = None
        self._fault = ""
        self._is_wanted = True
        self._is_refreshing = False
        self._over = asyncio.Event()
        self._dirty = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_open(self) -> bool:
        """Return whether the server can receive requests."""
        return self._client is not None and not self._over.is_set()

    @property
    def has_unread_changes(self) -> bool:
        """Return whether the server has reported list changes that have not been read yet."""
        return self._dirty.is_set() or self._is_refreshing

    async def open(self) -> None:
        """Start the server or connect to it, and read its offer.

        Raises:
            McpError: the server failed, or exceeded the start timeout.
        """
        self._task = asyncio.get_running_loop().create_task(self._keep(), name=f"mcp {self.spec.name}")
        try:
            await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection and end the server's process; return when both are done."""
        self._over.set()
        self._is_wanted = False
        task, self._task = self._task, None
        if task is None:
            return
        if not self._ready.done():
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            async with asyncio.timeout(CLOSE_S):
                await task

    # ---- requests

    async def call(
        self, tool: str, arguments: dict[str, Any], timeout_s: float, on_progress: OnProgress | None = None
    ) -> Given:
        """Call a tool.

        Raises:
            McpError: a protocol error; a tool's own failure is a result with `is_error`.
        """

        async def progress(done: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                on_progress(done, total, message or "")

        result = await self._asked(
            lambda client: client.call_tool(tool, arguments, progress_callback=progress), timeout_s
        )
        return await asyncio.to_thread(content.result_given, result)

    async def read(self, uri: str, timeout_s: float) -> Given:
        """Read a resource. Raises `McpError`."""
        result = await self._asked(lambda client: client.read_resource(uri), timeout_s)
        return await asyncio.to_thread(content.resource_given, result.contents)

    async def prompt(self, name: str, arguments: dict[str, str], timeout_s: float) -> Given:
        """Get a prompt with its arguments filled in. Raises `McpError`."""
        result = await self._asked(lambda client: client.get_prompt(name, arguments), timeout_s)
        return content.prompt_given(result.messages)

    async def _asked(self, ask: Callable[[Any], Awaitable[_T]], timeout_s: float) -> _T:
        if not self.is_open:
            raise McpError(self._fault or "the connection is closed")
        try:
            async with asyncio.timeout(timeout_s):
                return await ask(self._client)
        except McpError:
            raise
        except TimeoutError as error:
            raise McpError(f"it did not answer within {timeout_s:g} s") from error
        except Exception as error:
            if is_gone(error):
                self._over.set()
            raise McpError(self._fault or explain(error)) from error

    # ---- the connection's task

    async def _keep(self) -> None:
        problem = ""
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(self.spec.start_timeout_s):
                        await self._enter(stack)
                        self.offer = await list_offer(self._client)
                except Exception as error:
                    # Done before the transport is closed, which looks as if the server had exited.
                    problem = self._fault or explain(error)
                    if isinstance(error, TimeoutError):
                        problem = f"it did not start within {self.spec.start_timeout_s:g} s"
                    raise
                self._ready.set_result(None)
                await self._until_over()
        except asyncio.CancelledError:
            problem = "it was stopped while starting"
        except Exception as error:
            _log.debug("mcp %s", self.spec.name, exc_info=error)
            problem = problem or self._fault or explain(error)
        self._client = None
        self._over.set()
        problem = problem or self._fault
        if not self._ready.done():
            self._ready.set_exception(McpError(problem))
            self._ready.exception()  # there may be no waiter any more
        else:
            self._fault = problem
            self._listener.on_ended(problem if self._is_wanted else "")

    async def _enter(self, stack: contextlib.AsyncExitStack) -> None:
        Client, Implementation = await asyncio.to_thread(_sdk)  # importing it takes seconds of CPU time
        callbacks = Callbacks(self._listener, self._dirty.set)
        self._client = await stack.enter_async_context(
            Client(
                self._streams(),
                cache=None,
                client_info=Implementation(name="codecompanion", version=codecompanion.__version__),
                sampling_callback=callbacks.sample,
                elicitation_callback=callbacks.elicit,
                list_roots_callback=callbacks.list_roots,
                logging_callback=callbacks.log,
                message_handler=callbacks.notice,
                log_level="info",
            )
        )
        # Results are not checked (see above); the check is a public method of the session.
        setattr(self._client.session, "validate_tool_result", _believe)  # noqa: B010
        info = self._client.server_info
        self.server_name = cut(info.name if info else "", 100)
        self.server_version = cut(info.version if info else "", 40)
        self.protocol = self._client.protocol_version

    def _streams(self) -> Any:
        if self.spec.url:
            return http_streams(self.spec.url, self.spec.headers)
        return stdio_streams(
            self.spec.command,
            self._env,
            self.spec.cwd,
            lambda line: self._listener.on_log("stderr", line),
            self._blame,
            self._over.set,
        )

    def _blame(self, fault: str) -> None:
        self._fault = self._fault or fault

    async def _until_over(self) -> None:
        """Keep the offer up to date until the connection ends."""
        listening = asyncio.create_task(self._listen())
        over = asyncio.create_task(self._over.wait())
        try:
            while not self._over.is_set():
                changed = asyncio.create_task(self._dirty.wait())
                await asyncio.wait((over, changed), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if self._over.is_set():
                    return
                self._is_refreshing = True
                self._dirty.clear()
                await self._refresh()
                self._is_refreshing = False
                await asyncio.wait((over,), timeout=REFRESH_EVERY_S)
        finally:
            for task in (listening, over):
                task.cancel()
            await asyncio.gather(listening, over, return_exceptions=True)

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(self.spec.timeout_s):
                self.offer = await list_offer(self._client)
            await self._listener.on_changed()
        except Exception as error:
            self._listener.on_log("warning", f"its tools could not be listed again: {explain(error)}")

    async def _listen(self) -> None:
        """Subscribe to list changes with the 2026 protocol; servers of older protocols report them without this."""
        with contextlib.suppress(Exception):
            if self.protocol >= "2026":
                wanted = dict.fromkeys(("tools_list_changed", "prompts_list_changed", "resources_list_changed"), True)
                async with self._client.listen(**wanted) as changes:
                    async for _ in changes:
                        self._dirty.set()


def _sdk() -> tuple[Any, Any]:
    from mcp import Client
    from mcp.types import Implementation

    return Client, Implementation


async def _believe(name: str, result: Any) -> None:
    """Accept a result without checking it."""
    del name, result
