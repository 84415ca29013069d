"""The provider's own compaction through the adapter: at a threshold, on demand, and afterwards (R-534 … R-542)."""

from __future__ import annotations

from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.base import CompactionBegun, CompactionDone
from codecompanion.errors import EncryptedRefused, RequestRejected
from codecompanion.model.messages import CompactionPart
from tests.adapters.anthropic_chat import ClaudeChat, chat_with
from tests.providers.anthropic.answers import Call, Reply, Text, Thinking, failure, reply
from tests.providers.anthropic.models import HAIKU, OPUS, SONNET
from tests.providers.anthropic.server import AnthropicServer

LONG = "x" * 200_000
"""About 55,600 tokens by the server's count."""
AT = {"compact_at": 50_000}


def compactions(outcome: Any) -> list[CompactionDone]:
    return [event for event in outcome.events if isinstance(event, CompactionDone)]


async def test_a_threshold_compaction_starts_the_next_request() -> None:
    """The block comes first, followed by the rules; the context size is that of the reply."""
    script = [reply("fine"), reply("next", thinking="hm"), reply("third")]
    async with AnthropicServer(script) as server, chat_with(server) as chat:
        chat.add("user", "RULES", tag="rules")
        outcome = await chat.ask(LONG, **AT)
        kinds = [type(event).__name__ for event in outcome.events]
        assert kinds[:2] == ["CompactionBegun", "CompactionDone"]
        assert outcome.text == "fine"
        usage, passes = outcome.finished.usage, outcome.finished.other_passes
        assert usage is not None
        assert usage.prompt_tokens < 5_000 < 50_000 < passes[0].prompt_tokens
        await chat.ask("And now?", **AT)
        assert chat.last_kinds == [("assistant", ["compaction"]), ("user", ["text", "text"]), *chat.last_kinds[2:]]
        assert chat.last_body["messages"][1]["content"][0]["text"] == "RULES"
        await chat.ask("And then?", **AT)
        assert sum(kind == "compaction" for _, kinds in chat.last_kinds for kind in kinds) == 1
    assert not server.refusals


def long_ago(chat: ClaudeChat) -> None:
    """Begin the chat with a long message that was answered."""
    chat.add("user", LONG)
    chat.add("assistant", "I have read it.")


@pytest.mark.parametrize("model", [SONNET.id, OPUS.id])
async def test_a_tool_turn_continues_after_a_compaction(model: str) -> None:
    """The open question is between block and reply (R-551), which preserved thinking treats as a changed conversation.

    The adapter learns this from the first refusal; from then on the server drops such thinking.
    """
    script = [
        Reply((Thinking("let me see"), Text("I look."), Call("now"))),
        reply("noon", thinking="hm"),
        reply("again", thinking="so"),
    ]
    async with AnthropicServer(script) as server, chat_with(server, fields={"model": model}) as chat:
        long_ago(chat)
        await chat.ask("What time is it?", **AT)
        second = await chat.ask(**AT)
        assert second.text == "noon"
        assert chat.last_kinds[:2] == [("assistant", ["compaction"]), ("user", ["text"])]
        third = await chat.ask("And now?", **AT)
        assert third.text == "again"
    assert len(server.refusals) == (model == OPUS.id)


async def test_a_second_compaction_replaces_the_first() -> None:
    """Only the newest block is sent."""
    async with AnthropicServer() as server, chat_with(server) as chat:
        for number in range(3):
            outcome = await chat.ask(f"{number} {LONG}", **AT)
            assert len(compactions(outcome)) == 1
        await chat.ask("done", **AT)
        assert [kind for _, kinds in chat.last_kinds for kind in kinds].count("compaction") == 1
    assert not server.refusals


async def test_a_failed_compaction_is_reported_and_changes_nothing() -> None:
    """With `content: null` (R-537), the reply is generated from the whole prompt."""
    script = [reply("fine", compaction_fails=True), reply("next")]
    async with AnthropicServer(script) as server, chat_with(server) as chat:
        outcome = await chat.ask(LONG, **AT)
        assert compactions(outcome) == [CompactionDone(None)]
        assert outcome.text == "fine"
        await chat.ask("And now?", **AT)
        assert chat.last_kinds[0] == ("user", ["text"])
    assert not server.refusals


