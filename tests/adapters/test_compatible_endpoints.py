"""Differences between compatible endpoints, over HTTP: refusals, required fields, reported windows."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from codecompanion.adapters.errors.error_map import error_from_status
from codecompanion.adapters.http import recognise_server
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.render import FOREIGN_CALL, RenderOptions
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import DocumentPart, ImagePart, Message, ReasoningPart, TextPart, ToolCall
from codecompanion.session.accounts.local_models import runs_on_own_server
from tests.adapters.conftest import WEATHER, MakeAdapter, collect, request, user
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import Answer, failure, json_answer, reply
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.answers import DROP
from tests.providers.loopback.server import Received

DEEPSEEK = RenderOptions(send_reasoning="tool_turns", reasoning_field="reasoning_content")


def assistant(message_id: str, *parts: Any, calls: tuple[ToolCall, ...] = ()) -> Message:
    return Message(id=message_id, role="assistant", content=parts, tool_calls=calls)


def result(call_id: str) -> Message:
    return Message(id=f"r{call_id}", role="tool", content="sunny", tool_call_id=call_id)


def tool_turn(reasoning: str = "Look it up.", field: str = "reasoning_content") -> tuple[Message, ...]:
    """Return a turn with a tool call, then one without."""
    return (
        user(),
        assistant("a1", ReasoningPart(reasoning, field), calls=(ToolCall("c1", "weather"),)),
        result("c1"),
        assistant("a2", ReasoningPart("Sunny.", field), TextPart("Take a hat.")),
        user("Thanks", 1),
        assistant("a3", ReasoningPart("Polite.", field), TextPart("Welcome.")),
        user("Bye", 2),
    )


def reasoning_sent(body: dict[str, Any]) -> list[str | None]:
    return [m.get("reasoning_content") for m in body["messages"] if m["role"] == "assistant"]


async def test_only_reasoning_of_tool_turns_is_sent_back(make_adapter: MakeAdapter) -> None:
    """DeepSeek's rule; later requests send the same bytes, so that its cache hits (lesson 22)."""
    async with ChatServer(reasoning_fields=("reasoning_content",)) as server:
        adapter = make_adapter(server.url, options=DEEPSEEK)
        history = tool_turn(field="reasoning")
        assert (await collect(adapter, request(*history[:3], tools=(WEATHER,), chat_id="c"))).error is None
        assert (await collect(adapter, request(*history, tools=(WEATHER,), chat_id="c"))).error is None
        first, second = (seen.json for seen in server.requests)
    assert reasoning_sent(first) == ["Look it up."]
    assert reasoning_sent(second) == ["Look it up.", "Sunny.", None]
    assert second["messages"][:3] == first["messages"]


