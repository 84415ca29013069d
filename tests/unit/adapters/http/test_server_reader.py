"""When a server's facts are requested: at first use, after a failure, and once its answer is a minute old."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.http.server_reader import FRESH_S, MAX_MODELS, NEAR_FRESH_S, ServerReader
from codecompanion.adapters.server_facts import NO_FACTS
from codecompanion.adapters.speed import NO_SPEED, Speed, Timings
from codecompanion.errors import AdapterError, ContextOverflow, NetworkFailed, Overloaded, RequestRejected
from tests.unit.adapters.test_server_facts import LLAMA_CPP, ROUTER

FAST, SLOW = Timings(1_000, 1.0, 100, 2.0), Timings(1_000, 2.0, 100, 4.0)
REFUSED, LOST = RequestRejected("t: no"), NetworkFailed("t: gone")
NO_JINJA = "t: tools param requires --jinja flag"


def with_status(error: AdapterError, status: int) -> AdapterError:
    """Return the error with this HTTP status."""
    error.status = status
    return error


def llama_cpp(window: int) -> dict[str, Any]:
    """Return the answer of a llama.cpp server started with this window."""
    return {**LLAMA_CPP, "default_generation_settings": {"n_ctx": window}}


class Server:
    """A server defined by its answers: errors are raised and events awaited. The test sets its clock."""

    def __init__(self, pages: dict[str, Any], **settings: Any) -> None:
        self.pages, self.asked, self.changes, self.forgotten, self.now = pages, list[str](), 0, 0, 100.0
        self.listed: list[bytes] = []
        entry = {"name": "t", "kind": "openai_compatible", "base_url": "http://127.0.0.1:1", "local_server": True}
        self.settings = AdapterSettings(
            **{**entry, "models_path": "/v1/models", "limits_path": "/props", **settings}  # type: ignore[arg-type]
        )
        self.reader = ServerReader(
            self.settings,
            self.get,
            self.post,
            take_model_list=self.listed.append,
            has_window=lambda model: self.reader.facts(model).window > 0,
            forget_model_list=self.forget,
            on_change=self.changed,
            clock=lambda: self.now,
        )

    def changed(self) -> None:
        self.changes += 1

    def forget(self) -> None:
        self.forgotten += 1

    async def get(self, path: str) -> bytes:
        self.asked.append(path)
        page = self.pages[path]
        if isinstance(page, asyncio.Event):
            await page.wait()
            page = self.pages[path]
        if isinstance(page, AdapterError):
            raise page
        return json.dumps(page).encode()

    async def post(self, path: str, body: bytes) -> bytes:
        return await self.get(f"{path} {json.loads(body)['model']}")

    async def settled(self) -> None:
        """Wait until no request is running."""
        while tasks := [task for task in self.reader._tasks.values() if not task.done()]:
            await asyncio.wait(tasks)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server({"/props": llama_cpp(4096)})
    yield one
    await one.reader.aclose()


async def test_its_speed_is_a_running_mean_until_the_connection_is_lost(server: Server) -> None:
    """After that it may be a different server or model."""
    server.reader.learn_speed(FAST, "m")
    assert server.reader.speed("m") == Speed(1_000.0, 50.0)
    server.reader.learn_speed(SLOW, "m")
    assert server.reader.speed("m") == Speed(850.0, 42.5)
    server.reader.note_failure(REFUSED)
    assert server.reader.speed("m") == Speed(850.0, 42.5)
    server.now += 1
    server.reader.note_failure(LOST)
    assert server.reader.speed("m") == NO_SPEED
    server.now += 1
    server.reader.learn_speed(SLOW, "m")
    assert server.reader.speed("m") == Speed(500.0, 25.0)


async def test_a_model_that_was_unloaded_or_whose_server_was_away_has_lost_its_prompts(server: Server) -> None:
    """The loss is reported until the model reads them again, even if the server is not queried in the meantime."""
    server.reader.read_prompt("chat", "m")
    server.pages["/props"] = {**llama_cpp(1024), "is_sleeping": True}
    server.now += 1
    await server.reader.refresh_if_stale("m")
    assert server.reader.prompt_loss("m", "chat") == "restart"
    server.now += 1
    server.reader.read_prompt("chat", "m")
    assert server.reader.prompt_loss("m", "chat") == ""
    server.now += 1
    server.reader.note_failure(REFUSED)
    assert server.reader.prompt_loss("m", "chat") == ""
    server.reader.note_failure(LOST)
    assert server.reader.prompt_loss("m", "chat") == "restart"


async def test_prompts_are_kept_of_few_models(server: Server) -> None:
    for number in range(2 * MAX_MODELS):
        server.reader.read_prompt("chat", f"m{number}")
    server.now += 1
    server.reader.note_failure(LOST)
    known = [server.reader.prompt_loss(f"m{number}", "chat") for number in range(2 * MAX_MODELS)]
    assert known == [""] * MAX_MODELS + ["restart"] * MAX_MODELS


async def test_speeds_are_kept_of_few_models_and_of_local_servers_only(server: Server) -> None:
    for number in range(2 * MAX_MODELS):
        server.reader.learn_speed(FAST, f"m{number}")
    known = [server.reader.speed(f"m{number}") != NO_SPEED for number in range(2 * MAX_MODELS)]
    assert known == [False] * MAX_MODELS + [True] * MAX_MODELS
    hosted = Server({}, local_server=False)
    hosted.reader.learn_speed(FAST, "m")
    assert hosted.reader.speed("m") == NO_SPEED


async def test_a_local_one_is_asked_before_a_request_unless_just_done(server: Server) -> None:
    """A client that reconnects on its own does not notice a restart."""
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 4096
    server.pages["/props"] = llama_cpp(1024)
    server.now += NEAR_FRESH_S - 1
    await server.reader.refresh_if_stale("m")
    assert server.asked == ["/props"]
    server.now += 2
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 1024
    assert (len(server.asked), server.changes) == (2, 2)


async def test_a_slow_one_is_not_awaited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The known facts are used until the answer arrives."""
    monkeypatch.setattr("codecompanion.adapters.http.server_reader.NEAR_WAIT_S", 0.001)
    await server.reader.refresh_if_stale("m")
    gate = server.pages["/props"] = asyncio.Event()
    server.now += NEAR_FRESH_S + 1
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 4096
    server.pages["/props"] = llama_cpp(512)
    gate.set()
    await server.settled()
    assert server.reader.facts("m").window == 512


