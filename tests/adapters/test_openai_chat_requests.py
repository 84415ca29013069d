"""The content and the recipient of requests, and data that is never sent (lesson 44)."""

from __future__ import annotations

import asyncio
import json
import logging
import traceback

import pytest

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.keys.redact import HIDDEN
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.errors import (
    MissingKey,
    NetworkFailed,
)
from codecompanion.model.messages import ImagePart, Message, ReasoningPart, TextPart, ToolCall
from tests.adapters.conftest import KEY, WEATHER, MakeAdapter, collect, request, user
from tests.providers.chat.answers import failure, plain, reply, whole_reply
from tests.providers.chat.server import ChatServer
from tests.providers.chat.thread import ChatServerThread
from tests.transport import IS_SDK


async def test_reasoning_is_sent_back_only_to_endpoints_that_want_it(make_adapter: MakeAdapter) -> None:
    """OpenAI refuses unknown keys in messages; DeepSeek's thinking mode wants its own field back."""
    parts = (ReasoningPart("hm", "reasoning_content"), TextPart("Yes."))
    history = (user(), Message(id="a", role="assistant", content=parts), user("Sure?", 1))
    async with ChatServer() as server:
        assert (await collect(make_adapter(server.url), request(*history))).error is None
        assert "reasoning_content" not in server.requests[0].json["messages"][1]
    async with ChatServer(reasoning_fields=("reasoning_content",)) as server:
        adapter = make_adapter(server.url, options=RenderOptions(send_reasoning=True))
        assert (await collect(adapter, request(*history))).error is None
        assert server.requests[0].json["messages"][1]["reasoning_content"] == "hm"


async def test_an_image_is_sent_as_a_data_url(make_adapter: MakeAdapter) -> None:
    """Blobs are read by their hash; a URL is passed through."""
    content = (TextPart("What is this?"), ImagePart(sha256="abc", path="a.png"), ImagePart(url="https://x.test/b.png"))
    async with ChatServer([reply("A cat.")]) as server:
        adapter = make_adapter(server.url, blobs={"abc": b"\x89PNG"})
        assert (await collect(adapter, request(Message(id="u", role="user", content=content)))).text == "A cat."
        sent = server.requests[0].json["messages"][0]["content"]
    assert [part.get("image_url", {}).get("url") for part in sent] == [
        None,
        "data:image/png;base64,iVBORw==",
        "https://x.test/b.png",
    ]


async def test_a_missing_image_does_not_stop_the_chat(make_adapter: MakeAdapter) -> None:
    """The model gets a sentence in place of the missing blob, so that nothing is hidden from it."""
    content = (TextPart("What is this?"), ImagePart(sha256="gone", path="a.png"))
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(Message(id="u", role="user", content=content)))
        sent = server.requests[0].json["messages"][0]["content"]
    assert outcome.error is None
    assert sent[1] == {"type": "text", "text": "[The image a.png cannot be read.]"}


async def test_a_broken_history_is_repaired_before_sending(
    make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """Lesson 25: an orphaned call or result would make every later request fail; the repair is logged."""
    history = (
        user(),
        Message(id="o", role="tool", content="left over", tool_call_id="gone"),
        Message(id="a", role="assistant", tool_calls=(ToolCall("c1", "weather"), ToolCall("c2", "weather"))),
        Message(id="r", role="tool", content="sunny", tool_call_id="c2"),
        user("And now?", 1),
        Message(id="e", role="assistant", content=""),
        user("Well?", 2),
    )
    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url), request(*history, tools=(WEATHER,), chat_id="c"))
        sent = server.requests[0].json["messages"]
    assert outcome.error is None
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [message["tool_call_id"] for message in sent[2:4]] == ["c1", "c2"]
    assert "Interrupted" in sent[2]["content"]
    assert "request repaired before sending" in caplog.text


async def test_parameters_headers_and_limits_reach_the_endpoint(make_adapter: MakeAdapter) -> None:
    """All configured values are part of the request."""
    async with ChatServer() as server:
        adapter = make_adapter(
            server.url,
            parameters={"temperature": 0.2},
            headers={"X-Title": "nvim", "api-key": "${api_key}"},
            max_output_tokens=500,
            max_tokens_field="max_tokens",
            parallel_tool_calls=False,
        )
        assert (await collect(adapter, request(tools=(WEATHER,)))).error is None
        assert (await collect(adapter, request(max_output_tokens=30))).error is None
        first, second = (seen.json for seen in server.requests)
        headers = server.requests[0].headers
    assert (first["temperature"], first["max_tokens"], second["max_tokens"]) == (0.2, 500, 30)
    assert first["parallel_tool_calls"] is False
    assert first["stream_options"] == {"include_usage": True}
    assert first["tools"][0]["function"]["name"] == "weather"
    assert (headers["x-title"], headers["api-key"], headers["authorization"]) == ("nvim", KEY, f"Bearer {KEY}")


