"""Reads the models of one endpoint: their names, their windows, and the facts that the user's own server reports.

The list of models is read on demand. It is also read during the first reply if it may show what runs the model: a
gateway on this machine forwards requests to providers that bill. `server_reader.py` queries the server itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from codecompanion import errors
from codecompanion.adapters.http.connection import Connection
from codecompanion.adapters.http.server_reader import CONNECT_WAIT_S, MAX_WAIT_S, ServerReader
from codecompanion.adapters.transport.time_limits import is_loopback, is_own_server, names_no_server
from codecompanion.counting.model_windows import ModelLimits

_log = logging.getLogger(__name__)

MODEL_LIST_LIMIT_S = 5.0


class EndpointModels:
    """The known models of one endpoint.

    `default` is the model for requests that name none, or "" until the list of models has been read. `on_facts` is
    called when the server reports something new.
    """

    def __init__(self, connection: Connection, *, on_facts: Callable[[], None]) -> None:
        settings, wire = connection.settings, connection.wire
        self.default = settings.model
        self._connection, self._wire, self._on_facts = connection, wire, on_facts
        self._take_server()
        wire.takes_images = lambda model: self.server.facts(model or self.default).images is not False
        self._is_listed = False
        self._reading: asyncio.Task[None] | None = None
        self._recognising: asyncio.Task[None] | None = None
        self._may_be_unnamed = names_no_server(settings)

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model, or None if it has reported none."""
        window = self.server.facts(model or self.default).window
        return ModelLimits(window) if window else self._wire.limits(model)

    async def know_server(self, model: str) -> None:
        """Query the user's own server about its model if its last report may be out of date; wait only briefly."""
        if self._may_be_unnamed:
            task = self._recognising_server()
            if is_loopback(self._connection.settings.base_url):
                await asyncio.wait([task], timeout=CONNECT_WAIT_S)
        if not (model or self.default) and self.is_own:
            try:
                async with asyncio.timeout(CONNECT_WAIT_S):
                    await self.first()
            except (errors.AdapterError, TimeoutError) as error:
                _log.info("no model to ask: %s", error)  # reported when the request is sent
        await self.server.refresh_if_stale(model or self.default)

    async def names(self) -> list[str]:
        """Return the endpoint's model names, sorted, or those in the configuration if the endpoint has no list."""
        settings = self._connection.settings
        path = settings.models_path or self._wire.models_path
        names: list[str] = []
        try:
            names = self._wire.read_models(await self._connection.get(path)) if path else []
        except (errors.ModelNotFound, errors.RequestRejected) as error:
            _log.info("%s lists no models: %s", settings.name, error)
        if settings.limits_path not in ("", path) or self.is_own:
            await self.server.ask(self.default)
        return names or list(settings.models)

    async def first(self) -> str:
        """Return the default model, which is the first that the endpoint lists. Raises `AdapterError`."""
        if not self.default:
            names = await self.names()
            if not names:
                none = "no model is configured and the endpoint lists none. Choose one with ga."
                name = self._connection.settings.name
                if name == "ollama":
                    none = "it has no model yet. Get one, for example with: ollama pull qwen3:8b"
                raise errors.ModelNotFound(f"{name}: {none}")
            self.default = names[0]
        return self.default

    async def warm_up(self) -> None:
        """Read the endpoint's model report, if it contains more than names."""
        if self._may_be_unnamed:
            await asyncio.wait([self._recognising_server()])
        await self.server.ask(self.default)
        if self._wire.model_list_tells or self._connection.may_be_gateway:
            await asyncio.wait([self._reading_model_list()])

    def read_beside_reply(self) -> asyncio.Task[None] | None:
        """Return a task that reads the list of models now, or None if it is not needed.

        In this list, a server on this machine identifies itself.
        """
        needs = self._connection.may_be_gateway and not self._is_listed
        return self._reading_model_list() if needs else None

    async def aclose(self) -> None:
        """Cancel running queries."""
        await self.server.aclose()
        asking = [task for task in (self._reading, self._recognising) if task is not None]
        for task in asking:
            task.cancel()
        if asking:
            await asyncio.wait(asking)

    def _take_server(self) -> None:
        """Create the reader for the server in the connection's settings."""
        settings = self._connection.settings
        self.is_own = is_own_server(settings)
        self.server = ServerReader(
            settings,
            self._connection.get,
            self._connection.post,
            take_model_list=self._wire.read_models,
            has_window=lambda model: self.limits(model) is not None,
            forget_model_list=self._forget_model_list,
            on_change=self._on_facts,
            clock=self._connection.clock,
        )

    def _recognising_server(self) -> asyncio.Task[None]:
        """Return the task that recognises the server; start one if none is running."""
        if self._recognising is None or self._recognising.done():
            self._recognising = asyncio.get_running_loop().create_task(self._recognise_server())
        return self._recognising

    async def _recognise_server(self) -> None:
        from codecompanion.adapters.http.recognise_server import find_limits_path  # rarely wanted

        path: str | None = ""
        settings = self._connection.settings
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                path = await find_limits_path(self._connection.get, settings.base_url)
        except TimeoutError:
            _log.info("the server was not recognised: no answer in %g s", MAX_WAIT_S)
        if path is None:
            return  # the server is not running yet
        self._may_be_unnamed = False
        if path:
            models_path = settings.models_path or self._wire.models_path
            self._connection.settings = msgspec.structs.replace(
                settings, local_server=True, limits_path=path, models_path=models_path
            )
            self._wire.use_recognised_server(self._connection.settings)
            self._take_server()
            await self.server.ask(self.default)

    def _forget_model_list(self) -> None:
        """Forget the list of models, because another server answers; the next reply reads the new list."""
        self._wire.forget_models()
        self._is_listed = False

    def _reading_model_list(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_model_list())
        return self._reading

    async def _read_model_list(self) -> None:
        try:
            async with asyncio.timeout(MODEL_LIST_LIMIT_S):
                names = await self.names()
            self._is_listed = True
            self.default = self.default or (names[0] if names else "")
        except (errors.AdapterError, TimeoutError) as error:
            _log.info("the models could not be listed: %s", error)
