"""The buffer shows the model's view after any history (lesson 54).

The lines shown as live (not in a fold of removed messages, not marked as cleared) are exactly the messages that the
inspector lists as live, in order; the context block lists exactly the attachments that will be sent; and the buffer
that grew with the chat equals one drawn from its log.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from buffer_story import Story, prepare
from chat_driver import INIT
from harness import Nvim
from tests.amounts import amount

pytestmark = pytest.mark.slow("random stories in a real Neovim")

BATCHES, IN_BATCH, MAX_STEPS = 8, amount(5, 24, 250), 9


@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_buffer_shows_the_next_request(nvim_factory: Callable[..., Nvim], tmp_path: Path, batch: int) -> None:
    """The buffer shows the next request in 192 random histories (`make fuzz` runs 2,000).

    A failure reports its seed.
    """
    (tmp_path / "a.txt").write_text("word " * 150)
    nvim = nvim_factory(init=INIT, size=(100, 40))
    nvim.lua("require('codecompanion').setup({ display = { chat = { window = { layout = 'buffer' } } } })")
    prepare(nvim)
    count = int(os.environ.get("STORIES", IN_BATCH))
    first = int(os.environ.get("STORY", batch * count))
    for seed in range(first, first + count):
        story = Story(nvim, tmp_path, seed)
        try:
            story.exchange()
            for _ in range(story.random.randint(2, MAX_STEPS)):
                story.step()
            story.check_redrawn()
        finally:
            story.close()
    told = [line for line in nvim.messages().split("\n") if "The context w" not in line]
    assert "".join(told).strip() == ""
