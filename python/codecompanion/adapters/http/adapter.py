"""One provider endpoint over HTTP: the `base.Adapter` of every wire format.

`exchange.py` moves the bytes; the wire format renders and decodes them (`wire_format.py`). Consume
`stream` with `contextlib.aclosing`, so that the connection closes when the consumer stops early.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from random import random as system_random
from typing import TYPE_CHECKING

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import (
    AdapterSettings,
    ChatRequest,
    CompactionDone,
    OnWait,
    SecretReader,
    StreamEvent,
)
from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception
from codecompanion.adapters.http.connection import Connection
from codecompanion.adapters.http.endpoint_models import EndpointModels
from codecompanion.adapters.http.reply_requests import ReplyRequests
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.adapters.speed import Speed
from codecompanion.adapters.wire_format import WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits

if TYPE_CHECKING:
    from codecompanion.adapters.prompt_slots import Loss


class HttpAdapter:
    """One endpoint that speaks the given wire format. Tests can replace clock, sleep and random numbers.

    `environ` is the user's environment, where a cloud's client finds credentials. `on_secret` receives each token that
    the exchange itself adds to requests, so that it is hidden everywhere. `on_facts` is called when the server reports
    something new. `is_final` returns whether an error of this provider is permanent, although errors of its type are
    usually temporary.
    """

    def __init__(
        self,
        settings: AdapterSettings,
        wire: WireFormat,
        *,
        read_key: SecretReader,
        environ: Mapping[str, str] | None = None,
        on_secret: Callable[[str], None] = lambda secret: None,
        on_facts: Callable[[], None] = lambda: None,
        is_final: Callable[[errors.AdapterError], bool] = lambda error: False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = system_random,
    ) -> None:
        self.name = settings.name
        self.formatted_name = settings.formatted_name or settings.name
        self.origin = origin_of(wire.origin_name, settings.base_url)
        self.returns_readable_reasoning = wire.returns_readable_reasoning
        self.cache_lifetime_s = wire.cache_lifetime_s
        self._wire = wire
        self._connection = Connection(
            settings,
            wire,
            read_key=read_key,
            environ=os.environ if environ is None else environ,
            on_secret=on_secret,
            is_final=is_final,
            clock=clock,
            sleep=sleep,
            random=random,
        )
        self._models = EndpointModels(self._connection, on_facts=on_facts)
        self._replies = ReplyRequests(self._connection, self._models)

    def __repr__(self) -> str:
        """Show only the name: headers in the settings may contain keys."""
        return f"HttpAdapter({self.name!r})"

    @property
    def default_model(self) -> str:
        """Return the model for requests that name none, or "" until the endpoint has listed one."""
        return self._models.default

    @default_model.setter
    def default_model(self, model: str) -> None:
        self._models.default = model

    @property
    def settings(self) -> AdapterSettings:
        """Return the settings of the entry; for a local server, they are updated when it is recognised."""
        return self._connection.settings

    # ---- the model

    def compacts_natively(self, model: str) -> bool:
        """Return whether the provider compacts automatically during a request with `compact_at` (R-534)."""
        return self._wire.compacts_natively(model)

    def compacts_on_demand(self, model: str) -> bool:
        """Return whether `compact` is supported (R-540)."""
        return self._wire.render_compaction(ChatRequest(messages=(), model=model), "") is not None

    def counts_tokens(self, model: str) -> bool:
        """Return whether `count_tokens` is supported."""
        return self._wire.render_count(ChatRequest(messages=(), model=model)) is not None

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model, or None if it has reported none."""
        return self._models.limits(model)

    def facts(self, model: str) -> ServerFacts:
        """Return the facts that a server on the user's machine or network reported about the model and its settings."""
        return self._models.server.facts(model or self.default_model)

    def forget_tool_refusal(self, model: str) -> None:
        """Send tools to the model again although a local server refused them: the server may have been restarted."""
        self._models.server.forget_tool_refusal(model or self.default_model)

    def speed(self, model: str) -> Speed:
        """Return the recent speed of a local server with this model."""
        return self._models.server.speed(model or self.default_model)

    def prompt_loss(self, model: str, chat_id: str) -> Loss:
        """Return why a local server's cache no longer contains a chat's prompt, or "" if it may still contain it."""
        return self._models.server.prompt_loss(model or self.default_model, chat_id)

    def learn_kept_prompt(self, model: str) -> None:
        """Record that the model's server kept a prompt even after other requests had used all of its slots."""
        self._models.server.slots_of(model or self.default_model).learn_kept()

    async def know_server(self, model: str) -> None:
        """Query a local server about its model if the last report may be out of date; wait only briefly."""
        await self._models.know_server(model)

    async def find_model(self, on_wait: OnWait) -> str:
        """Return the model of requests that name none; wait for a local server that is starting or loading.

        Raises:
            AdapterError: no model is configured, and the endpoint lists none.
        """
        return await self._replies.find_model(on_wait)

    def runs_model_itself(self, model: str) -> bool | None:
        """Return whether the endpoint runs the model itself rather than forwarding requests, or None if unknown."""
        return self._wire.runs_model_itself(model)

    async def list_models(self) -> list[str]:
        """Return the endpoint's model names, sorted, or those in the configuration if the endpoint has no list."""
        return await self._models.names()

    # ---- requests

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent; its rendered and validated parts are reused for the request itself."""
        call = self._wire.render(request)
        self._connection.gate.find_problem(call.chunks, "reply")
        return call.body

    def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`."""
        return self._replies.stream(request)

    async def compact(self, request: ChatRequest, instructions: str, on_wait: OnWait | None = None) -> CompactionDone:
        """Make the provider compact the messages of the request now (R-540); `on_wait` as in `base.Adapter`.

        Raises:
            AdapterError: the compaction failed; nothing was changed.
        """
        from codecompanion.adapters.http import count_and_compact  # not needed at startup

        return await count_and_compact.compact(self._connection, request, instructions, on_wait)

    async def count_tokens(self, request: ChatRequest, on_wait: OnWait | None = None) -> int:
        """Return the provider's own count of the request's prompt; `on_wait` as in `base.Adapter`.

        Raises:
            AdapterError: the count is unavailable.
        """
        from codecompanion.adapters.http import count_and_compact  # not needed at startup

        if self._models.is_own:
            if not request.model:
                model = await count_and_compact.first_model(self._connection, self._models.first, on_wait)
                request = msgspec.structs.replace(request, model=model)
            if on_wait is None and not await self._models.server.is_awake(request.model):
                raise errors.RequestRejected(f"{self.name}: tokens were not counted: {request.model} is not loaded.")
        return await count_and_compact.count_tokens(self._connection, request, on_wait)

    # ---- the connection

    def use_key(self, key: str) -> None:
        """Use this key, which is renewed from time to time, starting with the next request."""
        self._connection.use_key(key)

    def forget_key(self) -> None:
        """Read the key again before the next request."""
        self._connection.forget_key()

    async def require_key(self) -> None:
        """Read the key and cache it for the request."""
        await self._connection.endpoint("")

    async def warm_up(self) -> None:
        """Import the transport and read the certificates in a thread (50 ms), before the first request needs them.

        Then read the endpoint's model report, if it contains more than names. If the key comes from a command, skip the
        report: the command may ask for a passphrase.

        Raises:
            AdapterError: the transport cannot be used: a package or a cloud's credentials are missing.
        """
        settings = self._connection.settings
        problem: errors.AdapterError | None = None
        try:
            await self._connection.open()
        except Exception as caught:
            problem = error_from_exception(caught, Endpoint(name=self.name, base_url=settings.base_url))
        if problem is not None:
            raise problem
        if not settings.key.startswith("cmd:"):
            await self._models.warm_up()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._models.aclose()
        await self._connection.aclose()
