"""A loopback server for OpenAI's Responses API, written from its documentation: an independent judge.

`POST /v1/responses` (stream and JSON), `/v1/responses/compact`, `/v1/responses/input_tokens`, `GET /v1/models`. It
refuses the requests that the provider refuses (`rules.py`) before an answer of the script is used; it counts tokens
itself, caches prompts, compacts over the threshold or on demand, and recognises its own ids and seals.

In an async test: `async with ResponsesServer([reply("Hello")]) as server: … server.url … server.requests`; in other
tests `ResponsesServerThread`. Each endpoint has its own list of answers: `script`, `compactions` (also for requests
that end with a compaction trigger), `counts`; when a list is used up, the server generates answers. Requests that are
allowed but unwanted are listed in `server.notes`. From a shell: `python -m tests.providers.responses.server --port 0`,
and over HTTP `POST /control/script` and `/control/compactions` (`reply_from`), `/control/clock` (`{"seconds": 60}`),
`/control/reset`, `GET /control/requests`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, cast

from tests.providers.loopback.answers import Answer, json_answer, plain
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.loopback.thread import LoopbackThread
from tests.providers.loopback.token_count import Prompt
from tests.providers.openai.prompt_cache import PromptCache
from tests.providers.openai.refusal import Refusal, Refused, refuse
from tests.providers.responses.answers import Compacted, Reply, reply, reply_from
from tests.providers.responses.compaction import compact
from tests.providers.responses.ledger import Ledger
from tests.providers.responses.prompt import lay_out
from tests.providers.responses.rules import Accepted, Endpoint, Rules, accept
from tests.providers.responses.stream import Rendering, render

_ENDPOINTS = ("responses", "responses/compact", "responses/input_tokens")
_NO_KEY = "You didn't provide an API key. You need to provide your API key in an Authorization header."


class ResponsesServer(LoopbackServer):
    """The server; see the module docstring.

    key: "" requires no key. ledger: share one to be the same provider after a restart. check=False: nothing is refused
    or counted. overflow_in_stream: the error for a prompt that is too long comes in the stream, as the endpoint
    sometimes does. reports_compacted_size: the usage of a response that compacted counts the remaining tokens; by
    default it counts the received ones, as in the only known example.
    """

    def __init__(
        self,
        script: Iterable[Reply | Answer] = (),
        *,
        key: str = "sk-test",
        rules: Rules | None = None,
        ledger: Ledger | None = None,
        default: Callable[[Accepted], Reply | Answer] | None = None,
        check: bool = True,
        body_limit: int = 50_000_000,
        overflow_in_stream: bool = False,
        reports_compacted_size: bool = False,
        echo_key: bool = False,
    ) -> None:
        super().__init__()
        self.script = list(script)
        self.compactions: list[Reply | Answer] = []
        self.counts: list[Answer] = []
        self.refusals: list[Refusal] = []
        self.cache = PromptCache()
        self.ledger = ledger or Ledger()
        self.rules = rules or Rules(models=("test-model",))
        self._key, self._echo_key = key, echo_key
        self._default = default or _repeat_last
        self._check, self._body_limit = check, body_limit
        self._overflow_in_stream, self._reports_compacted_size = overflow_in_stream, reports_compacted_size

    @property
    def notes(self) -> list[str]:
        """Return notes on requests that are allowed but unwanted."""
        return [note for request in self.requests for note in request.notes]

    def answer(self, request: Received) -> Answer:
        """Return the refusal of the request, or the next answer."""
        try:
            answer = self._answered(request)
        except Refused as refused:
            refusal = refused.refusal
            self.refusals.append(refusal)
            answer = self._told_in_stream(request, refusal) or json_answer(refusal.body(), status=refusal.status)
        return replace(answer, headers=(*answer.headers, ("x-request-id", f"req_{len(self.requests):032x}")))

    def _answered(self, request: Received) -> Answer:
        self._check_key(request)
        endpoint = request.path.removeprefix("/v1/")
        if request.path == "/v1/models" or request.path.startswith("/v1/models/"):
            return self._models(request)
        if not request.path.startswith("/v1/") or endpoint not in _ENDPOINTS:
            refuse(f"Invalid URL ({request.method} {request.path})", None, None, 404)
        if request.method != "POST":
            refuse(f"Invalid method for URL ({request.method} {request.path})", None, None, 405)
        if len(request.body) > self._body_limit:
            # Said by the proxy in front of the service: nothing a client may parse.
            return plain(b"<h1>413 Request Entity Too Large</h1>", content_type="text/html", status=413)
        accepted = self._accept(cast(Endpoint, endpoint), request)
        request.notes.extend(accepted.notes)
        match endpoint:
            case "responses/compact":
                return self._compact(accepted)
            case "responses/input_tokens":
                counted = {"object": "response.input_tokens", "input_tokens": len(accepted.prompt)}
                return self.counts.pop(0) if self.counts else json_answer(counted)
            case _:
                return self._create(accepted)

    def _check_key(self, request: Received) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not self._key or given == self._key:
            return
        shown = given if self._echo_key else f"{given[:3]}****"
        text = f"Incorrect API key provided: {shown}." if given else _NO_KEY
        refuse(text, None, "invalid_api_key" if given else None, 401)

    def _models(self, request: Received) -> Answer:
        names = self.rules.models or ("test-model",)
        models = [{"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "system"} for name in names]
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": models})
        wanted = request.path.removeprefix("/v1/models/")
        if wanted not in names:
            refuse(f"The model '{wanted}' does not exist", "model", "model_not_found", 404)
        return json_answer(models[names.index(wanted)])

    def _accept(self, endpoint: Endpoint, request: Received) -> Accepted:
        if not request.headers.get("content-type", "").startswith("application/json"):
            kind = request.headers.get("content-type")
            refuse(f"Unsupported content type: '{kind}'. This API method only accepts 'application/json' requests.")
        try:
            body = request.json
        except ValueError:
            refuse("We could not parse the JSON body of your request.")
        if not self._check:
            return Accepted(body, (), (), Prompt(), ())
        return accept(endpoint, body, self.rules, self.ledger)

    def _create(self, accepted: Accepted) -> Answer:
        if accepted.wants_compaction:
            wanted = self.compactions.pop(0) if self.compactions else Reply((Compacted(),))
            return wanted if isinstance(wanted, Answer) else self._give(wanted, accepted)
        wanted = self.script.pop(0) if self.script else self._default(accepted)
        if isinstance(wanted, Answer):
            return wanted
        if accepted.is_over_threshold:
            wanted = replace(wanted, items=(Compacted(), *wanted.items))
        return self._give(wanted, accepted)

    def _give(self, wanted: Reply, accepted: Accepted) -> Answer:
        body = accepted.body
        rendering = Rendering(wanted, body, self.ledger)
        self.ledger.record(rendering.output, str(body.get("model")), rendering.tokens)
        if body.get("store") is not False:
            self.ledger.stored[rendering.response_id] = (*accepted.items, *rendering.output)
        prompt = accepted.prompt
        if accepted.is_over_threshold and self._reports_compacted_size:
            prompt = lay_out(body, rendering.output[:1], self.ledger)
        usage = self._usage(prompt, accepted, rendering.output_tokens, rendering.reasoning_tokens)
        return render(rendering, wanted.usage or usage)

    def _compact(self, accepted: Accepted) -> Answer:
        wanted = self.compactions.pop(0) if self.compactions else Reply((Compacted(),))
        if isinstance(wanted, Answer):
            return wanted
        item = wanted.items[0]
        assert isinstance(item, Compacted), "a compaction on demand answers with Compacted"
        usage = self._usage(accepted.prompt, accepted, item.tokens, 0)
        return compact(accepted, self.ledger, item, wanted, wanted.usage or usage)

    def _usage(self, prompt: Prompt, accepted: Accepted, generated: int, reasoning: int) -> dict[str, Any]:
        key = f"{accepted.body.get('model')}:{accepted.body.get('prompt_cache_key')}"
        cached, written = self.cache.read(key, prompt.tokens)
        return {
            "input_tokens": len(prompt),
            "input_tokens_details": {"cache_write_tokens": written, "cached_tokens": cached},
            "output_tokens": generated,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": len(prompt) + generated,
        }

    def _told_in_stream(self, request: Received, refusal: Refusal) -> Answer | None:
        overflowed = self._overflow_in_stream and refusal.code == "context_length_exceeded"
        if not overflowed or not request.json.get("stream"):
            return None
        wanted = reply(error_code=refusal.code, error_message=refusal.message, as_event=True, nested=True, after=2)
        return render(Rendering(wanted, request.json, self.ledger), {})

    def control(self, request: Received) -> Any:
        """Queue answers, move the clock, or reset the server."""
        match request.path:
            case "/control/script":
                self.script.extend(reply_from(entry) for entry in request.json)
            case "/control/compactions":
                self.compactions.extend(reply_from(entry) for entry in request.json)
            case "/control/clock":
                self.cache.now_s += request.json["seconds"]
            case "/control/reset":
                for seen in (self.script, self.compactions, self.counts, self.requests, self.refusals):
                    seen.clear()
            case _:
                return None
        return {"ok": True}


class ResponsesServerThread(LoopbackThread[ResponsesServer]):
    """The server in a thread of its own: `with ResponsesServerThread([…]) as server:`."""

    def __init__(self, script: Iterable[Reply | Answer] = (), **options: Any) -> None:
        answers = list(script)
        super().__init__(
            lambda: ResponsesServer(answers, **options),
            "openai.responses",
            "openai.responses.compact",
            "openai.responses.input_tokens",
        )


def _repeat_last(accepted: Accepted) -> Reply:
    """Answer by repeating the user's last message."""
    said = [item["content"] for item in accepted.items if item.get("role") == "user"]
    last = said[-1] if said else "nothing"
    if not isinstance(last, str):
        last = " ".join(part["text"] for part in last if part["type"] == "input_text")
    return reply(f"You said: {last}")


async def _run(options: argparse.Namespace) -> None:
    rules = Rules(tuple(options.model), options.window, min_threshold=options.min_threshold)
    server = ResponsesServer(key=options.key, rules=rules)
    await server.start(options.port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="sk-test", help="the key that is asked for; empty = none")
    parser.add_argument("--model", action="append", default=[], help="a model that exists; none given = all exist")
    parser.add_argument("--window", type=int, default=0, help="context window in tokens; 0 = unlimited")
    parser.add_argument("--min-threshold", type=int, default=50_000, help="of context_management")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
