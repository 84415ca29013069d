"""Vertex AI on the loopback interface, with the token endpoint of Google's accounts.

A service account signs an assertion and gets a token for it; a request is answered only with that token. The fake
Messages API writes the reply.
"""

from __future__ import annotations

import base64
import json
import re
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.loopback.answers import Answer, json_answer
from tests.providers.loopback.server import Received

PROJECT, REGION, MODEL = "my-project", "europe-west1", "claude-sonnet-4-5@20250929"
VERSION = "vertex-2023-10-16"
_ACCOUNT = "editor@my-project.iam.gserviceaccount.com"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_AUDIENCE = "https://oauth2.googleapis.com/token"
_BASE = f"/v1/projects/{PROJECT}/locations/{REGION}/publishers/anthropic/models/"
_PATH = re.compile(rf"{_BASE}([^/]+):(streamRawPredict|rawPredict)")


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class VertexServer(AnthropicServer):
    """The server. `issued` are the tokens it issued; those in `revoked` are refused."""

    def __init__(self, script: Any = (), **fields: Any) -> None:
        super().__init__(script, key="sk-inner", models=(replace(SONNET, id=MODEL),), **fields)
        self.issued: list[str] = []
        self.revoked: set[str] = set()
        self.bad_assertions: list[str] = []

    def write_account(self, path: Path) -> Path:
        """Write the key file of a service account whose tokens come from this server; return its path."""
        private = _key().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {
            "type": "service_account",
            "project_id": PROJECT,
            "private_key_id": "1",
            "private_key": private.decode(),
            "client_email": _ACCOUNT,
            "client_id": "1",
            "token_uri": f"{self.url}/token",
        }
        path.write_text(json.dumps(account))
        return path

    def answer(self, request: Received) -> Answer:
        """Issue a token, or answer a request that has one."""
        if request.path == "/token":
            return self._token(request)
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        if bearer not in self.issued or bearer in self.revoked or "x-api-key" in request.headers:
            return _refusal(401, "Request had invalid authentication credentials.", "UNAUTHENTICATED")
        found = _PATH.fullmatch(unquote(request.path))
        body = request.json
        counts = found is not None and found[1] == "count-tokens"
        if found is None or ("model" in body) != counts or body.pop("anthropic_version") != VERSION:
            return _refusal(400, "The request is malformed.", "INVALID_ARGUMENT")
        path = "/v1/messages/count_tokens" if counts else "/v1/messages"
        headers = {"x-api-key": "sk-inner", "anthropic-version": "2023-06-01", "content-type": "application/json"}
        betas = request.headers.get("anthropic-beta")
        headers |= {"anthropic-beta": betas} if betas else {}
        body.setdefault("model", found[1])
        return super().answer(Received("POST", path, headers, json.dumps(body).encode(), request.query))

    def _token(self, request: Received) -> Answer:
        try:
            head, claims, signature = parse_qs(request.body.decode())["assertion"][0].split(".")
            _key().public_key().verify(
                _decoded(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
            said = json.loads(_decoded(claims))
        except (InvalidSignature, KeyError, ValueError) as error:
            self.bad_assertions.append(type(error).__name__)
            return json_answer({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, status=400)
        claimed = (said["iss"], said["aud"], said["scope"], said["exp"] > time.time())
        if claimed != (_ACCOUNT, _AUDIENCE, _SCOPE, True):
            self.bad_assertions.append("claims")
            return json_answer({"error": "invalid_grant", "error_description": "Wrong claims."}, status=400)
        self.issued.append(f"ya29.token-{len(self.issued)}")
        return json_answer({"access_token": self.issued[-1], "expires_in": 3600, "token_type": "Bearer"})


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _refusal(status: int, message: str, name: str) -> Answer:
    return json_answer({"error": {"code": status, "message": message, "status": name}}, status=status)
