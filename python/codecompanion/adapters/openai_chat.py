"""Chat Completions over the official SDK: OpenAI, and every endpoint that speaks the same wire format.

The SDK does transport, TLS, proxies, time-outs and error classes. Rendering (`chat_render.py`) and decoding
(`chat_wire.py`) are ours, because the SDK's request transform costs time in proportion to the history and its models
cost time per chunk. Retries are ours too (`retry.py`): visible, and cancelled at once. Consume `stream` with
`contextlib.aclosing`, so that the connection closes when the consumer stops early.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from random import random as system_random
from typing import TYPE_CHECKING, Any

import msgspec

from codecompanion.adapters.base import (
    AdapterSettings,
    BlobReader,
    ChatRequest,
    RetryScheduled,
    SecretReader,
    StreamEvent,
)
from codecompanion.adapters.chat_render import ChatRenderer, RenderOptions
from codecompanion.adapters.chat_wire import ReplyDecoder
from codecompanion.adapters.error_map import Endpoint, error_from_exception
from codecompanion.adapters.keys import key_label
from codecompanion.adapters.model_list import read_model_names
from codecompanion.adapters.redact import secrets_in_url
from codecompanion.adapters.reply_stream import read_reply
from codecompanion.adapters.retry import wait_before_retry
from codecompanion.adapters.sdk_client import make_client, no_header, response_type
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    ModelNotFound,
    NetworkFailed,
    RequestRejected,
    StreamCut,
)

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

_log = logging.getLogger(__name__)

_KEY_TEMPLATE = "${api_key}"


def new_call_id() -> str:
    """Return an id for a tool call that came without one."""
    return f"call_{secrets.token_hex(12)}"


class OpenAIChat:
    """One Chat Completions endpoint. Clock, sleep, random numbers and ids can be given for tests."""

    compacts_natively = False

    def __init__(
        self,
        settings: AdapterSettings,
        *,
        read_key: SecretReader,
        read_blob: BlobReader,
        options: RenderOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = system_random,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self.name = settings.name
        self.formatted_name = settings.formatted_name or settings.name
        self.default_model = settings.model
        self._settings = settings
        self._read_key = read_key
        self._clock, self._sleep, self._random, self._new_id = clock, sleep, random, new_id
        self._renderer = ChatRenderer(settings, options or RenderOptions(), read_blob)
        self._client: AsyncOpenAI | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Future[AsyncOpenAI] | None = None
        self._key: str | None = None

    def __repr__(self) -> str:
        """Show the name only: the settings may hold keys in headers."""
        return f"OpenAIChat({self.name!r})"

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent."""
        return self._renderer.render(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`."""
        if not request.model:
            request = msgspec.structs.replace(request, model=await self._first_model())
        body = self._renderer.render(request)
        deadline = self._clock() + self._settings.timeout_s
        attempt = 1
        while True:
            yielded = False
            try:
                async with aclosing(self._attempt(request.model, body, deadline)) as events:
                    async for event in events:
                        yielded = True
                        yield event
                return
            except AdapterError as caught:
                error = caught
            if isinstance(error, AuthenticationFailed):
                # The next request reads the key anew: the user may have mended it.
                self._key = None
            wait = None if yielded else self._wait(error, attempt)
            if wait is None:
                raise error
            _log.info("attempt %d failed, next in %.1f s: %s", attempt, wait, error)
            yield RetryScheduled(str(error), attempt, round(wait * 1000))
            await self._sleep(wait)
            attempt += 1

    async def list_models(self) -> list[str]:
        """Return the model names the endpoint offers, sorted; those of the configuration when it has no list."""
        response: httpx2.Response | None = None
        error: AdapterError | None = None
        endpoint = await self._endpoint("")
        try:
            client = await self._open_client()
            response = await client.get(self._settings.models_path, cast_to=response_type(), options=self._options())
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        if error is not None and not isinstance(error, ModelNotFound | RequestRejected):
            raise error
        names = read_model_names(response.content) if response is not None else []
        return names or list(self._settings.models)

    def forget_key(self) -> None:
        """Read the key anew before the next request."""
        self._key = None

    async def warm_up(self) -> None:
        """Import the SDK and read the certificates in a thread (0.35 s), before the first request needs them."""
        await self._open_client()

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _attempt(self, model: str, body: bytes, deadline: float) -> AsyncGenerator[StreamEvent, None]:
        """Send the request once and yield its events."""
        endpoint = await self._endpoint(model)
        decoder = ReplyDecoder(endpoint, self._new_id)
        response = await self._send(body, endpoint)
        error: AdapterError | None = None
        try:
            async with aclosing(read_reply(response, decoder, endpoint, lambda: self._clock() > deadline)) as events:
                async for event in events:
                    yield event
        except AdapterError:
            raise
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        finally:
            await response.aclose()
        if error is not None:
            if isinstance(error, NetworkFailed | StreamCut) and decoder.seen_output:
                error = StreamCut(f"{error} What arrived is kept.")
            raise error

    async def _send(self, body: bytes, endpoint: Endpoint) -> httpx2.Response:
        try:
            client = await self._open_client()
            return await client.post(
                self._settings.chat_path, cast_to=response_type(), content=body, options=self._options(), stream=True
            )
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        raise error

    def _wait(self, error: AdapterError, attempt: int) -> float | None:
        return wait_before_retry(error, attempt, max_retries=self._settings.max_retries, random=self._random())

    async def _first_model(self) -> str:
        """Return the model of an adapter that names none: the first the endpoint lists."""
        if not self.default_model:
            names = await self.list_models()
            if not names:
                raise ModelNotFound(f"{self.name}: no model is configured and the endpoint lists none. Choose with ga.")
            self.default_model = names[0]
        return self.default_model

    async def _endpoint(self, model: str) -> Endpoint:
        if self._key is None:
            self._key = await asyncio.to_thread(self._read_key, self._settings)
        settings = self._settings
        hidden = (
            self._key,
            *(value for value in settings.headers.values() if _KEY_TEMPLATE not in value),
            *secrets_in_url(settings.base_url),
            *secrets_in_url(settings.chat_path),
        )
        return Endpoint(
            name=self.name,
            base_url=settings.base_url,
            key_label=key_label(settings),
            model=model,
            secrets=tuple(secret for secret in hidden if secret),
            connect_timeout_s=settings.connect_timeout_s,
            idle_timeout_s=settings.idle_timeout_s,
        )

    def _options(self) -> Any:
        """Return the headers of a request. The SDK is not given the key: it would keep it in its `repr`-able state."""
        headers: dict[str, Any] = {"Authorization": f"Bearer {self._key}" if self._key else no_header()}
        for name, value in self._settings.headers.items():
            headers = {known: old for known, old in headers.items() if known.lower() != name.lower()}
            headers[name] = value.replace(_KEY_TEMPLATE, self._key or "")
        return {"headers": headers, "follow_redirects": False}

    async def _open_client(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        client = self._client if self._loop is loop else None
        if client is None:
            if self._opening is None or self._loop is not loop:
                self._loop = loop
                self._opening = asyncio.ensure_future(asyncio.to_thread(make_client, self._settings))
            opening = self._opening
            try:
                # Shielded: a request that is cancelled meanwhile must not take the client from the next one.
                client = self._client = await asyncio.shield(opening)
            finally:
                if opening.done():
                    self._opening = None
        return client
