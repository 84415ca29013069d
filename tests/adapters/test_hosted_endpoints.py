"""Hosts of open models, each against a server that behaves as documented by the provider.

They have not been tried with an account: the entries and these servers are written from the pages that
`builtin_adapters.json` names (`documented_at`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.catalog import limits_of, lookup, price_usd
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    ContentRefused,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    RateLimited,
    RequestRejected,
)
from codecompanion.model.messages import Message, ReasoningPart, Usage
from codecompanion.settings import builtin_adapters, builtin_entry
from tests.adapters.conftest import KEY, WEATHER, Outcome, collect, request, user
from tests.providers.chat.answers import Answer, Call, failure, json_answer, reply
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.server import Received


@dataclass(frozen=True)
class Host:
    """The documented behaviour of a host. `takes_reasoning` lists the reasoning fields it accepts."""

    refuses: Collection[str] = ()
    reasoning_field: str = "reasoning_content"
    takes_reasoning: tuple[str, ...] = ()
    limit_field: str = "max_tokens"
    extra_arguments: tuple[str, ...] = ()


UNSENT = ("logprobs", "top_logprobs", "logit_bias", "n")
HOSTS = {
    "groq": Host((*UNSENT, "max_tokens"), "reasoning", limit_field="max_completion_tokens"),
    "together": Host(("max_completion_tokens",), "reasoning"),
    "fireworks": Host((), takes_reasoning=("reasoning_content",)),
    "cerebras": Host(
        ("frequency_penalty", "presence_penalty", "logit_bias", "parallel_tool_calls", "service_tier", "max_tokens"),
        "reasoning",
        limit_field="max_completion_tokens",
    ),
    "zai": Host(("stream_options", "max_completion_tokens", "seed"), takes_reasoning=("reasoning_content",)),
    "minimax": Host(
        ("max_tokens", "n", "parallel_tool_calls", "reasoning_effort"),
        takes_reasoning=("reasoning_details",),
        limit_field="max_completion_tokens",
        extra_arguments=("reasoning_split",),
    ),
    "nebius": Host(("max_completion_tokens",)),
}


class HostServer(ChatServer):
    """A fake host at its own path; it checks for its own refusals before the common ones."""

    def __init__(self, host: Host, path: str, **more: Any) -> None:
        super().__init__(extra_arguments=host.extra_arguments, reasoning_fields=host.takes_reasoning, **more)
        self.host, self.path = host, path

    def answer(self, request: Received) -> Answer:
        """Refuse other paths and unsupported fields; answer anything else as usual."""
        if not request.path.startswith(self.path):
            return failure(404, "Not found")
        if request.method == "POST":
            for name in sorted(set(self.host.refuses) & set(request.json)):
                return failure(400, f"property '{name}' is unsupported", code="wrong_api_format")
            if any("name" in message for message in request.json["messages"]):
                return failure(400, "property 'messages[].name' is unsupported")
        request.path = "/v1" + request.path.removeprefix(self.path)
        return super().answer(request)


Start = Callable[..., tuple[HttpAdapter, AdapterSettings]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Return a maker of built-in adapters that use a server on this machine."""
    made: list[HttpAdapter] = []

    def make(name: str, server: HostServer, **changes: Any) -> tuple[HttpAdapter, AdapterSettings]:
        base = server.url.removesuffix("/v1") + server.path
        entry = msgspec.convert({**builtin_entry(name), "base_url": base, **changes}, AdapterSettings)
        adapter = HttpAdapter(entry, make_wire(entry, lambda _: b""), read_key=lambda _: KEY, random=lambda: 0.0)
        made.append(adapter)
        return adapter, entry

    yield make
    for adapter in made:
        await adapter.aclose()


def host_server(name: str, *script: Answer, **more: Any) -> HostServer:
    """Return the host's server, prepared with these answers."""
    path = "/" + str(builtin_adapters()[name]["base_url"]).split("/", 3)[3]
    more.setdefault("models", (builtin_adapters()[name]["model"],))
    return HostServer(HOSTS[name], path, script=script, **more)


async def ask(adapter: HttpAdapter, entry: AdapterSettings, *messages: Message) -> Outcome:
    """Send a request as a chat does."""
    wanted = request(*messages, model=entry.model, tools=(WEATHER,), max_output_tokens=64, chat_id="c")
    return await collect(adapter, wanted)


