"""A user's actions in a chat, and the resulting screen: typing, sending, waiting for the end of a turn."""

from __future__ import annotations

import re

from tests.journeys.terminal import WAIT_S, Terminal

READY = r"\d %"
"""The fill level of the context, which is shown once the host has answered and the chat is ready."""
BUSY = r"⋯ "
"""The line that shows the current activity."""
ASKED = r"g2 accept"
"""The block of an approval, its first or its last line: the line that something waits comes a moment earlier."""


def open_chat(terminal: Terminal, *, new: bool = False) -> str:
    """Open a chat with the command, and wait until it can be used."""
    terminal.keys(f":CodeCompanionChat{' New' if new else ''}<CR>")
    return terminal.wait(READY)


def draft(terminal: Terminal, text: str) -> None:
    """Type into the input, and wait until the terminal shows the end of the text."""
    terminal.keys("<Esc>G")
    terminal.keys("A" + text.replace("<", "<lt>").replace("\n", "<CR>"))
    terminal.wait(re.escape(text.split("\n")[-1].split(" ")[-1][-12:]))
    terminal.keys("<Esc>")
    terminal.wait(lambda screen: "-- INSERT --" not in screen)


def send(terminal: Terminal, text: str) -> None:
    """Type a message and send it."""
    draft(terminal, text)
    terminal.keys("<CR>")


def say(terminal: Terminal, text: str, answer: str, limit_s: float = WAIT_S) -> str:
    """Send a message, wait for an answer (a regular expression) and the end of the turn; return the screen."""
    send(terminal, text)
    terminal.wait(answer, limit_s, gone=BUSY)
    return terminal.still()


def command(terminal: Terminal, text: str, wanted: str = "", limit_s: float = WAIT_S) -> str:
    """Run an Ex command, wait for `wanted`, and return the screen once it no longer changes."""
    terminal.keys(f"<Esc>:{text.replace('<', '<lt>')}<CR>")
    if wanted:
        terminal.wait(wanted, limit_s)
    return terminal.still()


def quit_all(terminal: Terminal) -> None:
    """Leave Neovim with `:qa!`."""
    terminal.keys("<Esc>:qa!<CR>")
    terminal.wait_ended()


def approve(terminal: Terminal, key: str = "g2") -> None:
    """Go to the pending approval and answer it."""
    terminal.wait(ASKED)
    terminal.keys(f"<Esc>]a{key}")


def read_through(terminal: Terminal) -> str:
    """Page from the first line to the last and return all screens in sequence; the cursor remains at the end."""
    terminal.keys("<Esc>gg")
    pages = [terminal.still()]
    for _ in range(40):
        terminal.keys("<C-f>")
        page = terminal.still()
        if page == pages[-1]:
            break
        pages.append(page)
    terminal.keys("G")
    terminal.still()
    return "\n".join(pages)
