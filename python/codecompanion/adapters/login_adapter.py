"""An adapter that has a login in place of a key: what the host asks of the login, and what such adapters share.

The login gives a token that lives for a while; it is renewed before a request needs it, and once more when the endpoint
refuses it. Imported where such an adapter is used.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

import msgspec

from codecompanion.adapters.base import Adapter, AdapterSettings, ChatRequest, RetryScheduled, StreamEvent
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.transport.client import import_transport
from codecompanion.errors import AdapterError

_log = logging.getLogger(__name__)

FRESH_S = 600.0
"""A list of models older than this is asked for again before the next request."""
LISTING_LIMIT_S = 5.0


class LoginPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the user needs: the page, for how many seconds it is good, the code to type in there ("" = none).

    `comes_back`: the page ends at an address of this machine, which may also be given by hand (`Login.take`).
    `accounts`: names of those the user may log in to besides `account`, the one that is asked for now.
    """

    url: str
    expires_s: int
    code: str = ""
    comes_back: bool = False
    account: str = ""
    accounts: tuple[str, ...] = ()


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """Who is logged in.

    `problem`: why the login cannot be used yet, "" = it can. `notice`: what a first one has to be told, (title, text).
    """

    user: str
    problem: str = ""
    notice: tuple[str, str] = ("", "")


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there was a login; `note` is what else is to be said, as the end of a sentence."""

    was_there: bool
    note: str = ""


class Login(Protocol):
    """The login of one adapter. One `run` at a time; cancelling it leaves everything as it was."""

    async def run(self, show: Callable[[LoginPage], None], account: str) -> LoggedIn:
        """Log in, after the user has done what `show` told, and keep the login.

        `account` "" = the one used last, "new" = another one, else a name of `LoginPage.accounts`.

        Raises:
            AdapterError: no login; nothing was changed. One sentence.
            InputError: it could not be kept, or there is no such account.
        """
        ...

    def take(self, address: str) -> None:
        """Take in the address that the browser ended at.

        Raises:
            InputError: it is not that of the login that runs; says what was expected.
        """
        ...

    async def forget(self) -> Forgotten:
        """Remove our own login."""
        ...


class LoginAdapter(Adapter):
    """What such adapters have in common. A subclass says how a token is had and who is asked with it."""

    cache_lifetime_s = 300.0
    returns_readable_reasoning = False

    def __init__(self, settings: AdapterSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.default_model = settings.name, settings.model
        self.formatted_name = settings.formatted_name or settings.name
        self._settings, self._clock = settings, clock
        self._listed_at = float("-inf")

    def __repr__(self) -> str:
        """Show the name only."""
        return f"{type(self).__name__}({self.name!r})"

    @abstractmethod
    def login(self) -> Login:
        """Return the login; always the same one."""

    @abstractmethod
    async def _renew(self) -> str:
        """Return a token that can be used, and let the connections use it."""

    @abstractmethod
    def _refused(self, token: str) -> None:
        """Take in that the endpoint refused the token: the next one has to be another."""

    @abstractmethod
    def _wanted(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its model; raises `AdapterError` when it cannot be asked."""

    @abstractmethod
    def _serving(self, model: str) -> HttpAdapter:
        """Return the connection that asks this model."""

    @abstractmethod
    async def _list(self) -> list[str]:
        """Ask for the models and remember what is told of them; return the names that can be chosen."""

    @abstractmethod
    def _explained(self, error: AdapterError) -> AdapterError:
        """Return the error in words that fit the provider."""

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent."""
        return self._serving(request.model).render(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; a token that is refused is renewed once more."""
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
            self._refused(token)
            is_second = True

    async def list_models(self) -> list[str]:
        """Return the models the account may choose."""
        await self._renew()
        return await self._listed()

    async def require_key(self) -> None:
        """Have a token, of a login there is."""
        await self._renew()

    async def warm_up(self) -> None:
        """Import the transport; with a login, have a token and the list of models ready."""
        await asyncio.to_thread(import_transport)
        try:
            await self._ready()
        except AdapterError as error:  # said when something is asked of it
            _log.info("%s is not ready: %s", self.name, error)

    def forget_login(self) -> None:
        """Read the login again before the next request, and what the account may use."""
        self._listed_at = float("-inf")

    async def _ready(self) -> str:
        """Return a token that can be used; the list of models has been read, if it could be."""
        token = await self._renew()
        if self._clock() - self._listed_at >= FRESH_S:
            try:
                async with asyncio.timeout(LISTING_LIMIT_S):
                    await self._listed()
            except (AdapterError, TimeoutError) as error:
                _log.info("%s lists no models: %s", self.name, error)
        return token

    async def _listed(self) -> list[str]:
        names = await self._list()
        self._listed_at = self._clock()
        return names
