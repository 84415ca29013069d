"""A program in a real terminal (tmux), controlled by keys and read as text, as a user at that terminal sees it.

`Terminal` starts its own tmux server (own socket, own configuration), so that stories run in parallel and the
developer's tmux is not touched. Keys go through the terminal as bytes, and screens are read from the terminal's own
grid (`capture-pane`); Neovim is never queried. Nothing sleeps: `wait` polls the screen until it matches, and fails at
once on an unexpected prompt (hit-enter, more).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.forked_python import process_of
from tests.patience import PATIENCE_S

OLDEST_TMUX = (3, 0)
WAIT_S = PATIENCE_S
_POLL_S = 0.06
_QUIET_S = 0.25
"""How long the screen must be unchanged to count as settled, with no running process that could change it."""

_CONFIGURATION = """
set -g default-terminal tmux-256color
set -ga terminal-overrides ,*:Tc
set -g status off
set -g escape-time 0
set -g history-limit 0
set -g remain-on-exit on
"""

PROMPT = re.compile(r"Press ENTER or type command to continue|^-- More --|^E\d+:.*\n.*Press ENTER", re.MULTILINE)
"""Prompts that must never appear: Neovim waits for a key before it continues."""

_KEYS = {
    "CR": "0d", "Tab": "09", "BS": "7f", "Space": "20", "lt": "3c", "Bar": "7c", "Bslash": "5c",
    # A lone escape byte would become Alt with the next key: this is the same key in its full form.
    "Esc": "1b 5b 32 37 75",
    "Up": "1b 5b 41", "Down": "1b 5b 42", "Right": "1b 5b 43", "Left": "1b 5b 44",
    "PageUp": "1b 5b 35 7e", "PageDown": "1b 5b 36 7e", "S-Tab": "1b 5b 5a",
}  # fmt: skip


class ScreenError(AssertionError):
    """Raised when the screen never shows the expected text; the message contains the screen."""


def missing() -> str:
    """Return why this machine cannot run journeys, or "" if it can."""
    if shutil.which("tmux") is None:
        return "tmux is not here; install it (`apt install tmux`, `brew install tmux`)"
    said = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST_TMUX:
        return f"{said.strip()} is too old; journeys need tmux {OLDEST_TMUX[0]}.{OLDEST_TMUX[1]}"
    return ""


class Terminal:
    """One terminal of a fixed size with one program in it. Use as a context manager."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int] = (80, 24),
    ) -> None:
        """Prepare without starting. `size` is (columns, lines); `env` is the whole environment of the program."""
        self.argv, self.cwd, self.size = list(argv), cwd, size
        self.env = {name: value for name, value in env.items() if name not in ("TMUX", "TMUX_PANE")}
        self.env |= {"COLORTERM": "truecolor"}
        self._folder = Path(tempfile.mkdtemp(prefix="jny-"))  # short: the name of a socket has few characters

    def __enter__(self) -> Self:
        """Open the terminal and start the program in it."""
        (self._folder / "tmux.conf").write_text(_CONFIGURATION)
        columns, lines = self.size
        self._tmux(
            "-f", str(self._folder / "tmux.conf"),
            "new-session", "-d", "-s", "journey", "-x", str(columns), "-y", str(lines), "-c", str(self.cwd), "--",
            *self.argv,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        """Close the terminal; whatever still runs in it is ended."""
        with contextlib.suppress(ScreenError):
            processes = self.processes()
            self._tmux("kill-server")
            _end(processes)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_again(self, argv: Sequence[str] | None = None) -> None:
        """Start the program (or another one) again in the same terminal, after it has ended."""
        self.wait_ended()
        self._tmux("respawn-pane", "-k", "-t", "journey", "-c", str(self.cwd), "--", *(argv or self.argv))

    def keys(self, keys: str) -> None:
        """Type keys in Neovim's notation (`ihello<Esc>`, `<C-c>`, `:q<CR>`); `<lt>` is a `<`."""
        for part in re.split(r"(<[A-Za-z][\w-]*>|<C-.>)", keys):
            special = _special(part)
            if special:
                self._tmux("send-keys", "-t", "journey", "-H", *special.split())
            elif part:
                self._tmux("send-keys", "-t", "journey", "-l", "--", part)

    def paste(self, text: str) -> None:
        """Paste text as a terminal does (bracketed)."""
        file = self._folder / "paste"
        file.write_text(text, encoding="utf-8")  # as an argument it would have to be short
        self._tmux("load-buffer", "-b", "paste", str(file))
        self._tmux("paste-buffer", "-p", "-t", "journey", "-b", "paste")

    def screen(self, *, colours: bool = False) -> str:
        """Return the terminal's text, one line per row, trailing blanks removed; `colours` keeps the SGR codes."""
        text = self._tmux("capture-pane", "-p", "-t", "journey", *(["-e", "-N"] if colours else []))
        return text.rstrip("\n") if colours else "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")

    def rows(self) -> list[str]:
        """Return the rows of the screen, all of them."""
        rows = self.screen().split("\n")
        return rows + [""] * (self.size[1] - len(rows))

    def cursor(self) -> tuple[int, int]:
        """Return (row, column) of the terminal's cursor, 0-based."""
        row, column = self._tmux("display-message", "-p", "-t", "journey", "#{cursor_y} #{cursor_x}").split()
        return int(row), int(column)

    def wait(
        self, wanted: str | Callable[[str], object], limit_s: float = WAIT_S, *, gone: str = "", prompt: bool = False
    ) -> str:
        """Wait until `wanted` (a regular expression, or a predicate of the screen) matches, and return the screen.

        gone: text that must not be on that screen. prompt: a Neovim prompt is expected.

        Raises:
            ScreenError: it never matched; the program ended; Neovim shows a prompt.
        """
        __tracebackhide__ = True
        pattern = re.compile(wanted, re.MULTILINE) if isinstance(wanted, str) else None
        holds: Callable[[str], object] = pattern.search if pattern else wanted  # type: ignore[assignment]
        deadline = time.monotonic() + limit_s
        while True:
            screen = self.screen()
            if not prompt and PROMPT.search(screen):
                raise ScreenError(f"Neovim waits in a prompt (waited for {wanted!r})\n{self._framed(screen)}")
            if holds(screen) and not (gone and re.search(gone, screen, re.MULTILINE)):
                return screen
            if time.monotonic() > deadline:
                but = f" without {gone!r}" if gone else ""
                raise ScreenError(f"waited {limit_s:g} s for {wanted!r}{but}\n{self._framed(screen)}")
            if screen.startswith("Pane is dead") or self.ended():
                raise ScreenError(f"the program ended (waited for {wanted!r})\n{self._framed(screen)}")
            time.sleep(_POLL_S)

    def still(self, limit_s: float = WAIT_S) -> str:
        """Wait until the screen no longer changes, and return it.

        On a busy machine, a screen may also be unchanged because Neovim gets no CPU time; in that case the wait
        continues.
        """
        workers = [*self.processes(), int(self._tmux("display-message", "-p", "#{pid}")), os.getpid()]
        deadline, seen, since = time.monotonic() + limit_s, "", time.monotonic()
        while time.monotonic() < deadline:
            at_work = any(map(_works, workers))
            screen = self.screen()
            if screen != seen or at_work:
                seen, since = screen, time.monotonic()
            elif time.monotonic() - since >= _QUIET_S:
                return screen
            time.sleep(_POLL_S)
        raise ScreenError(f"the screen did not stand still for {limit_s:g} s\n{self._framed(seen)}")

    def resize(self, columns: int, lines: int) -> None:
        """Change the terminal's size while the program runs."""
        self.size = (columns, lines)
        self._tmux("resize-window", "-t", "journey", "-x", str(columns), "-y", str(lines))

    def full_screen(self) -> bool:
        """Return whether a program uses the terminal's alternate screen, as Neovim does."""
        return self._tmux("display-message", "-p", "-t", "journey", "#{alternate_on}").strip() == "1"

    def ended(self) -> bool:
        """Return whether the program has ended."""
        return self._tmux("display-message", "-p", "-t", "journey", "#{pane_dead}").strip() == "1"

    def wait_ended(self, limit_s: float = WAIT_S) -> None:
        """Wait until the program has ended."""
        deadline = time.monotonic() + limit_s
        while not self.ended():
            if time.monotonic() > deadline:
                raise ScreenError(f"the program still runs after {limit_s:g} s\n{self._framed(self.screen())}")
            time.sleep(_POLL_S)

    def processes(self, name: str = "") -> list[int]:
        """Return the processes of this terminal whose command line contains `name`, parents first."""
        pid = int(self._tmux("display-message", "-p", "-t", "journey", "#{pane_pid}").strip() or 0)
        return [process_of(number) for number, command in _family(pid) if name in command]

    def kill9(self, name: str = "") -> None:
        """Kill the processes of this terminal whose command line contains `name` (SIGKILL), all at the same moment."""
        victims = self.processes(name)
        assert victims, f"no process {name!r} in the terminal"
        _end(victims)

    def _framed(self, screen: str) -> str:
        columns, lines = self.size
        rows = [f"|{row.ljust(columns)}|" for row in (screen.split("\n") + [""] * lines)[:lines]]
        border = "+" + "-" * columns + "+"
        return "\n".join((f"the terminal, {columns}x{lines}:", border, *rows, border))

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", str(self._folder / "s"), *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.cwd, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ScreenError(f"tmux {' '.join(arguments[:3])}: {done.stderr.strip()}")
        return done.stdout


