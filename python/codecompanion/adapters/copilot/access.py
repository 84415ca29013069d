"""Exchanges the login for the short-lived token of Copilot's endpoints, kept only in memory.

The token is valid for about half an hour. Its remaining lifetime is measured from its arrival, by the monotonic clock,
so that a machine with a wrong clock does not renew it for every request; a refused token is renewed once (`forget`).
Each Neovim has its own token: GitHub does not limit their number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.copilot.github import LOGIN_COMMAND, SETTINGS_PAGE, GitHub
from codecompanion.adapters.copilot.github_requests import GitHubRequests
from codecompanion.adapters.copilot.stored_login import Login, Places, find_login

PATH = "/copilot_internal/v2/token"
_EARLY_S = 120.0
"""Seconds before expiry at which a token is renewed."""
_SHORTEST_S = 60.0
"""Minimum lifetime of a token in seconds, even if it arrives expired by this machine's clock."""
_NO_ACCESS = (403, 404)


class CopilotToken(msgspec.Struct, frozen=True):
    """Copilot's token, its endpoint, and its expiry (monotonic seconds). The `repr` does not show the token."""

    token: str
    api: str
    until: float

    def __repr__(self) -> str:
        """Show only the endpoint."""
        return f"CopilotToken({self.api!r})"


class CopilotAccess:
    """Gets and caches the token of one adapter. `on_key` receives secrets, so that they are redacted everywhere."""

    def __init__(
        self,
        settings: AdapterSettings,
        github: GitHub,
        places: Places,
        *,
        on_key: Callable[[str], None] = lambda key: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings, self._github, self._places = settings, github, places
        self._on_key, self._clock, self._wall_clock = on_key, clock, wall_clock
        self._api = GitHubRequests(settings, github.api)
        self._token: CopilotToken | None = None
        self._lock = asyncio.Lock()

    async def token(self) -> CopilotToken:
        """Return the token, or a new one if it is about to expire.

        Raises:
            AdapterError: there is no login, access or network; the message names the remedy.
        """
        async with self._lock:
            if self._token is None or self._clock() >= self._token.until:
                self._token = await self._exchange()
            return self._token

    def forget(self, refused: str) -> None:
        """Discard the refused token if it is still the current one, so that the next request gets a new token."""
        if self._token is not None and self._token.token == refused:
            self._token = None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.aclose()

    async def _exchange(self) -> CopilotToken:
        login = await asyncio.to_thread(find_login, self._places, self._settings.name)
        self._on_key(login.token)
        try:
            answer = await self._api.ask("GET", PATH, token=login.token, where=login.where)
        except errors.AdapterError as caught:
            error = self._explained(caught, login)
        else:
            token = str(answer.get("token") or "")
            if token and token.isascii() and token.isprintable():
                self._on_key(token)
                return CopilotToken(token, self._address(answer), self._clock() + self._lifetime(answer))
            error = errors.MalformedReply(f"{self._settings.name}: GitHub's response contains no Copilot token.")
        raise error

    def _lifetime(self, answer: Mapping[str, Any]) -> float:
        renew_in, end = answer.get("refresh_in"), answer.get("expires_at")
        if isinstance(renew_in, int | float) and renew_in > 0:
            return max(float(renew_in), _SHORTEST_S)
        left = float(end) - self._wall_clock() - _EARLY_S if isinstance(end, int | float) else 0.0
        return min(max(left, _SHORTEST_S), 86_400.0)

    def _address(self, answer: Mapping[str, Any]) -> str:
        """Return Copilot's base URL for this account: Business and Enterprise have their own hosts."""
        endpoints = answer.get("endpoints")
        told = str(endpoints.get("api") or "").rstrip("/") if isinstance(endpoints, Mapping) else ""
        return told if told and self._github.is_trusted(told) else self._settings.base_url

    def _explained(self, error: errors.AdapterError, login: Login) -> errors.AdapterError:
        name, status = self._settings.name, error.status
        if status == 401:
            told = f"{name}: GitHub refused the login from {login.where} (401). Log in again with {LOGIN_COMMAND}."
        elif status in _NO_ACCESS:
            told = (
                f"{name}: this GitHub account has no access to Copilot ({status}; login from {login.where})."
                f" See {SETTINGS_PAGE}, or log in with another account: {LOGIN_COMMAND}."
            )
        else:
            return error
        explained = errors.AuthenticationFailed(told)
        explained.status, explained.code = status, error.code
        return explained
