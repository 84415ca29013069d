"""The fakes count tokens and remember prefixes without the plugin's help."""

from __future__ import annotations

import pytest

from tests.providers.loopback import token_count
from tests.providers.loopback.token_count import Prompt, count, encode
from tests.providers.openai.prompt_cache import MIN_TOKENS, STEP_TOKENS, PromptCache


def test_a_text_counts_as_in_the_tokenizer() -> None:
    """Counts are known values; special tokens, lone surrogates and empty text are not treated specially."""
    assert count("The quick brown fox jumps over the lazy dog.") == 10
    assert count("") == 0
    assert count("<|endoftext|>") > 1
    assert count("\ud800") == count("?")


@pytest.mark.parametrize("run", ["y" * 300_000, " " * 300_000, "─" * 30_000])
def test_a_run_without_a_break_is_counted_in_pieces(run: str) -> None:
    """Otherwise the tokenizer would need minutes; other words keep their tokens."""
    assert 0 < count(run) < len(run)
    assert list(encode(f"once before {run}"))[:2] == list(encode("once before"))


def test_without_the_tokenizer_bytes_are_counted() -> None:
    """Every 3.6 bytes count as a token, and the same prefix has the same tokens."""
    assert len(token_count._encode_bytes("x" * 360)) == 100
    assert list(token_count._encode_bytes("x" * 360 + "y")[:99]) == list(token_count._encode_bytes("x" * 360)[:99])
    assert token_count._encode_bytes("") == []


def test_marks_of_other_things_are_other_tokens() -> None:
    """Two images of the same size do not have the same prefix."""
    one, two = Prompt(), Prompt()
    one.add_marks("a", 5)
    two.add_marks("b", 5)
    assert len(one) == len(two) == 5
    assert one.tokens != two.tokens


def test_the_cache_knows_the_longest_prefix_in_steps() -> None:
    """It reports read and written tokens per key until the entry expires."""
    cache = PromptCache()
    prompt = list(range(MIN_TOKENS + 2 * STEP_TOKENS + 5))
    whole = MIN_TOKENS + 2 * STEP_TOKENS
    assert cache.read("m", prompt) == (0, whole)
    assert cache.read("m", prompt) == (whole, 0)
    assert cache.read("n", prompt) == (0, whole)
    changed = [*prompt[: MIN_TOKENS + STEP_TOKENS], *([-1 % 1000] * 400)]
    assert cache.read("m", changed)[0] == MIN_TOKENS + STEP_TOKENS
    assert cache.read("m", [7, *prompt])[0] == 0
    assert cache.read("m", prompt[: MIN_TOKENS - 1]) == (0, 0)
    cache.now_s += cache.lifetime_s
    assert cache.read("m", prompt)[0] == whole
    cache.now_s += cache.lifetime_s + 1
    assert cache.read("m", prompt) == (0, whole)
