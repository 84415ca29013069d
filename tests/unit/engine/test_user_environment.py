"""The user's environment as the host knows it: what the process has, and what it was told (issue 9, section 5)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecompanion.engine.own_memory import wipe_start_environment
from codecompanion.engine.user_environment import UserEnvironment, withdraw_secrets


def test_what_was_told_is_read_beside_the_process_s_own() -> None:
    """Lesson 44: keys are told in a message, and shown nowhere."""
    known = UserEnvironment({"PATH": "/bin", "OLD": "1"})
    assert known.take({"MY_KEY": "pencil-1", "OLD": "2"}) == {"MY_KEY", "OLD"}
    assert dict(known) == {"PATH": "/bin", "OLD": "2", "MY_KEY": "pencil-1"}
    assert known.told_names() == ["MY_KEY"]
    assert "pencil" not in repr(known)


def test_only_what_changed_is_said_to_have_changed() -> None:
    known = UserEnvironment({"PATH": "/bin"})
    known.take({"A_KEY": "1", "B_KEY": "2"})
    assert known.take({"A_KEY": "1", "B_KEY": "3"}) == {"B_KEY"}
    assert known.take({}, ("A_KEY", "NEVER_THERE")) == {"A_KEY"}
    assert "A_KEY" not in known
    assert known.get("B_KEY") == "3"


def test_a_variable_that_is_gone_is_gone_though_the_process_was_started_with_it() -> None:
    """A process shared with other plugins keeps the environment it began with."""
    known = UserEnvironment({"OPENAI_API_KEY": "old"})
    assert known.take({}, ("OPENAI_API_KEY",)) == {"OPENAI_API_KEY"}
    assert "OPENAI_API_KEY" not in known
    assert known.take({"OPENAI_API_KEY": "new"}) == {"OPENAI_API_KEY"}
    assert known["OPENAI_API_KEY"] == "new"
    with pytest.raises(KeyError):
        known["OTHER"]


def test_secrets_leave_the_environment_that_programs_inherit() -> None:
    own = {"PATH": "/bin", "OPENAI_API_KEY": "pencil-1", "URL": "postgres://me:pencil@db/main"}
    known = withdraw_secrets(own)
    assert own == {"PATH": "/bin"}
    assert (known["OPENAI_API_KEY"], known["PATH"], len(known)) == ("pencil-1", "/bin", 3)


_COMMAND_LINE = """
import os, subprocess
from codecompanion.cli.environment import hold_secrets, user_environment
hold_secrets()
print(user_environment()["OPENAI_API_KEY"], user_environment()["HOME"])
print(open("/proc/self/environ").read() + subprocess.run(["env"], capture_output=True, text=True).stdout)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems show no environment of processes")
def test_the_command_line_reads_its_keys_and_drops_them() -> None:
    """What the process was started with is overwritten; everything else stays, and programs get it."""
    package = str(Path(__file__).resolve().parents[3] / "python")
    environment = {**os.environ, "PYTHONPATH": package, "OPENAI_API_KEY": "pencil-12345", "KEEP": "me"}
    argv = [sys.executable, "-c", _COMMAND_LINE]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    first, _, rest = done.stdout.partition("\n")
    assert first == f"pencil-12345 {os.environ['HOME']}"
    assert "pencil-12345" not in rest
    assert rest.count("KEEP=me") == 2


def test_nothing_is_overwritten_that_was_not_named() -> None:
    before = Path("/proc/self/environ").read_bytes() if sys.platform.startswith("linux") else b""
    wipe_start_environment(())
    wipe_start_environment(("THERE_IS_NO_SUCH_VARIABLE",))
    if before:
        assert Path("/proc/self/environ").read_bytes() == before