def asks_for_reasoning(seen: Received) -> Answer:
    """Answer like DeepSeek's thinking mode: every message with a tool call must have a `reasoning_content` field."""
    for message in seen.json["messages"]:
        if message.get("tool_calls") and "reasoning_content" not in message:
            return failure(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")
    return reply("ok")


@pytest.mark.parametrize("part", [ReasoningPart("Hm."), ReasoningPart("Hm.", origin="anthropic@x", encrypted="{}")])
async def test_an_endpoint_that_requires_reasoning_gets_it_or_an_empty_one(
    make_adapter: MakeAdapter, part: ReasoningPart
) -> None:
    """The same applies to a chat begun with another provider: its encrypted reasoning is not sent to others (R-542)."""
    history = (user(), assistant("a", part, calls=(ToolCall("c1", "weather"),)), result("c1"))
    async with ChatServer(reasoning_fields=("reasoning_content",), default=asks_for_reasoning) as server:
        adapter = make_adapter(server.url)
        for _ in range(2):
            assert (await collect(adapter, request(*history, tools=(WEATHER,), chat_id="c"))).text == "ok"
        sent = [reasoning_sent(seen.json) for seen in server.requests]
    wanted = "" if part.origin else "Hm."
    assert sent == [[None], [wanted], [wanted]]


@pytest.mark.parametrize(
    ("said", "field", "settings"),
    [
        ("Unrecognized request argument supplied: stream_options", "stream_options", {}),
        ("Unknown parameter: 'parallel_tool_calls'.", "parallel_tool_calls", {"parallel_tool_calls": True}),
        (
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            "max_tokens",
            {"max_tokens_field": "max_tokens", "max_output_tokens": 100},
        ),
    ],
)
async def test_refused_parameters_are_left_out_and_remembered(
    make_adapter: MakeAdapter, said: str, field: str, settings: dict[str, Any]
) -> None:
    """Each parameter is refused once per model; the user sees an answer, not the refusal."""
    waits: list[float] = []

    def answer(seen: Received) -> Answer:
        return failure(400, said) if field in seen.json else reply("ok")

    async with ChatServer(default=answer) as server:
        adapter = make_adapter(server.url, waits=waits, **settings)
        outcomes = [await collect(adapter, request(tools=(WEATHER,))) for _ in range(2)]
        sent = [seen.json for seen in server.requests]
    assert [outcome.text for outcome in outcomes] == ["ok", "ok"]
    assert [field in body for body in sent] == [True, False, False]
    assert outcomes[0].retries == []
    assert waits == []
    if field == "max_tokens":
        assert sent[1]["max_completion_tokens"] == 100


async def test_an_endpoint_lacking_several_features_answers_in_the_end(make_adapter: MakeAdapter) -> None:
    """The features are dropped one after the other within one user request."""

    def answer(seen: Received) -> Answer:
        for field in ("stream_options", "parallel_tool_calls"):
            if field in seen.json:
                detail = [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}]
                return json_answer({"detail": detail}, status=422)
        return reply("ok")

    async with ChatServer(default=answer) as server:
        adapter = make_adapter(server.url, parallel_tool_calls=False)
        assert (await collect(adapter, request(tools=(WEATHER,)))).text == "ok"
        assert len(server.requests) == 3


async def test_a_different_refusal_is_not_retried(make_adapter: MakeAdapter) -> None:
    """The user sees the refusal."""
    async with ChatServer([failure(400, "Unknown parameter: 'temperatur'.")]) as server:
        outcome = await collect(make_adapter(server.url))
        assert len(server.requests) == 1
    assert isinstance(outcome.error, RequestRejected)


GEMINI = {"google": {"thought_signature": "Q2lBQQ=="}}


