"""When a message is a request (R-201)."""

from __future__ import annotations

import pytest

from codecompanion.retrieval.asks_something import asks_something


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("where are the help texts wrapped?", True),
        ("I wonder: does it wrap (and how)? Tell me.", True),
        ("explain how context objects nest", True),
        ("Fix the wrapping of long words", True),
        ("ヘルプはどこで折り返しますか？", True),
        ("", False),
        ("thanks", False),
        ("Thanks, is that all of it?", False),
        ("that works very well now", False),
        ("see https://example.org/a?b=c for more of it", False),
        ("```\nwhere is it all?\n```", False),
        ("go on", False),
        ("why?", False),
    ],
)
def test_questions_and_orders_are_requests_and_small_talk_is_not(text, asks):
    assert asks_something(text) is asks
    assert asks_something(text + " " * 1_000_000) is asks
