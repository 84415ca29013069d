"""Errors, interrupted streams and refusals of the Messages API: received text is kept, and the error names a remedy."""

from __future__ import annotations

import logging
import os
from typing import Any

import msgspec
import pytest

from codecompanion import errors as ours
from codecompanion.adapters.base import ChatRequest
from codecompanion.model.messages import ReasoningPart
from tests.adapters.anthropic_chat import ClaudeChat, chat_with
from tests.providers.anthropic.answers import (
    CLOSE,
    DROP,
    END,
    Call,
    Reply,
    Text,
    Thinking,
    broken_by_error,
    failure,
    plain,
    rate_limited,
    reply,
)
from tests.providers.anthropic.models import OPUS, SONNET
from tests.providers.anthropic.server import AnthropicServer

ADAPTIVE = {"thinking": {"type": "adaptive"}}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(401), ours.AuthenticationFailed),
        (failure(403), ours.AuthenticationFailed),
        (failure(404, "model: claude-x"), ours.ModelNotFound),
        (failure(413, "Request exceeds the maximum size"), ours.ContextOverflow),
        (failure(400, "prompt is too long: 210000 tokens > 200000 maximum"), ours.ContextOverflow),
        (failure(400, "max_tokens: too large"), ours.RequestRejected),
        (plain(b"<html><title>Log in</title>", content_type="text/html"), ours.MalformedReply),
        (plain(b'{"object":"chat.completion"}'), ours.MalformedReply),
        (plain(b'{"object":"chat.completion"}', content_type="application/json"), ours.MalformedReply),
        (plain(b'{"type":"error","error":{"type":"api_error","message":"x"}}'), ours.Overloaded),
        (plain(b'data: {"choices":[]}\n\n', content_type="text/event-stream"), ours.MalformedReply),
    ],
)
async def test_an_error_has_its_class_and_is_not_retried(answer: Any, kind: type[Exception]) -> None:
    """The error is one sentence, and only one request is sent."""
    async with AnthropicServer([answer]) as server, chat_with(server, max_retries=0) as chat:
        outcome = await chat.ask("Hi")
    assert type(outcome.error) is kind
    assert "\n" not in str(outcome.error)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [failure(529), failure(500), rate_limited(), reply("x", **broken_by_error(0))],
)
async def test_temporary_trouble_is_retried_and_reported(answer: Any) -> None:
    """The request is retried only before any part of the reply has arrived (lesson 38)."""
    async with AnthropicServer([answer, reply("fine")]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert outcome.text == "fine"
    assert len(outcome.retries) == 1


@pytest.mark.parametrize(
    "faults",
    [{"break_after": 5, "break_with": DROP}, {"break_after": 5, "break_with": CLOSE}, broken_by_error(5)],
    ids=["dropped", "closed", "error"],
)
async def test_a_reply_without_its_end_is_marked_as_interrupted(faults: dict[str, Any]) -> None:
    """Lesson 39: whatever interrupts the reply, the turn reports the part that was kept."""
    async with AnthropicServer([reply("Hello, world", **faults)]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert isinstance(outcome.error, ours.StreamCut)
    assert outcome.text.startswith("Hell")
    assert "kept" not in str(outcome.error)


async def test_half_an_event_at_the_end_is_an_interruption() -> None:
    """It is not a malformed reply, so it can be continued."""
    broken = reply("Hello, world", break_at_byte=1100, break_with=END)
    async with AnthropicServer([broken]) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
    assert isinstance(outcome.error, ours.StreamCut)


def edit_thinking(chat: ClaudeChat) -> None:
    """Change the model's thinking, but not its signature."""
    for index, message in enumerate(chat.view):
        if not isinstance(message.content, str):
            parts = [
                msgspec.structs.replace(part, encrypted=part.encrypted.replace("let me", "LET ME"))
                if isinstance(part, ReasoningPart)
                else part
                for part in message.content
            ]
            chat.view[index] = msgspec.structs.replace(message, content=tuple(parts))


async def test_edited_thinking_is_refused_as_such() -> None:
    """The session then sends the request again without encrypted parts (R-542)."""
    script = [Reply((Thinking("let me see"), Text("I look."), Call("now"))), reply("noon")]
    async with AnthropicServer(script) as server, chat_with(server, parameters=ADAPTIVE) as chat:
        await chat.ask("What time is it?")
        edit_thinking(chat)
        refused = await chat.ask()
        assert type(refused.error) is ours.EncryptedRefused
        assert len(server.requests) == 2
        again = await chat.ask(send_encrypted=False)
        assert again.text == "noon"
        assert "thinking" not in [kind for _, kinds in chat.last_kinds for kind in kinds]


async def test_an_edited_history_makes_later_thinking_droppable() -> None:
    """Models with preserved thinking refuse the history once.

    Then the server is asked to drop the thinking (client-side editing).
    """
    turn = Reply((Thinking("let me see"), Text("I look."), Call("now")))
    script = [turn, reply("noon", thinking="hm"), reply("later", thinking="so"), reply("last", thinking="ah")]
    async with AnthropicServer(script) as server, chat_with(server, fields={"model": OPUS.id}) as chat:
        await chat.ask("What time is it?")
        await chat.ask()
        cleared = next(index for index, message in enumerate(chat.view) if message.role == "tool")
        chat.view[cleared] = msgspec.structs.replace(chat.view[cleared], content="cleared", edited=True)
        outcome = await chat.ask("And now?")
        assert outcome.text == "later"
        assert chat.last_body["thinking"] == {
            "type": "adaptive",
            "block_binding": {"prefix_mismatch_behavior": "drop_block"},
        }
        await chat.ask("And then?")
    assert len(server.refusals) == 1


async def test_an_edited_history_does_not_prevent_compaction_and_counting() -> None:
    """Compaction and counting learn from the same refusal."""
    script = [reply("noon", thinking="hm"), reply(summary="all of it")]
    async with AnthropicServer(script) as server, chat_with(server, fields={"model": OPUS.id}) as chat:
        await chat.ask("What time is it?")
        chat.view[1] = msgspec.structs.replace(chat.view[1], content="What was that?")
        done = await chat.adapter.compact(chat.request(), "")
        assert done.part is not None
    script = [reply("noon", thinking="hm")]
    async with AnthropicServer(script) as server, chat_with(server, fields={"model": OPUS.id}) as chat:
        await chat.ask("What time is it?")
        chat.view[1] = msgspec.structs.replace(chat.view[1], content="What was that?")
        assert await chat.adapter.count_tokens(chat.request()) > 1_000


async def test_an_overflow_reports_its_figures() -> None:
    """The figures determine how much smaller the next request must be (R-535)."""
    async with AnthropicServer() as server, chat_with(server) as chat:
        outcome = await chat.ask("x" * 800_000)
    assert isinstance(outcome.error, ours.ContextOverflow)
    assert outcome.error.limit_tokens == SONNET.window
    assert outcome.error.prompt_tokens > SONNET.window


async def test_unsupported_cache_breakpoints_are_left_out() -> None:
    """After one refusal, breakpoints are no longer sent."""
    script = [failure(400, "system.0.cache_control: Extra inputs are not permitted"), reply("fine")]
    async with AnthropicServer(script) as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
        assert outcome.text == "fine"
        assert "cache_control" not in server.requests[-1].body.decode()


async def test_nothing_from_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, token, profile, header or URL is read from ANTHROPIC_*; the user's own betas are kept."""
    for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL", "PROFILE", "CUSTOM_HEADERS", "IDENTITY_TOKEN"):
        monkeypatch.setenv(f"ANTHROPIC_{name}", "X-Env: secret-env\nAuthorization: secret-env")
    headers = {"Anthropic-Beta": "fast-mode-2026-02-01"}
    async with AnthropicServer() as server, chat_with(server, headers=headers) as chat:
        outcome = await chat.ask("Hi", compact_at=50_000)
        await chat.adapter.list_models()
        for seen in server.requests:
            assert "secret-env" not in str(seen.headers)
            assert seen.headers["x-api-key"] == "sk-test"
            assert "authorization" not in seen.headers
    assert outcome.error is None
    betas = server.requests[0].headers["anthropic-beta"].split(",")
    assert betas == ["fast-mode-2026-02-01", "compact-2026-01-12", "context-management-2025-06-27"]
    assert os.environ["ANTHROPIC_API_KEY"].endswith("secret-env")


async def test_the_key_is_nowhere_but_in_its_header(caplog: pytest.LogCaptureFixture) -> None:
    """The key is not in errors, logs or the client's state (lesson 44)."""
    caplog.set_level(logging.DEBUG)
    async with AnthropicServer(key="other") as server, chat_with(server) as chat:
        outcome = await chat.ask("Hi")
        client = chat.adapter._connection._exchange
        assert "sk-test" not in f"{vars(client)} {client!r} {chat.adapter!r}"
    assert type(outcome.error) is ours.AuthenticationFailed
    assert "sk-test" not in f"{outcome.error} {outcome.error!r} {outcome.error.__context__!r}"
    assert "sk-test" not in caplog.text


async def test_an_impossible_setting_is_reported_before_sending() -> None:
    """The provider's answer would name neither the adapter nor the key."""
    parameters = {"tool_choice": {"type": "tool", "name": "missing"}}
    async with AnthropicServer() as server, chat_with(server, parameters=parameters) as chat:
        with pytest.raises(ours.RequestRejected, match=r"adapters\.http\.claude\.parameters"):
            chat.adapter.render(ChatRequest(messages=(chat.add("user", "Hi"),), tools=chat.fields["tools"], model="m"))
    assert not server.requests