async def test_a_thought_signature_is_sent_back_only_to_its_endpoint(make_adapter: MakeAdapter) -> None:
    """Gemini refuses its own calls without it; other endpoints get the bare call."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [{**call, "extra_content": GEMINI}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
    stream = Answer(parts=(body,), content_type="text/event-stream")
    async with ChatServer([stream], call_fields=("extra_content",)) as google:
        gemini = make_adapter(google.url)
        (made,) = (await collect(gemini, request(tools=(WEATHER,)))).finished.tool_calls
        history = (user(), Message(id="a", role="assistant", tool_calls=(made,)), result("c1"))
        for send_encrypted in (True, False):
            wanted = request(*history, tools=(WEATHER,), chat_id="c", send_encrypted=send_encrypted)
            assert (await collect(gemini, wanted)).error is None
        back = [seen.json["messages"][1]["tool_calls"][0].get("extra_content") for seen in google.requests[1:]]
    assert back == [GEMINI, None]
    async with ChatServer() as other:
        elsewhere = make_adapter(other.url.replace("127.0.0.1", "localhost"))
        assert (await collect(elsewhere, request(*history, tools=(WEATHER,)))).error is None
        assert "extra_content" not in other.requests[0].json["messages"][1]["tool_calls"][0]


async def test_calls_of_another_model_are_marked_for_gemini_on_request(make_adapter: MakeAdapter) -> None:
    """Only the first of parallel calls is marked, as documented for histories from other providers."""

    def answer(seen: Received) -> Answer:
        calls = seen.json["messages"][1]["tool_calls"]
        if "extra_content" not in calls[0]:
            return failure(400, "Function call is missing a thought_signature in functionCall parts.")
        return reply("ok")

    calls = (ToolCall("c1", "weather"), ToolCall("c2", "weather"))
    history = (user(), Message(id="a", role="assistant", tool_calls=calls), result("c1"), result("c2"))
    async with ChatServer(default=answer, call_fields=("extra_content",)) as server:
        assert (await collect(make_adapter(server.url), request(*history, tools=(WEATHER,)))).text == "ok"
        sent = server.requests[-1].json["messages"][1]["tool_calls"]
    assert [call.get("extra_content") for call in sent] == [FOREIGN_CALL, None]


async def test_ids_of_another_endpoint_take_the_required_form(make_adapter: MakeAdapter) -> None:
    """OpenAI and Mistral's models behind a gateway get ids that fit.

    The calls keep their results, and valid ids stay.
    """
    too_long = "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40"
    letters = "Tool call id was chatcmpl-tool-1 but must be a-z, A-Z, 0-9, with a length of 9."

    def answer(seen: Received) -> Answer:
        ids = [call["id"] for call in seen.json["messages"][1]["tool_calls"]]
        if any(len(call_id) > 40 for call_id in ids):
            return failure(400, too_long, code="string_above_max_length")
        return failure(400, letters) if seen.json["model"] == "ministral" and len(ids[0]) != 9 else reply("ok")

    calls = (ToolCall("x" * 46, "weather"), ToolCall("c2", "weather"))
    history = (user(), Message(id="a", role="assistant", tool_calls=calls), result("x" * 46), result("c2"))
    async with ChatServer(default=answer, models=()) as server:
        adapter = make_adapter(server.url)
        for model, tries in (("test-model", 2), ("ministral", 3)):
            before = len(server.requests)
            assert (await collect(adapter, request(*history, tools=(WEATHER,), model=model))).text == "ok"
            assert len(server.requests) == before + tries
            sent = server.requests[-1].json["messages"]
            assert [call["id"] for call in sent[1]["tool_calls"]] == [message["tool_call_id"] for message in sent[2:]]
            assert (sent[3]["tool_call_id"] == "c2") is (model == "test-model")


async def test_an_endpoint_without_user_after_tool_gets_a_reply_between(make_adapter: MakeAdapter) -> None:
    """Without the reply, Mistral models refuse every request after a stopped turn or a message queued during tools."""

    def answer(seen: Received) -> Answer:
        roles = [message["role"] for message in seen.json["messages"]]
        if any(pair == ("tool", "user") for pair in pairwise(roles)):
            return failure(400, "Unexpected role 'user' after role 'tool'")
        return reply(" ".join(roles))

    history = (user(), Message(id="a", role="assistant", tool_calls=(ToolCall("c1", "weather"),)), result("c1"))
    async with ChatServer(default=answer) as server:
        adapter = make_adapter(server.url)
        for more in ((), (user("And now?", 1),), (user("And now?", 1), user("Well?", 2))):
            wanted = request(*history, *more, tools=(WEATHER,), chat_id="c")
            outcome = await collect(adapter, wanted)
            between = ["assistant"] if more else []
            assert outcome.text.split() == ["user", "assistant", "tool", *between, *("user" for _ in more)]
        assert len(server.refusals) == 0
        assert len(server.requests) == 4


DETAILS = [{"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1", "format": "openai-responses-v1", "index": 0}]


def sealed(adapter: HttpAdapter) -> ReasoningPart:
    return ReasoningPart("Hm.", "reasoning_details", adapter.origin, msgspec.json.encode(DETAILS).decode())


async def test_reasoning_details_are_sent_back_in_tool_turns_to_their_endpoint(
    make_adapter: MakeAdapter,
) -> None:
    """They replace the readable text, and are sent neither to other endpoints nor without encrypted parts (R-542)."""
    async with ChatServer(reasoning_fields=("reasoning_details",)) as server:
        adapter = make_adapter(server.url)
        history = (user(), assistant("a", sealed(adapter), calls=(ToolCall("c1", "weather"),)), result("c1"))
        for send_encrypted in (True, False):
            wanted = request(*history, tools=(WEATHER,), chat_id="c", send_encrypted=send_encrypted)
            assert (await collect(adapter, wanted)).error is None
        plain = (user(), assistant("b", sealed(adapter), TextPart("Yes.")), user("Why?", 1))
        assert (await collect(adapter, request(*plain))).error is None
        sent = [seen.json["messages"][1] for seen in server.requests]
    assert [message.get("reasoning_details") for message in sent] == [DETAILS, None, None]
    assert not any("reasoning" in message for message in sent)
    async with ChatServer() as other:
        elsewhere = make_adapter(
            other.url.replace("127.0.0.1", "localhost"), options=RenderOptions(send_reasoning=True)
        )
        assert (await collect(elsewhere, request(*history, tools=(WEATHER,)))).error is None
        assert other.refusals == []


async def test_a_document_is_sent_as_a_file_or_as_a_note(make_adapter: MakeAdapter) -> None:
    """OpenAI and OpenRouter accept PDFs; elsewhere the model gets a note about it."""
    content = (TextPart("Read it."), DocumentPart(sha256="abc", path="docs/plan.pdf"), ImagePart(sha256="gone"))
    message = Message(id="u", role="user", content=content)
    async with ChatServer() as server:
        for taken in (True, False):
            options = RenderOptions(document_input=taken, image_input=False)
            adapter = make_adapter(server.url, options=options, blobs={"abc": b"%PDF-1.7"})
            assert (await collect(adapter, request(message))).error is None
        missing = make_adapter(server.url, options=RenderOptions(document_input=True))
        assert (await collect(missing, request(message))).error is None
        sent = [seen.json["messages"][0]["content"][1] for seen in server.requests]
    assert sent == [
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjc="}},
        {"type": "text", "text": "[The document docs/plan.pdf was not sent: this endpoint does not accept PDFs.]"},
        {"type": "text", "text": "[The document docs/plan.pdf cannot be read.]"},
    ]


def loaded(window: int) -> dict[str, Any]:
    """Return the answer of Ollama's `/api/ps`."""
    models = [{"name": "test-model:latest", "model": "test-model:latest", "context_length": window}] if window else []
    return {"models": models}


