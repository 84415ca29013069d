"""The base of adapters that use a login instead of a key, and the interface of logins for the host.

The login yields a token with a limited lifetime, which is renewed before a request needs it, and once more if the
endpoint refuses it. Imported only where such an adapter is used.
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

from codecompanion.adapters.base import Adapter, AdapterSettings, ChatRequest, OnWait, RetryScheduled, StreamEvent
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.transport.client import import_transport
from codecompanion.errors import AdapterError

_log = logging.getLogger(__name__)

FRESH_S = 600.0
"""Seconds for which a list of models is fresh; an older list is requested again before the next request."""
MODEL_LIST_LIMIT_S = 5.0


class LoginPage(msgspec.Struct, frozen=True, kw_only=True):
    """The login page for the user: its URL, its lifetime in seconds, and the code to enter there, or "".

    `redirects`: the page redirects to a URL on this machine, which can also be entered manually (`Login.take`).
    `accounts`: names of other accounts that the user may choose instead of `account`, the one requested now.
    """

    url: str
    expires_s: int
    code: str = ""
    redirects: bool = False
    account: str = ""
    accounts: tuple[str, ...] = ()


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """The logged-in user.

    `problem` is why the login cannot be used yet, or "" if it can. `notice` is the (title, text) of a notice to show at
    a first login.
    """

    user: str
    problem: str = ""
    notice: tuple[str, str] = ("", "")


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a logout: whether a login existed; `note` is more information that completes a sentence."""

    was_there: bool
    note: str = ""


class Login(Protocol):
    """The login of one adapter. Call one `run` at a time; cancelling it changes nothing."""

    async def run(self, show: Callable[[LoginPage], None], account: str) -> LoggedIn:
        """Show the page with `show`, wait until the user has logged in there, and store the login.

        `account` is "" for the most recent account, "new" for a new account, or a name in `LoginPage.accounts`.

        Raises:
            AdapterError: the login failed; nothing was changed. The message is one sentence.
            InputError: the login could not be stored, or the account does not exist.
        """
        ...

    def take(self, address: str) -> None:
        """Accept the URL that the browser was redirected to.

        Raises:
            InputError: the URL does not belong to the running login; the message gives the expected form.
        """
        ...

    async def forget(self) -> Forgotten:
        """Delete the plugin's own login."""
        ...


class LoginAdapter(Adapter):
    """Base of adapters that use a login. A subclass defines how to get a token and which endpoint uses it."""

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
        """Return the login, always the same object."""

    @abstractmethod
    async def _renew(self) -> str:
        """Return a usable token, and make the connections use it."""

    @abstractmethod
    def _refused(self, token: str) -> None:
        """Record that the endpoint refused the token, so that the next request uses another."""

    @abstractmethod
    def _wanted(self, request: ChatRequest) -> ChatRequest:
        """Return the request with its model filled in; raises `AdapterError` if the model is unavailable."""

    @abstractmethod
    def _serving(self, model: str) -> HttpAdapter:
        """Return the connection that serves this model."""

    @abstractmethod
    async def _list(self) -> list[str]:
        """Request the models and remember the facts about them; return the names that can be chosen."""

    @abstractmethod
    def _explained(self, error: AdapterError) -> AdapterError:
        """Return the error with a message specific to the provider."""

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent."""
        return self._serving(request.model).render(request)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; a refused token is renewed once."""
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
        """Return the models that the account may use."""
        await self._renew()
        return await self._listed()

    async def find_model(self, on_wait: OnWait) -> str:
        """Return the model of requests that name none: the one the account starts with.

        Raises:
            AdapterError: there is no login, or the account may not use a model.
        """
        await self._ready()
        return self._wanted(ChatRequest(messages=(), model="")).model

    async def require_key(self) -> None:
        """Get a token from the existing login."""
        await self._renew()

    async def warm_up(self) -> None:
        """Import the transport; with a login, get a token and the list of models."""
        await asyncio.to_thread(import_transport)
        try:
            await self._ready()
        except AdapterError as error:  # reported with the next request
            _log.info("%s is not ready: %s", self.name, error)

    def forget_login(self) -> None:
        """Read the login and the account's models again before the next request."""
        self._listed_at = float("-inf")

    async def _ready(self) -> str:
        """Return a usable token; update the list of models first if it is out of date."""
        token = await self._renew()
        if self._clock() - self._listed_at >= FRESH_S:
            try:
                async with asyncio.timeout(MODEL_LIST_LIMIT_S):
                    await self._listed()
            except (AdapterError, TimeoutError) as error:
                _log.info("%s lists no models: %s", self.name, error)
        return token

    async def _listed(self) -> list[str]:
        names = await self._list()
        self._listed_at = self._clock()
        return names