@pytest.mark.parametrize("name", HOSTS)
async def test_a_turn_with_a_tool_is_accepted_without_a_refusal(start: Start, name: str) -> None:
    """A turn with reasoning, a call, its result and an answer never sends a field that the documentation excludes."""
    host = HOSTS[name]
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    calls = [Call("weather", '{"city":"Rome"}', id="call_1")]
    first = reply(reasoning="Look it up.", reasoning_field=host.reasoning_field, calls=calls, usage=usage)
    async with host_server(name, first, reply("Sunny.", usage=usage)) as server:
        adapter, entry = start(name, server)
        thought = await ask(adapter, entry, user())
        assert thought.reasoning == "Look it up."
        [call] = thought.finished.tool_calls
        part = ReasoningPart("Look it up.", host.reasoning_field)
        history = (
            user(),
            Message(id="a", role="assistant", content=(part,), tool_calls=(call,)),
            Message(id="r", role="tool", content="sunny", tool_call_id=call.id),
        )
        answer = await ask(adapter, entry, *history)
        assert (answer.text, answer.finished.usage) == ("Sunny.", Usage(input_tokens=9, output_tokens=4))
        assert server.refusals == []
        assert len(server.requests) == 2, "nothing had to be learned from a refusal"
        sent = server.requests[1].json
    assert sent[host.limit_field] == 64
    assert ("stream_options" in sent) is (name != "zai")
    back = sent["messages"][1].get("reasoning_content")
    assert back == ("Look it up." if host.takes_reasoning == ("reasoning_content",) else None)


async def test_minimax_splits_its_reasoning_and_gets_it_back_unchanged(start: Start) -> None:
    """The pieces add up (MiniMax-AI/MiniMax-M2#95: the documentation's example treats each one as the whole text)."""
    pieces = ("The user", " is asking.")
    details = [{"type": "reasoning.text", "index": 0, "text": piece} for piece in pieces]
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    deltas: list[dict[str, Any]] = [{"reasoning_details": [detail]} for detail in details]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta}], "base_resp": {"status_code": 0, "status_msg": ""}}
        for delta in [*deltas, {"tool_calls": [call]}]
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    async with host_server("minimax", Answer(parts=(body,)), reply("ok")) as server:
        adapter, entry = start("minimax", server)
        thought = await ask(adapter, entry, user())
        assert thought.reasoning == "The user is asking."
        assert server.requests[0].json["reasoning_split"] is True
        done = next(event for event in thought.events if hasattr(event, "encrypted"))
        part = ReasoningPart(thought.reasoning, "reasoning_details", done.origin, done.encrypted)
        history = (
            user(),
            Message(id="a", role="assistant", content=(part,), tool_calls=thought.finished.tool_calls),
            Message(id="r", role="tool", content="sunny", tool_call_id="call_1"),
        )
        assert (await ask(adapter, entry, *history)).text == "ok"
        back = server.requests[1].json["messages"][1]["reasoning_details"]
    assert [entry["text"] for entry in back] == ["The user is asking."]


def base_resp(code: int, text: str) -> Answer:
    """Return MiniMax's error: status 200, with the code inside."""
    return json_answer({"base_resp": {"status_code": code, "status_msg": text}})


def zai_error(status: int, code: str, text: str) -> Answer:
    """Return Z.AI's error, which has its own code and no type."""
    return json_answer({"error": {"code": code, "message": text}}, status=status)


TPM = "Request too large for model `openai/gpt-oss-120b` on tokens per minute (TPM): Limit 8000, Requested 9121"


LONG_PROMPT = "Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072"
FIREWORKS_LONG = "The prompt is too long: 140000, model maximum context length: 131071"
UNSAFE = "System detected potentially unsafe or sensitive content in input or generation."
NO_BALANCE = "Insufficient balance or no resource package. Please recharge."


def cerebras_error(status: int, code: str, text: str) -> Answer:
    """Return Cerebras's error, which is not wrapped in an object."""
    return json_answer({"message": text, "type": "x_error", "param": "messages", "code": code}, status=status)


