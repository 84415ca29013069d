"""R-244: the budget of code tokens for a model."""

from __future__ import annotations

import pytest

from codecompanion.retrieval.budgets import budget_in_window, token_budget


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        ("claude-3-opus", 50_000),
        ("Claude 3 Opus", 50_000),
        ("claude-3-opus-20240229", 50_000),
        ("claude-3-sonnet", 50_000),
        ("claude-3-haiku-20240307", 20_000),
        ("claude-sonnet-4-20250514", 50_000),
        ("claude-opus-4-1", 50_000),
        ("gpt-4o", 20_000),
        ("GPT-4o", 20_000),
        ("gpt-4o-mini", 20_000),
        ("gpt-4-turbo-preview", 20_000),
        ("gpt-4", 6_000),
        ("gpt-4-0613", 6_000),
        ("gpt-3.5-turbo-16k", 4_000),
        ("openai/gpt-4o", 20_000),
        ("Qwen 2.5 Coder", 4_000),
        ("qwen2.5-coder:7b", 4_000),
        ("qwen2.5-coder:3b", 3_000),
        ("llama3.2:1b", 3_000),
        ("codellama:13b", 4_000),
        ("llama-3.3-70b-versatile", 20_000),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 20_000),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", 50_000),
        ("anthropic.claude-3-haiku-20240307-v1:0", 20_000),
        ("bedrock/eu.anthropic.claude-3-opus-20240229-v1:0", 50_000),
        ("apac.amazon.nova-pro-v1:0", 50_000),
        ("my-gpt-4o", 4_000),
        ("mistral-large", 20_000),
        ("gpt-5", 50_000),
        ("openai/gpt-5.1-mini", 50_000),
        ("o3", 50_000),
        ("o4-mini", 50_000),
        ("gemini-2.5-pro", 50_000),
        ("claude-3-7-sonnet-latest", 50_000),
        ("claude-4-opus", 50_000),
        ("grok-4", 50_000),
        ("deepseek-v3", 20_000),
        ("deepseek-chat", 4_000),
        ("qwen3-coder:30b", 50_000),
        ("gpt-oss:20b", 20_000),
        ("gpt", 4_000),
        ("", 4_000),
    ],
)
def test_the_longest_matching_prefix_counts(model: str, budget: int) -> None:
    assert token_budget(model) == budget


@pytest.mark.parametrize(
    ("window", "budget"),
    [(0, 4_000), (8_192, 4_000), (32_768, 4_000), (127_999, 4_000), (128_000, 20_000), (200_000, 50_000)],
)
def test_a_model_without_a_row_gets_the_budget_of_its_window(window: int, budget: int) -> None:
    """The budget is that of the document's largest row with a window no larger.

    A row for the model takes precedence.
    """
    assert token_budget("my-model", window=window) == budget
    assert token_budget("gpt-4", window=window) == 6_000
    assert token_budget("my-model", {"default": 9_000}, window) == 9_000


def test_the_users_rows_take_precedence() -> None:
    own = {"gpt-4": 1_000, "default": 9_000}
    assert token_budget("gpt-4o-mini", own) == 1_000
    assert token_budget("claude-3-opus", own) == 50_000
    assert token_budget("mistral", own) == 9_000


def test_the_budget_is_at_most_a_share_of_the_real_window() -> None:
    """The cases are a 4k window, a 1M window and an unknown one."""
    assert budget_in_window(50_000, 4_000) == 1_000
    assert budget_in_window(50_000, 1_000_000) == 50_000
    assert budget_in_window(4_000, 0) == 4_000
