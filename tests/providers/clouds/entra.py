"""The login of Entra ID on the loopback interface, for an application that has a client secret.

It uses HTTPS, because Azure's libraries insist on it; `trusted_by` makes them trust its certificate.
"""

from __future__ import annotations

import functools
from typing import Any
from urllib.parse import parse_qs

import pytest

from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.server import CERTIFICATE, LoopbackServer, Received

TENANT, CLIENT_ID, SECRET = "tenant-EXAMPLE", "11111111-2222-3333-4444-555555555555", "client~secret.EXAMPLE"
ACCOUNT = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT_ID, "AZURE_CLIENT_SECRET": SECRET}
"""The application's variables in the user's environment."""
WRONG_SECRET = "AADSTS7000215: Invalid client secret provided."


class EntraServer(LoopbackServer):
    """The server. `issued` are the tokens it issued, `scopes` the requested scopes."""

    def __init__(self) -> None:
        super().__init__(tls=True)
        self.issued: list[str] = []
        self.scopes: list[str] = []

    @property
    def authority(self) -> str:
        """Return the URL that Azure's libraries call an authority."""
        return self.url.removesuffix("/v1")

    def trusted_by(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make applications with a client secret log in here, not at Microsoft, which the library would ask first."""
        import azure.identity

        here = {"authority": self.authority, "disable_instance_discovery": True}
        credential = functools.partial(azure.identity.ClientSecretCredential, **here)
        monkeypatch.setattr(azure.identity, "ClientSecretCredential", credential)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(CERTIFICATE))

    def answer(self, request: Received) -> Answer:
        """Return the location of the token endpoint, or issue a token to the application."""
        base = f"{self.authority}/{TENANT}"
        match request.method, request.path.removeprefix(f"/{TENANT}/"):
            case "GET", "v2.0/.well-known/openid-configuration":
                places = {"authorization_endpoint": f"{base}/oauth2/v2.0/authorize", "issuer": f"{base}/v2.0"}
                return json_answer({**places, "token_endpoint": f"{base}/oauth2/v2.0/token"})
            case "POST", "oauth2/v2.0/token":
                return self._token({name: values[0] for name, values in parse_qs(request.body.decode()).items()})
        return failure(404, "Not found")

    def _token(self, form: dict[str, Any]) -> Answer:
        if form.get("grant_type") != "client_credentials" or form.get("client_id") != CLIENT_ID:
            return json_answer({"error": "invalid_request", "error_description": "AADSTS900144"}, status=400)
        if form.get("client_secret") != SECRET:
            return json_answer({"error": "invalid_client", "error_description": WRONG_SECRET}, status=401)
        self.scopes.append(form["scope"])
        self.issued.append(f"entra-secret-token-{len(self.issued)}")
        return json_answer({"token_type": "Bearer", "expires_in": 3_600, "access_token": self.issued[-1]})
