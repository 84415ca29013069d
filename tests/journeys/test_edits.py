"""An afternoon of edits: open windows, unsaved changes, disk changes, diffs, reverts (story b, 3).

The user works in two windows: src/stack.py on one side, the chat on the other. Screen, buffer
and disk are compared after every step.
"""

from __future__ import annotations

import re

import pytest

from tests.journeys.chat import ASKED, BUSY, READY, approve, command, quit_all, send
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")

POP = 'replace "return self.items[-1]" with "return self.items.pop()" in src/stack.py'
PUSH = 'replace "self.items.append(item)" with "self.items += [item]" in src/stack.py'


@pytest.fixture
def desk_at_work(desk: Desk) -> Desk:
    """Return a desk with the project and the offline adapter, configured to open the chat beside the file."""
    lay_out(desk)
    desk.configure_offline({"display": {"chat": {"window": {"layout": "vertical", "position": "right"}}}})
    return desk


@pytest.fixture
def terminal(desk_at_work: Desk) -> Terminal:
    """Return a terminal with src/stack.py on the left and a chat on the right, with the cursor in the chat."""
    terminal = desk_at_work.nvim("src/stack.py", size=(120, 36))
    terminal.wait("class Stack")
    command(terminal, "CodeCompanionChat", READY)
    return terminal


def edit(terminal: Terminal, words: str, wanted: str = r"✓ insert_edit") -> str:
    """Ask for an edit, allow it, and return the screen after the turn."""
    send(terminal, words)
    approve(terminal)
    terminal.wait(wanted, gone=BUSY)
    return terminal.still()


def code(screen: str) -> str:
    """Return the left half of the screen: the window with the file."""
    return "\n".join(line.split("│")[0].rstrip() for line in screen.split("\n"))


def status(terminal: Terminal) -> str:
    """Return the status lines at the lower edge."""
    return terminal.rows()[-2]


def to_code(terminal: Terminal) -> None:
    terminal.keys("<Esc><C-w>h")
    terminal.still()


def to_chat(terminal: Terminal) -> None:
    terminal.keys("<Esc><C-w>l")
    terminal.still()


def test_an_edit_is_visible_at_once_and_the_cursor_stays(terminal: Terminal, desk_at_work: Desk) -> None:
    """Window, buffer and disk of a saved file agree, nothing is left unsaved, and `u` undoes all of it in one step."""
    screen = edit(terminal, POP)
    assert "return self.items.pop()" in code(screen)
    assert "[+]" not in status(terminal)
    assert "return self.items.pop()" in desk_at_work.read("src/stack.py")
    assert re.search(r"insert_edit src/stack\.py · \+1 −1", screen), screen
    to_code(terminal)
    terminal.keys("u")
    terminal.wait(lambda screen: "return self.items[-1]" in code(screen))
    assert "[+]" in terminal.still()
    quit_all(terminal)


def test_unsaved_changes_and_an_edit_coexist_in_one_buffer(terminal: Terminal, desk_at_work: Desk) -> None:
    """The user's text stays, the edit is added to it, the file on disk waits for `:w`, and the chat reports it."""
    to_code(terminal)
    terminal.keys("Go# mine, not saved<Esc>")
    terminal.wait("# mine, not saved")
    to_chat(terminal)
    screen = edit(terminal, POP)
    left = code(screen)
    assert "return self.items.pop()" in left
    assert "# mine, not saved" in left
    assert "[+]" in status(terminal)
    assert "not saved" in screen.replace("# mine, not saved", ""), screen
    on_disk = desk_at_work.read("src/stack.py")
    assert "pop()" not in on_disk.split("def pop")[1]
    assert "mine" not in on_disk
    to_code(terminal)
    command(terminal, "w", "written")
    assert "return self.items.pop()" in desk_at_work.read("src/stack.py")
    assert "# mine, not saved" in desk_at_work.read("src/stack.py")
    quit_all(terminal)


