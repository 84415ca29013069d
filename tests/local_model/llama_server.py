"""llama.cpp's `llama-server` as a child process: started with a given window, inspected, killed and restarted.

Its own documentation: tools/server/README.md in the llama.cpp repository (`/metrics`, `/props`, `/health`).
"""

from __future__ import annotations

import re
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.patience import PATIENCE_S
from tests.peers.server_process import ServerProcess, answers, call

_METRIC = re.compile(r"^llamacpp:(\w+) ([\d.e+]+)$", re.MULTILINE)
THREADS = 1
"""On a busy machine with two cores, two threads wait for each other: they read half as fast as one."""


class LlamaServer:
    """A server that keeps its port when restarted. `url` is without `/v1`."""

    def __init__(self, program: Path, model: Path, folder: Path) -> None:
        """Prepare the server without starting it; its log is written to `folder`."""
        self.program, self.model = program, model
        self.log = folder / "llama-server.log"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: ServerProcess | None = None

    def start(self, window: int, *flags: str, wait: bool = True) -> LlamaServer:
        """Start the server with one slot and a window in tokens; `wait` until it can answer."""
        self.stop()
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--threads", str(THREADS)]
        what = [] if "--models-dir" in flags else ["--model", str(self.model)]
        size = ["--ctx-size", str(window), "--parallel", "1", "--metrics", "--no-ui"]
        argv = [str(self.program), *what, *where, *size, *flags]
        _wait_until_free(self.port)
        self.process = ServerProcess("llama-server", argv, env={}, log=self.log)
        if wait:
            self.process.wait_until(lambda: answers(f"{self.url}/health"))
        return self

    def stop(self) -> None:
        """Kill the server, as a crash would."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    def metrics(self) -> dict[str, float]:
        """Return the server's counters by name, without the prefix."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:  # noqa: S310 (always http://127.0.0.1)
            return {name: float(value) for name, value in _METRIC.findall(answer.read().decode())}

    def tokens_read(self) -> int:
        """Return the number of processed prompt tokens, without cached ones."""
        return round(self.metrics()["prompt_tokens_total"])

    def window(self) -> int:
        """Return the window reported by the server."""
        told: Any = call(f"{self.url}/props")
        return int(told["default_generation_settings"]["n_ctx"])


def _wait_until_free(port: int) -> None:
    """Wait until the previous server no longer listens; its closed connections remain for a minute."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                assert time.monotonic() < deadline, f"port {port} does not become free"
                time.sleep(0.2)
            else:
                return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
