"""To its caller, a forked Python behaves like a started one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_python import REPO, forked_python
from tests.patience import PATIENCE_S

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPO / "python")}
ENGINE = ("-m", "codecompanion.engine")


def answers(python: str, *arguments: str, stdin: bytes = b"", **more: str) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        [python, *arguments], input=stdin, capture_output=True, check=False, env={**ENVIRONMENT, **more}
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("-m", "codecompanion", "--version"), b""),
        (("-m", "codecompanion", "nonsense"), b""),
        (("-m", "codecompanion", "context", "-"), b'{"role": "user", "content": "gr\xc3\xbc\xc3\x9f dich"}'),
        (("-m", "codecompanion", "context", "-"), b"\xff\xfe no text"),
        ((*ENGINE,), b""),
        ((*ENGINE, "--check"), b""),
        (("-c", "import sys; print(sys.flags)"), b""),
    ],
    ids=str,
)
def test_status_and_streams_are_the_same(arguments: tuple[str, ...], stdin: bytes) -> None:
    """This includes arguments that need the real Python."""
    assert answers(forked_python(), *arguments, stdin=stdin) == answers(sys.executable, *arguments, stdin=stdin)


def test_folder_and_environment_are_the_callers(tmp_path: Path) -> None:
    """Files are found relative to the caller's folder, and the caller's variables apply."""
    (tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "hi"}')
    command = [forked_python(), "-m", "codecompanion", "context", "chat.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    assert b'"hi"' in done.stdout
    _, _, err = answers(forked_python(), "-m", "codecompanion", "sessions", "list", XDG_DATA_HOME=str(tmp_path))
    assert str(tmp_path).encode() in err


def test_interpreter_options_are_respected() -> None:
    """They cannot change in a fork, so a Python is started."""
    assert (
        b"import time" in answers(forked_python(), "-m", "codecompanion", "--version", PYTHONPROFILEIMPORTTIME="1")[2]
    )


def waiting() -> subprocess.Popen[bytes]:
    """Return a command that reads its endless input."""
    command = [forked_python(), "-m", "codecompanion", "context", "-"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )


def test_a_signal_reaches_it_and_its_end_is_the_launchers() -> None:
    """When a job is stopped, SIGTERM ends the command, and the launcher exits with that signal."""
    with waiting() as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == -signal.SIGTERM


def test_killing_the_launcher_kills_it() -> None:
    """The command's pipe ends are closed, which only its death can do."""
    with waiting() as process:
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == b""
