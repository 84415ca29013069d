"""Requests to GitHub itself: logging in, exchanging tokens. Each is sent once, with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.copilot.github import HEADERS
from codecompanion.adapters.errors.error_map import Endpoint, Remedies, error_from_exception
from codecompanion.adapters.http.client import HttpClient, client_timeout, make_client
from codecompanion.formats.outside_text import NOT_READABLE

_ANSWER_S = 20.0
_REMEDIES = Remedies(check_address="the proxy", after_silence="Try again.")


class GitHubRequests:
    """Sends to one address of GitHub; `name` is the adapter's."""

    def __init__(self, settings: AdapterSettings, address: str) -> None:
        self._settings = msgspec.structs.replace(
            settings, kind="openai_compatible", base_url=address, chat_path="", models_path="", limits_path=""
        )
        self._client: HttpClient | None = None

    async def ask(
        self, method: str, path: str, *, token: str = "", where: str = "", body: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the JSON object that was answered. `token` is the login's, `where` the place it is from.

        Raises:
            AdapterError: there was none; `status` is what GitHub answered with, `code` its own words, both as usual.
        """
        endpoint = Endpoint(
            name=self._settings.name,
            base_url=self._settings.base_url,
            key_label=where,
            secrets=tuple(filter(None, (token, *(body or {}).values()))),
            silence_s=_ANSWER_S,
            remedies=_REMEDIES,
        )
        headers = {**HEADERS, "accept": "application/json", **({"authorization": f"token {token}"} if token else {})}
        content = None if body is None else msgspec.json.encode(body)
        try:
            if self._client is None:
                self._client = await asyncio.to_thread(make_client, self._settings)
            limits = client_timeout(self._settings, _ANSWER_S)
            response = await self._client.send(method, path, headers=headers, limits=limits, content=content)
            answer = msgspec.json.decode(response.content)
        except NOT_READABLE:
            raise errors.MalformedReply(endpoint.say("GitHub's answer cannot be read. Check the proxy.")) from None
        except Exception as caught:
            error = error_from_exception(caught, endpoint)
        else:
            if isinstance(answer, dict):
                return answer
            error = errors.MalformedReply(endpoint.say("GitHub's answer cannot be read."))
        raise error

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()
