"""A growing object is judged like the complete text, and parsed once."""

from __future__ import annotations

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.openai_chat.tool_deltas import is_json_object
from codecompanion.formats.json_growth import GrowingObject

VALUES = st.recursive(
    st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
TEXTS = VALUES.map(json.dumps) | st.text(alphabet='{}[]":,\\a1 \n', max_size=30)


@given(TEXTS, st.lists(st.integers(0, 200), max_size=6))
def test_every_prefix_is_judged_like_by_a_parser(text: str, cuts: list[int]) -> None:
    growing, so_far = GrowingObject(is_json_object), ""
    for start, end in pairwise([0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]):
        growing.append(text[start:end])
        so_far += text[start:end]
        assert growing.is_whole == is_json_object(so_far)
        assert growing.is_blank == (not so_far.strip())
        assert growing.text == so_far


def test_a_text_is_parsed_once_for_any_number_of_checks() -> None:
    parsed: list[str] = []

    def judge(text: str) -> bool:
        parsed.append(text)
        return True

    growing = GrowingObject(judge)
    for piece in ('{"a":[', *["{},"] * 500, "{}", "]}"):
        growing.append(piece)
        assert growing.is_whole == (piece == "]}")
    assert len(parsed) == 1