@pytest.mark.parametrize("error", [LOST, REFUSED, ContextOverflow("t: long")])
async def test_after_a_failure_it_is_asked_again(server: Server, error: AdapterError) -> None:
    """It may be a different server."""
    await server.reader.refresh_if_stale("m")
    server.pages["/props"] = llama_cpp(8192)
    server.reader.note_failure(error)
    server.now += 1
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 8192
    await server.reader.refresh_if_stale("m")
    assert len(server.asked) == 2


async def test_a_remote_server_is_not_awaited() -> None:
    """An answer over a network may take time; it is valid for a minute."""
    server = Server({"/props": llama_cpp(4096)}, base_url="http://192.0.2.7:8080")
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 0
    await server.settled()
    assert server.reader.facts("m").window == 4096
    server.now += FRESH_S - 1
    await server.reader.refresh_if_stale("m")
    assert len(server.asked) == 1
    server.pages["/props"] = llama_cpp(1024)
    server.now += 2
    await server.reader.refresh_if_stale("m")
    await server.settled()
    assert server.reader.facts("m").window == 1024


async def test_a_silent_one_keeps_its_known_facts_and_is_asked_again(server: Server) -> None:
    """It reports no other facts, and the next request asks again."""
    await server.reader.refresh_if_stale("m")
    server.pages["/props"] = LOST
    server.reader.note_failure(LOST)
    server.now += 1
    for _ in range(2):
        await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 4096
    assert len(server.asked) == 3


async def test_a_loading_one_is_asked_until_it_is_ready(server: Server) -> None:
    """llama.cpp answers 503 until then."""
    loading = Overloaded("t: loading")
    loading.status = 503
    server.pages["/props"] = loading
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").state == "loading"
    server.pages["/props"] = llama_cpp(2048)
    await server.reader.refresh_if_stale("m")
    assert (server.reader.facts("m").state, server.reader.facts("m").window) == ("", 2048)


