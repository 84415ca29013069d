"""Token counts in the notation that users write."""

from __future__ import annotations

import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.counting.token_sizes import is_short_form, parse_tokens
from codecompanion.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("4k", 4_000), ("8k", 8_000), ("16k", 16_000), ("32k", 32_000), ("128k", 128_000), ("128K", 128_000),
        ("200k", 200_000), ("32768", 32_768), ("1M", 1_000_000), ("2m", 2_000_000),
    ],
)  # fmt: skip
def test_a_size_is_written_in_thousands_in_millions_or_as_a_number(text: str, tokens: int) -> None:
    """R-102, R-147: 128k is 128,000."""
    assert parse_tokens(text) == tokens


@pytest.mark.parametrize("text", ["", "banana", "k", "16 k", "1.5k", "-4k", "0", "0k", "16kb", "\u0664k", "9" * 40])
def test_anything_else_is_refused(text: str) -> None:
    """R-102 as built here (lesson 13): the source silently takes 16,000."""
    with pytest.raises(ValueError, match="expected a number of tokens, such as"):
        parse_tokens(text)
    assert not is_short_form(text) or text == "0k"


def test_a_policy_accepts_a_size_wherever_it_accepts_tokens() -> None:
    mine = {
        "extends": "cowork",
        "default_window": "16k",
        "compaction.trigger": "12k",
        "compaction.summary": {"max_tokens": "2k"},
        "truncation.max_tokens": "1k",
    }
    policy = load_policy("mine", {"mine": mine})
    proactive = policy.stage("proactive")
    assert proactive is not None
    assert (policy.default_window, proactive.trigger.tokens) == (16_000, 12_000)
    steps = {step.use: step.params for tier in proactive.tiers for step in tier.steps}
    assert steps["summarize_one"].max_tokens == 2_000
    assert steps["truncate_tool_results"].max_tokens == 1_000


def test_an_option_accepts_a_size_and_refuses_lookalikes() -> None:
    policy = load_policy("codecompanion")
    changed = with_options(policy, {"editing.trigger": "16k", "compaction.min_token_savings": "2k"}, "k")
    assert changed.stages[0].trigger.tokens == 16_000
    with pytest.raises(ConfigError, match=r"k.compaction.min_token_savings: got a string; expected a whole number"):
        with_options(policy, {"compaction.min_token_savings": "0k"}, "k")
    with pytest.raises(ConfigError, match=r"k.editing.trigger: '0k' is not a trigger"):
        with_options(policy, {"editing.trigger": "0k"}, "k")
