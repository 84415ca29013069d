"""Sends requests outside chats whose response is one JSON object: logins, token exchange and renewal.

Each request is sent once, with a time limit; redirects are not followed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.errors.error_body import decode_body
from codecompanion.adapters.errors.error_map import Endpoint, Remedies, error_from_exception
from codecompanion.adapters.errors.exception_kinds import kind_of
from codecompanion.adapters.transport.client import HttpClient, client_timeout, make_client
from codecompanion.formats.byte_limits import SMALL_ANSWER

_ANSWER_S = 20.0
_REMEDIES = Remedies(check_address="the proxy", after_silence="", after_loss="Try again.")

Explain = Callable[[int, object], errors.AdapterError | None]
"""A function that takes a status and a body (decoded JSON or text) and returns the error, or None for the default
error.
"""


class JsonRequests:
    """Sends requests to one URL for the adapter of `settings`. `whose` names the server's owner in messages."""

    def __init__(self, settings: AdapterSettings, address: str, *, whose: str) -> None:
        self._settings = msgspec.structs.replace(
            settings, kind="openai_compatible", base_url=address, chat_path="", models_path="", limits_path=""
        )
        self._whose = whose
        self._client: HttpClient | None = None

    async def ask(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        content: bytes | None = None,
        secrets: tuple[str, ...] = (),
        where: str = "",
        explain: Explain = lambda status, body: None,
        is_empty_fine: bool = False,
    ) -> dict[str, Any]:
        """Return the JSON object in the response. `where` is the source of the key in the headers.

        Raises:
            AdapterError: the request failed; `status` is the HTTP status, `code` the provider's error code.
        """
        endpoint = Endpoint(
            name=self._settings.name,
            base_url=self._settings.base_url,
            key_label=where,
            secrets=tuple(filter(None, secrets)),
            silence_s=_ANSWER_S,
            remedies=_REMEDIES,
        )
        try:
            if self._client is None:
                self._client = await asyncio.to_thread(make_client, self._settings)
            limits = client_timeout(self._settings, _ANSWER_S)
            response = await self._client.send(
                method,
                path,
                headers=headers,
                limits=limits,
                accepts=SMALL_ANSWER,
                content=None if content is None else (content,),
            )
            if is_empty_fine and not response.content.strip():
                return {}
            answer = decode_body(response.content)
        except Exception as caught:
            error: errors.AdapterError = _explained(caught, explain) or error_from_exception(caught, endpoint)
        else:
            if isinstance(answer, dict):
                return answer
            advice = " Check the proxy." if isinstance(answer, str) else ""
            error = errors.MalformedReply(endpoint.say(f"{self._whose}'s answer cannot be read.{advice}"))
        raise error

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _explained(error: Exception, explain: Explain) -> errors.AdapterError | None:
    if kind_of(error) != "status":
        return None
    response: Any = error.response  # type: ignore[attr-defined]
    status = int(response.status_code)
    explained = explain(status, decode_body(response.content))
    if explained is not None:
        explained.status = status
    return explained
