"""Copilot as an adapter: a fresh token before each request, and each model on the endpoint that serves it."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import Adapter, AdapterSettings, BlobReader, ChatRequest, RetryScheduled, StreamEvent
from codecompanion.adapters.copilot.access import CopilotAccess, CopilotToken
from codecompanion.adapters.copilot.github import HEADERS, LOGIN_COMMAND, SETTINGS_PAGE, github_of
from codecompanion.adapters.copilot.offers import Offer, Offers, Served
from codecompanion.adapters.copilot.stored_login import Places
from codecompanion.adapters.copilot.wires import CopilotChat, CopilotMessages, CopilotResponses
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.http.client import import_transport
from codecompanion.adapters.wire_format import WireFormat, origin_of
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError
from codecompanion.formats.regex import regex

_log = logging.getLogger(__name__)

FRESH_S = 600.0
"""A list of models older than this is asked for again before the next request."""
LISTING_LIMIT_S = 5.0
_USED_UP = regex(r"quota|allowance|premium (?:request|interaction)|monthly limit", re.IGNORECASE)


class CopilotAdapter(Adapter):
    """GitHub Copilot. The connection for each wire format is made when a model wants it."""

    returns_readable_reasoning = False
    cache_lifetime_s = 300.0

    def __init__(
        self,
        settings: AdapterSettings,
        read_blob: BlobReader,
        places: Places,
        *,
        on_key: Callable[[str], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.default_model = settings.name, settings.model
        self.formatted_name = settings.formatted_name or settings.name
        self.origin = origin_of(CopilotChat.origin_name, settings.base_url)
        self._settings, self._read_blob = settings, read_blob
        self._clock = clock
        self._access = CopilotAccess(settings, github_of(settings), places, on_key=on_key, clock=clock)
        self._offers = Offers()
        self._listed_at = float("-inf")
        self._inner: dict[tuple[Served, str], HttpAdapter] = {}
        self._token = CopilotToken("", settings.base_url, 0.0)

    def __repr__(self) -> str:
        """Show the name only."""
        return f"CopilotAdapter({self.name!r})"

    def limits(self, model: str) -> ModelLimits | None:
        """Return what the list of models told, None when it has not been read; "" = the model Copilot starts with."""
        offer = self._offers.by_name.get(model or self._offers.default())
        return offer.limits if offer is not None and offer.limits.context_window else None

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent."""
        return self._serving(request.model).render(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; a token that is refused is exchanged once more."""
        began = is_second = False
        while True:
            token = await self._ready()
            wanted = self._wanted(request)
            try:
                async with aclosing(self._serving(wanted.model).stream(wanted)) as events:
                    async for event in events:
                        began = began or not isinstance(event, RetryScheduled)
                        yield event
                return
            except AdapterError as caught:
                error = caught
            if began or is_second or error.status != 401:
                raise self._explained(error)
            self._access.forget(token.token)
            is_second = True

    async def list_models(self) -> list[str]:
        """Return the models the account may choose, sorted."""
        await self._renew()
        return await self._list()

    async def require_key(self) -> None:
        """Have a token, of a login there is."""
        await self._renew()

    async def warm_up(self) -> None:
        """Import the transport; with a login, exchange it and read which model is served where."""
        await asyncio.to_thread(import_transport)
        try:
            await self._ready()
        except AdapterError as error:  # said when something is asked of it
            _log.info("copilot is not ready: %s", error)

    def forget_login(self) -> None:
        """Read the login again before the next request, and what the account may use."""
        self._access.forget(self._token.token)
        self._listed_at = float("-inf")

    async def aclose(self) -> None:
        """Close the connections."""
        inner, self._inner = list(self._inner.values()), {}
        await asyncio.gather(self._access.aclose(), *(adapter.aclose() for adapter in inner))

    async def _renew(self) -> CopilotToken:
        self._token = token = await self._access.token()
        for adapter in self._inner.values():
            adapter.use_key(token.token)
        return token

    async def _ready(self) -> CopilotToken:
        """Return a token that can be used; the list of models has been read, if it could be."""
        token = await self._renew()
        if self._clock() - self._listed_at >= FRESH_S:
            try:
                async with asyncio.timeout(LISTING_LIMIT_S):
                    await self._list()
            except (AdapterError, TimeoutError) as error:
                _log.info("copilot lists no models: %s", error)
        return token

    async def _list(self) -> list[str]:
        names = await self._connection("chat").list_models()
        self._listed_at = self._clock()
        return names

    def _wanted(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its model.

        Raises:
            AdapterError: there is none, or its terms are not accepted.
        """
        if not self.default_model:
            self.default_model = self._offers.default()
        model = request.model or self.default_model
        if not model:
            raise errors.ModelNotFound(
                f"{self.name}: no model is configured and Copilot lists none. Choose one with ga."
            )
        offer = self._offers.by_name.get(model, Offer(model))
        if not offer.is_enabled:
            raise errors.RequestRejected(
                f"{self.name}: {model} is not enabled for this account: its terms were not accepted. "
                f"Enable it at {SETTINGS_PAGE}, or choose another model with ga."
            )
        if request.tools and not offer.has_tools:
            request = msgspec.structs.replace(request, tools=())
        return msgspec.structs.replace(request, model=model)

    def _serving(self, model: str) -> HttpAdapter:
        return self._connection(self._offers.by_name.get(model, Offer(model)).served)

    def _connection(self, served: Served) -> HttpAdapter:
        address = self._token.api
        found = self._inner.get((served, address))
        if found is None:
            found = _Connection(*self._entry(served, address), read_key=lambda _: self._token.token)
            found.use_key(self._token.token)
            self._inner[served, address] = found
        return found

    def _entry(self, served: Served, address: str) -> tuple[AdapterSettings, WireFormat]:
        """Return the settings and the wire format of a connection."""
        own = self._settings
        images = own.options.get("image_input") is not False
        change = msgspec.structs.replace(
            own, base_url=address, key="the Copilot token", headers={**HEADERS, **own.headers}, options={}
        )
        match served:
            case "responses":
                entry = msgspec.structs.replace(change, kind="openai_responses", chat_path="", models_path="")
                return entry, CopilotResponses(entry, self._read_blob, images=images)
            case "messages":
                entry = msgspec.structs.replace(change, kind="anthropic", chat_path="", models_path="")
                return entry, CopilotMessages(entry, self._read_blob, images=images)
            case "chat":
                entry = msgspec.structs.replace(change, kind="openai_compatible")
                return entry, CopilotChat(entry, self._read_blob, self._offers, images=images)

    def _explained(self, error: AdapterError) -> AdapterError:
        """Return the error in words that fit Copilot."""
        if is_used_up(error):
            told = f"{self.name}: Copilot's allowance is used up ({error.status}). Choose another model or adapter "
            explained: AdapterError = errors.RateLimited(f"{told}with ga, or see {SETTINGS_PAGE}.")
            explained.retryable = False
        elif error.status == 401:
            told = f"{self.name}: Copilot refused the token that GitHub has just given (401)."
            explained = errors.AuthenticationFailed(f"{told} Log in again with {LOGIN_COMMAND}.")
        elif error.status == 403 and isinstance(error, errors.AuthenticationFailed):
            told = str(error).replace("Check the key and the account.", f"See {SETTINGS_PAGE}.")
            explained = errors.AuthenticationFailed(told)
        else:
            return error
        explained.status, explained.code = error.status, error.code
        return explained


class _Connection(HttpAdapter):
    """One endpoint of Copilot's; what is used up is not asked for again."""

    def _wait(self, error: AdapterError, attempt: int) -> float | None:
        return None if is_used_up(error) else super()._wait(error, attempt)


def is_used_up(error: AdapterError) -> bool:
    """Return whether the error says that the month's requests are spent."""
    return error.status in (402, 429) and _USED_UP.search(f"{error.code} {error}") is not None
