"""Windows and prices from the package's own data."""

from __future__ import annotations

import socket
from functools import partial

import pytest

from codecompanion.adapters.catalog import limits_of, lookup, price_usd
from codecompanion.counting.model_windows import (
    EXACT_WINDOWS,
    FAMILY_WINDOWS,
    ModelLimits,
    documented_window,
    find_window,
    resolve_limits,
)
from codecompanion.model.messages import Usage


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail on any connection: the data must come with the package."""

    def refuse(*_: object) -> None:
        raise AssertionError("the catalog used the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    lookup.cache_clear()


@pytest.mark.parametrize(
    ("address", "model", "window"),
    [
        ("https://api.openai.com/v1", "gpt-4o", 128_000),
        ("", "gpt-4o", 128_000),
        ("https://openrouter.ai/api/v1", "openai/gpt-4o", 128_000),
        ("https://gateway.corp.test/v1", "gpt-4o", 128_000),
        ("https://gateway.corp.test/v1", "openai/gpt-4o", 128_000),
    ],
)
def test_a_known_model_has_a_window(address: str, model: str, window: int) -> None:
    """The window is found directly, through a router and through an unknown gateway."""
    facts = lookup(address, model)
    assert facts is not None
    assert facts.context_window == window


@pytest.mark.parametrize(
    ("address", "model"),
    [("https://api.openai.com/v1", "no-such-model"), ("", ""), ("https://gateway.corp.test/v1", "my-own-model")],
)
def test_an_unknown_model_has_no_data(address: str, model: str) -> None:
    """R-506: the caller falls back visibly."""
    assert lookup(address, model) is None


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost:11434/v1",
        "http://127.0.0.1:8080",
        "http://[::1]:1/v1",
        "http://192.168.1.5/v1",
        "http://gpu.local/v1",
    ],
)
def test_the_table_does_not_apply_to_a_local_server(address: str) -> None:
    """Lesson 30: the model's maximum is not the loaded window."""
    assert lookup(address, "gpt-4o") is None


def test_a_call_has_a_price() -> None:
    """Cached input is cheaper than fresh input."""
    facts = lookup("https://api.openai.com/v1", "gpt-4o")
    assert facts is not None
    fresh = price_usd(facts, Usage(input_tokens=1000, output_tokens=100))
    cached = price_usd(facts, Usage(input_tokens=100, cache_read_tokens=900, output_tokens=100))
    assert fresh is not None
    assert cached is not None
    assert 0 < cached < fresh


def test_passes_are_priced_together() -> None:
    """A provider's own compaction is billed with the reply: figures from a recorded Anthropic stream (R-538)."""
    facts = lookup("https://api.anthropic.com", "claude-sonnet-4-5")
    assert facts is not None
    reply, compaction = (
        Usage(input_tokens=23_000, output_tokens=1_000),
        Usage(input_tokens=180_000, output_tokens=3_500),
    )
    both = price_usd(facts, reply, compaction)
    assert both is not None
    assert both == pytest.approx((price_usd(facts, reply) or 0) + (price_usd(facts, compaction) or 0))
    assert both >= (203_000 * 3 + 4_500 * 15) / 1e6


def test_the_small_table_is_used_if_the_large_one_has_no_entry() -> None:
    """R-104…R-106: only in that case; an undocumented model on this machine stays unknown (lesson 30)."""
    for address, model in (("https://api.groq.com/openai/v1", "llama-3.1-70b-versatile"), ("", "qwen-turbo")):
        facts = lookup(address, model)
        assert facts is None or facts.context_window == 0
    assert limits_of("https://api.groq.com/openai/v1", "llama-3.1-70b-versatile") == ModelLimits(128_000)
    assert limits_of("", "qwen-turbo") == ModelLimits(131_072)
    assert limits_of("https://api.openai.com/v1", "gpt-4o") == ModelLimits(128_000)
    assert limits_of("http://localhost:11434/v1", "gpt-3.5-turbo") is None
    assert limits_of("http://localhost:11434/v1", "phi-3-mini-128k-instruct") is None
    assert limits_of("https://api.openai.com/v1", "no-such-model") is None
    assert limits_of("", "") is None


@pytest.mark.parametrize(
    ("address", "model", "window"),
    [
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.0-flash", 1_048_576),
        ("https://openrouter.ai/api/v1", "google/gemini-2.0-flash-001", 1_048_576),
        ("", "gemini-1.5-pro", 2_097_152),
        ("https://api.anthropic.com", "claude-sonnet-4-20250514", 200_000),
        ("https://api.openai.com/v1", "gpt-4o-mini", 128_000),
        ("https://api.deepseek.com", "deepseek-chat", 64_000),
    ],
)
def test_documented_figures_override_rounded_ones(address: str, model: str, window: int) -> None:
    """R-104, R-106: 1,048,576 takes precedence over the package's 1,000,000."""
    assert limits_of(address, model) == ModelLimits(window)


@pytest.mark.parametrize("model", [*EXACT_WINDOWS, *FAMILY_WINDOWS])
def test_a_documented_window_is_the_same_at_every_address(model: str) -> None:
    """R-104, R-105: every policy and even a local proxy get the same window; a server's own report takes precedence."""
    addresses = ("", "https://api.openai.com/v1", "https://openrouter.ai/api/v1", "http://localhost:4000/v1",
                 "http://192.168.1.5:8000/v1", "https://gateway.corp.test/v1")  # fmt: skip
    found = {
        resolve_limits(
            model, chosen_window=0, user_table={}, adapter_limits=ModelLimits(), endpoint_limits=ModelLimits(),
            lookup=partial(limits_of, address), default_window=default,
        )
        for address in addresses for default in (16_000, 32_000, 100_000, 128_000)
    }  # fmt: skip
    assert {(limits.context_window, limits.source) for limits in found} == {(documented_window(model), "table")}


@pytest.mark.parametrize("model", ["claude-opus-4-6", "gpt-3.5-turbo"])
def test_a_family_never_narrows_the_packages_entry(model: str) -> None:
    """R-406: the package lists later versions, and models that only the catch-all of CoWork's table matches."""
    facts = lookup("", model)
    assert facts is not None
    assert limits_of("", model) == ModelLimits(facts.context_window)
    assert facts.context_window > find_window(model)
