"""The weight of a word by the number of texts that have it."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.formats.word_rarity import rarity


def test_a_word_in_half_the_texts_has_a_weight() -> None:
    assert rarity(1, 2) == math.log(2)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_rarer_word_weighs_more_and_an_unknown_one_nothing(with_word: int, texts: int) -> None:
    assert 0 < rarity(with_word + 1, texts) < rarity(with_word, texts)
    assert rarity(with_word, texts) <= rarity(with_word, texts + 1)