def _special(part: str) -> str:
    """Return the bytes (hexadecimal) of a key in angle brackets, or "" for text."""
    if not (part.startswith("<") and part.endswith(">") and len(part) > 2):
        return ""
    name = part[1:-1]
    if name in _KEYS:
        return _KEYS[name]
    if re.fullmatch(r"C-.", name):
        return f"{ord(name[2].upper()) & 0x1F:02x}"
    raise ValueError(f"unknown key {part}")


def _family(pid: int) -> Iterable[tuple[int, str]]:
    """Return (pid, command line) of a process and all its descendants."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    children: dict[int, list[tuple[int, str]]] = {}
    own = ""
    for line in listed.splitlines():
        number, parent, *command = line.split(None, 2)
        children.setdefault(int(parent), []).append((int(number), command[0] if command else ""))
        own = command[0] if int(number) == pid and command else own
    found, ahead = [(pid, own)] if own else [], [pid]
    while ahead:
        below = children.get(ahead.pop(0), [])
        found.extend(below)
        ahead.extend(number for number, _ in below)
    return found


def _works(process: int) -> bool:
    """Return whether any thread of the process, except the calling one, is running, ready or waiting for a disk."""
    for thread in Path(f"/proc/{process}/task").glob("[0-9]*"):  # none where the system has no /proc
        with contextlib.suppress(OSError):
            state = (thread / "stat").read_text().rpartition(")")[2].split()[0]
            if state in "RD" and thread.name != str(threading.get_native_id()):
                return True
    return False


def _end(processes: Sequence[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