async def test_a_router_is_asked_about_the_used_model_without_starting_it() -> None:
    """`?model=` returns the options of that model's server; `autoload=false` prevents the router from starting it."""
    listing = {
        "data": [
            {"id": "a/b", "status": {"value": "loaded"}, "meta": {"n_ctx": 4096}},
            {"id": "c", "status": {"value": "unloaded"}},
        ]
    }
    own = "/props?model=a%2Fb&autoload=false"
    server = Server({"/props": ROUTER, "/v1/models": listing, own: llama_cpp(4096)})
    await server.reader.refresh_if_stale("a/b")
    await server.reader.refresh_if_stale("c")
    assert server.asked == ["/props", "/v1/models", own, "/props", "/v1/models"]
    facts, unloaded = server.reader.facts("a/b"), server.reader.facts("c")
    assert (facts.window, facts.slots, facts.tools) == (4096, 4, True)
    assert (unloaded.window, unloaded.state, unloaded.tools) == (0, "unloaded", None)
    assert len(server.listed) == 2


async def test_ollama_is_asked_about_loaded_models_and_abilities() -> None:
    """The window comes with the first reply; once known it stays valid while the model is not loaded."""
    running: dict[str, Any] = {"models": []}
    server = Server({"/api/ps": running, "/api/show m": {"capabilities": ["completion"]}}, limits_path="/api/ps")
    await server.reader.refresh_if_stale("m")
    assert (server.reader.facts("m").window, server.reader.facts("m").tools) == (0, False)
    running["models"] = [{"name": "m:latest", "context_length": 4096}]
    server.reader.reply_began("m")
    await server.settled()
    assert server.reader.facts("m").window == 4096
    server.reader.reply_began("m")
    running["models"] = []
    server.now += FRESH_S + 1
    await server.reader.refresh_if_stale("m")
    await server.settled()
    assert server.reader.facts("m").window == 4096
    assert server.asked.count("/api/ps") == 3


async def test_another_server_at_the_address_is_not_mistaken_for_the_previous_one() -> None:
    """After a lost connection, facts that only the previous server reported are no longer valid."""
    server = Server({"/props": {**llama_cpp(4096), "chat_template_caps": {"supports_tools": False}}})
    await server.reader.refresh_if_stale("m")
    server.pages["/props"] = {"value": 8192}
    server.reader.note_failure(LOST)
    server.now += 1
    await server.reader.refresh_if_stale("m")
    assert (server.reader.facts("m").window, server.reader.facts("m").tools) == (8192, None)


async def test_any_other_endpoint_is_asked_once_per_model() -> None:
    """A paid endpoint is not asked again, and an endpoint without an answer is not asked with every reply."""
    server = Server({"/models": {"data": []}}, local_server=False, limits_path="/models")
    await server.reader.refresh_if_stale("m")
    server.reader.note_failure(LOST)
    await server.reader.refresh_if_stale("m")
    assert server.asked == []
    for _ in range(2):
        server.reader.reply_began("m")
        await server.settled()
    assert server.asked == ["/models"]
    assert server.listed


