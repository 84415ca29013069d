"""Endpoints that fill in code, over HTTP: requests, answers, errors (R-261)."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.completion.client import CompletionClient, settings_of
from codecompanion.adapters.completion.endpoints import CodeReply, CodeRequest, endpoint_named, without_path
from codecompanion.adapters.keys.key_source import KeyReader
from codecompanion.errors import (
    AdapterError,
    AuthenticationFailed,
    ConfigError,
    MalformedReply,
    MissingKey,
    ModelNotFound,
    NetworkFailed,
    NotServed,
)
from tests.patience import PATIENCE_S
from tests.providers.completion.server import FillServer
from tests.providers.loopback.answers import DROP, Answer, json_answer, plain, silence

NAMES = ("completions", "llamacpp", "ollama", "mistral", "deepseek")
PAID = ("mistral", "deepseek")


def client(name: str, server: FillServer, *, key: str = "sk-test", url: str = "") -> CompletionClient:
    endpoint = endpoint_named(name)
    settings = settings_of(endpoint, None, base_url=url or server.address, key="FILL_KEY" if name in PAID else "")
    return CompletionClient(endpoint, settings, KeyReader(environ={"FILL_KEY": key}))


def request(*, tokens: bool = False, model: str = "qwen2.5-coder", stop: tuple[str, ...] = ("\n\n\n",)) -> CodeRequest:
    return CodeRequest(
        model=model,
        prompt="<|fim_prefix|>a = <|fim_suffix|>\n<|fim_middle|>" if tokens else "a = ",
        suffix="" if tokens else "\n",
        has_tokens=tokens,
        extra=(("b.py", "b = 1\n"),),
        stop=stop,
        max_tokens=128,
        temperature=0.1,
    )


async def ask(
    name: str, server: FillServer, asked: CodeRequest | None = None, *, limit_s: float = PATIENCE_S, **options
):
    made = client(name, server, **options)
    try:
        return await made.ask(asked or request(tokens=name == "completions"), limit_s)
    finally:
        await made.aclose()


@pytest.mark.parametrize("name", NAMES)
async def test_each_endpoint_accepts_its_request_and_returns_code(name):
    async with FillServer(["b.f(1)"]) as server:
        assert (await ask(name, server)).text == "b.f(1)"
        assert server.requests[0].json["stream"] is False


@pytest.mark.parametrize("name", NAMES)
async def test_a_reply_truncated_by_the_limit_is_marked(name):
    async with FillServer(["b.f("], finish="length") as server:
        reply = await ask(name, server)
        assert (reply.text, reply.is_cut) == ("b.f(", True)


async def test_llamacpp_gets_other_files_separately():
    async with FillServer() as server:
        await ask("llamacpp", server)
        body = server.requests[0].json
        assert body["input_extra"] == [{"filename": "b.py", "text": "b = 1\n"}]
        assert (body["input_prefix"], body["input_suffix"], body["n_predict"]) == ("a = ", "\n", 128)
        assert body["cache_prompt"] is True


async def test_ollama_gets_raw_tokens_or_the_suffix_for_its_template():
    async with FillServer() as server:
        await ask("ollama", server, request(tokens=True))
        await ask("ollama", server, request(model="granite"))
        raw, templated = (received.json for received in server.requests)
        assert (raw["raw"], "suffix" in raw) == (True, False)
        assert ("raw" in templated, templated["suffix"]) == (False, "\n")
        assert raw["options"] == {"num_predict": 128, "temperature": 0.1, "stop": ["\n\n\n"]}


async def test_no_more_stops_are_sent_than_the_endpoint_accepts():
    async with FillServer() as server:
        await ask("completions", server, request(tokens=True, stop=tuple("abcdef")))
        assert server.requests[0].json["stop"] == list("abcd")


async def test_content_in_pieces_is_joined():
    pieces = [{"type": "text", "text": "b."}, {"type": "text", "text": "f"}]
    body = {"choices": [{"message": {"content": pieces}, "finish_reason": "stop"}]}
    async with FillServer([json_answer(body)]) as server:
        assert await ask("mistral", server) == CodeReply("b.f")


async def test_no_content_is_an_empty_text():
    body = {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}
    async with FillServer([json_answer(body)]) as server:
        assert await ask("mistral", server) == CodeReply("")


@pytest.mark.parametrize(
    ("url", "path", "base"),
    [
        ("http://h", "/v1/completions", "http://h"),
        ("http://h/v1", "/v1/completions", "http://h"),
        ("http://h/v1/?version=2", "/v1/completions", "http://h?version=2"),
        ("http://h/proxy", "/v1/completions", "http://h/proxy"),
        ("http://h/proxy/v1", "/v1/completions", "http://h/proxy"),
        ("http://h/beta", "/beta/completions", "http://h"),
        ("http://h/v1/completions", "/v1/completions", "http://h"),
        ("http://v1", "/v1/completions", "http://v1"),
    ],
)
def test_an_address_may_end_with_the_path(url, path, base):
    assert without_path(url, path) == base


@pytest.mark.parametrize("ending", ["/v1", "/v1/", "/v1/completions"])
async def test_a_full_address_is_requested_once(ending):
    async with FillServer(["x"]) as server:
        assert (await ask("completions", server, url=server.address + ending)).text == "x"
        assert server.requests[0].path == "/v1/completions"


SUCH = "for example Qwen2.5-Coder."


async def failure_of(name: str, server: FillServer, kind: type[AdapterError], asked=None, **options) -> str:
    with pytest.raises(kind) as caught:
        await ask(name, server, asked, **options)
    said = str(caught.value)
    assert said.startswith("completion: ")
    assert "with ga" not in said
    assert "env.url" not in said
    return said


async def test_a_model_that_cannot_fill_in_is_named():
    """The error names the model that llama.cpp runs, whatever the configuration calls it."""
    async with FillServer(fills_in=False, runs="/models/SmolLM2-135M.gguf") as server:
        said = await failure_of("llamacpp", server, NotServed, request(model="qwen2.5-coder"))
        assert said.startswith(f"completion: SmolLM2-135M.gguf at {server.address} cannot fill in code.")


async def test_a_refusal_is_one_sentence():
    """The error has our own wording and names the option to change."""
    async with FillServer(fills_in=False) as server:
        said = await failure_of("llamacpp", server, NotServed)
        remedy = f"Run a code model there, {SUCH}"
        assert said == f"completion: the model at {server.address} cannot fill in code. {remedy}"
        said = await failure_of("ollama", server, NotServed, request(model="granite"))
        remedy = f"Set completion.model to a code model, {SUCH}"
        assert said == f"completion: granite at {server.address} cannot fill in code. {remedy}"
        said = await failure_of("completions", server, ModelNotFound, request(tokens=True, model="gone"))
        assert "completion.model" in said
        said = await failure_of("ollama", server, ModelNotFound, request(tokens=True, model="gone"))
        assert said == "completion: Ollama has no model gone: ollama pull gone"
        await failure_of("mistral", server, AdapterError, request(model="gone"))
        await failure_of("deepseek", server, AdapterError, request(model="gone"))


@pytest.mark.parametrize(
    "answer", [plain(b"404 page not found", status=404), plain(b"", status=404), json_answer({}, status=404)]
)
async def test_a_wrong_address_is_named_with_its_path(answer):
    """The error is the same for any response to an unknown path, and does not contain the URL's password."""
    async with FillServer([answer]) as server:
        url = server.address.replace("//", "//me:secret@")
        said = await failure_of("ollama", server, AdapterError, url=f"{url}/wrong")
        where = f"{server.address}/wrong/api/generate"
        assert said.startswith(f"completion: nothing found at {where} (404). Check completion.url")
        assert "secret" not in said


