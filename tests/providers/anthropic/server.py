"""A loopback server for Anthropic's Messages API: an independent judge of an adapter's requests.

In an async test: `async with AnthropicServer([reply("Hello")]) as server: … server.url … server.requests`; in other
tests `AnthropicServerThread` (`thread.py`). Every request is checked as the provider checks it (`rules.py`) before an
entry of the script is spent; the refusals are kept in `server.refusals`. Entries are `Reply`s, which get usage,
signatures and compaction from the simulation (`simulation.py`), or ready `Answer`s. When the script is used up,
`default` answers (it repeats the last user text). Time passes only when a test advances it: `server.clock.advance(301)`
makes the prompt cache cold.

Endpoints: `POST /v1/messages`, `POST /v1/messages/count_tokens`, `GET /v1/models[/{id}]`.

From a shell: `python -m tests.providers.anthropic.server --port 0` prints its port; then `POST /control/script` with a
JSON list of `{"kind": "reply" | "failure" | "rate_limited" | "plain" | "silence", …}` (the arguments of the function of
that name in `answers.py`), `POST /control/clock {"advance": 301}`, `GET /control/requests`,
`GET /control/refusals`, `POST /control/reset`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tests.providers.anthropic.answers import REQUEST_ID, Reply, reply, scripted
from tests.providers.anthropic.cache import Clock, PromptCache
from tests.providers.anthropic.models import MODELS, ModelSpec, describe_model, list_models
from tests.providers.anthropic.prompt import place_blocks
from tests.providers.anthropic.refusals import Refusal, Refused, refuse
from tests.providers.anthropic.rules.request import (
    MAX_BODY_BYTES,
    Checked,
    Memory,
    Rulebook,
    check_headers,
    check_request,
    find_model,
)
from tests.providers.anthropic.simulation import Simulation
from tests.providers.loopback.answers import Answer, json_answer
from tests.providers.loopback.server import LoopbackServer, Received


class AnthropicServer(LoopbackServer):
    """The server; see the module docstring.

    If `key` is "", no key is required; the other arguments are those of `Rulebook`.
    """

    def __init__(
        self,
        script: Iterable[Reply | Answer] = (),
        *,
        key: str = "sk-test",
        models: tuple[ModelSpec, ...] = MODELS,
        leading_assistant: bool = True,
        encrypted: bool = True,
        default: Callable[[Checked], Reply | Answer] | None = None,
    ) -> None:
        super().__init__()
        self.script = list(script)
        self.refusals: list[Refusal] = []
        self.clock = Clock()
        self._rules = Rulebook(models, key, leading_assistant, encrypted)
        self._memory = Memory()
        self._simulation = Simulation(PromptCache(self.clock), self._memory, encrypted=encrypted)
        self._default = default or _repeat_last

    @property
    def url(self) -> str:
        """Return the `base_url` for an adapter: the SDK adds `/v1` itself."""
        return super().url.removesuffix("/v1")

    def answer(self, request: Received) -> Answer:
        """Return the refusal of the request, or the next answer."""
        try:
            answer = self._respond_to(request)
        except Refused as refused:
            self.refusals.append(refused.refusal)
            answer = json_answer(refused.refusal.body(REQUEST_ID), status=refused.refusal.status)
        if any(name == "request-id" for name, _ in answer.headers):
            return answer
        return replace(answer, headers=(*answer.headers, ("request-id", REQUEST_ID)))

    def _respond_to(self, request: Received) -> Answer:
        if len(request.body) > MAX_BODY_BYTES:
            refuse("Request exceeds the maximum size", status=413)
        betas = check_headers(self._rules, request.headers)
        match request.method, request.path.removeprefix("/v1/").split("/"):
            case "GET", ["models"]:
                return json_answer(list_models(self._rules.models, betas))
            case "GET", ["models", name]:
                return json_answer(describe_model(find_model(self._rules, name), betas))
            case "POST", ["messages", "count_tokens"]:
                return _count(self._checked(request, betas, counts_only=True))
            case "POST", ["messages"]:
                checked = self._checked(request, betas)
                entry = self.script.pop(0) if self.script else self._default(checked)
                return entry if isinstance(entry, Answer) else self._simulation.perform(checked, entry)
        refuse("Not found", status=404)

    def _checked(self, request: Received, betas: frozenset[str], *, counts_only: bool = False) -> Checked:
        try:
            body = request.json
        except ValueError:
            refuse("The request body is not valid JSON")
        return check_request(self._rules, self._memory, body, betas, counts_only=counts_only)

    def control(self, request: Received) -> Any:
        """Store answers, advance the clock, report refusals, or reset everything."""
        match request.path:
            case "/control/script":
                self.script.extend(scripted(entry) for entry in request.json)
            case "/control/clock":
                self.clock.advance(request.json["advance"])
            case "/control/refusals":
                return [refusal.message for refusal in self.refusals]
            case "/control/reset":
                self.script.clear()
                self.requests.clear()
                self.refusals.clear()
            case _:
                return None
        return {"ok": True}


def _count(checked: Checked) -> Answer:
    count: dict[str, Any] = {"input_tokens": checked.plan.prompt.tokens}
    if checked.body.get("context_management") is not None:
        count["context_management"] = {"original_input_tokens": checked.plan.original_tokens}
    return json_answer(count)


def _repeat_last(checked: Checked) -> Reply:
    placed = place_blocks(checked.body["messages"])
    texts = [one.block["text"] for one in placed if one.role == "user" and one.kind == "text"]
    return reply(f"You said: {texts[-1] if texts else ''}")


async def _run(options: argparse.Namespace) -> None:
    models = tuple(replace(model, window=options.window or model.window) for model in MODELS)
    server = AnthropicServer(key=options.key, models=models)
    await server.start(options.port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="sk-test", help="the key that is asked for; empty = none")
    parser.add_argument("--window", type=int, default=0, help="context window of all models; 0 = their own")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
