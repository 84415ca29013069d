"""Anthropic's errors, as responses and as stream events."""

from __future__ import annotations

from typing import Any

import httpx2
import msgspec
import pytest

import codecompanion.errors as ours
from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception, error_from_payload

ENDPOINT = Endpoint(
    name="claude", base_url="https://api.anthropic.com", key_label="ANTHROPIC_API_KEY", model="claude-x"
)
REQUEST = httpx2.Request("POST", "https://api.anthropic.com/v1/messages")


def body(kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    details = {"details": {"error_code": code}} if code else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": "req_1"}


def raised(status: int, answer: dict[str, Any], **headers: str) -> ours.AdapterError:
    """Return our error for an error raised by the transport."""
    response = httpx2.Response(status, json=answer, headers=headers, request=REQUEST)
    return error_from_exception(httpx2.HTTPStatusError("refused", request=REQUEST, response=response), ENDPOINT)


INVALID = "invalid_request_error"
CASES = [
    (400, body(INVALID, "max_tokens: Field required"), ours.RequestRejected, False),
    (401, body("authentication_error", "invalid x-api-key"), ours.AuthenticationFailed, False),
    (402, body("billing_error", "Your payment failed"), ours.RateLimited, False),
    (400, body(INVALID, "Your credit balance is too low. Go to Plans & Billing."), ours.RateLimited, False),
    (403, body("permission_error", "Your key has no access to this resource"), ours.AuthenticationFailed, False),
    (404, body("not_found_error", "model: claude-sonet-4-5"), ours.ModelNotFound, False),
    (404, body("not_found_error", "Not found"), ours.RequestRejected, False),
    (413, body("request_too_large", "Request exceeds the maximum size"), ours.ContextOverflow, False),
    (429, body("rate_limit_error", "This request would exceed your rate limit"), ours.RateLimited, True),
    (500, body("api_error", "Internal server error"), ours.Overloaded, True),
    (504, body("timeout_error", "Request timed out"), ours.NetworkFailed, True),
    (529, body("overloaded_error", "Overloaded"), ours.Overloaded, True),
    (529, body("overloaded_error", "Try again", "compaction_unavailable"), ours.Overloaded, True),
    (400, body(INVALID, "compact first", "compaction_incomplete_turn"), ours.RequestRejected, False),
    (400, body(INVALID, "nothing", "compaction_nothing_to_summarize"), ours.RequestRejected, False),
]


@pytest.mark.parametrize(("status", "answer", "kind", "retryable"), CASES)
def test_a_status_is_mapped_to_its_class(
    status: int, answer: dict[str, Any], kind: type[Exception], retryable: bool
) -> None:
    """The code decides if there is one, otherwise the type."""
    error = raised(status, answer)
    assert type(error) is kind
    assert error.retryable is retryable
    assert error.code == answer["error"].get("details", {}).get("error_code", answer["error"]["type"])
    assert str(error).startswith("claude: ")


ENCRYPTED_CODES = [
    *("compaction_signature_invalid", "compaction_content_mismatch", "compaction_tool_changes_mismatch"),
    *("compaction_block_ambiguous", "compaction_block_misplaced", "compaction_too_many_tool_references"),
]


@pytest.mark.parametrize("code", ENCRYPTED_CODES)
def test_a_rejected_compaction_has_its_own_error(code: str) -> None:
    """The session then continues from the full history."""
    error = raised(400, body(INVALID, "the block cannot be used", code))
    assert type(error) is ours.EncryptedRefused
    assert error.code == code


@pytest.mark.parametrize(
    "message",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1.content.2: Invalid `data` in `redacted_thinking` block",
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different chat.",
        "messages.3.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
        "modified. These blocks must remain as they were in the original response.",
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "
        "is enabled, a final `assistant` message must start with a thinking block.",
    ],
)
def test_rejected_thinking_has_its_own_error(message: str) -> None:
    """The error has no code, only a message."""
    assert type(raised(400, body(INVALID, message))) is ours.EncryptedRefused


@pytest.mark.parametrize(
    ("message", "prompt", "limit"),
    [
        ("prompt is too long: 210,000 tokens > 200000 maximum", 210_000, 200_000),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or "
            "`max_tokens` and try again",
            *(190_000, 200_000),
        ),
    ],
)
def test_an_overflow_reports_by_how_much(message: str, prompt: int, limit: int) -> None:
    """The token counts decide how much smaller the next request must be (R-535)."""
    error = raised(400, body(INVALID, message))
    assert isinstance(error, ours.ContextOverflow)
    assert (error.prompt_tokens, error.limit_tokens) == (prompt, limit)


@pytest.mark.parametrize(
    ("kind", "code", "ours_"),
    [
        ("overloaded_error", None, ours.Overloaded),
        ("overloaded_error", "compaction_unavailable", ours.Overloaded),
        ("api_error", None, ours.Overloaded),
        ("timeout_error", None, ours.Overloaded),
        ("rate_limit_error", None, ours.RateLimited),
        ("authentication_error", None, ours.AuthenticationFailed),
        ("invalid_request_error", None, ours.RequestRejected),
        ("invalid_request_error", "compaction_signature_invalid", ours.EncryptedRefused),
    ],
)
def test_an_error_event_is_mapped_to_its_class(kind: str, code: str | None, ours_: type[Exception]) -> None:
    """The event comes with status 200, during a stream or before its first word."""
    error = error_from_payload(msgspec.json.encode(body(kind, "something", code)), ENDPOINT)
    assert type(error) is ours_


def test_retry_after_is_read() -> None:
    """In seconds."""
    error = raised(429, body("rate_limit_error", "slow down"), **{"retry-after": "7"})
    assert isinstance(error, ours.RateLimited)
    assert error.retry_after_s == 7
