"""Tests of chats over several rounds against a Responses server that judges requests as the provider does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import msgspec
import pytest

from codecompanion.adapters.base import ChatRequest, CompactionBegun, CompactionDone
from codecompanion.adapters.openai_responses.gate import check_body
from codecompanion.errors import AdapterError, ContextOverflow, EncryptedRefused, StreamCut
from codecompanion.model.messages import (
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    ReasoningPart,
    TextPart,
    ToolCall,
    with_changes,
)
from tests.adapters.responses_chat import RULES, Chat, open_adapter
from tests.providers.loopback.answers import CLOSE, DROP, failure
from tests.providers.responses.answers import Call, Compacted, Text, Thought, reply
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer

SYSTEM = Message(id="s", role="system", content="Be good.")


@pytest.fixture
async def server() -> AsyncIterator[ResponsesServer]:
    """Yield a server without a script; afterwards, check that no request had an unwanted field."""
    async with ResponsesServer(rules=Rules()) as running:
        yield running
        assert running.notes == []
        for request in running.requests:
            if request.method == "POST":
                endpoint = {"compact": "compact", "input_tokens": "count"}.get(
                    request.path.rpartition("/")[2], "responses"
                )
                assert check_body(request.json, endpoint) == []  # type: ignore[arg-type]


@pytest.fixture
async def chat(server: ResponsesServer) -> AsyncIterator[Chat]:
    """Return a chat with a system prompt and rules."""
    adapter = open_adapter(server.url)
    yield Chat(adapter, SYSTEM, RULES)
    await adapter.aclose()


def kinds(server: ResponsesServer, number: int = -1) -> list[str]:
    return [item.get("role") or item["type"] for item in server.requests[number].json["input"]]


async def test_text_streams_and_ends_with_its_usage(server: ResponsesServer, chat: Chat) -> None:
    """The reply has its text, phase, model, and usage figures that do not overlap (lesson 7)."""
    server.script = [reply(items=(Text("Hello ☃", "final_answer"),))]
    outcome = await chat.say("Hi")
    assert outcome.text == "Hello ☃"
    assert outcome.finished.stop == "stop"
    assert outcome.finished.model == "test-model"
    usage = outcome.finished.usage
    assert usage is not None
    assert usage.prompt_tokens > 0
    assert chat.messages[-1].content == (TextPart("Hello ☃", "final_answer"),)
    body = server.requests[0].json
    assert (body["store"], body["instructions"]) == (False, "Be good.")


async def test_interleaved_reasoning_and_parallel_calls_over_rounds(server: ResponsesServer, chat: Chat) -> None:
    """The server knows which item followed which reasoning, and refuses any other order."""
    server.script = [
        reply(items=(Thought(("One", "Two")), Call("read_file"), Thought(()), Call("grep"), Call("read_file"))),
        reply(items=(Thought(("Look",)), Text("I look again.", "commentary"), Call("grep", '{"query": "x"}'))),
        reply(items=(Thought(()), Text("Done.", "final_answer"))),
        reply("Bye"),
    ]
    first = await chat.say("Find it")
    assert first.reasoning == "One\n\nTwo"
    assert first.finished.stop == "tool_calls"
    assert [call.name for call in first.finished.tool_calls] == ["read_file", "grep", "read_file"]
    assert all(call.id.startswith("call_") for call in first.finished.tool_calls)
    await chat.answer_calls()
    await chat.answer_calls()
    last = await chat.say("Thanks")
    assert last.text == "Bye"
    assert kinds(server) == [
        *("user", "user"),
        *("reasoning", "function_call", "reasoning", "function_call", "function_call", *["function_call_output"] * 3),
        *("reasoning", "assistant", "function_call", "function_call_output"),
        *("reasoning", "assistant", "user"),
    ]


async def test_mixed_events_of_parallel_calls_yield_complete_calls(server: ResponsesServer, chat: Chat) -> None:
    """The pieces of two calls alternate in the stream."""
    server.script = [
        reply(calls=[Call("read_file", '{"path": "a"}'), Call("grep", '{"query": "b"}')], interleaved=True)
    ]
    outcome = await chat.say("Go")
    assert [(c.name, c.arguments) for c in outcome.finished.tool_calls] == [
        ("read_file", '{"path": "a"}'),
        ("grep", '{"query": "b"}'),
    ]
    await chat.answer_calls()


async def test_the_prefix_stays_cached(server: ResponsesServer, chat: Chat) -> None:
    """Lesson 22: cache reads grow from request to request and cover the whole previous prompt."""
    words = "some words about the project " * 200
    cached, prompts = [], []
    for number in range(4):
        server.script = [reply(f"answer {number} " + words, reasoning=())]
        usage = (await chat.say(f"question {number} " + words)).finished.usage
        assert usage is not None
        cached.append(usage.cache_read_tokens)
        prompts.append(usage.prompt_tokens)
    assert cached == sorted(cached)
    assert cached[-1] > 0.9 * prompts[-2]
    assert len({request.json["prompt_cache_key"] for request in server.requests}) == 1


async def test_a_threshold_compaction_starts_the_next_request(server: ResponsesServer, chat: Chat) -> None:
    """R-534, R-539, R-551: the item first, then the rules and the open question; earlier messages are gone."""
    await chat.say("word " * 60_000)
    server.script = [reply("Compacted and answered", reasoning=("Why",), calls=[Call("grep")])]
    outcome = await chat.say("Go on", compact_at=50_000)
    assert [type(event) for event in outcome.events[:2]] == [CompactionBegun, CompactionDone]
    assert outcome.text == "Compacted and answered"
    assert len(chat.blocks) == 1
    await chat.answer_calls(compact_at=50_000)
    assert kinds(server) == [
        *("compaction", "user", "user"),
        *("reasoning", "assistant", "function_call", "function_call_output"),
    ]
    assert server.requests[-1].json["input"][1]["content"] == RULES.content
    assert server.requests[-1].json["context_management"] == [{"type": "compaction", "compact_threshold": 50_000}]


async def test_a_second_compaction_replaces_the_first(server: ResponsesServer, chat: Chat) -> None:
    """Only one block is in use at any time."""
    for _ in range(2):
        await chat.say("word " * 60_000, compact_at=0)
        await chat.say("Go on", compact_at=50_000)
    await chat.say("And now", compact_at=50_000)
    assert len(chat.blocks) == 2
    assert kinds(server) == ["compaction", "user", "user", "assistant", "user"]


async def test_a_compaction_on_demand_is_the_next_window(server: ResponsesServer, chat: Chat) -> None:
    """R-540: the kept messages and the block are sent unchanged, and the rules once, verbatim."""
    server.script = [reply("Found", reasoning=("Why",), calls=[Call("grep")])]
    await chat.say("First words")
    await chat.answer_calls()
    assert chat.adapter.compacts_on_demand("test-model")
    server.compactions = [reply(items=(Compacted(300),))]
    done = await chat.adapter.compact(chat.request(), "Mind the tests.")
    assert server.requests[-1].json["instructions"] == "Be good.\n\nMind the tests."
    assert done.part is not None
    assert done.part.tokens == 300
    assert done.usage is not None
    assert done.usage.prompt_tokens > 0
    chat.compact(done.part)
    await chat.say("Next words")
    sent = server.requests[-1].json["input"]
    assert kinds(server) == ["user", "compaction", "user", "user"]
    texts = [
        item["content"] if isinstance(item["content"], str) else item["content"][0]["text"]
        for item in sent
        if "content" in item
    ]
    assert texts == ["First words", RULES.content, "Next words"]


def as_if_made_at(origin: str, messages: Iterable[Message]) -> list[Message]:
    """Return the messages with their encrypted parts attributed to another origin."""
    made: list[Message] = []
    for message in messages:
        if not isinstance(message.content, str):
            parts = (
                msgspec.structs.replace(part, origin=origin)
                if isinstance(part, ReasoningPart | CompactionPart)
                else part
                for part in message.content
            )
            message = with_changes(message, content=tuple(parts), tokens=message.tokens)
        made.append(message)
    return made


async def test_a_block_of_another_account_is_refused_as_such(chat: Chat) -> None:
    """Two OpenAI accounts share one origin (format and URL); after the refusal the session sends the readable text."""
    await chat.say("word " * 60_000)
    await chat.say("Go on", compact_at=50_000)
    async with ResponsesServer(rules=Rules()) as other:
        adapter = open_adapter(other.url)
        stranger = Chat(adapter, *as_if_made_at(adapter.origin, chat.messages))
        outcome = await stranger.say("Go on")
        assert isinstance(outcome.error, EncryptedRefused)
        assert (await stranger.send(send_encrypted=False)).error is None
        await adapter.aclose()


async def test_encrypted_reasoning_of_another_account_is_refused_as_such(server: ResponsesServer, chat: Chat) -> None:
    """With `send_encrypted` false, the calls are kept and the reasoning is dropped."""
    server.script = [reply(reasoning=("Why",), calls=[Call("grep")])]
    await chat.say("Hi")
    async with ResponsesServer(rules=Rules()) as other:
        adapter = open_adapter(other.url)
        stranger = Chat(adapter, *as_if_made_at(adapter.origin, chat.messages))
        outcome = await stranger.answer_calls()
        assert isinstance(outcome.error, EncryptedRefused)
        assert outcome.error.code == "invalid_encrypted_content"
        assert (await stranger.send(send_encrypted=False)).error is None
        assert "reasoning" not in kinds(other)
        await adapter.aclose()


@pytest.mark.parametrize("how", [DROP, CLOSE])
async def test_an_interrupted_stream_keeps_its_compaction(server: ResponsesServer, chat: Chat, how: object) -> None:
    """R-539: if the stream breaks after the block, the next request starts at the block."""
    await chat.say("word " * 60_000)
    server.script = [reply("A longer answer", break_after=8, break_with=how)]
    outcome = await chat.say("Go on", compact_at=50_000)
    assert isinstance(outcome.error, StreamCut)
    assert len(chat.blocks) == 1
    assert (await chat.send(compact_at=50_000)).error is None
    assert kinds(server)[0] == "compaction"


@pytest.mark.parametrize("in_stream", [False, True])
async def test_an_overflow_is_reported_as_one(in_stream: bool) -> None:
    """R-535: an overflow is recognised as status 400 and as an error event before anything else."""
    async with ResponsesServer(rules=Rules(window=1000), overflow_in_stream=in_stream) as server:
        adapter = open_adapter(server.url)
        outcome = await Chat(adapter).say("word " * 5000)
        assert isinstance(outcome.error, ContextOverflow)
        assert outcome.error.code == "context_length_exceeded"
        assert outcome.events == []
        await adapter.aclose()


async def test_a_count_equals_the_providers(server: ResponsesServer, chat: Chat) -> None:
    """The count equals the prompt size of the reply, even if the counted chat was sent before."""
    assert chat.adapter.counts_tokens("test-model")
    server.script = [reply("Found", reasoning=("Why",), calls=[Call("grep")])]
    await chat.say("First words")
    await chat.answer_calls()
    count = await chat.adapter.count_tokens(chat.request())
    chat.messages.pop()
    before = await chat.adapter.count_tokens(chat.request())
    usage = (await chat.send()).finished.usage
    assert usage is not None
    assert before == usage.prompt_tokens
    assert count > before


async def test_models_are_listed(server: ResponsesServer, chat: Chat) -> None:
    """Only model names are listed; the endpoint reports no windows."""
    server.rules = Rules(models=("gpt-5", "gpt-4.1"))
    assert await chat.adapter.list_models() == ["gpt-4.1", "gpt-5"]
    assert chat.adapter.limits("gpt-5") is None
    server.rules = Rules()


async def test_images_and_documents_are_accepted(server: ResponsesServer, chat: Chat) -> None:
    """The server parses the files."""
    parts = (TextPart("look"), ImagePart(sha256="i"), DocumentPart(sha256="d", path="a.pdf"))
    chat.messages.append(Message(id="u", role="user", content=parts))
    assert (await chat.send()).error is None


async def test_a_model_without_reasoning_is_asked_again_without_it(chat: Chat) -> None:
    """If its name does not reveal it, the model is refused once for the summary and once for encrypted reasoning."""
    async with ResponsesServer(rules=Rules(reasons=False)) as server:
        adapter = open_adapter(server.url)
        assert (await Chat(adapter).say("Hi")).error is None
        assert len(server.requests) == 3
        assert (await Chat(adapter).say("Hi")).error is None
        assert len(server.requests) == 4
        assert not {"include", "reasoning"} & set(server.requests[-1].json)
        await adapter.aclose()


async def test_an_endpoint_without_compaction_is_believed(server: ResponsesServer, chat: Chat) -> None:
    """Compaction is refused once and never requested again, and the session knows it (R-534)."""
    server.script = [
        failure(400, "Unknown parameter: 'context_management'.", type="invalid_request_error"),
        reply("Hi"),
    ]
    assert (await chat.say("Hi", compact_at=60_000)).text == "Hi"
    assert not chat.adapter.compacts_natively("test-model")
    server.compactions = [failure(404, "Invalid URL (POST /v1/responses/compact)", type="invalid_request_error")]
    with pytest.raises(AdapterError, match="404"):
        await chat.adapter.compact(chat.request(), "")
    assert not chat.adapter.compacts_on_demand("test-model")
    assert chat.adapter.counts_tokens("test-model")


async def test_a_history_of_another_provider_is_accepted(server: ResponsesServer, chat: Chat) -> None:
    """R-542: call ids that are too long or repeated, tool names and broken arguments are accepted."""
    for number in range(2):
        calls = (ToolCall("toolu_" + "x" * 90, "mcp.read file", '{"p": '), ToolCall("same", "grep"))
        chat.messages.append(Message(id=f"a{number}", role="assistant", content="I look", tool_calls=calls))
        for call in calls:
            chat.messages.append(Message(id=f"r{number}{call.id}", role="tool", content="", tool_call_id=call.id))
    assert (await chat.say("Go on")).error is None


async def test_a_request_through_the_registry_names_no_model(server: ResponsesServer) -> None:
    """The model of the entry is used."""
    adapter = open_adapter(server.url)
    hello = Message(id="u", role="user", content="Hi")
    events = [event async for event in adapter.stream(ChatRequest(messages=[hello], model=adapter.default_model))]
    assert events
    assert server.requests[0].json["model"] == "test-model"
    await adapter.aclose()
