"""A third-party server as a child process: it is started, awaited until it answers, and stopped with the tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

# The server ends with the tests even when these are killed: then the pipe closes, `read` returns.
_ENDS_WITH_US = 'exec 3<&0; "$@" & server=$!; { read -r _ <&3; kill -9 $server; } & wait $server'
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ServerProcess:
    """One running server. `env` is its whole environment except PATH; everything it prints is written to `log`."""

    def __init__(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], log: Path) -> None:
        self.name, self.log = name, log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["sh", "-c", _ENDS_WITH_US, "sh", *argv],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], "HOME": str(log.parent), **env},
                cwd=log.parent,
                start_new_session=True,
            )

    def wait_until(self, ready: Callable[[], bool], limit_s: float = 90.0) -> None:
        """Wait until `ready()` is true; fail with the log if the server ends or the time limit is reached."""
        deadline = time.monotonic() + limit_s
        while not ready():
            try:
                status = self._process.wait(0.1)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{self.name} was not ready in {limit_s} s\n{self.read_log()}") from None
            else:
                raise AssertionError(f"{self.name} ended with status {status}\n{self.read_log()}")

    def stop(self) -> None:
        """Kill the server and everything it started; it has nothing to save."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        assert self._process.stdin is not None
        self._process.stdin.close()

    def read_log(self, longest: int = 3000) -> str:
        """Return the end of the server's output."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-longest:]


def call(url: str, *, key: str = "", body: Any = None, limit_s: float = 10.0) -> Any:
    """Return the JSON response of a server; with `body`, send a POST request.

    Raises:
        OSError: there is no response, or an error response (`urllib.error.HTTPError`).
    """
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    payload = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, payload, headers)  # noqa: S310 (always http://127.0.0.1)
    with _NO_PROXY.open(request, timeout=limit_s) as answer:
        return json.loads(answer.read())


def answers(url: str) -> bool:
    """Return whether the URL answers without an error."""
    try:
        call(url)
    except OSError:
        return False
    return True
