"""A week with two chats: tabs, session files, `:e`, `:bd`, and a power failure (story c, 2)."""

from __future__ import annotations

import pytest

from tests.journeys.chat import READY, command, draft, open_chat, quit_all, say
from tests.journeys.desk import Desk
from tests.journeys.project import lay_out
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")

BUFFER = {"display": {"chat": {"window": {"layout": "buffer"}}}}


@pytest.fixture
def desk_at_work(desk: Desk) -> Desk:
    """Return a desk with the project and the offline adapter."""
    lay_out(desk)
    desk.configure_offline(BUFFER)
    return desk


def two_chats(terminal: Terminal) -> None:
    """Create two tabs: one chat about the notes, and one about the stack with a draft."""
    open_chat(terminal)
    say(terminal, "read notes.md", r"`read_file` notes\.md")
    command(terminal, "tabnew")
    open_chat(terminal, new=True)
    say(terminal, "read src/stack.py", r"`read_file` src/stack\.py")
    draft(terminal, "half a thought")


def assert_first(screen: str) -> None:
    assert "`read_file` notes.md" in screen, screen
    assert "`read_file` src/stack.py" not in screen, screen


def assert_second(screen: str) -> None:
    assert "`read_file` src/stack.py" in screen, screen
    assert "`read_file` notes.md" not in screen, screen


def test_a_session_file_restores_both_chats_after_a_power_cut(desk_at_work: Desk) -> None:
    """After `:mksession`, kill -9 of Neovim and its host, and `nvim -S`, the tabs, chats and draft are restored."""
    terminal = desk_at_work.nvim()
    two_chats(terminal)
    command(terminal, "mksession! week.vim")
    terminal.wait(lambda _: desk_at_work.stored("half a thought"))
    terminal.kill9()

    again = desk_at_work.nvim("-S", "week.vim")
    assert_second(again.wait(r"`read_file` src/stack\.py"))
    again.wait(r"^▸ ✓ read_file src/stack.*(.*\n)*.*offline · ~?\d+ %")
    assert "half a thought" in again.wait("half a thought")
    again.keys("<Esc>gT")
    assert_first(again.wait(r"`read_file` notes\.md"))
    say(again, "read AGENTS.md", r"`read_file` AGENTS\.md")
    assert "notes.md" in again.screen()
    quit_all(again)


def test_reloading_and_closing_the_buffer_keeps_the_chat(desk_at_work: Desk) -> None:
    """After `:e`, `:e!`, and `:bd` with a return, transcript and draft are intact, and the chat continues."""
    terminal = desk_at_work.nvim("notes.md")
    open_chat(terminal)
    say(terminal, "read src/stack.py", r"`read_file` src/stack\.py")
    draft(terminal, "half a thought")
    for text in ("e", "e!", "windo e"):
        command(terminal, text)
        terminal.wait("half a thought")
        assert_second(terminal.wait(r"`read_file` src/stack\.py"))
    command(terminal, "let g:name = bufname()")
    command(terminal, "bd!", "N1 is closed in winter")
    command(terminal, "exe 'b ' .. fnameescape(g:name)")
    terminal.wait("half a thought")
    assert_second(terminal.wait(r"`read_file` src/stack\.py"))
    terminal.keys("<CR>")
    terminal.wait("I am the offline adapter", gone="⋯ ")
    assert "half a thought" in terminal.still()
    quit_all(terminal)


def test_the_host_dies_and_the_chat_continues(desk_at_work: Desk) -> None:
    """After kill -9 of the host, one sentence is shown, nothing is lost, and the next message restarts it."""
    terminal = desk_at_work.nvim()
    open_chat(terminal)
    say(terminal, "read notes.md", r"`read_file` notes\.md")
    draft(terminal, "read AGENTS.md")
    terminal.kill9("codecompanion.engine")
    terminal.wait(r"The Python process ended \(status \d+\)\.")
    screen = terminal.still()
    assert "`read_file` notes.md" in screen
    assert "read AGENTS.md" in screen
    terminal.keys("<CR>")
    terminal.wait(r"`read_file` AGENTS\.md", gone="⋯ ")
    assert terminal.still().count("`read_file` notes.md") == 1
    quit_all(terminal)


def test_a_killed_neovim_leaves_a_chat_that_is_resumed(desk_at_work: Desk) -> None:
    """kill -9 of everything: `Resume last` shows the newest chat, and the other can be chosen."""
    terminal = desk_at_work.nvim()
    two_chats(terminal)
    terminal.wait(lambda _: desk_at_work.stored("half a thought"))
    terminal.kill9()

    again = desk_at_work.nvim()
    command(again, "CodeCompanionChat Resume last", r"`read_file` src/stack\.py")
    again.wait("half a thought")
    assert_second(again.wait(r"`read_file` src/stack\.py"))
    command(again, "CodeCompanionChat Resume", "Resume a chat")
    again.keys("/notes<CR><CR>")
    assert_first(again.wait(r"`read_file` notes\.md"))
    again.wait(READY)
    quit_all(again)
