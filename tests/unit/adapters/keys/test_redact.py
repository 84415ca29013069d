"""Redaction of keys in texts (lesson 44)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.keys.redact import _KEY_SHAPES, HIDDEN, plain_url, redact


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcDEF123456.",
        "Incorrect API key provided: sk-abc***********wxyz.",
        "key AIzaSyA1234567890abcdefghijklmnopqrstu is bad",
        "Authorization: Bearer abcdefgh12345678",
        '{"api_key": "0123456789abcdef"}',
        "x-api-key=0123456789abcdef",
        "token ghp_0123456789abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "gsk_0123456789abcdef and xai-0123456789abcdef",
    ],
)
def test_text_that_looks_like_a_key_is_redacted(text: str) -> None:
    """Keys that are not ours are redacted, too: a provider's error message may echo a mistyped one."""
    shown = redact(text)
    assert HIDDEN in shown
    for word in ("abcDEF", "wxyz", "SyA123", "abcdefgh1", "0123456789", "c2lnbm"):
        assert word not in shown


@pytest.mark.parametrize(
    "text",
    [
        "Check the API key and the account.",
        "openai: the key in OPENAI_API_KEY was refused (401). Check it, or choose another adapter with ga.",
        "The model `gpt-4o-2024-08-06` does not exist",
        "Authorization documentation is at https://platform.openai.com/docs/authentication",
        "The task-oriented risk-averse desk-bound model hf is not rk",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    """A sentence that consists of `[hidden]` is useless."""
    assert redact(text) == text


PIECES = st.sampled_from(
    ["sk-", "task_", "gsk_", "hf_", "xai-", "github_pat_", "r8-",
     "AIza", "eyJ", "Bearer ", "bearer\t", "API-key: ", "apikey=", "Authorization", '": "',
     ".", "…", "0123456789abcdef", "x" * 20, " ", "é", "\u212a", "apı\u212aey=", "\n", "-", "*"]
)  # fmt: skip


@pytest.mark.sweep
@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join) | st.from_regex(_KEY_SHAPES.pattern))
def test_searching_only_where_a_key_can_begin_redacts_the_same(text: str) -> None:
    """The pattern alone is the reference, and takes thirty times as long over a chat's text."""
    assert redact(text) == _KEY_SHAPES.sub(HIDDEN, text)


def test_secrets_are_redacted_in_any_form() -> None:
    """Longer secrets are replaced first, so that no part of one remains."""
    assert redact("a hunter2hunter2 b hunter2", ("hunter2", "hunter2hunter2", "a")) == f"a {HIDDEN} b {HIDDEN}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@api.test/v1?key=abc#x", "https://api.test/v1"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("http://[::1", HIDDEN),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_credentials(url: str, shown: str) -> None:
    """Query strings and user info contain keys at some gateways."""
    assert plain_url(url) == shown


def test_an_endpoints_repr_has_no_secrets() -> None:
    """Endpoints are passed to log calls, so their repr must not contain secrets."""
    endpoint = Endpoint(name="a", secrets=("hunter2",))
    assert "hunter2" not in f"{endpoint!r} {endpoint}"
    assert endpoint.say("hunter2 was refused") == f"a: {HIDDEN} was refused"