async def test_the_window_of_a_local_server_is_known_once_the_model_is_loaded(make_adapter: MakeAdapter) -> None:
    """Ollama loads the model with the first request; lesson 30: until then no window is assumed."""
    async with ChatServer(models=("test-model",), pages={"/ps": loaded(0)}) as server:
        adapter = make_adapter(server.url, limits_path=server.url.removesuffix("/v1") + "/ps")
        await adapter.warm_up()
        assert [seen.path for seen in server.requests] == ["/ps"]
        assert adapter.limits("test-model") is None
        server.pages["/ps"] = loaded(4096)
        assert (await collect(adapter)).error is None
        await asyncio.wait_for(asyncio.wait(adapter._models.server._tasks.values()), PATIENCE_S)
        assert adapter.limits("test-model") == ModelLimits(4096)
        asked = len(server.requests)
        assert (await collect(adapter)).error is None
        assert len(server.requests) == asked + 1


async def test_the_picker_shows_windows_and_tolerates_a_server_without_them(
    make_adapter: MakeAdapter,
) -> None:
    """The model list and the windows may have different URLs."""
    async with ChatServer(
        models=("test-model",), pages={"/v1/props": {"default_generation_settings": {"n_ctx": 512}}}
    ) as server:
        told = make_adapter(server.url, limits_path="/props")
        assert await told.list_models() == ["test-model"]
        assert told.limits("test-model") == ModelLimits(512)
        silent = make_adapter(server.url, limits_path="/nothing")
        assert await silent.list_models() == ["test-model"]
        assert silent.limits("test-model") is None