async def test_the_provider_pauses_after_a_compaction_if_asked() -> None:
    """The stop reason reports the pause, and the next request continues from the block."""
    options = MessagesOptions(pause_after_compaction=True, compaction_instructions="Keep names.")
    async with AnthropicServer([reply(), reply("fine")]) as server, chat_with(server, options) as chat:
        long_ago(chat)
        outcome = await chat.ask("Go on.", **AT)
        edit = chat.last_body["context_management"]["edits"][0]
        assert (edit["instructions"], edit["pause_after_compaction"]) == ("Keep names.", True)
        assert outcome.finished.stop == "compacted"
        assert outcome.finished.usage is None
        assert len(outcome.finished.other_passes) == 1
        second = await chat.ask(**AT)
        assert second.text == "fine"
    assert not server.refusals


@pytest.mark.parametrize("model", [SONNET.id, OPUS.id])
async def test_a_compaction_on_demand_returns_a_signed_block(model: str) -> None:
    """The block replaces the messages it summarises, uses its own beta, and needs no threshold compaction."""
    script = [reply("one", thinking="hm"), reply(summary="all of it"), reply("two", thinking="so"), reply("three")]
    async with AnthropicServer(script) as server, chat_with(server, fields={"model": model}) as chat:
        await chat.ask("First")
        done = await chat.adapter.compact(chat.request(**AT), "Keep the file names.")
        body = chat.last_body
        assert "context_management" not in body
        assert body["compaction"]["instructions"].endswith("Keep the file names.")
        assert done.part is not None
        assert done.part.text == "all of it"
        assert done.usage is not None
        assert done.part.tokens == done.usage.output_tokens > 0
        assert done.usage.prompt_tokens > 1_000
        chat.compact(done.part)
        await chat.ask("Second", **AT)
        assert chat.last_kinds == [("assistant", ["compaction"]), ("user", ["text"])]
        assert server.requests[-1].headers["anthropic-beta"] == "compact-2026-09-04"
        await chat.ask("Third", **AT)
    assert not server.refusals


async def test_a_compaction_on_demand_works_after_one_at_a_threshold() -> None:
    """The unsigned block cannot be in that request: its summary is sent as text."""
    script = [reply("fine", summary="the beginning"), reply(summary="everything"), reply("next")]
    async with AnthropicServer(script) as server, chat_with(server) as chat:
        await chat.ask(LONG, **AT)
        done = await chat.adapter.compact(chat.request(**AT), "")
        assert "the beginning" in chat.last_body["messages"][0]["content"][0]["text"]
        assert "instructions" not in chat.last_body["compaction"]
        assert done.part is not None
        chat.compact(done.part)
        await chat.ask("next", **AT)
    assert not server.refusals


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "tool_use", "end_turn", "model_context_window_exceeded"])
async def test_a_compaction_without_a_summary_is_not_an_error(stop: str) -> None:
    """After a 200 without a block, nothing changes and the usage is still reported."""
    async with AnthropicServer([reply(stop=stop)]) as server, chat_with(server) as chat:
        chat.add("user", "Hi")
        done = await chat.adapter.compact(chat.request(), "")
    assert done.part is None
    assert done.usage is not None
    assert done.usage.prompt_tokens > 1_000


async def test_options_incompatible_with_a_compaction_are_left_out() -> None:
    """Stop sequences, a forced tool and an output format are omitted from the request."""
    parameters = {
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
    }
    async with AnthropicServer([reply(summary="s")]) as server, chat_with(server, parameters=parameters) as chat:
        chat.add("user", "Hi")
        done = await chat.adapter.compact(chat.request(), "")
        assert chat.last_body["output_config"] == {"effort": "low"}
    assert done.part is not None
    assert not server.refusals