async def test_a_request_waits_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is used once it arrives."""
    monkeypatch.setattr("codecompanion.adapters.http.server_reader.CONNECT_WAIT_S", 0.01)
    gate = asyncio.Event()
    server = Server({"/props": gate})
    await server.reader.refresh_if_stale("m")
    assert server.reader.facts("m").window == 0
    server.pages["/props"] = llama_cpp(512)
    gate.set()
    await server.settled()
    assert (server.reader.facts("m").window, server.changes) == (512, 1)


@pytest.mark.parametrize(
    ("error", "is_learned"),
    [
        (with_status(RequestRejected(NO_JINJA), 400), True),
        (with_status(Overloaded(NO_JINJA), 500), True),
        (with_status(RequestRejected(NO_JINJA), 200), False),
        (with_status(Overloaded(NO_JINJA), 502), False),
        (NetworkFailed(NO_JINJA), False),
    ],
)
async def test_only_a_refusal_shows_that_tools_are_refused(
    server: Server, error: AdapterError, is_learned: bool
) -> None:
    """llama.cpp refuses with a 500; text in a reply or from a proxy does not count."""
    assert server.reader.learn_toolless(error, "m") is is_learned
    assert (server.reader.facts("m").tools is False) is is_learned


@pytest.mark.parametrize(
    ("page", "is_kept"),
    [
        (llama_cpp(4096), True),
        (llama_cpp(8192), False),
        ({**llama_cpp(4096), "build_info": "b9999"}, False),
        ({**llama_cpp(4096), "chat_template_caps": {"supports_tools": False}}, False),
        ({**llama_cpp(4096), "is_sleeping": True}, True),
        (LOST, False),
        (with_status(Overloaded("t: loading"), 503), False),
        (with_status(RequestRejected("t: nothing there"), 404), False),
    ],
)
async def test_a_refusal_of_tools_is_forgotten_after_a_restart_of_the_server(
    server: Server, page: object, is_kept: bool
) -> None:
    """The server may have been restarted with `--jinja`.

    A client that reconnects on its own does not notice the restart.
    """
    await server.reader.refresh_if_stale("m")
    server.reader.learn_toolless(with_status(Overloaded(NO_JINJA), 500), "m")
    server.pages["/props"] = page
    server.now += NEAR_FRESH_S + 1
    await server.reader.refresh_if_stale("m")
    assert bool(server.reader.facts("m").refuses_tools) is is_kept


async def test_a_refusal_of_tools_is_forgotten_if_the_user_chooses_tools(server: Server) -> None:
    """A restart that only adds `--jinja` is not visible otherwise."""
    server.reader.learn_toolless(with_status(Overloaded(NO_JINJA), 500), "m")
    server.reader.forget_tool_refusal("m")
    assert server.reader.facts("m").tools is None


async def test_a_server_that_is_gone_is_not_mistaken_for_the_next_one(server: Server) -> None:
    """A failed request counts as a loss: the facts of the old server are not valid for the next."""
    await server.reader.refresh_if_stale("old")
    for page in (LOST, {"value": 8192}):
        server.pages["/props"] = page
        server.now += NEAR_FRESH_S + 1
        await server.reader.refresh_if_stale("m")
    facts = server.reader.facts("old")
    assert (facts.window, facts.slots, facts.tools) == (8192, 0, None)


async def test_a_different_answer_means_a_different_server(server: Server) -> None:
    """If a gateway answers on the same port, neither the facts nor the listing are valid."""
    await server.reader.refresh_if_stale("m")
    server.pages["/props"] = with_status(Overloaded("t: busy"), 500)
    server.now += NEAR_FRESH_S + 1
    await server.reader.refresh_if_stale("m")
    assert (server.reader.facts("m").window, server.forgotten) == (4096, 0)
    server.pages["/props"] = with_status(RequestRejected("t: nothing there"), 404)
    for _ in range(2):
        server.now += NEAR_FRESH_S + 1
        await server.reader.refresh_if_stale("m")
    assert (server.reader.facts("m"), server.forgotten, server.changes) == (NO_FACTS, 1, 2)


async def test_after_a_loss_the_replying_server_is_asked(server: Server) -> None:
    """The known window is that of the previous server."""
    await server.reader.refresh_if_stale("m")
    server.now += 1
    server.reader.note_failure(LOST)
    server.pages["/props"] = llama_cpp(1024)
    server.now += 1
    for _ in range(2):
        server.reader.reply_began("m")
        await server.settled()
    assert server.reader.facts("m").window == 1024
    assert len(server.asked) == 2


async def test_such_a_server_at_a_public_address_is_asked_once() -> None:
    """For Ollama's own service or a hosted vLLM, each request may cost money."""
    server = Server({"/v1/models": {"data": []}}, base_url="https://ollama.com", limits_path="/v1/models")
    for _ in range(2):
        await server.reader.refresh_if_stale("m")
        server.reader.reply_began("m")
        await server.settled()
        server.reader.note_failure(LOST)
        server.now += FRESH_S + 1
    assert server.asked == ["/v1/models"]
    assert server.reader.facts("m") == NO_FACTS