def test_files_written_by_a_command_are_reloaded(terminal: Terminal, desk_at_work: Desk) -> None:
    """An unmodified window shows the file on disk after a shell command; a modified one keeps the user's text."""
    send(terminal, "run sed -i s/highest/tallest/ src/stack.py")
    approve(terminal)
    terminal.wait(lambda screen: "self.tallest" in code(screen))
    to_code(terminal)
    terminal.keys("Go# mine, not saved<Esc>")
    to_chat(terminal)
    send(terminal, "run sed -i s/tallest/biggest/ src/stack.py")
    approve(terminal)
    terminal.wait(lambda _: "biggest" in desk_at_work.read("src/stack.py"))
    terminal.wait("Done", gone=BUSY)
    screen = terminal.still()
    assert "# mine, not saved" in code(screen), screen
    assert "biggest" in desk_at_work.read("src/stack.py")
    quit_all(terminal)


def test_one_key_reverts_a_change_and_one_command_the_turn(terminal: Terminal, desk_at_work: Desk) -> None:
    """`gX` on the line of a change and `:CodeCompanionRevert` for the turn keep the user's later text."""
    edit(terminal, POP)
    to_code(terminal)
    terminal.keys("Go# written since<Esc>:w<CR>")
    terminal.wait("written")
    to_chat(terminal)
    terminal.keys("?insert_edit src<CR>gX")
    terminal.wait(lambda screen: "return self.items[-1]" in code(screen))
    screen = terminal.still()
    assert "# written since" in code(screen)
    assert "return self.items[-1]" in desk_at_work.read("src/stack.py")
    assert "# written since" in desk_at_work.read("src/stack.py")

    edit(terminal, PUSH, r"items \+= \[item\]")
    terminal.wait(lambda screen: "self.items += [item]" in code(screen))
    command(terminal, "CodeCompanionRevert", r"Turn 2")
    terminal.keys("T")
    terminal.wait(lambda screen: "self.items.append(item)" in code(screen))
    assert "self.items.append(item)" in desk_at_work.read("src/stack.py")
    assert "# written since" in desk_at_work.read("src/stack.py")
    terminal.keys("<Esc>q")
    terminal.wait("return len", gone="╭")
    quit_all(terminal)


def test_the_diff_is_the_real_thing_and_rejecting_changes_nothing(terminal: Terminal, desk_at_work: Desk) -> None:
    """`K` on the approval shows file and proposal; `q` gives the chat back; `g3` leaves the file alone."""
    send(terminal, POP)
    terminal.wait(ASKED)
    terminal.keys("<Esc>]aK")
    terminal.wait("g2 accept · g3 reject…")
    assert "return self.items.pop()" in terminal.still()
    terminal.keys("q")
    terminal.wait(ASKED)
    terminal.still()
    terminal.keys("<Esc>]ag3")
    terminal.wait("[Rr]eason")
    terminal.keys("not today<CR>")
    terminal.wait("rejected", gone=BUSY)
    screen = terminal.still()
    assert "return self.items[-1]" in code(screen)
    assert "return self.items[-1]" in desk_at_work.read("src/stack.py")
    quit_all(terminal)


def test_a_motion_with_a_count_never_runs_anything(terminal: Terminal, desk_at_work: Desk) -> None:
    """After `12k`, `3j`, `gg1G` and similar keys, a command that waits for approval keeps waiting (lesson 55)."""
    send(terminal, "run touch danger")
    terminal.wait(ASKED)
    for keys in ("12k", "3j", "gg", "2G", "4w", "1", "<Esc>", "G"):
        terminal.keys(keys)
    assert "waiting for your approval" in terminal.still()
    assert not (desk_at_work.project / "danger").exists()
    approve(terminal, "g4")
    terminal.wait("cancelled|[Ss]topped", gone=BUSY)
    assert not (desk_at_work.project / "danger").exists()
    quit_all(terminal)
