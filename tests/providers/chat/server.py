"""A loopback server for Chat Completions: for adapter tests, Neovim tests and benchmarks.

In an async test: `async with ChatServer([reply("Hello")]) as server: … server.url … server.requests`; in other tests
`ChatServerThread` (`thread.py`). The script provides one answer per request; when it is used up, `default` answers (it
repeats the last user message). Requests are checked as OpenAI checks them (`rules.py`) before an answer of the script
is used; `check=False` leaves a body unparsed, for benchmarks with large histories. A `Counted` reply reports the
server's own count of the request, including tokens in its simulated prompt cache (`server.cache.now_s` is that cache's
clock).

From a shell: `python -m tests.providers.chat.server --port 0` prints its port. The script of a running server can be
set and its requests read over HTTP, so that tests in another process can use it:
`POST /control/script` with a JSON list of `{"kind": "reply" | "counted" | "failure" | "plain" | "silence", …}` (the
arguments of the function of that name in `answers.py`), `GET /control/requests`, `POST /control/reset`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.providers.chat.alternation import refusal_of_template
from tests.providers.chat.answers import Counted, answer_from, reply
from tests.providers.chat.counting import counted
from tests.providers.chat.prompt import lay_out
from tests.providers.chat.rules import Extras, refusal_of
from tests.providers.loopback.answers import Answer, failure, json_answer
from tests.providers.loopback.server import LoopbackServer, Received
from tests.providers.openai.prompt_cache import PromptCache
from tests.providers.openai.refusal import Refusal


class ChatServer(LoopbackServer):
    """The server; see the module docstring.

    If `key` is "", no key is required. `window` is in tokens; 0 means unlimited.

    `pages` are JSON bodies by path, for other GET requests to an endpoint; they may be changed later. `counts` is the
    path at which the server counts prompts (`counting.py`), or "" if it does not. `alternates`: the status with which
    its chat template refuses roles that do not alternate, or 0 to accept them. `extra_arguments`, `reasoning_fields`
    and `call_fields` are accepted in addition to OpenAI's (`chat_rules.Extras`).
    """

    def __init__(
        self,
        script: Iterable[Answer | Counted] = (),
        *,
        key: str = "sk-test",
        models: tuple[str, ...] = ("test-model",),
        window: int = 128_000,
        check: bool = True,
        echo_key: bool = False,
        extra_arguments: tuple[str, ...] = (),
        reasoning_fields: tuple[str, ...] = (),
        call_fields: tuple[str, ...] = (),
        pages: Mapping[str, Any] | None = None,
        default: Callable[[Received], Answer | Counted] | None = None,
        alternates: int = 0,
        counts: str = "",
        tls: bool = False,
    ) -> None:
        super().__init__(tls=tls)
        self.script = list(script)
        self.refusals: list[Refusal] = []
        self._key, self._models, self._window = key, models, window
        self._check, self._echo_key, self._alternates = check, echo_key, alternates
        self._extras = Extras(extra_arguments, reasoning_fields, call_fields)
        self._counts = counts
        self.cache = PromptCache()
        self.pages: dict[str, Any] = dict(pages or {})
        self._default = default or self._repeat_last

    def answer(self, request: Received) -> Answer:
        """Return the refusal of the request, or the next answer."""
        given = request.headers.get("authorization", "")
        if self._key and given != f"Bearer {self._key}":
            shown = given.removeprefix("Bearer ") if self._echo_key else given.removeprefix("Bearer ")[:3] + "****"
            return failure(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key")
        if request.method == "GET" and request.path in self.pages:
            return json_answer(self.pages[request.path])
        if request.method == "GET" and request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": name} for name in self._models]})
        if request.path == self._counts:
            return counted(request.path, request.json, self._window)
        if request.path != "/v1/chat/completions":
            return failure(404, f"Invalid URL ({request.method} {request.path})")
        if not self._check:
            wanted = self.script.pop(0) if self.script else self._default(request)
            return wanted.answer(None, streams=True) if isinstance(wanted, Counted) else wanted
        refusal = self._refusal(request)
        if refusal is not None:
            self.refusals.append(refusal)
            return json_answer(refusal.body(), status=refusal.status)
        return self._accepted(request)

    def _refusal(self, request: Received) -> Refusal | None:
        try:
            body = request.json
        except ValueError:
            return Refusal(400, "We could not parse the JSON body of your request.")
        refusal = refusal_of(body, models=self._models, window=self._window, extras=self._extras)
        if refusal is None and self._alternates:
            return refusal_of_template(body["messages"], self._alternates)
        return refusal

    def _accepted(self, request: Received) -> Answer:
        """Return the next answer, and add the prompt to the cache in any case."""
        body = request.json
        prompt = lay_out(body)
        key = f"{body['model']}:{body.get('prompt_cache_key')}"
        cached, _ = self.cache.read(key, prompt.tokens)
        wanted = self.script.pop(0) if self.script else self._default(request)
        if isinstance(wanted, Answer):
            return wanted
        streams = bool(body.get("stream"))
        tells = not streams or bool((body.get("stream_options") or {}).get("include_usage"))
        return wanted.answer(wanted.usage(len(prompt), cached) if tells else None, streams=streams)

    def _repeat_last(self, request: Received) -> Answer | Counted:
        if not self._check:
            return reply("ok")
        users = [message["content"] for message in request.json["messages"] if message["role"] == "user"]
        return Counted(f"You said: {users[-1] if users else ''}")

    def control(self, request: Received) -> Any:
        """Store answers, or reset the server."""
        match request.path:
            case "/control/script":
                self.script.extend(answer_from(entry) for entry in request.json)
            case "/control/reset":
                self.script.clear()
                self.requests.clear()
                self.refusals.clear()
            case _:
                return None
        return {"ok": True}


async def _run(options: argparse.Namespace) -> None:
    answer = reply("x " * options.chunks, chunk_chars=2) if options.chunks else None
    server = ChatServer(
        key=options.key,
        models=tuple(options.model),
        window=options.window,
        check=not options.no_check,
        default=(lambda _: answer) if answer else None,
    )
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
    parser.add_argument("--no-check", action="store_true", help="do not parse requests (large bodies)")
    parser.add_argument("--chunks", type=int, default=0, help="answer everything with this many chunks at once")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