async def test_the_query_of_address_and_path_is_sent(make_adapter: MakeAdapter) -> None:
    """Azure requires `?api-version=…`, which users may put in the URL or in the path."""
    async with ChatServer() as server:
        assert (await collect(make_adapter(f"{server.url}?api-version=1&flag="))).error is None
        assert (await collect(make_adapter(server.url, chat_path="/chat/completions?api-version=2"))).error is None
        assert [seen.query for seen in server.requests] == ["api-version=1&flag=", "api-version=2"]


async def test_an_endpoint_without_a_key_gets_no_authorization(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables about an OpenAI account are not sent to a local server."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.test")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Corp: hidden\nAuthorization: Bearer sk-custom")
    async with ChatServer(key="") as server:
        assert (await collect(make_adapter(server.url, key=""))).error is None
        headers = server.requests[0].headers
    assert "authorization" not in headers
    assert not {"openai-organization", "openai-project", "x-corp"} & set(headers)


async def test_a_missing_key_stops_the_request(make_adapter: MakeAdapter) -> None:
    """The key reader's error reaches the user unchanged."""

    def refuse(_: object) -> str:
        raise MissingKey("test: no API key: the environment variable TEST_KEY is not set.")

    async with ChatServer() as server:
        outcome = await collect(make_adapter(server.url, read_key=refuse))
        with pytest.raises(MissingKey):
            await make_adapter(server.url, read_key=refuse).require_key()
        assert server.requests == []
    assert isinstance(outcome.error, MissingKey)


async def test_a_key_is_read_once(make_adapter: MakeAdapter) -> None:
    """Checking for a key also reads it for the request."""
    asked: list[str] = []

    def read(_: object) -> str:
        asked.append("")
        return "sk-test"

    async with ChatServer([reply("Hello")]) as server:
        adapter = make_adapter(server.url, read_key=read)
        await adapter.require_key()
        assert (await collect(adapter)).text == "Hello"
    assert len(asked) == 1