async def test_ollamas_older_message_with_another_status_is_recognised():
    said = {"error": 'model "m" not found, try pulling it first'}
    for status in (404, 500):
        async with FillServer([json_answer(said, status=status)]) as server:
            told = await failure_of("ollama", server, AdapterError, request(model="m"))
            assert told == "completion: Ollama has no model m: ollama pull m"


@pytest.mark.parametrize("name", PAID)
async def test_a_key_that_is_wrong_or_missing_is_never_shown(name):
    async with FillServer() as server:
        said = await failure_of(name, server, AuthenticationFailed, key="sk-wrong-one")
        assert "FILL_KEY" in said
        assert "sk-wrong" not in said
        assert "FILL_KEY" in await failure_of(name, server, MissingKey, key="")
        assert len(server.requests) == 1


async def test_a_refused_key_is_read_again():
    keys = iter(["sk-old", "sk-test"])
    async with FillServer(["x"]) as server:
        endpoint = endpoint_named("mistral")
        made = CompletionClient(
            endpoint, settings_of(endpoint, None, base_url=server.address), lambda settings: next(keys)
        )
        with pytest.raises(AuthenticationFailed):
            await made.ask(request(), PATIENCE_S)
        assert (await made.ask(request(), PATIENCE_S)).text == "x"
        await made.aclose()


