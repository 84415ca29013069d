"""The models of one endpoint: their names and windows, and what a server of the user's own reports about them.

The listing is read when somebody asks for it, and beside a first reply where it tells who runs the model: a gateway on
this machine passes requests on to providers who bill. The server itself is asked in `server_reader.py`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from codecompanion import errors
from codecompanion.adapters.http.connection import Connection
from codecompanion.adapters.http.server_reader import CONNECT_WAIT_S, ServerReader
from codecompanion.adapters.transport.time_limits import is_own_server
from codecompanion.counting.model_windows import ModelLimits

_log = logging.getLogger(__name__)

LISTING_LIMIT_S = 5.0


class EndpointModels:
    """What is known of the models of one endpoint.

    `default` is the model of requests that name none, "" until the listing has been read for it. `on_facts` is called
    when the server reports something new.
    """

    def __init__(self, connection: Connection, *, on_facts: Callable[[], None]) -> None:
        settings, wire = connection.settings, connection.wire
        self.default = settings.model
        self.is_own = is_own_server(settings)
        self.server = ServerReader(
            settings,
            connection.get,
            connection.post,
            take_listing=wire.read_models,
            has_window=lambda model: self.limits(model) is not None,
            forget_listing=self._forget_listing,
            on_change=on_facts,
            clock=connection.clock,
        )
        wire.takes_images = lambda model: self.server.facts(model or self.default).images is not False
        self._connection, self._wire, self._settings = connection, wire, settings
        self._is_listed = False
        self._reading: asyncio.Task[None] | None = None

    def limits(self, model: str) -> ModelLimits | None:
        """Return what the endpoint itself has told about the model, None when it has not."""
        window = self.server.facts(model or self.default).window
        return ModelLimits(window) if window else self._wire.limits(model)

    async def know_server(self, model: str) -> None:
        """Ask a server of the user's own what it is, if what it reported may not hold any more; waits briefly."""
        if not (model or self.default) and self.is_own:
            try:
                async with asyncio.timeout(CONNECT_WAIT_S):
                    await self.first()
            except (errors.AdapterError, TimeoutError) as error:
                _log.info("no model to ask: %s", error)  # said where the request is sent
        await self.server.make_sure(model or self.default)

    async def names(self) -> list[str]:
        """Return the model names the endpoint offers, sorted; those of the configuration when it has no list."""
        settings = self._settings
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
        """Return the model of an adapter that names none: the first the endpoint lists. Raises `AdapterError`."""
        if not self.default:
            names = await self.names()
            if not names:
                none = "no model is configured and the endpoint lists none. Choose with ga."
                if self._settings.name == "ollama":
                    none = "it has no model yet. Get one, for example with: ollama pull qwen3:8b"
                raise errors.ModelNotFound(f"{self._settings.name}: {none}")
            self.default = names[0]
        return self.default

    async def warm_up(self) -> None:
        """Read what the endpoint says of its models, when that is more than names."""
        await self.server.ask(self.default)
        if self._wire.listing_tells or self._connection.may_be_gateway:
            await asyncio.wait([self._reading_listing()])

    def read_beside_reply(self) -> asyncio.Task[None] | None:
        """Return a task that reads the listing now, None when it need not be read.

        In the listing a server on this machine names itself.
        """
        needs = self._connection.may_be_gateway and not self._is_listed
        return self._reading_listing() if needs else None

    async def aclose(self) -> None:
        """Stop asking."""
        await self.server.aclose()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    def _forget_listing(self) -> None:
        """Take in that another server answers: what it lists is read with the next reply."""
        self._wire.forget_models()
        self._is_listed = False

    def _reading_listing(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_listing())
        return self._reading

    async def _read_listing(self) -> None:
        try:
            async with asyncio.timeout(LISTING_LIMIT_S):
                await self.names()
            self._is_listed = True
        except (errors.AdapterError, TimeoutError) as error:
            _log.info("the models could not be listed: %s", error)
