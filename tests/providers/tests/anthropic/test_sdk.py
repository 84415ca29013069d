"""The official SDK against the fake Messages server; a broken stream breaks in the SDK, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anthropic
import httpx2
import pytest

from tests.providers.anthropic.answers import (
    Call,
    broken_by_error,
    failure,
    rate_limited,
    reply,
)
from tests.providers.anthropic.models import HAIKU, MODELS, SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.loopback.answers import CLOSE, END
from tests.providers.tests.anthropic.bodies import (
    COMPACT,
    DEMAND,
    EDITING,
    ENABLED,
    LONG,
    RESULT,
    SIGNED,
    THRESHOLD,
    TOOL,
    assistant,
    body,
    edits,
    user,
)

MakeClient = Callable[[AnthropicServer], anthropic.AsyncAnthropic]


@pytest.fixture
async def make_client() -> AsyncIterator[MakeClient]:
    """Yield a function that creates clients of the official SDK, which do not retry."""
    made: list[anthropic.AsyncAnthropic] = []

    def make(server: AnthropicServer) -> anthropic.AsyncAnthropic:
        made.append(anthropic.AsyncAnthropic(api_key="sk-test", base_url=server.url, max_retries=0))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def test_the_sdk_reads_a_stream_and_sends_it_back(make_client: MakeClient) -> None:
    """The reply has thinking, text and two calls, and is accepted unchanged in the next request."""
    calls = [Call("now", '{"city": "Łódź 🦊"}'), Call("now")]
    async with AnthropicServer([reply("So…", thinking="Let me see", calls=calls)]) as server:
        client = make_client(server)
        request: dict[str, Any] = {**body(tools=[TOOL], thinking=ENABLED)}
        async with client.beta.messages.stream(**request) as stream:
            message = await stream.get_final_message()
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
        assert [block.input for block in message.content if block.type == "tool_use"] == [{"city": "Łódź 🦊"}, {}]
        assert message.stop_reason == "tool_use"
        assert message.usage.input_tokens > 300
        content = [block.to_dict() for block in message.content]
        results = [{**RESULT, "tool_use_id": block["id"]} for block in content if block["type"] == "tool_use"]
        again = {**request, "messages": [user(), {"role": "assistant", "content": content}, user(*results)]}
        second = await client.beta.messages.create(**again)
        assert second.content[0].type == "text"
        assert second.content[0].text == "You said: hi"
        assert [seen.path for seen in server.requests] == ["/v1/messages"] * 2
        assert not server.refusals


async def test_the_sdk_counts_and_lists_models(make_client: MakeClient, anthropic_server: AnthropicServer) -> None:
    """On-demand compaction is a capability that is reported only under its beta header."""
    client = make_client(anthropic_server)
    counted: Any = {key: value for key, value in body().items() if key != "max_tokens"}
    tokens = await client.beta.messages.count_tokens(**counted, **edits(), betas=[EDITING])
    assert tokens.context_management is not None
    assert tokens.input_tokens == tokens.context_management.original_input_tokens == 5
    assert [model.id async for model in client.beta.models.list()] == [model.id for model in MODELS]
    sonnet = await client.beta.models.retrieve(SONNET.id, betas=[DEMAND])
    assert (sonnet.max_input_tokens, sonnet.max_tokens) == (200_000, 64_000)
    assert sonnet.capabilities is not None
    assert sonnet.capabilities.compaction is not None
    assert sonnet.capabilities.compaction.summarize.supported
    assert sonnet.capabilities.context_management.compact_20260112 is not None
    haiku = await client.beta.models.retrieve(HAIKU.id, betas=[DEMAND])
    assert haiku.capabilities is not None
    assert haiku.capabilities.compaction is not None
    assert not haiku.capabilities.compaction.supported
    plain = await client.models.retrieve(SONNET.id)
    assert plain.capabilities is not None
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("claude-2")


async def test_the_sdk_compacts_at_a_threshold_and_on_demand(make_client: MakeClient) -> None:
    """It also sends the blocks back."""
    async with AnthropicServer() as server:
        client = make_client(server)
        request: dict[str, Any] = body(user({"type": "text", "text": LONG}), **edits(COMPACT))
        async with client.beta.messages.stream(**request, betas=[EDITING, THRESHOLD]) as stream:
            message = await stream.get_final_message()
        assert [block.type for block in message.content] == ["compaction", "text"]
        assert message.usage.iterations is not None
        assert [entry.type for entry in message.usage.iterations] == ["compaction", "message"]
        content = [block.to_dict() for block in message.content]
        again = {**request, "messages": [{"role": "assistant", "content": content}, user()]}
        await client.beta.messages.create(**again, betas=[EDITING, THRESHOLD])
        demanded = await client.beta.messages.create(**body(compaction={"type": "summarize"}), betas=[DEMAND])
        assert demanded.stop_reason == "compaction"
        async with client.beta.messages.stream(**body(compaction={"type": "summarize"}), betas=[DEMAND]) as stream:
            streamed = await stream.get_final_message()
        block = streamed.content[0].to_dict()
        await client.beta.messages.create(**body(assistant(block), user()), betas=[DEMAND])


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (rate_limited("7"), anthropic.RateLimitError, None),
        (failure(500), anthropic.InternalServerError, None),
        (failure(529), anthropic.OverloadedError, None),
        (failure(529, code="compaction_unavailable"), anthropic.OverloadedError, "compaction_unavailable"),
        (failure(403), anthropic.PermissionDeniedError, None),
    ],
)
async def test_scripted_errors_are_the_sdks_errors(
    make_client: MakeClient, answer: Any, error: type[anthropic.APIStatusError], code: str | None
) -> None:
    """The errors include the request id."""
    async with AnthropicServer([answer]) as server:
        with pytest.raises(error) as raised:
            await make_client(server).beta.messages.create(**body())
    assert (raised.value.error_code, raised.value.request_id) == (code, "req_0000loopback")
    assert raised.value.response.headers.get("retry-after") == ("7" if error is anthropic.RateLimitError else None)


async def test_refusals_are_the_sdks_errors(make_client: MakeClient) -> None:
    """An error code has its own exception class."""
    async with AnthropicServer() as server:
        client = make_client(server)
        with pytest.raises(anthropic.BadRequestError) as raised:
            await client.beta.messages.create(**body(user(), assistant(SIGNED), user()), betas=[DEMAND])
        assert type(raised.value).__name__ == "CompactionBlockMisplacedError"
        unknown = anthropic.AsyncAnthropic(api_key="sk-other", base_url=server.url, max_retries=0)
        async with unknown:
            with pytest.raises(anthropic.AuthenticationError):
                await unknown.models.list()


async def test_a_stream_can_break_anywhere(make_client: MakeClient) -> None:
    """It can break with an error event, a lost connection or a missing end."""
    faults: list[dict[str, Any]] = [
        broken_by_error(3),
        {"break_at_byte": 900},
        {"break_after": 4, "break_with": CLOSE},
        {"break_after": 4, "break_with": END},
    ]
    async with AnthropicServer([reply("Hello there", **fault) for fault in faults]) as server:
        client = make_client(server)
        seen: list[str] = []
        for _ in faults:
            kinds: list[str] = []
            try:
                stream: Any = await client.beta.messages.create(**body(stream=True))
                async for event in stream:
                    kinds.append(event.type)
                seen.append(kinds[-1])
            except anthropic.APIStatusError as error:
                seen.append(str(error.type))
            except httpx2.HTTPError:
                seen.append("lost")
    assert seen == ["overloaded_error", "lost", "lost", "content_block_delta"]


async def test_a_stream_waits_for_the_test_and_notices_a_client_that_disconnects(make_client: MakeClient) -> None:
    """No clock is involved."""
    gate = asyncio.Event()
    async with AnthropicServer(
        [reply("Hello", gate=gate, gate_after=4), reply("Hello", gate=asyncio.Event())]
    ) as server:
        client = make_client(server)
        stream: Any = await client.beta.messages.create(**body(stream=True))
        events = aiter(stream)
        assert [(await anext(events)).type for _ in range(3)][-1] == "content_block_delta"
        server.release(gate)
        assert [event.type async for event in events][-1] == "message_stop"
        left: Any = await client.beta.messages.create(**body(stream=True))
        await left.close()
        await server.wait_until(lambda: server.requests[-1].aborted)
