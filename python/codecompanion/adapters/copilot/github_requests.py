"""Sends requests to GitHub itself: logins and token exchange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.copilot.github import HEADERS
from codecompanion.adapters.http.json_requests import JsonRequests


class GitHubRequests:
    """Sends requests to one GitHub URL."""

    def __init__(self, settings: AdapterSettings, address: str) -> None:
        self._requests = JsonRequests(settings, address, whose="GitHub")

    async def ask(
        self, method: str, path: str, *, token: str = "", where: str = "", body: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the JSON object in the response. `token` is the login's token, `where` names its source.

        Raises:
            AdapterError: the request failed; `status` is GitHub's status, `code` its error code.
        """
        return await self._requests.ask(
            method,
            path,
            headers={**HEADERS, "accept": "application/json", **({"authorization": f"token {token}"} if token else {})},
            content=None if body is None else msgspec.json.encode(body),
            secrets=(token, *(body or {}).values()),
            where=where,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._requests.aclose()