ERRORS: list[tuple[str, Answer, type[AdapterError], str]] = [
    ("groq", failure(413, TPM, code="rate_limit_exceeded"), ContextOverflow, "too long"),
    ("groq", failure(400, "Failed to call a function.", code="tool_use_failed"), RequestRejected, "Failed to call"),
    ("groq", failure(404, "The model `x` does not exist", code="model_not_found"), ModelNotFound, "does not know"),
    ("together", failure(402, "Credit limit exceeded"), RateLimited, "no credit left"),
    ("together", failure(422, "`inputs` tokens + `max_new_tokens` must be <= 131073"), ContextOverflow, "too long"),
    ("fireworks", failure(400, FIREWORKS_LONG), ContextOverflow, "too long"),
    ("fireworks", failure(404, "Model not found, inaccessible, or not deployed"), ModelNotFound, "does not know"),
    ("cerebras", cerebras_error(400, "context_length_exceeded", LONG_PROMPT), ContextOverflow, "140000"),
    ("cerebras", cerebras_error(401, "wrong_api_key", "Wrong API Key"), AuthenticationFailed, "CEREBRAS_API_KEY"),
    ("zai", zai_error(401, "1000", "Authentication Failed"), AuthenticationFailed, "ZAI_API_KEY"),
    ("zai", zai_error(429, "1113", NO_BALANCE), RateLimited, "no credit left"),
    ("zai", zai_error(400, "1211", "Unknown Model, please check the model code."), ModelNotFound, "does not know"),
    ("zai", zai_error(400, "1261", "Prompt exceeds max length"), ContextOverflow, "too long"),
    ("zai", zai_error(400, "1301", UNSAFE), ContentRefused, "content filter"),
    ("minimax", base_resp(1004, "login fail"), AuthenticationFailed, "MINIMAX_API_KEY"),
    ("minimax", base_resp(2049, "invalid api key"), AuthenticationFailed, "MINIMAX_API_KEY"),
    ("minimax", base_resp(1008, "insufficient balance"), RateLimited, "no credit left"),
    ("minimax", base_resp(1002, "rate limit"), RateLimited, "too many requests"),
    ("minimax", base_resp(1039, "token limit"), ContextOverflow, "too long"),
    ("minimax", base_resp(1026, "input new_sensitive"), ContentRefused, "content filter"),
    ("minimax", base_resp(1033, "system error"), Overloaded, "failed"),
    ("minimax", base_resp(2013, "invalid params, unknown model 'x'"), ModelNotFound, "does not know"),
    ("nebius", failure(404, "The model `x` does not exist."), ModelNotFound, "does not know"),
    ("nebius", failure(401, "Couldn't authenticate. Wrong API key"), AuthenticationFailed, "NEBIUS_API_KEY"),
]


@pytest.mark.parametrize(("name", "answer", "kind", "said"), ERRORS)
async def test_an_error_of_the_host_is_reported_as_what_it_is(
    start: Start, name: str, answer: Answer, kind: type[AdapterError], said: str
) -> None:
    """Documented codes and messages become one sentence without the key."""
    async with host_server(name, answer) as server:
        adapter, entry = start(name, server, max_retries=0)
        error = (await ask(adapter, entry, user())).error
    assert type(error) is kind, error
    assert said in str(error)
    assert KEY not in str(error)


async def test_groq_reports_how_long_to_wait(start: Start) -> None:
    """Its `retry-after` is in seconds; the request is then sent again."""
    limited = failure(429, "Rate limit reached for model", code="rate_limit_exceeded", headers={"retry-after": "0.01"})
    async with host_server("groq", limited, reply("ok")) as server:
        adapter, entry = start("groq", server)
        outcome = await ask(adapter, entry, user())
    assert ([retry.wait_ms for retry in outcome.retries], outcome.text) == ([10], "ok")


@pytest.mark.parametrize(
    ("name", "page", "window"),
    [
        ("groq", {"data": [{"id": "openai/gpt-oss-120b", "active": True, "context_window": 131072}]}, 131072),
        ("together", [{"id": "openai/gpt-oss-120b", "type": "chat", "context_length": 131072}], 131072),
        ("fireworks", {"data": [{"id": "accounts/fireworks/models/gpt-oss-120b", "context_length": 131072}]}, 131072),
        ("nebius", {"data": [{"id": "openai/gpt-oss-120b", "context_length": 131072}]}, 131072),
    ],
)
async def test_a_host_that_lists_windows_is_believed(start: Start, name: str, page: Any, window: int) -> None:
    """The window is read from the host's own model list, whatever its shape."""
    async with host_server(name, pages={"/v1/models": page}) as server:
        adapter, entry = start(name, server)
        await adapter.warm_up()
        limits = adapter.limits(entry.model)
    assert limits is not None
    assert limits.context_window == window


async def test_zai_has_no_model_list_and_ours_is_used(start: Start) -> None:
    """The user can choose from the configured models."""
    async with host_server("zai", models=()) as server:
        server.pages.clear()
        server.path = "/elsewhere"
        adapter, entry = start("zai", server, base_url=server.url.removesuffix("/v1") + "/api/paas/v4")
        assert await adapter.list_models() == list(entry.models)
    assert entry.model in entry.models


@pytest.mark.parametrize("name", HOSTS)
def test_the_default_model_has_a_window_and_a_price_of_this_host_or_none(name: str) -> None:
    """Another host's price would be wrong, because prices for the same weights differ."""
    about = builtin_adapters()[name]
    limits = limits_of(about["base_url"], about["model"])
    assert limits is not None
    assert limits.context_window >= 131_072
    facts = lookup(about["base_url"], about["model"])
    assert facts is not None
    assert facts.provider == ("" if name == "nebius" else name)
    price = price_usd(facts, Usage(input_tokens=1000, output_tokens=1000))
    assert (price is None) is (name == "nebius")


def test_an_adapter_with_a_key_says_where_to_get_one() -> None:
    """Every built-in adapter with a key has a page where keys are issued, for the picker and the help."""
    for name, about in builtin_adapters().items():
        assert bool(about.get("key")) is bool(about.get("key_page")), name
        assert str(about.get("key_page", "https://")).startswith("https://"), name
