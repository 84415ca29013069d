"""Whether a summary by a model can pay in a small window."""

from __future__ import annotations

import pytest

from codecompanion.context.summary.spare_model import costs_more_than_it_saves
from codecompanion.context.work import SummaryRequest, Work
from tests.unit.context.builders import assistant, env, made, user

CHAT = made(*(one for n in range(10) for one in (user("q" * 400), assistant("a" * 400))))
"""200 tokens a turn."""


def request(prompt: int, output: int) -> SummaryRequest:
    return SummaryRequest(prompt="", subject=CHAT, prompt_tokens=prompt, max_output_tokens=output)


@pytest.mark.parametrize(
    ("removed", "requests", "written", "costs"),
    [
        (4, [(700, 300)], 300, True),  # frees 100 tokens for half a turn
        (20, [(2_400, 300)], 300, False),  # frees 1,700 for eight turns
        (10, [(1_400, 200)], 200, False),  # 800 for four
        (10, [(1_400, 700)], 700, True),
        (10, [(900, 100), (900, 100)], 500, True),  # parts are put together by one more request
        (0, [(400, 100)], 100, True),
    ],
)
def test_requests_are_weighed_against_what_is_freed_until_the_window_is_full_again(
    removed: int, requests: list[tuple[int, int]], written: int, costs: bool
) -> None:
    work = Work(before=CHAT, messages=CHAT[removed:], removed=CHAT[:removed])
    asked = [request(*figures) for figures in requests]
    assert costs_more_than_it_saves(work, asked, written, env(CHAT, 4_096)) is costs