LLAMA = {
    "default_generation_settings": {"n_ctx": 4096},
    "chat_template_caps": {"supports_tools": False, "supports_tool_calls": False},
    "modalities": {"vision": True},
}
LM_STUDIO = {"id": "test-model", "type": "vlm", "state": "loaded", "loaded_context_length": 4096}
VLLM = {"id": "test-model", "object": "model", "owned_by": "vllm", "max_model_len": 4096}


@pytest.mark.parametrize(
    ("pages", "facts"),
    [
        ({"/props": LLAMA}, ServerFacts(window=4096, tools=False, images=True)),
        ({"/api/ps": loaded(4096)}, ServerFacts(window=4096)),
        ({"/api/v0/models": {"data": [LM_STUDIO]}}, ServerFacts(window=4096, images=True)),
        ({"/v1/models": {"data": [VLLM]}}, ServerFacts(window=4096)),
        ({}, ServerFacts()),
    ],
)
async def test_a_local_server_is_recognised_where_the_entry_does_not_name_it(
    make_adapter: MakeAdapter, pages: dict[str, Any], facts: ServerFacts
) -> None:
    """It then works like the named ones; another kind of server is asked only once."""
    async with ChatServer(pages=pages) as server:
        adapter = make_adapter(server.url, models_path="/models", limits_path="/models")  # as the built-in entry has it
        await adapter.know_server("test-model")
        assert adapter.facts("test-model") == facts
        assert adapter.limits("test-model") == (ModelLimits(facts.window) if facts.window else None)
        assert (await collect(adapter)).error is None
        asked = [seen.path for seen in server.requests if seen.method == "GET"]
        await adapter.know_server("test-model")
        assert [seen.path for seen in server.requests if seen.method == "GET"] == asked
        assert facts.window or asked == ["/props", "/api/ps", "/api/v0/models", "/v1/models"]


async def test_a_server_that_starts_late_is_recognised_then(make_adapter: MakeAdapter) -> None:
    """The first check, while no server answers, does not count."""
    server = ChatServer(pages={"/props": LLAMA})
    await server.start()
    port = server.port
    await server.close()
    adapter = make_adapter(f"http://127.0.0.1:{port}/v1")
    await adapter.know_server("test-model")
    server = ChatServer(pages={"/props": LLAMA})
    await server.start(port)
    try:
        await adapter.know_server("test-model")
    finally:
        await server.close()
    assert adapter.facts("test-model").window == 4096


@pytest.mark.parametrize(
    ("pages", "owner", "is_own", "is_free"),
    [
        ({"/props": LLAMA}, "llamacpp", True, True),
        ({"/api/ps": loaded(4096)}, "library", True, True),
        ({"/api/v0/models": {"data": [LM_STUDIO]}}, "organization_owner", True, True),
        ({"/api/ps": loaded(4096)}, "openai", True, False),  # it passes requests on
        ({}, "openai", False, False),
    ],
)
async def test_a_recognised_server_counts_as_a_local_one(
    make_adapter: MakeAdapter, pages: dict[str, Any], owner: str, is_own: bool, is_free: bool
) -> None:
    """Its replies are timed and cost time instead of money, whatever the entry is called."""
    times = {"prompt_n": 1_000, "prompt_ms": 500, "predicted_n": 90, "predicted_ms": 3_000.0}
    chunk = b"data: " + json.dumps({"choices": [], "timings": times}).encode() + b"\n\n"
    model_list = {"data": [{"id": "test-model", "owned_by": owner}]}
    own_pages = {**pages, "/v1/models": model_list}
    async with ChatServer([reply("ok", insert=chunk, insert_at=2)], pages=own_pages) as server:
        adapter = make_adapter(server.url, models_path="/models", limits_path="/models")
        registry = AdapterRegistry({}, read_blob=lambda blob: b"", summarise=lambda messages, tokens: "")
        registry.add(adapter, adapter.settings)
        assert not registry.settings("test").local_server
        await adapter.know_server("test-model")
        assert registry.settings("test").local_server is is_own
        assert registry.settings("test").limits_path.endswith(next(iter(pages), "/models")), "its advice depends on it"
        assert (await collect(adapter)).text == "ok"
    assert adapter.speed("test-model") == (Speed(2_000.0, 30.0) if is_own else NO_SPEED)
    assert runs_on_own_server(registry, "test", "test-model") is is_free


