"""The health check's report on the environment of commands."""

from __future__ import annotations

from codecompanion.engine.doctor import kept_modules, own_environment_finding, variables_finding
from codecompanion.engine.module_cache import ModuleCache
from codecompanion.tools.commands.command_environment import HiddenVariables


def test_the_health_check_names_hidden_variables_without_values() -> None:
    """Lesson 44: no key is shown."""
    found = variables_finding(HiddenVariables(), {"PATH": "/bin", "MY_TOKEN": "pencil", "DB_PASSWORD": "pencil"})
    assert (found.ok, found.text) == (True, "do not get DB_PASSWORD, MY_TOKEN")
    assert "get all environment variables" in variables_finding(HiddenVariables(), {"PATH": "/bin"}).text


def test_a_host_with_keys_in_its_environment_is_reported_by_name() -> None:
    """Only a process shared with other plugins has keys; the advice names the remedy, and no value is shown."""
    hidden = HiddenVariables(of_adapters=frozenset({"MINE"}), keep=("GH_*",))
    own = {"PATH": "/bin", "NVIM": "/run/nvim.1.0", "MINE": "pencil-1", "GH_TOKEN": "pencil-2"}
    finding = own_environment_finding(hidden, own)
    assert not finding.ok
    assert finding.text.startswith(
        "your other programs can read GH_TOKEN, MINE in the environment of the Python process"
    )
    assert "pencil" not in finding.text + finding.advice
    assert 'host = "private"' in finding.advice
    assert own_environment_finding(hidden, {"PATH": "/bin", "NVIM": "/run/nvim.1.0"}).ok


def test_an_unused_module_cache_gives_the_reason() -> None:
    """Without that the cause of a slow start would go unnoticed."""
    cache = ModuleCache("/nowhere")
    assert kept_modules(None).text.startswith("off")
    cache.open()
    assert (kept_modules(cache).ok, kept_modules(cache).text.partition(":")[0]) == (True, "not written yet")
    cache.close("other users could have written it")
    assert (kept_modules(cache).ok, kept_modules(cache).text) == (
        False,
        f"{cache.path}: other users could have written it",
    )
