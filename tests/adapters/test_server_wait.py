"""Tests of the wait for a local server that starts or loads its model: nothing was sent, and the user sees the wait."""

from __future__ import annotations

import socket
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, RetryScheduled
from codecompanion.adapters.errors.error_map import Endpoint, error_from_status
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.http.server_wait import LOAD_LIMIT_S, START_LIMIT_S, ServerWait
from codecompanion.adapters.registry import is_out_of_reach, make_wire
from codecompanion.errors import NetworkFailed, Overloaded, RequestRejected, ServerLoading
from codecompanion.model.messages import ImagePart, Message
from tests.adapters.conftest import MakeAdapter, collect, request
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.answers import counted
from tests.providers.chat.counting import LLAMA_CPP
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.answers import json_answer

LOADING = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
LOCAL: dict[str, Any] = {
    "formatted_name": "llama.cpp",
    "local_server": True,
    "start_command": "llama-server -m model.gguf",
}


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        return int(closed.getsockname()[1])


def away(port: int) -> str:
    return f"no server at 127.0.0.1:{port} yet, start it with: llama-server -m model.gguf"


async def test_a_server_that_starts_late_gets_the_message(make_adapter: MakeAdapter) -> None:
    """The message is refused twice, then the model loads, then the reply arrives; none of it counts as a retry."""
    server, port = ChatServer([json_answer(LOADING, status=503)] * 9 + [counted("Hello")]), free_port()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            await server.start(port)

    adapter = make_adapter(f"http://127.0.0.1:{port}/v1", sleep=sleep, max_retries=1, **LOCAL)
    try:
        outcome = await collect(adapter)
    finally:
        await server.close()
    assert outcome.text == "Hello", outcome.error
    loading = "llama.cpp is loading the model"
    assert [retry.waiting for retry in outcome.retries] == [away(port)] * 2 + [loading] * 9
    assert waits == [1.0] * 11
    assert {retry.attempt for retry in outcome.retries} == {1}


async def test_a_server_that_starts_late_is_also_awaited_if_it_names_the_model(make_adapter: MakeAdapter) -> None:
    """Adapters for local servers name no model, so the model list is requested first."""
    server, port = ChatServer([counted("Hello")]), free_port()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            await server.start(port)

    adapter = make_adapter(f"http://127.0.0.1:{port}/v1", sleep=sleep, model="", models_path="/models", **LOCAL)
    try:
        outcome = await collect(adapter, request(model=""))
    finally:
        await server.close()
    assert outcome.text == "Hello", outcome.error
    assert [retry.waiting for retry in outcome.retries] == [away(port)] * 3


async def test_the_model_of_a_server_that_starts_late_is_awaited(make_adapter: MakeAdapter) -> None:
    server, port = ChatServer(models=("llama3",)), free_port()
    looks = list[RetryScheduled]()

    async def sleep(_: float) -> None:
        if len(looks) == 3:
            await server.start(port)

    adapter = make_adapter(f"http://127.0.0.1:{port}/v1", sleep=sleep, model="", models_path="/models", **LOCAL)
    try:
        assert await adapter.find_model(looks.append) == "llama3"
    finally:
        await server.close()
    assert [look.waiting for look in looks] == [away(port)] * 3


@pytest.mark.parametrize("is_shown", [True, False])
async def test_a_count_waits_for_a_server_that_starts_late_where_that_is_shown(is_shown: bool) -> None:
    """A count in the background does not wait, because the user would not see the reason."""
    server, port = AnthropicServer(), free_port()
    waits, looks = list[float](), list[RetryScheduled]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 9:
            await server.start(port)

    entry = AdapterSettings(
        name="test", kind="anthropic", base_url=f"http://127.0.0.1:{port}", key="K", max_retries=2, **LOCAL
    )
    adapter = HttpAdapter(entry, make_wire(entry, lambda _: b""), read_key=lambda _: "sk-test", sleep=sleep)
    asked = request(Message(id="u", role="user", content="Hello"), model="claude-sonnet-4-6")
    try:
        if is_shown:
            assert await adapter.count_tokens(asked, looks.append) > 0
        else:
            with pytest.raises(RequestRejected, match="is not loaded"):
                await adapter.count_tokens(asked)
    finally:
        await adapter.aclose()
        if is_shown:
            await server.close()
    assert [look.waiting for look in looks] == [away(port)] * (9 if is_shown else 0)
    assert len(waits) == (9 if is_shown else 0)


