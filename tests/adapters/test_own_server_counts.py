"""Tests that the user's own servers, llama.cpp and vLLM, count a prompt for free."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.errors import AdapterError, RequestRejected
from tests.adapters.conftest import WEATHER, MakeAdapter, collect, request, user
from tests.providers.chat.counting import LLAMA_CPP, VLLM
from tests.providers.chat.rules import count_tokens
from tests.providers.chat.server import ChatServer

PROPS = {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "build_info": "b9000"}
MODELS = {"object": "list", "data": [{"id": "test-model", "owned_by": "vllm", "max_model_len": 8192}]}
OWN: dict[str, Any] = {"local_server": True, "chat_path": "/v1/chat/completions", "models_path": "/v1/models"}


def own(make_adapter: MakeAdapter, server: ChatServer, limits_path: str, **settings: Any) -> Any:
    """Return an adapter like the built-in entries of such servers."""
    return make_adapter(server.url.removesuffix("/v1"), limits_path=limits_path, **{**OWN, **settings})


@pytest.mark.parametrize(
    ("path", "limits_path", "pages"),
    [(LLAMA_CPP, "/props", {"/props": PROPS}), (VLLM, "/v1/models", {"/v1/models": MODELS})],
)
async def test_a_server_of_the_users_own_counts_the_prompt(
    make_adapter: MakeAdapter, path: str, limits_path: str, pages: dict[str, Any]
) -> None:
    """The count covers the template's input and the user's settings for it, and equals the count in the reply."""
    told = {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 0.5}
    async with ChatServer(counts=path, pages=pages, extra_arguments=("chat_template_kwargs",)) as server:
        adapter = own(make_adapter, server, limits_path, parameters=told)
        assert adapter.counts_tokens("test-model")
        asked = request(user("Is it going to rain?"), tools=(WEATHER,), chat_id="c")
        count = await adapter.count_tokens(asked)
        sent = [seen for seen in server.requests if seen.path == path]
        outcome = await collect(adapter, asked)
    assert [seen.json["chat_template_kwargs"] for seen in sent] == [told["chat_template_kwargs"]]
    assert count == count_tokens(sent[0].json) == outcome.finished.usage.prompt_tokens


@pytest.mark.parametrize(
    ("path", "pages"), [(LLAMA_CPP, {"/props": PROPS, "/v1/models": MODELS}), (VLLM, {"/v1/models": MODELS})]
)
async def test_a_recognised_server_counts_too(make_adapter: MakeAdapter, path: str, pages: dict[str, Any]) -> None:
    """An `openai_compatible` entry for a server on this machine does not have to name the server."""
    if path == LLAMA_CPP:
        pages = {**pages, "/v1/models": {"object": "list", "data": [{"id": "test-model", "owned_by": "llamacpp"}]}}
    async with ChatServer(counts=path, pages=pages) as server:
        adapter = make_adapter(server.url)
        assert not adapter.counts_tokens("test-model")
        await adapter.know_server("test-model")
        assert adapter.counts_tokens("test-model")
        asked = request(user("Is it going to rain?"))
        count = await adapter.count_tokens(asked)
        outcome = await collect(adapter, asked)
    assert count == outcome.finished.usage.prompt_tokens


async def test_a_server_that_does_not_count_is_asked_once(make_adapter: MakeAdapter) -> None:
    """An older llama.cpp or koboldcpp does not count; after a restart another server may run, so it is asked again."""
    async with ChatServer(pages={"/props": PROPS}) as server:
        adapter = own(make_adapter, server, "/props")
        with pytest.raises(RequestRejected, match="404"):
            await adapter.count_tokens(request())
        assert not adapter.counts_tokens("test-model")
        del server.pages["/props"]
        await adapter.know_server("another")
        assert adapter.counts_tokens("test-model")


@pytest.mark.parametrize("props", [{**PROPS, "is_sleeping": True}, None])
async def test_a_server_that_sleeps_or_is_away_is_not_woken_by_a_count(
    make_adapter: MakeAdapter, props: dict[str, Any] | None
) -> None:
    """llama.cpp loads its model for any other request, which only a message justifies."""
    async with ChatServer(counts=LLAMA_CPP, pages={"/props": props} if props else {}) as server:
        adapter = own(make_adapter, server, "/props")
        with pytest.raises(RequestRejected, match="not loaded"):
            await adapter.count_tokens(request())
        assert [seen.path for seen in server.requests] == ["/props"]
        assert adapter.counts_tokens("test-model")


@pytest.mark.parametrize(
    "settings",
    [
        {"limits_path": "/api/ps"},  # Ollama
        {"local_server": False, "limits_path": "/props"},
        {"base_url": "https://llama.example.com", "limits_path": "/props"},
        {"chat_path": "/chat/completions", "limits_path": "/v1/models"},  # the path of `/tokenize` is unknown
    ],
)
def test_others_are_not_asked(make_adapter: MakeAdapter, settings: dict[str, Any]) -> None:
    """Other endpoints may charge for a count."""
    url = settings.pop("base_url", "http://127.0.0.1:1")
    assert not make_adapter(url, **{**OWN, **settings}).counts_tokens("test-model")


async def test_a_gateway_on_this_machine_is_not_asked(make_adapter: MakeAdapter) -> None:
    """LiteLLM forwards requests to providers that bill them."""
    listed = {"data": [{"id": "test-model", "owned_by": "openai"}]}
    async with ChatServer(counts=VLLM, pages={"/v1/models": listed}) as server:
        adapter = own(make_adapter, server, "/v1/models")
        await adapter.list_models()
        assert not adapter.counts_tokens("test-model")


async def test_an_answer_without_a_count_is_ignored(make_adapter: MakeAdapter) -> None:
    """The error for the log is one sentence."""
    async with ChatServer(counts=LLAMA_CPP, pages={"/props": PROPS}) as server:
        adapter = own(make_adapter, server, "/props")
        assert adapter._wire.read_count(b"{}") is None
        assert adapter._wire.read_count(b"[") is None
        adapter._wire.read_count = lambda body: None
        with pytest.raises(AdapterError, match="contains no token count"):
            await adapter.count_tokens(request())