HTML = b"<html><head><title>Log in</title></head></html>"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (plain(HTML, content_type="text/html"), MalformedReply, "Log in"),
        (plain(b'{"content": ', content_type="application/json"), MalformedReply, ""),
        (plain(b"", content_type="application/json"), MalformedReply, ""),
        (json_answer({"content": 7, "stop_type": "eos"}), MalformedReply, "completion.endpoint"),
        (json_answer({}), MalformedReply, "completion.endpoint"),
        (json_answer([]), MalformedReply, "completion.endpoint"),
        (json_answer(None), MalformedReply, "completion.endpoint"),
        (json_answer({"error": {"message": "out of memory"}}), AdapterError, "out of memory"),
        (json_answer({"error": "loading"}, status=503), AdapterError, "loading"),
        (json_answer({"detail": "no"}, status=404), AdapterError, "404"),
        (plain(b"x" * (1_000_001), content_type="application/json"), MalformedReply, "larger than 1 MB"),
        (Answer(parts=(b'{"content"', DROP)), AdapterError, ""),
        (Answer(status=301, headers=(("Location", "http://elsewhere/"),)), AdapterError, "elsewhere"),
    ],
    ids=lambda value: None,
)
async def test_an_invalid_answer_is_one_sentence(answer, kind, words):
    async with FillServer([answer]) as server:
        assert words in await failure_of("llamacpp", server, kind)


async def test_an_unreachable_server_is_one_sentence():
    async with FillServer() as server:
        gone = server.address
    said = await failure_of("llamacpp", server, NetworkFailed, url=gone)
    assert "completion.url" in said


async def test_the_wait_for_a_silent_server_has_a_limit():
    async with FillServer([silence()]) as server:
        assert "completion.timeout" in await failure_of("llamacpp", server, NetworkFailed, limit_s=0.1)


async def test_cancelling_closes_the_connection():
    async with FillServer([silence()]) as server:
        made = client("llamacpp", server)
        task = asyncio.ensure_future(made.ask(request(), PATIENCE_S))
        await server.wait_until(lambda: len(server.requests) == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.wait_until(lambda: server.requests[0].aborted)
        await made.aclose()


def test_the_users_connection_precedes_the_adapters_and_the_endpoints():
    mistral = endpoint_named("mistral")
    adapter = AdapterSettings(
        name="work", kind="openai", base_url="https://work/v1", key="WORK_KEY", headers={"a": "b"}
    )
    own = settings_of(mistral, None)
    assert (own.base_url, own.key) == ("https://api.mistral.ai", "MISTRAL_API_KEY")
    elsewhere = settings_of(mistral, None, base_url="http://localhost:1")
    assert elsewhere.key == "", "the provider's key goes to nobody else"
    borrowed = settings_of(mistral, adapter, base_url="", key="")
    assert (borrowed.base_url, borrowed.key, borrowed.headers) == ("https://work/v1", "WORK_KEY", {"a": "b"})
    mixed = settings_of(mistral, adapter, base_url="http://localhost:1", key="OTHER")
    assert (mixed.base_url, mixed.key, mixed.name) == ("http://localhost:1", "OTHER", "work")


def test_an_unknown_endpoint_is_named():
    with pytest.raises(ConfigError, match=r"completion.endpoint.*llamacpp"):
        endpoint_named("lama")
