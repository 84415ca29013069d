"""Bedrock on the loopback interface: the signature is checked, the model is in the path, and the reply is in frames.

The fake Messages API judges the body and writes the reply.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.clouds.frames import chunk
from tests.providers.clouds.signature import why_refused
from tests.providers.loopback.answers import Answer, json_answer
from tests.providers.loopback.server import Received

KEY_ID, SECRET, TOKEN, REGION = (
    "AKIDEXAMPLE",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    "FwoGZXIvYXdzEXAMPLE",
    "eu-west-1",
)
API_KEY = "bedrock-api-key-EXAMPLE"
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERSION = "bedrock-2023-05-31"
_PATH = re.compile(r"/model/([^/]+)/invoke(-with-response-stream)?")
_ERRORS = {400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException"}
_OWN_FRAME = b"\x00\x00"


class BedrockServer(AnthropicServer):
    """The server. `token`: requests must carry this session token; `mantle`: the Messages API at its own path."""

    def __init__(self, script: Any = (), *, token: str = "", mantle: bool = False, **fields: Any) -> None:
        super().__init__(script, key="sk-inner", models=(replace(SONNET, id=MODEL),), **fields)
        self.token, self.mantle = token, mantle
        self.unsigned: list[str] = []
        """Reasons why requests were refused before their body was read."""

    def answer(self, request: Received) -> Answer:
        """Return the answer to a signed request."""
        why = self._why_refused(request)
        if why:
            self.unsigned.append(why)
            return _refusal(403, why)
        if self.mantle:
            return super().answer(_as_messages(request, request.path.removeprefix("/anthropic"), request.json))
        found = _PATH.fullmatch(request.path)
        body = request.json
        if found is None or {"model", "stream"} & set(body) or body.pop("anthropic_version", "") != VERSION:
            return _refusal(400, "Malformed input request, please reformat your input and try again.")
        betas = ",".join(body.pop("anthropic_beta", []))
        body |= {"model": unquote(found[1]), "stream": bool(found[2])}
        given = super().answer(_as_messages(request, "/v1/messages", body, betas))
        if given.status != 200:
            return _refusal(given.status, json.loads(given.parts[0])["error"]["message"], given)
        if "event-stream" not in given.content_type:
            return given
        parts = tuple(_framed(part) if isinstance(part, bytes) else part for part in given.parts)
        return replace(given, content_type="application/vnd.amazon.eventstream", parts=parts)

    def _why_refused(self, request: Received) -> str:
        if request.headers.get("authorization") == f"Bearer {API_KEY}":
            return ""
        if request.headers.get("x-amz-security-token", "") != self.token:
            return "The security token included in the request is invalid."
        return why_refused(
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            body=request.body,
            secrets={KEY_ID: SECRET},
            region=REGION,
            service="bedrock-mantle" if self.mantle else "bedrock",
        )


def raw_frame(frame: bytes) -> bytes:
    """Return bytes for `Faults.insert` that are sent as they are, not as an event in a frame."""
    return _OWN_FRAME + frame


def _framed(part: bytes) -> bytes:
    return part.removeprefix(_OWN_FRAME) if part.startswith(_OWN_FRAME) else chunk(part)


def _as_messages(request: Received, path: str, body: Any, betas: str = "") -> Received:
    """Return the request in the form that the fake Messages API receives."""
    headers = {"x-api-key": "sk-inner", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    given = betas or request.headers.get("anthropic-beta", "")
    headers |= {"anthropic-beta": given} if given else {}
    return Received(request.method, path, headers, json.dumps(body).encode(), request.query)


def _refusal(status: int, message: str, given: Answer | None = None) -> Answer:
    headers = dict(given.headers) if given is not None else {}
    return json_answer(
        {"message": message}, status=status, headers={**headers, "x-amzn-errortype": _ERRORS.get(status, "Exception")}
    )
