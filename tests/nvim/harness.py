"""A real child Neovim with an attached UI, driven over msgpack-RPC: the user's screen as text.

`Nvim` starts `nvim --embed` in a clean home (own HOME and XDG folders, own init file, the repository on the
runtimepath), attaches as a UI and keeps the grid. Everything is synchronous; a reader thread applies redraw events.
Tests never sleep: `wait_for` polls a predicate after every flush and shows the screen on a timeout.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import msgpack

from grid import Grid
from tests.patience import PATIENCE_S

NO_PROVIDER = "vim.g.loaded_python3_provider = 0\n"
"""For init files of unrelated tests: the first Python file shown would start three Pythons to check whether the
provider works, 0.8 s of CPU.
"""
NO_READING = """
vim.api.nvim_create_autocmd("FileType", { pattern = "codecompanion", once = true, callback = function()
  require("codecompanion.chat.question.next_question").UNREAD_MS = 0
end })
"""
"""For init files: approvals can be answered immediately. Tests about the minimum reading time set it themselves."""
REPO = Path(__file__).resolve().parents[2]
LOGINS = ("COPILOT_GITHUB_TOKEN", "CODESPACES", "GITHUB_TOKEN")
NOBODY = "127.0.0.1:9"
"""An address at which no server listens (the port of the discard service, which is never running)."""
TIMEOUT_S = PATIENCE_S
LEAVE_S = 20.0
"""Time after which Neovim is assumed not to exit on its own, for example because it waits at a prompt."""


class NvimError(AssertionError):
    """Raised when a request fails inside Neovim or times out, or Neovim ends; the message contains the screen."""


def find_nvim() -> str | None:
    """Return the Neovim to test: $NVIM_BIN, the project's environment, PATH, this Python's environment."""
    candidates = [os.environ.get("NVIM_BIN"), str(REPO / ".venv" / "bin" / "nvim"), shutil.which("nvim")]
    candidates.append(str(Path(sys.prefix) / "bin" / "nvim"))
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None


def other_nvims() -> list[str]:
    """Return further Neovim binaries to run a few tests on: $NVIM_BINS, separated by ':'."""
    return [path for path in os.environ.get("NVIM_BINS", "").split(":") if path and os.access(path, os.X_OK)]


class Nvim:
    """One child Neovim. Use as a context manager; `root` (a tmp_path) may be shared by a restart on the same data."""

    def __init__(
        self,
        root: Path,
        *,
        init: str = "",
        args: Iterable[str] = (),
        size: tuple[int, int] = (100, 30),
        env: dict[str, str] | None = None,
        binary: str | None = None,
        runtimepath: bool = True,
    ) -> None:
        """Prepare without starting. `init` is Lua run as the init file; `env` overrides variables ("" removes them)."""
        self.root, self.args, self.size = root, tuple(args), size
        self.binary = binary or find_nvim() or "nvim"
        self.env = clean_env(root, env or {})
        self.init_file = root / "init.lua"
        head = f"vim.opt.runtimepath:prepend({lua_string(str(REPO))})\n" if runtimepath else ""
        self.init_file.write_text(head + "vim.o.swapfile = false\n" + init, encoding="utf-8")
        self.grid = Grid()
        self.notifications: list[tuple[str, Any]] = []
        self.pid = self.channel = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._next_id = 0
        self._replies: dict[int, tuple[Any, Any]] = {}
        self._changed = threading.Condition()
        self._ended = False
        self._packer = msgpack.Packer(use_bin_type=True, unicode_errors="surrogateescape")

    def __enter__(self) -> Self:
        """Start Neovim and attach the UI."""
        argv = [self.binary, "--embed", "-u", str(self.init_file), "-i", "NONE", *self.args]
        cwd = self.root / "work"
        cwd.mkdir(exist_ok=True)
        with (self.root / "stderr.log").open("ab") as stderr:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=self.env, cwd=cwd
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.request("nvim_ui_attach", *self.size, {"rgb": True, "ext_linegrid": True})
            self.channel = self.request("nvim_get_api_info")[0]
            self.pid = self.request("nvim_call_function", "getpid", [])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Leave Neovim, killing it if it does not exit."""
        process = self._process
        if process is None:
            return
        if process.poll() is None and not self._ended:
            with contextlib.suppress(NvimError):  # it has just gone by itself
                self._send([2, "nvim_command", ["qa!"]])
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LEAVE_S)
        if process.poll() is None:
            self.kill9()
        # Before its descriptor is closed: the number may be given to the next Neovim, whose bytes it would read.
        self._reader.join(TIMEOUT_S)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def kill9(self) -> None:
        """Kill Neovim like a power cut (SIGKILL) and wait until it is gone."""
        assert self._process is not None
        for pid in {self.pid, self._process.pid} - {0}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(TIMEOUT_S)

    def end(self, number: int) -> None:
        """Send a signal that ends Neovim (a closed terminal sends SIGHUP) and wait until it is gone."""
        os.kill(self.pid, number)
        self.wait_end()

    def leave(self) -> None:
        """Leave Neovim like its user, and wait until it has exited."""
        self.notify_lua("vim.cmd('qa!')")
        self.wait_end()

    def wait_end(self) -> None:
        """Wait until Neovim is gone."""
        assert self._process is not None
        self._process.wait(TIMEOUT_S)

    def request(self, method: str, *args: Any, timeout: float = TIMEOUT_S) -> Any:
        """Call an API function and return its result.

        Raises:
            NvimError: Neovim reported an error, ended, or did not answer in `timeout` seconds (a blocking prompt?).
        """
        self._next_id += 1
        request_id = self._next_id
        self._send([0, request_id, method, list(args)])
        with self._changed:
            self._changed.wait_for(lambda: request_id in self._replies or self._ended, timeout)
            if request_id not in self._replies:
                why = "Neovim ended" if self._ended else f"no answer in {timeout} s"
                raise NvimError(f"{method}: {why}\n{self._evidence()}")
            error, result = self._replies.pop(request_id)
        if error is not None:
            raise NvimError(f"{method}: {error[1] if isinstance(error, list) else error}\n{self._evidence()}")
        return result

    def lua(self, code: str, *args: Any, timeout: float = TIMEOUT_S) -> Any:
        """Run Lua (`...` are the arguments) and return its result."""
        return self.request("nvim_exec_lua", code, list(args), timeout=timeout)

    def notify_lua(self, code: str, *args: Any) -> None:
        """Run Lua without waiting for it (for measurements and for code that blocks)."""
        self._send([2, "nvim_exec_lua", [code, list(args)]])

    def command(self, command: str) -> None:
        """Run an Ex command."""
        self.request("nvim_command", command)

    def feed(self, keys: str) -> None:
        """Type keys like a user (`<CR>`, `<C-s>`, text); all of them are processed before the next request."""
        written = 0
        while written < len(keys.encode()):
            written += self.request("nvim_input", keys.encode()[written:].decode())

    def press_ctrl_c(self, worked: Callable[[], Any]) -> None:
        """Press <C-c> until it works: while Neovim is busy it is an interrupt instead of a key."""

        def press() -> Any:
            self.settle()
            if worked():
                return True
            self.feed("<C-c>")
            return False

        self.wait_for(press, "<C-c> to work")

    def screen(self) -> str:
        """Return the screen as text, without trailing blanks, once all previous requests are drawn."""
        self._await_drawing()
        with self._changed:
            return self.grid.text()

    def _await_drawing(self) -> None:
        """Let Neovim run its main loop, which draws before it takes the next request.

        Return immediately if it is at a prompt.
        """
        if not self._ended and not self.blocked():
            for _ in range(2):
                self.request("nvim_eval", "0")

    def row(self, text: str) -> int:
        """Return the screen row (0-based) of the first line that contains `text`."""
        for number, line in enumerate(self.screen().split("\n")):
            if text in line:
                return number
        raise NvimError(f"{text!r} is not on the screen\n{self._evidence()}")

    def highlight_at(self, row: int, column: int) -> dict[str, Any]:
        """Return the attributes (`bold`, `foreground`, …) of a screen cell."""
        with self._changed:
            return self.grid.attributes(row, column)

    def messages(self) -> str:
        """Return the `:messages` output without empty lines around it, which 0.10 adds for a cleared command line."""
        return str(self.request("nvim_exec2", "messages", {"output": True})["output"]).strip("\n")

    def blocked(self) -> bool:
        """Return whether Neovim waits in a prompt (hit-enter, more, confirm)."""
        return bool(self.request("nvim_get_mode")["blocking"])

    def lines(self, buffer: int = 0) -> list[str]:
        """Return the lines of a buffer (0 = the current one)."""
        return list(self.request("nvim_buf_get_lines", buffer, 0, -1, False))

    def wait_for(self, predicate: Callable[[], Any], what: str = "", timeout: float = TIMEOUT_S) -> Any:
        """Return the first true value of `predicate()`, tried after every flush.

        Raises:
            NvimError: it never became true in `timeout` seconds; shows the screen and `:messages`.
        """
        deadline = time.monotonic() + timeout
        pause = 0.001
        while True:
            value = predicate()
            if value:
                return value
            if time.monotonic() > deadline or self._ended:
                raise NvimError(f"waited {timeout} s for {what or predicate}\n{self._evidence(with_messages=True)}")
            with self._changed:
                self._changed.wait(pause)
            pause = min(1.5 * pause, 0.02)  # an immediate change is seen immediately, a slow one costs little polling

    def wait_screen(self, pattern: str, timeout: float = TIMEOUT_S) -> str:
        """Wait until the regular expression `pattern` is found on the screen; return the screen."""
        compiled = re.compile(pattern, re.MULTILINE)
        self.wait_for(lambda: compiled.search(self.screen()), f"{pattern!r} on the screen", timeout)
        return self.screen()

    def wait_lua(self, code: str, *args: Any, timeout: float = TIMEOUT_S) -> Any:
        """Wait until the Lua `code` returns a true value; return it."""
        return self.wait_for(lambda: self.lua(code, *args), code, timeout)

    def settle(self) -> None:
        """Wait until Neovim has processed its input and scheduled calls, and has drawn the screen."""
        self.lua("vim.wait(0)")
        self.lua("vim.cmd.redraw()")

    def _evidence(self, with_messages: bool = False) -> str:
        text = f"--- screen of {self.binary} ---\n{self.grid.text()}\n---"
        stderr = self.root / "stderr.log"
        if stderr.exists() and stderr.stat().st_size:
            text += "\nstderr: " + stderr.read_text(encoding="utf-8", errors="replace")[-2000:]
        if with_messages and not self._ended:
            with contextlib.suppress(NvimError):
                text += "\nmessages: " + self.request_messages_quickly()
        return text

    def request_messages_quickly(self) -> str:
        """Return `:messages`, giving up early (used while reporting a failure)."""
        return str(self.request("nvim_exec2", "messages", {"output": True}, timeout=10)["output"])

    def _send(self, message: list[Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._packer.pack(message))
            self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise NvimError(f"Neovim ended\n{self._evidence()}") from error

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            ext_hook=lambda _code, data: msgpack.unpackb(data),
            max_buffer_size=0,
        )
        descriptor = self._process.stdout.fileno()
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(descriptor, 1 << 16):
                unpacker.feed(chunk)
                with self._changed:
                    for message in unpacker:
                        self._take(message)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, message: list[Any]) -> None:
        if message[0] == 1:
            self._replies[message[1]] = (message[2], message[3])
        elif message[0] == 2 and message[1] == "redraw":
            self.grid.apply(message[2])
        elif message[0] == 2:
            self.notifications.append((message[1], message[2]))


def lua_string(text: str) -> str:
    """Return `text` as a Lua string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def clean_env(root: Path, overrides: dict[str, str]) -> dict[str, str]:
    """Return an environment without the developer's own Neovim setup, keys or servers."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NVIM", "VIM", "XDG_", "MYVIM", "LC_", "LANG"))}
    env = {k: v for k, v in env.items() if not k.endswith("_API_KEY") and k not in LOGINS}
    for name in ("config", "data", "state", "cache", "runtime"):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        env["XDG_RUNTIME_DIR" if name == "runtime" else f"XDG_{name.upper()}_HOME"] = str(folder)
    (root / "home").mkdir(exist_ok=True)
    env |= {"HOME": str(root / "home"), "LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    env["OLLAMA_HOST"] = NOBODY
    env |= overrides
    return {key: value for key, value in env.items() if value != "" or key not in overrides}


def wait_until(predicate: Callable[[], object], what: str = "") -> None:
    """Wait until a condition outside Neovim is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not predicate():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what or predicate}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Return whether the process has ended (a zombie counts as ended)."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def wait_until_gone(pid: int) -> None:
    """Wait until the process has ended."""
    wait_until(lambda: is_gone(pid), f"process {pid} to end")
