"""Implements GitHub's device flow: the user types a code into a web page while this client polls GitHub for the token.

See https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow. A short network
failure does not end the login; the expiry of the code does, by the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from codecompanion import errors
from codecompanion.adapters.copilot.github import CLIENT_ID, LOGIN_COMMAND, SCOPE, GitHub
from codecompanion.adapters.copilot.github_requests import GitHubRequests

_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_MIN_INTERVAL_S, _MAX_INTERVAL_S = 1, 60
_MORE_S = 5
"""Seconds that `slow_down` adds to the polling interval when it specifies no number."""
_MAX_LIFE_S = 3600


class DeviceCode(msgspec.Struct, frozen=True):
    """The code for the user, the URL of the page to enter it on, and its lifetime in seconds."""

    code: str
    url: str
    expires_s: int


class DeviceLogin:
    """One login attempt. Tests can replace the clock and sleep."""

    def __init__(
        self,
        name: str,
        github: GitHub,
        web: GitHubRequests,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._name, self._github, self._web = name, github, web
        self._clock, self._sleep = clock, sleep

    async def run(self, on_code: Callable[[DeviceCode], None]) -> str:
        """Pass the code to `on_code`, wait until the user has entered it, and return the token.

        Raises:
            AdapterError: refused, expired, or GitHub is unreachable; the message is one sentence.
        """
        begun = await self._web.ask("POST", "/login/device/code", body={"client_id": CLIENT_ID, "scope": SCOPE})
        device, code, url = (str(begun.get(key) or "") for key in ("device_code", "user_code", "verification_uri"))
        if not (device and code and self._github.is_trusted(url)):
            raise self._failed("GitHub returned no code", begun)
        life = min(_seconds(begun, "expires_in", 900), _MAX_LIFE_S)
        on_code(DeviceCode(code, url, life))
        deadline, interval = self._clock() + life, _seconds(begun, "interval", 5)
        asked = {"client_id": CLIENT_ID, "device_code": device, "grant_type": _GRANT}
        while True:
            await self._sleep(max(_MIN_INTERVAL_S, min(interval, _MAX_INTERVAL_S)))
            if self._clock() > deadline:
                raise self._expired()
            try:
                answer = await self._web.ask("POST", "/login/oauth/access_token", body=asked)
            except (errors.NetworkFailed, errors.Overloaded, errors.StreamCut):
                continue
            if token := answer.get("access_token"):
                return str(token)
            match answer.get("error"):
                case "authorization_pending":
                    pass
                case "slow_down":
                    interval = max(_seconds(answer, "interval", interval + _MORE_S), interval + 1)
                case "expired_token" | "token_expired":
                    raise self._expired()
                case "access_denied":
                    raise errors.AuthenticationFailed(
                        f"{self._name}: you declined the login on GitHub's page. Nothing was changed."
                    )
                case _:
                    raise self._failed("GitHub did not accept the login", answer)

    def _expired(self) -> errors.AuthenticationFailed:
        return errors.AuthenticationFailed(f"{self._name}: the code has expired. Get a new one with {LOGIN_COMMAND}.")

    def _failed(self, what: str, answer: Mapping[str, Any]) -> errors.AuthenticationFailed:
        said = str(answer.get("error_description") or answer.get("error") or "").strip()[:300].rstrip(".")
        return errors.AuthenticationFailed(f"{self._name}: {what}{f' ({said})' if said else ''}. Try again later.")


def _seconds(answer: Mapping[str, Any], name: str, default: int) -> int:
    value = answer.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else default
