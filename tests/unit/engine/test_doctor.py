"""What the check-up says about the environment of commands."""

from __future__ import annotations

from codecompanion.engine.doctor import variables_finding
from codecompanion.tools.command_environment import HiddenVariables


def test_the_check_up_names_what_commands_do_not_get_and_no_value() -> None:
    """Lesson 44: a key stands nowhere."""
    found = variables_finding(HiddenVariables(), {"PATH": "/bin", "MY_TOKEN": "pencil", "DB_PASSWORD": "pencil"})
    assert (found.ok, found.text) == (True, "do not get DB_PASSWORD, MY_TOKEN")
    assert "get all variables" in variables_finding(HiddenVariables(), {"PATH": "/bin"}).text
