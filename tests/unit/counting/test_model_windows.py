"""Context windows: R-101…R-106."""

from __future__ import annotations

import pytest

from codecompanion.counting.model_windows import (
    EXACT_WINDOWS,
    FALLBACK_WINDOWS,
    FAMILY_WINDOWS,
    ModelLimits,
    ResolvedLimits,
    documented_window,
    find_window,
    resolve_limits,
)


def resolve(**given: object) -> ResolvedLimits:
    fields: dict[str, object] = {
        "chosen_window": 0,
        "user_table": {},
        "adapter_limits": ModelLimits(),
        "endpoint_limits": ModelLimits(),
        "lookup": lambda name: None,
        "default_window": 16_000,
    }
    return resolve_limits("gpt-4o", **{**fields, **given})  # type: ignore[arg-type]


def test_the_first_source_of_the_window_is_used() -> None:
    """R-101, K4: setting, then models, adapter, endpoint, table, and finally 16,000."""
    ladder = [
        ({"default_window": 16_000}, (16_000, "default")),
        ({"lookup": lambda name: ModelLimits(1)}, (1, "table")),
        ({"endpoint_limits": ModelLimits(2)}, (2, "endpoint")),
        ({"adapter_limits": ModelLimits(3)}, (3, "adapter")),
        ({"user_table": {"gpt-4o": ModelLimits(4)}}, (4, "user")),
        ({"chosen_window": 5}, (5, "user")),
    ]
    given: dict[str, object] = {}
    for fields, expected in ladder:
        given |= fields
        limits = resolve(**given)
        assert (limits.context_window, limits.source) == expected


def test_only_an_explicit_setting_counts() -> None:
    """R-103: without a setting the model is looked up, unlike in the source."""
    assert resolve(lookup=lambda name: ModelLimits(128_000)).context_window == 128_000


def test_the_setting_does_not_change_the_reply_reserve() -> None:
    """R-507."""
    limits = resolve(chosen_window=8_000, user_table={"gpt-4o": ModelLimits(0, 500)})
    assert (limits.context_window, limits.max_output_tokens) == (8_000, 500)


@pytest.mark.parametrize(
    ("window", "configured", "kept"),
    [
        (4_000, 0, 200), (8_192, 0, 409), (16_000, 0, 800), (128_000, 0, 4_096), (1_000_000, 0, 4_096),
        (200_000, 32_000, 32_000), (200_000, 100, 100), (8_192, 4_096, 4_096), (8_192, 64_000, 4_096),
    ],
)  # fmt: skip
def test_the_reply_reserve_is_configured_or_a_share_of_the_window(window: int, configured: int, kept: int) -> None:
    """R-507, R-403: the reserve is the configured size, at most half of the window.

    Else a twentieth, at most 4,096 tokens.
    """
    limits = ResolvedLimits(window, configured, "user")
    assert (limits.reply_reserve, limits.prompt_tokens) == (kept, window - kept)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-3-5-sonnet-20241022", 200_000), ("anthropic/claude-3.5-sonnet", 200_000),
        ("claude-sonnet-4-20250514", 200_000), ("claude-opus-4-1", 200_000), ("gpt-4o", 128_000),
        ("gpt-4o-mini-2024-07-18", 128_000), ("o1", 200_000), ("o1-2024-12-17", 200_000),
        ("gemini-2.0-flash", 1_048_576), ("google/gemini-2.0-flash-001", 1_048_576), ("gemini-1.5-pro", 2_097_152),
        ("openrouter/meta-llama/llama-3.3-70b-instruct", 128_000), ("llama-3.3-70b-versatile", 128_000),
        ("deepseek-chat", 64_000), ("qwen-plus", 131_072), ("glm-4-plus", 128_000),
    ],
)  # fmt: skip
def test_families_have_a_window(model: str, window: int) -> None:
    """R-104, R-106, R-255: `provider/` and dates do not count."""
    assert find_window(model) == window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-3-opus-20240229", 200_000), ("claude-3-haiku", 200_000), ("gpt-4-turbo-2024-04-09", 128_000),
        ("openai/gpt-4", 8_192), ("o1-mini", 128_000), ("llama-3.1-70b-versatile", 128_000),
        ("mixtral-8x7b-32768", 32_768), ("gemini-1.5-flash", 1_048_576), ("deepseek-coder", 64_000),
        ("qwen-turbo", 131_072),
    ],
)  # fmt: skip
def test_exact_names_precede_families(model: str, window: int) -> None:
    """R-105, R-106: o1-mini is smaller than its family."""
    assert find_window(model) == window


@pytest.mark.parametrize(
    "model", ["", "o100", "gpt-4.1", "model-v2.5k", "k", "v3kx", "my-o1", "qwen-plusher", "gemini-2.05"]
)
def test_similar_names_are_unknown(model: str) -> None:
    """R-106: a wrong window is worse than none."""
    assert find_window(model) == 0


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("claude-opus-9", 200_000), ("gpt-3.5-turbo-2023-11-06", 16_000), ("gpt-4-32k", 32_000),
        ("01-ai/yi-34b-200k", 200_000), ("phi-3-mini-128k-instruct", 128_000),
    ],
)  # fmt: skip
def test_a_name_may_contain_its_window(model: str, window: int) -> None:
    """R-406: these are CoWork's additions to the shared table."""
    assert find_window(model) == window
    assert documented_window(model) == 0


@pytest.mark.parametrize(
    ("model", "documented"),
    [
        ("claude-opus-4", 200_000), ("claude-opus-4-0", 200_000), ("claude-opus-4-20250514", 200_000),
        ("claude-opus-4-6", 0), ("claude-sonnet-4-5-20250929", 0), ("claude-sonnet-4.5", 0),
        ("gemini-1.5-pro-002", 2_097_152), ("gemini-2.0-flash-001", 1_048_576), ("gemini-2.5-pro", 0),
        ("claude-3-5-sonnet-latest", 200_000), ("claude-3-7-sonnet", 0),
    ],
)  # fmt: skip
def test_a_later_version_of_a_family_has_its_own_window(model: str, documented: int) -> None:
    """R-104, R-106: the document covers Claude 4, not its successors; the family is only a fallback for those."""
    assert documented_window(model) == documented


def test_the_longest_family_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    """R-106."""
    monkeypatch.setitem(FAMILY_WINDOWS, "gpt-4o-mini", 7)
    assert find_window("gpt-4o-mini-2024-07-18") == 7
    assert find_window("gpt-4o-2024-08-06") == 128_000


def test_every_name_in_the_tables_matches_itself() -> None:
    """R-104, R-105, R-406: no other entry takes precedence over its own."""
    for name, window in {**FAMILY_WINDOWS, **EXACT_WINDOWS}.items():
        assert documented_window(name) == find_window(name) == window
    for name, window in FALLBACK_WINDOWS.items():
        assert (documented_window(name), find_window(name)) == (0, window)
