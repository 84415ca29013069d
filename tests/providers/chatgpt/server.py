"""A loopback OpenAI for ChatGPT plans: the sign-in server and a plan's two endpoints, on one port.

Written from OpenAI's pages under https://developers.openai.com/siwc/token-sharing-open-source. Requests that a plan
does not accept are refused (`plan_rules.py`); the Responses server checks the rest. `GET /v1/models` answers in the
shape of the catalogue (`models`, `visibility`, `slug`).

From a shell: `python -m tests.providers.chatgpt.server` prints its port; `POST /control/state` sets any attribute of
the sign-in (`sign_in.SignIn`) or of this server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.providers.chatgpt.plan_rules import check_plan
from tests.providers.chatgpt.sign_in import PLAN, SignIn
from tests.providers.loopback.answers import Answer, Part, json_answer
from tests.providers.loopback.server import Received
from tests.providers.openai.refusal import Refusal, Refused
from tests.providers.responses.answers import Reply
from tests.providers.responses.rules import Accepted, Endpoint, Rules, accept
from tests.providers.responses.server import ResponsesServer

WINDOW = 272_000


def model(slug: str, **changes: Any) -> dict[str, Any]:
    """Return an entry of the list of models."""
    entry = {
        "slug": slug,
        "display_name": slug.upper(),
        "visibility": "list",
        "context_window": WINDOW,
        "supported_in_api": True,
        "input_modalities": ["text", "image"],
    }
    return {**entry, **changes}


MODELS = [model("gpt-6-sol"), model("gpt-6-luna", context_window=128_000), model("gpt-6-hidden", visibility="hide")]


class ChatGPTServer(ResponsesServer):
    """The server; see the module docstring."""

    def __init__(self, script: Iterable[Reply | Answer] = (), **options: Any) -> None:
        super().__init__(script, key="", rules=Rules(models=("gpt-6-sol", "gpt-6-luna", "gpt-6-hidden")), **options)
        self.sign_in = SignIn()
        self.models: list[dict[str, Any]] = list(MODELS)
        self.model_list: Any = None
        """Body that `GET /v1/models` returns instead of `models`."""
        self.failures: list[Answer] = []
        """Answers that `/v1/responses` gives first."""
        self.tells_output = False
        """Whether the last event repeats the output; the endpoint was seen to leave it empty."""
        self.gates: dict[str, asyncio.Event] = {}
        """Gates by `grant_type`: the server processes a request at once, and answers when its gate opens."""

    async def start(self, port: int = 0) -> None:
        """Listen, and store the server's own URL."""
        await super().start(port)
        self.sign_in.base = self.base

    @property
    def base(self) -> str:
        """Return the server's URL without a path: the issuer."""
        return self.url.removesuffix("/v1")

    def answer(self, request: Received) -> Answer:
        """Return the answer of the sign-in server or of the API."""
        answer = self.sign_in.answer(request)
        if answer is None:
            return super().answer(request)
        gate = next((gate for kind, gate in self.gates.items() if f"grant_type={kind}".encode() in request.body), None)
        return answer if gate is None else replace(answer, parts=(gate, *answer.parts), content_length=False)

    def _answered(self, request: Received) -> Answer:
        if (request.method, request.path) not in (("GET", "/v1/models"), ("POST", "/v1/responses")):
            return json_answer({"detail": {"code": "subscription_sharing_route_not_supported"}}, status=403)
        grant = self.sign_in.valid.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if grant is None:
            return json_answer({"detail": "Provided authentication token is expired."}, status=401)
        if PLAN not in grant.scope:
            return json_answer({"detail": "chatpass_v2_scope_not_authorized"}, status=403)
        if request.path == "/v1/models":
            return json_answer({"models": self.models} if self.model_list is None else self.model_list)
        return self.failures.pop(0) if self.failures else super()._answered(request)

    def _accept(self, endpoint: Endpoint, request: Received) -> Accepted:
        try:
            body = request.json
        except ValueError:
            raise Refused(Refusal(400, "We could not parse the JSON body of your request.")) from None
        return accept(endpoint, check_plan(body, request.headers), self.rules, self.ledger)

    def _give(self, wanted: Reply, accepted: Accepted) -> Answer:
        answer = super()._give(wanted, accepted)
        return answer if self.tells_output else replace(answer, parts=tuple(map(_without_output, answer.parts)))

    def control(self, request: Received) -> Any:
        """Set attributes for a test in another process."""
        if request.path != "/control/state":
            return super().control(request)
        for name, value in request.json.items():
            setattr(self.sign_in if hasattr(self.sign_in, name) else self, name, value)
        return {"ok": True}


def _without_output(part: Part) -> Part:
    if not isinstance(part, bytes) or b'"response.completed"' not in part:
        return part
    head, mark, data = part.partition(b"data: ")
    event = json.loads(data)
    event["response"]["output"] = []
    return head + mark + json.dumps(event).encode() + b"\n\n"


async def _run() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    server = ChatGPTServer()
    await server.start(parser.parse_args().port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_run())
