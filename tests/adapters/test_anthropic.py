"""Tests of replies from a loopback server that sends real Messages bytes and refuses what the provider refuses."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from codecompanion.adapters.anthropic_messages.options import MessagesOptions, ToolClearing
from codecompanion.adapters.base import ReasoningDone, ServerEdit, TextDelta, ToolCallStarted
from codecompanion.model.messages import ToolCall, Usage
from tests.adapters.anthropic_chat import chat_with
from tests.providers.anthropic.answers import Call, Redacted, Reply, Text, Thinking, reply
from tests.providers.anthropic.models import HAIKU, OPUS, SONNET
from tests.providers.anthropic.server import AnthropicServer

ENABLED = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
ADAPTIVE = {"thinking": {"type": "adaptive"}}


async def test_a_reply_streams_and_ends_with_its_usage() -> None:
    """The reply has its text, stop reason, model, and usage figures that do not overlap (lesson 7)."""
    async with AnthropicServer([reply("Hello, world. ünïcödé 🎉")]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert outcome.text == "Hello, world. ünïcödé 🎉"
    assert outcome.finished.stop == "stop"
    assert outcome.finished.model == SONNET.id
    assert outcome.finished.usage is not None
    assert outcome.finished.usage.cache_write_tokens > 1000
    assert not server.refusals


async def test_text_is_visible_before_the_reply_is_complete() -> None:
    """The first text is shown while the rest is still arriving."""
    gate = asyncio.Event()
    async with AnthropicServer([reply("Hello", gate=gate, gate_after=4)]) as server, chat_with(server) as chat:
        chat.add("user", "Hi")
        seen = ""
        async with aclosing(chat.adapter.stream(chat.request())) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    seen += event.text
                    if not gate.is_set():
                        assert seen == "Hell"
                        gate.set()
    assert seen == "Hello"


@pytest.mark.parametrize("parameters", [ENABLED, ADAPTIVE, {}], ids=["enabled", "adaptive", "default"])
async def test_thinking_and_tools_over_several_rounds(parameters: dict[str, object]) -> None:
    """Every block is sent back in its place, signed and redacted ones untouched; the server compares them."""
    script = [
        Reply((Thinking("let me see"), Text("I look."), Call("now"), Call("now", '{"zone": "Łódź"}'))),
        Reply((Redacted(), Thinking(""), Call("now"))),
        Reply((Thinking("now I know"), Text("It is noon."))),
        reply("You are welcome."),
    ]
    async with AnthropicServer(script) as server, chat_with(server, parameters=parameters) as chat:
        first = await chat.ask("What time is it?")
        assert first.finished.stop == "tool_calls"
        assert [call.arguments for call in first.finished.tool_calls] == ["{}", '{"zone": "Łódź"}']
        assert first.reasoning == "let me see"
        second = await chat.ask()
        assert len([event for event in second.events if isinstance(event, ReasoningDone)]) == 2
        third = await chat.ask()
        assert third.text == "It is noon."
        await chat.ask("Thanks")
        assert chat.last_kinds == [
            ("user", ["text"]),
            ("assistant", ["thinking", "text", "tool_use", "tool_use"]),
            ("user", ["tool_result", "tool_result"]),
            ("assistant", ["redacted_thinking", "thinking", "tool_use"]),
            ("user", ["tool_result"]),
            ("assistant", ["thinking", "text"]),
            ("user", ["text"]),
        ]
    assert not server.refusals


async def test_a_tool_loop_of_another_adapter_continues_without_thinking() -> None:
    """A thinking budget would be refused there: this request has none, and the next turn thinks again."""
    script = [reply("noon"), Reply((Thinking("hm"), Text("fine")))]
    async with AnthropicServer(script) as server, chat_with(server, parameters=ENABLED) as chat:
        chat.add("user", "What time is it?")
        chat.add("assistant", "", tool_calls=(ToolCall("fc_1|call.7", "now"),))
        chat.add("tool", "12:00", tool_call_id="fc_1|call.7")
        await chat.ask()
        assert chat.last_body["thinking"] == {"type": "disabled"}
        await chat.ask("And now?")
        assert chat.last_body["thinking"] == ENABLED["thinking"]
    assert not server.refusals


async def test_cache_hits_grow_with_the_conversation() -> None:
    """Breakpoints stay where they were in the previous request, so that its prefix is found (lesson 22)."""
    async with AnthropicServer() as server, chat_with(server) as chat:
        reads = []
        for number in range(5):
            outcome = await chat.ask(f"Question {number}: " + "why? " * 400)
            usage = outcome.finished.usage
            assert usage is not None
            reads.append(usage.cache_read_tokens)
            # All but the newest words come from the cache.
            assert usage.input_tokens < 20
        server.clock.advance(301)
        cold = await chat.ask("Still there?")
    assert reads[0] == 0
    assert reads == sorted(set(reads))
    assert cold.finished.usage is not None
    assert cold.finished.usage.cache_read_tokens == 0


async def test_a_long_tool_turn_still_finds_its_prefix() -> None:
    """After more than 20 new blocks, the retained breakpoint still leads to a cache hit."""
    many = [Call("now", f'{{"n": {k}}}') for k in range(25)]
    async with AnthropicServer([Reply(tuple(many)), reply("done")]) as server, chat_with(server) as chat:
        first = await chat.ask("Do a lot. " + "Now. " * 300)
        second = await chat.ask()
    assert first.finished.usage is not None
    assert second.finished.usage is not None
    assert second.finished.usage.cache_read_tokens == first.finished.usage.cache_write_tokens


async def test_without_caching_nothing_is_marked() -> None:
    """The `cache` option turns breakpoints off; the long cache lifetime is a separate option."""
    async with AnthropicServer() as server:
        async with chat_with(server, MessagesOptions(cache=False)) as chat:
            outcome = await chat.ask("Hi")
            assert "cache_control" not in server.requests[-1].body.decode()
        async with chat_with(server, MessagesOptions(cache_ttl="1h")) as chat:
            await chat.ask("Hi")
            assert server.requests[-1].body.count(b'"ttl":"1h"') == 3
    assert outcome.finished.usage == Usage(
        input_tokens=outcome.finished.usage.input_tokens if outcome.finished.usage else 0,
        output_tokens=outcome.finished.usage.output_tokens if outcome.finished.usage else 0,
    )


@pytest.mark.parametrize(
    ("stop", "ours"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "paused"),
        ("refusal", "filtered"),
        ("model_context_window_exceeded", "window"),
        ("something_new", "stop"),
    ],
)
async def test_every_stop_reason_is_mapped(stop: str, ours: str) -> None:
    """A known stop reason has its counterpart; an unknown one ends the reply normally."""
    async with AnthropicServer([reply("text", stop=stop)]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert outcome.finished.stop == ours


async def test_a_call_truncated_by_the_limit_is_left_out() -> None:
    """The truncated call cannot be run and is dropped; complete parts are kept."""
    calls = [Call("now", '{"a": 1}'), Call("now", '{"b": ')]
    async with AnthropicServer([reply(calls=calls, stop="max_tokens")]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert outcome.finished.stop == "length"
    assert [call.arguments for call in outcome.finished.tool_calls] == ['{"a": 1}']
    assert [event for event in outcome.events if isinstance(event, ToolCallStarted)] == [ToolCallStarted("now")] * 2


async def test_a_reply_of_one_json_object_is_read() -> None:
    """With `parameters.stream = false`, the reply is parsed from one JSON object."""
    script = [Reply((Thinking("hm"), Text("noon"), Call("now", '{"a": 1}')))]
    async with AnthropicServer(script) as server, chat_with(server, parameters={"stream": False}) as chat:
        outcome = await chat.ask("Hi")
        await chat.ask()
    assert (outcome.reasoning, outcome.text) == ("hm", "noon")
    assert outcome.finished.tool_calls[0].arguments == '{"a":1}'
    assert not server.refusals


async def test_edits_by_the_server_are_reported() -> None:
    """`clear_tool_uses` is an option, off by default (R-536); its effect is reported (R-541)."""
    options = MessagesOptions(clear_tool_uses=ToolClearing(trigger=1000, keep=1))
    script = [Reply((Call("now"),)), Reply((Call("now"),)), reply("done")]
    async with AnthropicServer(script) as server, chat_with(server, options) as chat:
        await chat.ask("Do it")
        await chat.ask()
        outcome = await chat.ask()
    (edit,) = outcome.finished.server_edits
    assert edit == ServerEdit("clear_tool_uses_20250919", edit.cleared_tokens, 1)


async def test_models_report_their_limits_and_abilities() -> None:
    """One request lists all models, and its values override the built-in ones."""
    async with AnthropicServer() as server, chat_with(server) as chat:
        assert chat.adapter.compacts_natively("claude-opus-5-5")
        assert await chat.adapter.list_models() == sorted(model.id for model in (SONNET, HAIKU, OPUS))
        limits = chat.adapter.limits(OPUS.id)
        assert limits is not None
        assert (limits.context_window, limits.max_output_tokens) == (OPUS.window, OPUS.max_output)
        assert chat.adapter.compacts_natively(SONNET.id)
        assert chat.adapter.compacts_on_demand(SONNET.id)
        assert not chat.adapter.compacts_natively(HAIKU.id)
        assert not chat.adapter.compacts_on_demand(HAIKU.id)


async def test_a_count_equals_the_servers_count() -> None:
    """The count includes the same system prompt, tools and messages as the request (R-505)."""
    async with AnthropicServer() as server, chat_with(server, parameters=ADAPTIVE) as chat:
        chat.add("user", "Hi")
        counted = await chat.adapter.count_tokens(chat.request(compact_at=60_000))
        outcome = await chat.ask(compact_at=60_000)
    assert outcome.finished.usage is not None
    assert outcome.finished.usage.prompt_tokens == counted
    assert not server.refusals
