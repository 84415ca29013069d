"""The sandbox test of `:checkhealth`: runs a command that tries to escape the sandbox, and reports what it reached.

It creates the targets of the attempts and removes them afterwards. Call it in a thread, because it waits for a program.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from codecompanion.formats import typed
from codecompanion.tools.sandbox.confined import launcher_pipes
from codecompanion.tools.sandbox.sandbox import PYTHON, Sandbox

LIMIT_S = 10.0
ATTEMPTS: Final[tuple[str, ...]] = (
    "write in the home folder",
    "read a hidden file",
    "connect to a port of this machine",
    "connect to a socket of another program",
    "read the environment of the Python process",
    "signal the Python process",
)
_SCRIPT: Final = """
import json, os, socket, sys
home, secret, canary, port, path, host = sys.argv[1:]
def unix():
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    return True
reached = []
for attempt in (
    lambda: open(os.path.join(home, canary), "w"),
    lambda: canary in open(secret).read(),
    lambda: socket.create_connection(("127.0.0.1", int(port)), 1),
    unix,
    lambda: open(f"/proc/{host}/environ", "rb").read(1),
    lambda: os.kill(int(host), 0) is None,
):
    try:
        reached.append(bool(attempt()))
    except Exception:
        reached.append(False)
print(json.dumps(reached))
"""


class Attempt(msgspec.Struct, frozen=True):
    """One escape attempt, and whether it succeeded."""

    name: str
    got_through: bool


def try_to_escape(sandbox: Sandbox) -> tuple[Attempt, ...]:
    """Return the result of each escape attempt in the sandbox in use.

    Raises: OSError: the targets could not be created. subprocess.SubprocessError: the command timed out. ValueError:
    the command's output was malformed.
    """
    canary = f".codecompanion-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="codecompanion-probe-")))
        hidden = sandbox.private_folder(folder) / "secret"
        hidden.write_text(canary, "ascii")
        closing.callback(hidden.unlink, missing_ok=True)
        written = sandbox.home / canary
        closing.callback(written.unlink, missing_ok=True)
        port = closing.enter_context(socket.create_server(("127.0.0.1", 0)))
        service = closing.enter_context(socket.socket(socket.AF_UNIX))
        service.bind(str(folder / "service"))
        service.listen()
        (folder / "workspace").mkdir()
        arguments = [sandbox.home, hidden, canary, port.getsockname()[1], folder / "service", os.getpid()]
        reached = _run(sandbox, folder / "workspace", [PYTHON, "-I", "-S", "-c", _SCRIPT, *map(str, arguments)])
        reached[0] = reached[0] and written.exists()
    return tuple(Attempt(name, through) for name, through in zip(ATTEMPTS, reached, strict=True))


def _run(sandbox: Sandbox, workspace: Path, argv: list[str]) -> list[bool]:
    with launcher_pipes() as launcher:
        environment = {"PATH": os.defpath, "HOME": str(sandbox.home)}
        confined = sandbox.confine(argv, workspace, workspace, environment, launcher.theirs, network=False)
        ended = subprocess.run(
            confined.argv, env=dict(confined.environment), cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
            check=False, pass_fds=launcher.theirs.inherited(), start_new_session=True, timeout=LIMIT_S,
        )  # fmt: skip
    try:
        return typed.read_json(ended.stdout, type=list[bool])
    except msgspec.DecodeError as error:
        raise ValueError(ended.stderr.decode("utf-8", "replace").strip()[-300:] or str(error)) from error
