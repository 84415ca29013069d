"""The first hour: installation from a Git URL by the real lazy.nvim in an empty home, restart, chat, help (story a).

Needs a clone of folke/lazy.nvim: `$LAZY_NVIM`, or /work/.mirror. The package index is replaced by a fake uv whose
"environment" is the Python that runs the tests; the real one is tested in tests/external/test_real_environment.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fake_uv import fake_uv
from tests.external.plugin_managers import COMMANDS, Origin, clone_of
from tests.journeys.chat import BUSY, READY, command, quit_all, send
from tests.journeys.desk import PLAIN, Desk
from tests.journeys.terminal import Terminal

pytestmark = pytest.mark.slow("a journey in a real terminal")


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    """Return the repository to install from."""
    return Origin(tmp_path)


def hello(terminal: Terminal) -> str:
    """Open a chat and get the first answer."""
    command(terminal, "CodeCompanionChat", READY)
    send(terminal, "hello")
    terminal.wait("I am the offline adapter", gone=BUSY)
    return terminal.still()


def test_a_newcomer_installs_restarts_chats_and_reads_the_help(desk: Desk, origin: Origin, tmp_path: Path) -> None:
    """No keypress is needed on the way, no error is shown, and every command exists after the restart."""
    lazy = clone_of("LAZY_NVIM", "folke+lazy.nvim", tmp_path / "lazy.nvim")
    desk.configure_as_a_user(
        PLAIN + f"vim.opt.runtimepath:prepend([[{lazy}]])\n"
        "require('lazy').setup({\n"
        f"  spec = {{ {{ url = '{origin.url}', name = 'codecompanion', opts = {{}} }} }},\n"
        "  rocks = { enabled = false },\n"
        "})\n"
    )
    desk.write("notes.md", "# Berths\n")
    terminal = desk.plain_nvim(env=fake_uv(tmp_path))
    screen = terminal.wait(r"codecompanion")
    terminal.wait(r"Installed|Loaded|Log", gone="Working|Installing")
    screen = terminal.still()
    for word in ("Failed", "E154", "Error"):
        assert word not in screen, screen
    terminal.keys("q")
    terminal.wait(lambda screen: "lazy.nvim" not in screen)
    screen = hello(terminal)
    assert "## CodeCompanion" in screen
    quit_all(terminal)

    again = desk.plain_nvim("notes.md", env=fake_uv(tmp_path))
    again.wait("# Berths")
    for name in COMMANDS:
        again.keys(f":echo exists(':CodeCompanion{name}')<CR>")
        again.wait(r"^2$")
        again.keys(":echo ''<CR>")
        again.wait(lambda screen: not screen.endswith("\n2"))
    command(again, "CodeCompanionChat Resume last", "I am the offline adapter")
    again.keys("<Esc>g?")
    again.wait("[Ss]end the message|[Ss]end")
    again.keys("q")
    command(again, "help codecompanion-install", "lazy.nvim")
    command(again, "q")
    command(again, "checkhealth codecompanion", "OK")
    assert "ERROR" not in again.still()
    quit_all(again)


def test_the_chat_shows_that_its_environment_is_being_created(desk: Desk, tmp_path: Path) -> None:
    """On a slow connection, the chat opens, shows the progress, accepts a message, and answers it when ready."""
    gate = tmp_path / "gate"
    desk.configure_with("require('codecompanion').setup({ display = { chat = { window = { layout = 'buffer' } } } })\n")
    terminal = desk.nvim(env=fake_uv(tmp_path, gate=gate))
    terminal.keys(":CodeCompanionChat<CR>")
    screen = terminal.wait(r"(?i)install|environment")
    assert "## Me" in screen
    send(terminal, "hello")
    screen = terminal.wait(r"(?i)install|environment")
    assert "hello" in screen
    assert "sending" not in screen.lower(), screen
    gate.touch()
    terminal.wait("I am the offline adapter", gone=BUSY)
    assert not [line for line in terminal.still().split("\n") if "environment" in line and "install" in line]
    quit_all(terminal)
