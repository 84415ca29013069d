"""`make chat`: the demo plays without a screen, then its chat opens in the caller's terminal."""

from __future__ import annotations

import json

import pytest

from tests.journeys.desk import Desk, python
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")

SIZES = [
    (80, 24),
    pytest.param((110, 40), marks=pytest.mark.thorough("the same in another size")),
    pytest.param((200, 60), marks=pytest.mark.thorough("the same in another size")),
]


def recording(turns: int) -> str:
    """Return a short session with tools, as JSON Lines."""
    messages = []
    for number in range(turns):
        call = {"id": "same", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
        messages += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "same", "content": f"line {number}\n" * 200},
            {"role": "assistant", "content": f"This is answer {number} in a sentence that ends with berth N{number}."},
        ]
    return "".join(json.dumps(message) + "\n" for message in messages)


def assert_whole(terminal: Terminal) -> str:
    """Assert that a full redraw changes nothing, and that status and input are at the bottom; return the screen."""
    screen = terminal.still()
    terminal.keys("<C-l>")
    assert terminal.still() == screen
    rows = terminal.rows()
    columns, lines = terminal.size
    assert "offline" in rows[lines - 2], screen
    assert rows[lines - 1] == "", screen
    assert any(len(row) > columns - 12 for row in rows), f"nothing reaches the right edge\n{screen}"
    return screen


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_the_chat_fits_the_terminal_and_follows_its_size(desk: Desk, size: tuple[int, int]) -> None:
    """The size of the headless run (110x44) must not reach the terminal, whatever its size."""
    path = desk.write("session.jsonl", recording(6))
    argv = [python(), "-m", "codecompanion", "demo", "--chat", "--nvim", desk.binary, "--window", "20000", str(path)]
    terminal = desk.terminal(argv, size=size)
    # The bar comes last: until then it may be the output of the run before the chat.
    terminal.wait(
        lambda screen: "This is answer 5" in screen and terminal.full_screen() and "offline" in terminal.rows()[-2]
    )
    assert "This is answer 5" in assert_whole(terminal)

    terminal.keys("Gizebra crossing<Esc>")
    terminal.wait(r"^zebra crossing")
    terminal.keys("<CR>")
    terminal.wait(r"I am the offline adapter")

    for columns, lines in ((100, 30), (60, 16), size):
        terminal.resize(columns, lines)
        terminal.wait(lambda _: "offline" in terminal.rows()[-2])
        assert "or one per line" in " ".join(assert_whole(terminal).split())
    terminal.keys("gg0")
    terminal.wait(r"question 0|messages 1|compacted")

    terminal.keys(":qa!<CR>")
    terminal.wait_ended()