@pytest.mark.parametrize(
    "entry",
    [
        {"base_url": "https://api.example.com/v1"},
        {"base_url": "http://localhost:1/v1", "kind": "openai"},
        {"base_url": "http://localhost:1/v1", "models_path": "/models", "limits_path": "/props"},
        {"base_url": "http://localhost:1/v1", "local_server": True},
    ],
)
async def test_no_other_endpoint_is_asked_what_it_is(
    make_adapter: MakeAdapter, monkeypatch: pytest.MonkeyPatch, entry: dict[str, Any]
) -> None:
    """An endpoint at a public URL is never asked, nor one whose entry already names its kind."""
    asked: list[str] = []

    async def ask(get: object, base_url: str) -> str:
        asked.append(base_url)
        return ""

    monkeypatch.setattr(recognise_server, "find_limits_path", ask)
    fields = {name: value for name, value in entry.items() if name != "base_url"}
    adapter = make_adapter(entry["base_url"], **fields)
    await adapter.know_server("test-model")
    assert not asked


async def test_a_configured_window_is_not_asked_for(make_adapter: MakeAdapter) -> None:
    """The configured value is used."""
    async with ChatServer() as server:
        adapter = make_adapter(server.url, limits_path="/ps", context_window=8192)
        await adapter.warm_up()
        assert (await collect(adapter)).error is None
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "said", "why"),
    [
        (500, "tools param requires --jinja flag", "the server was started without --jinja"),
        (400, "registry.ollama.ai/library/gemma:2b does not support tools", "the model does not support them"),
        (
            400,
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "the server was started without --enable-auto-tool-choice",
        ),
    ],
)
async def test_a_local_server_that_refuses_tools_is_asked_without(
    make_adapter: MakeAdapter, status: int, said: str, why: str
) -> None:
    """The refused request is sent once more, without tools; no tools are sent until the server restarts."""

    def answer(seen: Received) -> Answer:
        return failure(status, said) if seen.json.get("tools") else reply("ok")

    async with ChatServer(default=answer) as server:
        adapter = make_adapter(server.url, limits_path="/props", local_server=True)
        assert (await collect(adapter, request(tools=(WEATHER,)))).text == "ok"
        sent = [seen for seen in server.requests if seen.method == "POST"]
        facts = adapter.facts("test-model")
    assert [bool(seen.json.get("tools")) for seen in sent] == [True, False]
    assert (facts.tools, facts.refuses_tools) == (False, why)


async def test_a_lost_connection_resets_the_refusal_of_tools(make_adapter: MakeAdapter) -> None:
    """The server may have been restarted with other options."""
    async with ChatServer(
        [failure(500, "tools param requires --jinja flag"), reply("ok"), Answer(parts=(DROP,))]
    ) as server:
        adapter = make_adapter(server.url, limits_path="/props", local_server=True, max_retries=0)
        await collect(adapter, request(tools=(WEATHER,)))
        assert adapter.facts("test-model").tools is False
        assert (await collect(adapter)).error is not None
        assert adapter.facts("test-model").tools is None