async def test_a_server_on_this_machine_needs_no_proxy(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `HTTP_PROXY` in the environment cannot reach Ollama."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with ChatServer([reply("Hello")]) as server:
        assert (await collect(make_adapter(server.url))).text == "Hello"
        through = await collect(make_adapter(server.url, proxy="http://127.0.0.1:9", max_retries=0))
    assert isinstance(through.error, NetworkFailed)


async def test_one_connection_serves_a_whole_tool_loop(make_adapter: MakeAdapter) -> None:
    """A TLS handshake per step would cost more than everything else here."""
    async with ChatServer(
        [reply("a"), reply("b", done=False), whole_reply("c"), failure(400, "no"), reply("d")]
    ) as server:
        adapter = make_adapter(server.url)
        for _ in range(5):
            await collect(adapter)
        assert len(server.requests) == 5
        assert server.connections == 1


async def test_models_are_listed_in_order(make_adapter: MakeAdapter) -> None:
    """The picker shows them sorted; without a list, the configured models are used."""
    async with ChatServer(models=("b", "a")) as server:
        assert await make_adapter(server.url).list_models() == ["a", "b"]
        assert await make_adapter(server.url, models_path="/nothing", models=("m",)).list_models() == ["m"]


async def test_without_a_model_the_first_of_the_list_is_used(make_adapter: MakeAdapter) -> None:
    """A local server usually has one."""
    async with ChatServer(models=("llama3", "qwen")) as server:
        adapter = make_adapter(server.url)
        assert (await collect(adapter, request(model=""))).error is None
        assert server.requests[1].json["model"] == "llama3"
        assert adapter.default_model == "llama3"


async def test_the_key_is_visible_nowhere(
    make_adapter: MakeAdapter, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lesson 44: no text, repr, log line or traceback contains it, even if the provider echoes it."""
    secret, header_secret = "planted-key-without-a-known-shape-31337", "planted-header-value-4711"
    url_secret = "planted-in-the-address-2718"
    caplog.set_level(logging.DEBUG)
    echo = f"bad key {secret} with {header_secret} at {url_secret}"
    event = b'data: {"error": {"message": "%s"}}\n\n' % echo.encode()
    script = [
        failure(400, echo),
        failure(429, echo),
        failure(500, echo),
        plain(event),
        reply("x", insert=event, insert_at=2),
        plain(f"<html><title>{secret}</title>".encode(), content_type="text/html"),
        reply("x", break_after=2),
        reply("ok"),
    ]
    seen: list[str] = []
    foreign: list[BaseException | None] = []
    async with ChatServer(script, key="", echo_key=True) as server:
        address = f"{server.url}?token={url_secret}"
        adapter = make_adapter(address, key=secret, max_retries=0, headers={"X-Extra": header_secret})
        for _ in range(8):
            try:
                async for event_seen in adapter.stream(request()):
                    seen.append(repr(event_seen))
            except Exception as error:
                seen.extend([str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))])
                foreign.extend([error.__cause__, error.__context__])
        seen.extend([repr(adapter), str(adapter)])
        assert server.requests[0].headers["x-extra"] == header_secret
        assert server.requests[0].query == f"token={url_secret}"
        assert len(server.requests) == 8
        assert all(received.headers["authorization"] == f"Bearer {secret}" for received in server.requests)
    async with ChatServer(echo_key=True) as server:
        outcome = await collect(make_adapter(server.url, key=secret))
        seen.extend([str(outcome.error), repr(outcome.error)])
    everything = "\n".join([*seen, caplog.text, *(repr(record.__dict__) for record in caplog.records)])
    assert len(seen) > 20
    assert not any(foreign)
    # The echoes really came through, with the keys taken out.
    assert sum(text.count(f"bad key {HIDDEN} with {HIDDEN} at {HIDDEN}") for text in seen) >= 5
    assert secret not in everything
    assert header_secret not in everything
    assert url_secret not in everything


async def test_the_sdk_is_imported_in_a_thread_and_only_once(make_adapter: MakeAdapter) -> None:
    """Two simultaneous requests share the client being created."""
    async with ChatServer() as server:
        adapter = make_adapter(server.url)
        await asyncio.gather(adapter.warm_up(), collect(adapter), collect(adapter))
        client = adapter._connection._exchange
        await adapter.warm_up()
        assert adapter._connection._exchange is client


def test_the_adapter_works_in_a_new_event_loop() -> None:
    """The command line may run several loops in sequence."""

    async def once(adapter: HttpAdapter) -> str:
        outcome = await collect(adapter, request(user("hi")))
        await adapter.aclose()
        return outcome.text

    with ChatServerThread() as server:
        settings = AdapterSettings(name="t", kind="openai_compatible", base_url=server.url)
        adapter = HttpAdapter(settings, OpenAIChat(settings, lambda _: b""), read_key=lambda _: KEY)
        assert [asyncio.run(once(adapter)) for _ in range(2)] == ["You said: hi"] * 2


def test_ten_thousand_messages_are_rendered_once() -> None:
    """The next request of a chat renders only new messages; the bytes equal those without the cache."""
    settings = AdapterSettings(name="t", kind="openai_compatible")
    renderer = ChatRenderer(settings, RenderOptions(), lambda _: b"")
    rendered: list[str] = []
    original = renderer._render_message
    renderer._render_message = lambda message, *rest: rendered.append(message.id) or original(message, *rest)  # type: ignore[method-assign, func-returns-value]
    messages = [user(f"message {number}", number) for number in range(10_000)]
    renderer.render(request(*messages, chat_id="c"))
    assert len(rendered) == 10_000
    rendered.clear()
    messages = [*messages[:10], *messages[11:], user("new", 10_000)]
    body = b"".join(renderer.render(request(*messages, chat_id="c")))
    assert rendered == ["u10000"]
    fresh = b"".join(ChatRenderer(settings, RenderOptions(), lambda _: b"").render(request(*messages)))
    assert body == fresh
    assert len(json.loads(body)["messages"]) == 10_000


async def test_environment_variables_for_openai_are_sent_to_openai_alone(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in OpenAI's own SDK, except that a key among the headers is ignored.

    No request claims to come from that SDK.
    """
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Corp: mine\nAuthorization: Bearer sk-custom\nno header")
    async with ChatServer(key="") as server:
        assert (await collect(make_adapter(server.url, kind="openai", key=""))).error is None
        headers = server.requests[0].headers
    assert (headers["openai-organization"], headers["openai-project"]) == ("org-mine", "proj-mine")
    assert headers["x-corp"] == "mine"
    assert "authorization" not in headers
    if not IS_SDK:
        assert headers["user-agent"].startswith("codecompanion/")
        assert not [name for name in headers if name.startswith("x-stainless")]
