"""The user's environment in the host: the process's own, and received values."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codecompanion.engine.own_memory import wipe_start_environment
from codecompanion.engine.user_environment import UserEnvironment, withdraw_secrets


def test_received_values_are_read_beside_the_processs_own() -> None:
    """Lesson 44: keys are received in a message, and shown nowhere."""
    known = UserEnvironment({"PATH": "/bin", "OLD": "1"})
    assert known.take({"MY_KEY": "pencil-1", "OLD": "2"}) == {"MY_KEY", "OLD"}
    assert dict(known) == {"PATH": "/bin", "OLD": "2", "MY_KEY": "pencil-1"}
    assert known.withheld_names() == ["MY_KEY"]
    assert "pencil" not in repr(known)


def test_only_changed_variables_are_reported_as_changed() -> None:
    known = UserEnvironment({"PATH": "/bin"})
    known.take({"A_KEY": "1", "B_KEY": "2"})
    assert known.take({"A_KEY": "1", "B_KEY": "3"}) == {"B_KEY"}
    assert known.take({}, ("A_KEY", "NEVER_THERE")) == {"A_KEY"}
    assert "A_KEY" not in known
    assert known.get("B_KEY") == "3"


def test_a_removed_variable_is_gone_even_if_the_process_started_with_it() -> None:
    """A process shared with other plugins keeps its initial environment."""
    known = UserEnvironment({"OPENAI_API_KEY": "old"})
    assert known.take({}, ("OPENAI_API_KEY",)) == {"OPENAI_API_KEY"}
    assert "OPENAI_API_KEY" not in known
    assert known.take({"OPENAI_API_KEY": "new"}) == {"OPENAI_API_KEY"}
    assert known["OPENAI_API_KEY"] == "new"
    with pytest.raises(KeyError):
        known["OTHER"]


def test_secrets_are_removed_from_the_environment_of_programs() -> None:
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
    """The process's initial values are overwritten; everything else stays, and programs inherit it."""
    package = str(Path(__file__).resolve().parents[3] / "python")
    environment = {**os.environ, "PYTHONPATH": package, "OPENAI_API_KEY": "pencil-12345", "KEEP": "me"}
    argv = [sys.executable, "-c", _COMMAND_LINE]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    first, _, rest = done.stdout.partition("\n")
    assert first == f"pencil-12345 {os.environ['HOME']}"
    assert "pencil-12345" not in rest
    assert rest.count("KEEP=me") == 2


def test_variables_not_named_are_not_overwritten() -> None:
    before = Path("/proc/self/environ").read_bytes() if sys.platform.startswith("linux") else b""
    wipe_start_environment(())
    wipe_start_environment(("THERE_IS_NO_SUCH_VARIABLE",))
    if before:
        assert Path("/proc/self/environ").read_bytes() == before