async def test_a_count_also_waits_until_the_server_names_the_model(make_adapter: MakeAdapter) -> None:
    """An entry without a model reads the list of models first, which a server that is not running cannot send."""
    pages = {"/props": {"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1, "build_info": "b9000"}}
    server, port = ChatServer(counts=LLAMA_CPP, pages=pages), free_port()
    waits, looks = list[float](), list[RetryScheduled]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            await server.start(port)

    entry = {**LOCAL, "limits_path": "/props", "chat_path": "/v1/chat/completions", "models_path": "/v1/models"}
    adapter = make_adapter(f"http://127.0.0.1:{port}", sleep=sleep, model="", **entry)
    with pytest.raises(NetworkFailed):
        await adapter.count_tokens(request(model=""))
    try:
        assert await adapter.count_tokens(request(model=""), looks.append) > 0
    finally:
        await server.close()
    assert [look.waiting for look in looks] == [away(port)] * 3


async def test_a_server_that_never_starts_is_reported_with_its_command(make_adapter: MakeAdapter) -> None:
    """The error is reported after a minute, because the server may not be running at all."""
    port, waits = free_port(), list[float]()
    outcome = await collect(make_adapter(f"http://127.0.0.1:{port}/v1", waits=waits, **LOCAL))
    assert sum(waits) == START_LIMIT_S
    assert str(outcome.error) == (
        f"test: no connection to http://127.0.0.1:{port}/v1 (connection refused)."
        " Start the server with: llama-server -m model.gguf"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_another_entry_on_this_machine_is_retried_as_usual(make_adapter: MakeAdapter, host: str) -> None:
    """It may be a proxy; its start command is unknown."""
    outcome = await collect(make_adapter(f"http://{host}:{free_port()}/v1", max_retries=2))
    assert [retry.waiting for retry in outcome.retries] == ["", ""]
    assert str(outcome.error).endswith("(connection refused). Start the server, or check env.url.")


@pytest.mark.parametrize(
    ("message", "is_loading"),
    [
        ("Loading model", True),
        ("Model HuggingFaceH4/zephyr is currently loading", True),
        ("The model is overloaded", False),
        ("error loading model: out of memory", False),
        ("Failed while loading the model", False),
        ("Service unavailable", False),
    ],
)
def test_a_loading_server_is_recognised(message: str, is_loading: bool) -> None:
    """Other servers that answer 503 are overloaded; the error message shows the difference."""
    error = error_from_status(503, {"error": {"message": message}}, {}, Endpoint(name="test"))
    assert type(error) is (ServerLoading if is_loading else Overloaded)
    entry = AdapterSettings(name="test", kind="openai_compatible", base_url="http://127.0.0.1:1")
    assert is_out_of_reach(entry, error) is is_loading
    assert not is_loading or error.brief == "loading the model"


def test_a_loading_provider_elsewhere_is_retried_as_usual() -> None:
    """There is no endless wait for a remote server."""
    far = AdapterSettings(
        name="far", kind="openai_compatible", base_url="https://api.example.com/v1", local_server=True
    )
    refused = NetworkFailed("x")
    refused.nobody_listens = True
    assert ServerWait(far).reason(ServerLoading("x")) == ServerWait(far).reason(refused) == ""


NEAR = AdapterSettings(name="near", kind="openai_compatible", base_url="http://127.0.0.1:1", local_server=True)


def test_a_loading_server_is_awaited_without_limit_only_on_this_machine() -> None:
    """Loading large weights takes time; the state of a remote server is unknown."""
    lan = ServerWait(msgspec.structs.replace(NEAR, base_url="http://192.168.1.7:8080"))
    looks = range(int(LOAD_LIMIT_S))
    assert all(lan.reason(ServerLoading("x")) for _ in looks)
    assert lan.has_ended
    assert not lan.reason(ServerLoading("x"))
    near = ServerWait(NEAR)
    assert all(near.reason(ServerLoading("x")) for _ in (*looks, *looks))


@pytest.mark.parametrize(("wished", "pause"), [(None, 1.0), (0.2, 1.0), (20.0, 20.0), (3_600.0, None)])
def test_a_loading_server_is_polled_at_its_own_interval(wished: float | None, pause: float | None) -> None:
    """A server that requests an hour is not waited for."""
    wait = ServerWait(NEAR)
    assert bool(wait.reason(ServerLoading("x", wished))) is (pause is not None)
    assert pause is None or wait.look_every_s == pause


def test_without_retries_no_server_is_awaited() -> None:
    """`max_retries` 0."""
    refused = NetworkFailed("x")
    refused.nobody_listens = True
    wait = ServerWait(msgspec.structs.replace(NEAR, max_retries=0))
    assert wait.reason(ServerLoading("x")) == wait.reason(refused) == ""


async def test_the_time_limit_of_a_reply_includes_the_wait(make_adapter: MakeAdapter) -> None:
    """`timeout_s`."""
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async with ChatServer(default=lambda _: json_answer(LOADING, status=503)) as server:
        adapter = make_adapter(server.url, sleep=sleep, clock=lambda: now, timeout_s=5.0, **LOCAL)
        outcome = await collect(adapter)
    assert type(outcome.error) is ServerLoading
    assert now == 5.0


async def test_facts_from_a_restarted_server_apply_to_the_waiting_request(
    make_adapter: MakeAdapter,
) -> None:
    """It was restarted with a model that accepts no images."""
    props: dict[str, Any] = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": True}}
    image = Message(id="u", role="user", content=(ImagePart(url="data:image/png;base64,AAAA", path="a.png"),))
    script = [json_answer(LOADING, status=503), counted("ok")]

    async def sleep(_: float) -> None:
        props["modalities"] = {"vision": False}

    async with ChatServer(script, pages={"/v1/props": props}) as server:
        adapter = make_adapter(server.url, sleep=sleep, limits_path="/props", **LOCAL)
        await adapter.know_server("test-model")
        assert (await collect(adapter, request(image))).text == "ok"
        sent = [str(seen.json["messages"]) for seen in server.requests if seen.method == "POST"]
    assert ["was not sent" in text for text in sent] == [False, True]
