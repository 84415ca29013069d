"""A user's desk: a clean home, a project, and one or more terminals that run Neovim with the plugin.

The plugin runs from this checkout with the real host (this Python); the model is a loopback server that uses the real
wire format, or the offline adapter. The machine's own configuration is not used, and everything started is ended.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from harness import REPO, clean_env, find_nvim
from real_chat import KEY, init_lua
from tests.journeys.terminal import Terminal

PLAIN = """
vim.o.termguicolors = true
vim.o.background = "dark"
vim.o.swapfile = false
vim.o.shortmess = vim.o.shortmess .. "I"
"""
"""Lines at the start of every init file here: a quiet startup, the same on all versions."""


class Desk:
    """The desk described in the module docstring. Use `nvim()` for a new terminal; all share home, data and project."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        """Lay out home and project below `root`."""
        self.root, self._stack = root, stack
        self.project = root / "project"
        self.project.mkdir()
        self.env = clean_env(root, {"LOOP_KEY": KEY, "PYTHONPATH": str(REPO / "python")})
        self.init_file = root / "init.lua"
        self.binary = find_nvim() or "nvim"

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> str:
        """Return the content of a project file on disk."""
        return (self.project / name).read_text(encoding="utf-8")

    def stored(self, text: str) -> bool:
        """Return whether a text, such as a draft, has reached the database and so would survive a power failure."""
        folder = Path(self.env["XDG_DATA_HOME"]) / "nvim" / "codecompanion"
        return any(text.encode() in path.read_bytes() for path in folder.glob("sessions.db*"))

    def configure(self, url: str, options: dict[str, Any] | None = None, *, before: str = "", **more: Any) -> None:
        """Write the init file: chats use the server at `url`; `options` override the defaults; `before` is Lua.

        The project belongs to the user, so it is trusted from the start.
        """
        options = {"trust": {"folders": [str(self.project)]}, **(options or {})}
        self.init_file.write_text(_head() + before + init_lua(url, options, **more), encoding="utf-8")

    def configure_offline(self, options: dict[str, Any] | None = None, *, before: str = "") -> None:
        """Write the init file: chats use the offline adapter."""
        chat = {"interactions": {"chat": {"adapter": "offline"}}}
        self.configure("http://127.0.0.1:9/v1", {**chat, **(options or {})}, before=before)

    def configure_with(self, lua: str) -> None:
        """Write the init file with the given Lua code."""
        self.init_file.write_text(_head() + lua, encoding="utf-8")

    def configure_as_a_user(self, lua: str) -> None:
        """Write the init file to Neovim's default path, so that plain `nvim` reads it (see `plain_nvim`)."""
        path = Path(self.env["XDG_CONFIG_HOME"]) / "nvim" / "init.lua"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lua, encoding="utf-8")

    def plain_nvim(self, *args: str, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> Terminal:
        """Start Neovim like a user, without our arguments."""
        return self.terminal([self.binary, *args], size=size, env=env)

    def nvim(self, *args: str, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None) -> Terminal:
        """Start Neovim in a new terminal."""
        return self.terminal([*self.command(), *args], size=size, env=env)

    def command(self) -> list[str]:
        """Return the command that starts Neovim with the desk's init file."""
        return [self.binary, "-u", str(self.init_file), "-i", "NONE"]

    def terminal(
        self, argv: Iterable[str], *, size: tuple[int, int] = (80, 24), env: dict[str, str] | None = None
    ) -> Terminal:
        """Start any program in a new terminal."""
        whole = Terminal(list(argv), env={**self.env, **(env or {})}, cwd=self.project, size=size)
        return self._stack.enter_context(whole)


def _head() -> str:
    return f"vim.opt.runtimepath:prepend([[{REPO}]])\n{PLAIN}"


def python() -> str:
    """Return the Python that runs host and command line."""
    return sys.executable
