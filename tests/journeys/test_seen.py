"""Charting and sharing a chat: `/cost` and `:CodeCompanion export` in a real terminal."""

from __future__ import annotations

import pytest

from tests.journeys.chat import command, open_chat, quit_all, say
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out

pytestmark = pytest.mark.slow("a journey in a real terminal")


@pytest.mark.parametrize("size", [(40, 30), (120, 40)])
def test_a_chat_is_drawn_and_exported(desk: Desk, size: tuple[int, int]) -> None:
    """After reading some files, the cost is shown and closed.

    The exported chat is in the project, without the home path.
    """
    lay_out(desk)
    desk.configure_offline()
    terminal = desk.nvim("notes.md", size=size)
    open_chat(terminal)
    say(terminal, "read notes.md", "Done|Finished|read")
    say(terminal, "read src/stack.py", "Done|Finished|read")
    screen = command(terminal, "CodeCompanionCost", r"## Tokens")
    assert max(len(line) for line in screen.split("\n")) <= size[0]
    terminal.keys("q")
    command(terminal, "CodeCompanion export md shared.md", r"[Ee]xported to|keys are hidden")
    text = desk.read("shared.md")
    assert "## CodeCompanion (offline" in text
    assert "class Stack" in text
    quit_all(terminal)