@pytest.mark.parametrize(("is_local", "speed"), [(True, Speed(2_000.0, 30.0)), (False, NO_SPEED)])
async def test_a_local_server_reports_its_speed(make_adapter: MakeAdapter, is_local: bool, speed: Speed) -> None:
    """llama.cpp sends it in the last chunk of a reply; from other endpoints such a chunk is ignored."""
    times = {"cache_n": 8_000, "prompt_n": 1_000, "prompt_ms": 500, "predicted_n": 90, "predicted_ms": 3_000.0}
    chunk = b"data: " + json.dumps({"choices": [], "timings": times}).encode() + b"\n\n"
    async with ChatServer([reply("ok", insert=chunk, insert_at=2)]) as server:
        adapter = make_adapter(server.url, limits_path="/props", local_server=is_local)
        assert adapter.speed("test-model") == NO_SPEED
        assert (await collect(adapter)).text == "ok"
        assert adapter.speed("test-model") == speed


async def test_a_local_server_with_one_slot_has_lost_a_chat_that_another_one_followed(
    make_adapter: MakeAdapter,
) -> None:
    """Slots are tracked separately for each model; a restarted server has lost all chats."""
    slots = {"total_slots": 1, "default_generation_settings": {"n_ctx": 4096}}
    hosted = make_adapter("http://127.0.0.1:1/v1")
    async with ChatServer([*[reply("ok")] * 4, Answer(parts=(DROP,))], pages={"/v1/props": slots}) as server:
        adapter = make_adapter(server.url, limits_path="/props", local_server=True, max_retries=0)
        await adapter.know_server("test-model")

        async def losses(chat_id: str) -> list[str]:
            await collect(adapter, request(chat_id=chat_id))
            return [adapter.prompt_loss("test-model", chat) for chat in ("a", "b")]

        assert await losses("a") == ["", ""]
        assert await losses("b") == ["other_request", ""]
        assert await losses("a") == ["", "other_request"]
        adapter.learn_kept_prompt("test-model")
        assert await losses("b") == ["", ""]
        assert await losses("a") == ["restart", "restart"]
    assert adapter.prompt_loss("another", "a") == ""
    assert hosted.prompt_loss("test-model", "a") == ""


async def test_a_model_without_vision_is_sent_a_note_in_place_of_an_image(make_adapter: MakeAdapter) -> None:
    """Otherwise llama.cpp refuses the whole request."""
    props = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": False}}
    image = Message(id="u", role="user", content=(ImagePart(url="data:image/png;base64,AAAA", path="a.png"),))
    async with ChatServer(pages={"/v1/props": props}, default=lambda seen: reply("ok")) as server:
        adapter = make_adapter(server.url, limits_path="/props", local_server=True)
        for blind in (True, False):
            props["modalities"] = {"vision": not blind}
            adapter._models.server._answers.clear()
            await adapter.know_server("test-model")
            assert (await collect(adapter, request(image, chat_id="c"))).text == "ok"
            sent = [seen.json for seen in server.requests if seen.method == "POST"][-1]
            content = str(sent["messages"][0]["content"])
            assert ("a.png was not sent: this model does not accept images" in content) is blind


@pytest.mark.parametrize(
    ("model", "owner", "is_billed"),
    [
        ("m", "", False),
        ("m", "llamacpp", False),
        ("m", "openai", True),
        ("gpt-oss:120b-cloud", "library", True),
    ],
)
async def test_only_a_local_model_is_free(make_adapter: MakeAdapter, model: str, owner: str, is_billed: bool) -> None:
    """A gateway (LiteLLM) in a local server's entry and Ollama's cloud models are not free: they forward requests."""
    adapter = make_adapter("http://127.0.0.1:1/v1", local_server=True)
    adapter._wire.read_models(msgspec.json.encode({"data": [{"id": model, "owned_by": owner}]}))
    said = error_from_status(504, {}, {}, await adapter._connection.endpoint(model))
    assert str(said).endswith("processed and billed." if is_billed else "processed.")
