"""40, 80 and 110 columns, resized while running, a float and a split, dark and light (story d, 2).

Invariants at every width: the header, the meter and the input are shown as whole words, virtual text is neither cut off
nor drawn over text, and a full redraw (`<C-l>`) changes nothing.
"""

from __future__ import annotations

import re

import pytest

from tests.journeys.chat import READY, command, open_chat, quit_all, say
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")

WIDTHS = [(40, 20), (80, 24), (110, 40)]


def layout(name: str) -> dict[str, object]:
    return {"display": {"chat": {"window": {"layout": name}}}}


def assert_calm(terminal: Terminal) -> str:
    """Check the properties required at any width; return the screen."""
    screen = terminal.still()
    terminal.keys("<C-l>")
    assert terminal.still() == screen
    columns = terminal.size[0]
    assert max(len(row) for row in screen.split("\n")) <= columns, screen
    assert re.search(r"\d+ %", screen), f"no meter\n{screen}"
    assert re.search(r"## Me\b", screen), f"the header of the input is covered\n{screen}"
    return screen


@pytest.mark.parametrize("background", ["dark", "light"])
@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_chat_is_readable_at_every_width(desk: Desk, size: tuple[int, int], background: str) -> None:
    """After one tool round in a full window, all widths are tried in both directions."""
    lay_out(desk)
    desk.configure_offline(layout("buffer"), before=f"vim.o.background = '{background}'\n")
    terminal = desk.nvim(size=size)
    open_chat(terminal)
    say(terminal, "read notes.md and nothing.txt", r"1 of 2 steps failed")
    assert_calm(terminal)
    for columns, lines in (*WIDTHS, size):
        terminal.resize(columns, lines)
        terminal.wait(lambda _: any(re.search(READY, row) for row in (*terminal.rows()[-3:], terminal.rows()[0])))
        screen = assert_calm(terminal)
        assert "file_search" in re.sub(r"\s", "", screen), screen
    quit_all(terminal)


@pytest.mark.parametrize("name", ["vertical", "horizontal", "float"])
@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_window_beside_a_file_is_readable(desk: Desk, size: tuple[int, int], name: str) -> None:
    """Below about 100 columns a chat takes more than half of the screen.

    Its lines are at least 60 cells wide, or nearly as wide as the screen.
    """
    lay_out(desk)
    desk.configure_offline(layout(name))
    terminal = desk.nvim("src/stack.py", size=size)
    terminal.wait("class Stack")
    open_chat(terminal)
    screen = say(terminal, "read notes.md", r"- `read_file`")
    widest = max(len(match) for match in re.findall(r"[^│]*Berths[^│]*|[^│]*CodeCompanion \(offline\)[^│]*", screen))
    assert widest >= min(size[0] - 6, 60), screen
    assert_calm(terminal)
    terminal.keys(":q<CR>")
    terminal.wait("class Stack", gone="## Me")
    command(terminal, "CodeCompanionChat Toggle", r"- `read_file`")
    quit_all(terminal)
