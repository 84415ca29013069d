"""A loopback GitHub with Copilot: the device flow, the token exchange, models, and the three reply endpoints.

Written from https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow and from
the requests and replies of public plugins. The server may be stricter than the real one. It refuses requests to Copilot
without its headers, images without their own header, models at an endpoint that does not serve them, and revoked
tokens.

From a shell: `python -m tests.providers.github.server` prints its port; `POST /control/approve` acts as the user
entering the code, `POST /control/state` sets any of the attributes below, `GET /control/requests` lists the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from tests.providers.chat.answers import Counted
from tests.providers.chat.rules import Extras, refusal_of
from tests.providers.loopback.answers import Answer, failure, json_answer, plain
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.openai.prompt_cache import PromptCache

LOGIN = "gho_loginloginlogin0123456789"
NEEDED = ("copilot-integration-id", "editor-version", "x-github-api-version")


def model(name: str, *endpoints: str, **changes: Any) -> dict[str, Any]:
    """Return an entry of the list of models, in the shape Copilot sends."""
    limits = {"max_context_window_tokens": 264_000, "max_output_tokens": 64_000, "max_prompt_tokens": 200_000}
    supports = {"streaming": True, "tool_calls": True, "vision": True}
    entry = {
        "id": name,
        "object": "model",
        "capabilities": {"type": "chat", "family": name, "limits": limits, "supports": supports},
        "model_picker_enabled": True,
        "policy": {"state": "enabled", "terms": "…"},
        "supported_endpoints": list(endpoints or ("/chat/completions",)),
    }
    return {**entry, **changes}


MODELS = [
    model("claude-sonnet-5", "/v1/messages", "/chat/completions"),
    model("gpt-5-mini", is_chat_default=True, policy={"state": "enabled"}),
    model("gpt-5.4", "/responses", "ws:/responses"),
    model("claude-opus-5", policy={"state": "unconfigured", "terms": "Enable access …"}),
    model("gpt-4o-internal", model_picker_enabled=False),
    {**model("text-embedding-3-small"), "capabilities": {"type": "embeddings"}},
]


class GitHubServer(LoopbackServer):
    """The server; see the module docstring. Times are in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.pending = 1
        """Number of polls that report that the user has not entered the code yet."""
        self.login_error: dict[str, Any] = {}
        self.logins = [LOGIN]
        self.interval: float = 1
        self.expires_in = 900
        self.approved = True
        self.exchange_status = 200
        self.token_life = 1800
        self.tells_refresh = True
        self.endpoint = ""
        self.models: list[dict[str, Any]] = list(MODELS)
        self.valid: set[str] = set()
        self.exchanges = 0
        self.chat_failures: list[Answer] = []
        self.script: list[Answer] = []
        self.cache = PromptCache()

    def answer(self, request: Received) -> Answer:
        """Return the answer of GitHub or Copilot."""
        match request.method, request.path:
            case "POST", "/login/device/code":
                return self._device_code(request)
            case "POST", "/login/oauth/access_token":
                return self._access_token(request)
            case "GET", "/copilot_internal/v2/token":
                return self._exchange(request)
            case "GET", "/user":
                return json_answer({"login": "octocat"})
        return self._copilot(request)

    def _device_code(self, request: Received) -> Answer:
        if request.json.get("client_id") != "Iv1.b507a08c87ecfe98":
            return json_answer({"error": "Not Found"}, status=404)
        body = {"device_code": "device-0123456789", "user_code": "WDJB-MJHT", "interval": self.interval}
        return json_answer({**body, "verification_uri": f"{self.base}/login/device", "expires_in": self.expires_in})

    def _access_token(self, request: Received) -> Answer:
        if request.json.get("device_code") != "device-0123456789":
            return json_answer({"error": "incorrect_device_code"})
        if self.pending > 0 or not self.approved:
            self.pending -= 1
            return json_answer({"error": "authorization_pending"})
        if self.login_error:
            error, self.login_error = self.login_error, {}
            if error.get("error") != "slow_down":
                self.approved = False
            return json_answer(error)
        return json_answer({"access_token": LOGIN, "token_type": "bearer", "scope": "read:user"})

    def _exchange(self, request: Received) -> Answer:
        given = request.headers.get("authorization", "").partition(" ")[2]
        if given not in self.logins:
            return json_answer({"message": "Bad credentials"}, status=401)
        if self.exchange_status != 200:
            details = {"message": "Resource not accessible", "error_details": {"message": "No Copilot access"}}
            return json_answer(details, status=self.exchange_status)
        self.exchanges += 1
        token = f"tid=0123456789abcdef{self.exchanges};exp=1;sku=copilot_for_individual"
        self.valid.add(token)
        body: dict[str, Any] = {"token": token, "expires_at": int(time.time()) + self.token_life}
        if self.tells_refresh:
            body["refresh_in"] = self.token_life - 300
        if self.endpoint != "none":
            body["endpoints"] = {"api": self.endpoint or self.base, "telemetry": "https://telemetry.invalid"}
        return json_answer(body)

    def _copilot(self, request: Received) -> Answer:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.valid:
            return plain(b"unauthorized: token expired\n", status=401, content_type="text/plain")
        missing = [name for name in NEEDED if not request.headers.get(name)]
        if missing:
            return plain(f"bad request: missing {', '.join(missing)}\n".encode(), status=400, content_type="text/plain")
        if (request.method, request.path) == ("GET", "/models"):
            return json_answer({"data": self.models, "object": "list"})
        if self.chat_failures:
            return self.chat_failures.pop(0)
        entry = next((one for one in self.models if one["id"] == request.json.get("model")), None)
        if entry is None or entry.get("policy", {}).get("state", "enabled") != "enabled":
            return failure(400, "The requested model is not supported.", code="model_not_supported")
        if request.path not in entry["supported_endpoints"]:
            text = f'model "{entry["id"]}" is not accessible via the {request.path} endpoint'
            return failure(400, text, code="unsupported_api_for_model")
        if request.headers.get("x-initiator") not in ("user", "agent"):
            return failure(400, "missing X-Initiator")
        if b'"image' in request.body and request.headers.get("copilot-vision-request") != "true":
            return failure(400, "missing required Copilot-Vision-Request header for vision requests")
        if self.script:
            return self.script.pop(0)
        return self._reply(request)

    def _reply(self, request: Received) -> Answer:
        if request.path != "/chat/completions":
            return failure(500, "only scripted answers here")
        fields = ("reasoning_text", "reasoning_opaque")
        refusal = refusal_of(request.json, models=(), window=0, extras=Extras(reasoning_fields=fields))
        if refusal is not None:
            return json_answer(refusal.body(), status=refusal.status)
        said = [message["content"] for message in request.json["messages"] if message["role"] == "user"][-1]
        text = said if isinstance(said, str) else "an image"
        return Counted(f"You said: {text}").answer({"prompt_tokens": 9, "completion_tokens": 4}, streams=True)

    def control(self, request: Received) -> Any:
        """Act like the user, or break something."""
        match request.path:
            case "/control/approve":
                self.pending, self.approved = 0, True
            case "/control/state":
                for name, value in request.json.items():
                    setattr(self, name, value)
            case _:
                return None
        return {"ok": True}

    @property
    def base(self) -> str:
        """Return the server's URL without a path."""
        return self.url.removesuffix("/v1")


async def _run() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    server = GitHubServer()
    server.pending, server.approved = 0, False
    await server.start(parser.parse_args().port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_run())
