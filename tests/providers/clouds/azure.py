"""Azure OpenAI and Claude in Azure Foundry on the loopback interface.

A request is answered only with an Entra ID token for this service; an additional key is refused. Tokens are issued by
the managed identity of an Azure app, or by `entra.EntraServer`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.server import Received

IDENTITY_HEADER = "identity-header-EXAMPLE"
SCOPE = "https://cognitiveservices.azure.com"


class AzureServer(ChatServer):
    """The server. `issued` are the tokens issued by it or by a login; those in `revoked` are refused."""

    def __init__(self, script: Any = (), *, issued: list[str] | None = None, **fields: Any) -> None:
        super().__init__(script, key="", **fields)
        self.issued: list[str] = [] if issued is None else issued
        self.revoked: set[str] = set()

    @property
    def identity_endpoint(self) -> str:
        """Return the value for IDENTITY_ENDPOINT."""
        return f"{self.url.removesuffix('/v1')}/msi/token"

    def answer(self, request: Received) -> Answer:
        """Issue a token, or answer a request that has one."""
        if request.path == "/msi/token":
            asked = parse_qs(request.query)
            if request.headers.get("x-identity-header") != IDENTITY_HEADER or asked["resource"] != [SCOPE]:
                return failure(400, "no such identity")
            self.issued.append(f"entra-token-{len(self.issued)}")
            return json_answer({"access_token": self.issued[-1], "expires_on": "4102444800", "token_type": "Bearer"})
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if bearer not in self.issued or bearer in self.revoked or "api-key" in request.headers:
            return failure(401, "Access denied due to invalid subscription key or wrong API endpoint.", code="401")
        return super().answer(request)


class FoundryServer(AnthropicServer):
    """The Messages API at `/anthropic`, for tokens that are `issued`."""

    def __init__(self, script: Any = (), *, issued: list[str], **fields: Any) -> None:
        super().__init__(script, key="", **fields)
        self.issued = issued

    @property
    def url(self) -> str:
        """Return the `base_url` for an adapter."""
        return f"{super().url}/anthropic"

    def answer(self, request: Received) -> Answer:
        """Answer a request that has a token."""
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if bearer not in self.issued or {"api-key", "x-api-key"} & set(request.headers):
            return failure(401, "Access denied due to invalid subscription key or wrong API endpoint.", code="401")
        return super().answer(replace(request, path=request.path.removeprefix("/anthropic")))