async def test_an_overloaded_compaction_is_retried() -> None:
    """529 `compaction_unavailable`."""
    script = [failure(529, code="compaction_unavailable"), reply(summary="s")]
    async with AnthropicServer(script) as server, chat_with(server) as chat:
        chat.add("user", "Hi")
        done = await chat.adapter.compact(chat.request(), "")
    assert done.part is not None
    assert len(server.requests) == 2


async def test_a_model_without_compaction_is_not_asked_for_it() -> None:
    """The model is recognised by name.

    If compaction is forced, the refusal is learned and the request sent without it (R-534).
    """
    fields = {"model": HAIKU.id}
    async with AnthropicServer() as server:
        async with chat_with(server, fields=fields) as chat:
            assert not chat.adapter.compacts_natively(HAIKU.id)
            await chat.ask("Hi", **AT)
            assert "context_management" not in chat.last_body
        assert not server.refusals
        async with chat_with(server, MessagesOptions(compaction=True), fields) as chat:
            assert chat.adapter.compacts_natively(HAIKU.id)
            assert chat.adapter.compacts_on_demand(HAIKU.id)
            outcome = await chat.ask("Hi", **AT)
            assert outcome.text == "You said: Hi"
            assert not chat.adapter.compacts_natively(HAIKU.id)
            with pytest.raises(RequestRejected, match="does not support compaction"):
                await chat.adapter.compact(chat.request(), "")
            assert not chat.adapter.compacts_on_demand(HAIKU.id)
    assert len(server.refusals) == 2


async def test_compaction_can_be_disabled() -> None:
    """With `compaction = false`, the adapter never compacts (R-534)."""
    async with AnthropicServer() as server, chat_with(server, MessagesOptions(compaction=False)) as chat:
        assert not chat.adapter.compacts_natively(SONNET.id)
        assert not chat.adapter.compacts_on_demand(SONNET.id)
        outcome = await chat.ask(LONG, **AT)
    assert not compactions(outcome)


def tampered(chat: ClaudeChat) -> None:
    """Change a letter in the provider's compaction."""
    for index, message in enumerate(chat.view):
        part = message.compaction
        if part is not None:
            edited = CompactionPart(part.origin, part.encrypted.replace("all of it", "half of it"), part.text)
            chat.view[index] = type(message)(id="x", role="assistant", content=(edited,), tag=message.tag)


async def test_an_edited_compaction_is_refused_as_such() -> None:
    """The error lets the session rebuild the view without the compaction; its text can still be sent."""
    async with AnthropicServer([reply(summary="all of it")]) as server, chat_with(server) as chat:
        chat.add("user", "Hi")
        done = await chat.adapter.compact(chat.request(), "")
        assert done.part is not None
        chat.compact(done.part)
        tampered(chat)
        refused = await chat.ask("Go on", **AT)
        assert type(refused.error) is EncryptedRefused
        assert refused.error.code == "compaction_content_mismatch"
        again = await chat.ask(**AT, send_encrypted=False)
        assert again.error is None
        assert "all of it" in chat.last_body["messages"][0]["content"][0]["text"]


async def test_the_count_of_a_compacted_chat_excludes_replaced_messages() -> None:
    """Messages before the block are not counted, later ones are."""
    async with AnthropicServer() as server, chat_with(server) as chat:
        long_ago(chat)
        outcome = await chat.ask("Go on.", **AT)
        counted = await chat.adapter.count_tokens(chat.request(**AT))
    usage = outcome.finished.usage
    assert usage is not None
    assert usage.prompt_tokens < counted < usage.prompt_tokens + 200
    assert not server.refusals


async def test_an_interrupted_stream_keeps_the_compaction() -> None:
    """The block has its own event and is complete before the reply starts."""
    async with AnthropicServer([reply("fine", break_after=6)]) as server, chat_with(server, max_retries=0) as chat:
        outcome = await chat.ask(LONG, **AT)
    assert outcome.error is not None
    assert isinstance(outcome.events[0], CompactionBegun)
    assert compactions(outcome)[0].part is not None
