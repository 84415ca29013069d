"""The fake Messages server refuses bad requests before it reads messages, and works with the official SDK."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.providers.anthropic.models import MODELS, SONNET
from tests.providers.anthropic.prompt import prompt_of
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.tests.anthropic.bodies import (
    CALL,
    TOOL,
    assistant,
    body,
    calling,
    check_pair,
    refusal_of,
    text,
    user,
)


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"x_api_key": None}, "x-api-key header is required"),
        ({"x_api_key": ""}, "x-api-key header is required"),
        ({"x_api_key": None, "authorization": "Bearer "}, "x-api-key header is required"),
        ({"x_api_key": "sk-secret"}, "invalid x-api-key"),
        ({"x_api_key": None, "authorization": "Bearer sk-secret"}, "invalid x-api-key"),
    ],
)
def test_a_request_without_key_or_with_a_wrong_one_is_refused(headers: dict[str, Any], words: str) -> None:
    """The status is 401; the refusal does not repeat the key."""
    refusal = refusal_of(body(), **headers)
    assert refusal is not None
    assert (refusal.status, refusal.type) == (401, "authentication_error")
    assert words in refusal.message
    assert "secret" not in refusal.message


def test_a_key_is_accepted_in_either_header() -> None:
    """The SDK may send it as a bearer token; a server without a key does not require one."""
    assert refusal_of(body()) is None
    assert refusal_of(body(), x_api_key=None, authorization="Bearer sk-test") is None
    assert refusal_of(body(), x_api_key=None, server=AnthropicServer(key="")) is None


def test_a_request_needs_a_version_and_betas_that_exist() -> None:
    """A misspelt beta has an error of its own."""
    for headers, words in (
        ({"anthropic_version": None}, "anthropic-version: header is required"),
        ({"anthropic_version": "2024-01-01"}, "is not a valid version"),
        ({"anthropic_beta": "compact-2026-09-05"}, "Unexpected value(s) `compact-2026-09-05`"),
    ):
        refusal = refusal_of(body(), **headers)
        assert refusal is not None
        assert words in refusal.message
    assert refusal_of(body(), "compact-2026-09-04", "context-management-2025-06-27") is None
    assert refusal_of(body(), anthropic_version="2023-06-01") is None


def test_unknown_models_and_paths_are_not_found() -> None:
    """As recorded, the message is the name of the model."""
    for request, path, message in (
        (body(model="claude-sonet-4-5"), "/v1/messages", "model: claude-sonet-4-5"),
        (body(), "/v1/message", "Not found"),
        (body(), "/v1/v1/messages", "Not found"),
    ):
        refusal = refusal_of(request, path=path)
        assert refusal is not None
        assert (refusal.status, refusal.type, refusal.message) == (404, "not_found_error", message)


def test_an_invalid_or_too_large_body_is_refused() -> None:
    """The whole request counts towards the limit of 32 MB."""
    refusal = refusal_of(b"{")
    assert refusal is not None
    assert "not valid JSON" in refusal.message
    for size, status in ((32 * 1024 * 1024 + 1, 413), (1024, 400)):
        refusal = refusal_of(b"x" * size)
        assert refusal is not None
        assert refusal.status == status


def test_a_prompt_longer_than_the_window_is_refused_by_the_servers_own_count() -> None:
    """Tools, system prompt and results count; the reply counts only on models that reserve room for it."""
    request = calling(CALL, system="s" * 500, tools=[{**TOOL, "description": "d" * 500}])
    tokens = prompt_of(request).tokens
    assert tokens > 2 * 500 // 4
    for window, refused in ((tokens, False), (tokens - 1, True)):
        server = AnthropicServer(models=(replace(SONNET, window=window),))
        refusal = refusal_of(request, server=server)
        assert (refusal is not None) is refused
        if refusal:
            assert refusal.message == f"prompt is too long: {tokens} tokens > {tokens - 1} maximum"
    for window, refused in ((tokens + 2048, False), (tokens + 2047, True)):
        server = AnthropicServer(models=(replace(SONNET, window=window, refuses_overrun=True),))
        refusal = refusal_of(request, server=server)
        assert (refusal is not None) is refused
        if refusal:
            assert "input length and `max_tokens` exceed context limit" in refusal.message


def test_the_role_of_the_first_message_is_an_option() -> None:
    """The live endpoint was seen to accept a leading assistant message; a compaction block may always come first."""
    request = body(assistant(text()), user())
    assert refusal_of(request) is None
    refusal = refusal_of(request, server=AnthropicServer(leading_assistant=False))
    assert refusal is not None
    assert refusal.message == 'messages: first message must use the "user" role'


def test_system_messages_have_their_place_on_models_that_take_them() -> None:
    """They must follow a user message, and be last or before an assistant message."""
    system = {"role": "system", "content": "be brief"}
    opus = {"model": "claude-opus-5-5"}
    assert refusal_of(body(user(), system, **opus)) is None
    assert refusal_of(body(user(), system, assistant(text()), user(), **opus)) is None
    for messages, words in (
        ([system, user()], "must follow a user message"),
        ([user(), assistant(text()), system], "must follow a user message"),
        ([user(), system, user()], "must be last"),
    ):
        check_pair(body(*messages, **opus), words, body(**opus))


def test_counting_takes_no_max_tokens_and_counts_prompts_over_the_window() -> None:
    """Otherwise the same rules apply; a conversation that ends with the assistant can be counted."""
    path = "/v1/messages/count_tokens"
    request = {key: value for key, value in body(user(), assistant(text("So"))).items() if key != "max_tokens"}
    assert refusal_of(request, path=path) is None
    check_pair({**request, "max_tokens": 1}, "max_tokens: Extra inputs", request, path=path)
    check_pair({**request, "messages": [user(text(""))]}, "must be non-empty", request, path=path)
    server = AnthropicServer(models=(replace(SONNET, window=1), *MODELS[1:]))
    assert refusal_of(request, path=path, server=server) is None
