"""A configuration copied from codecompanion.nvim starts calmly: what means the same is in force, the rest listed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from foreign_configs import ALL, NOTHING, TAKEN
from harness import Nvim
from test_config import INFO, Config, at, child, config

__all__ = ["child", "config"]


@pytest.mark.parametrize("version", ALL)
def test_what_means_the_same_is_in_force_and_the_rest_is_listed(config: Config, version: str) -> None:
    config.setup(ALL[version])
    found = config.findings
    assert found["problems"] == []
    assert {entry.partition(":")[0] for entry in found["foreign"]} == NOTHING[version]
    for path, value in TAKEN[version].items():
        assert config.get(path) == value, path
    count = len(NOTHING[version])
    text = f"codecompanion: {count} options of codecompanion.nvim do nothing here: :CodeCompanion problems"
    assert config.said == [(INFO, text)]
    config.for_host()
    assert config.said == [(INFO, text)]


@pytest.mark.parametrize("size", [(40, 12), (80, 24)])
@pytest.mark.parametrize("version", ALL)
def test_it_starts_with_one_calm_line(nvim_factory: Callable[..., Nvim], version: str, size: tuple[int, int]) -> None:
    nvim = nvim_factory(size=size, init=f"require('codecompanion').setup({ALL[version]})\n")
    nvim.wait_for(lambda: ":CodeCompanion problems" in nvim.screen(), "the line")
    assert not nvim.blocked()
    nvim.command("CodeCompanion problems")
    assert "do nothing" in " ".join(nvim.lines())
    assert any("strategies → interactions" in line for line in nvim.lines()) == (version != "19")


def test_the_table_given_stays_as_it_was(config: Config) -> None:
    config.setup(f"(function() _G.given = {ALL['17']} _G.copy = vim.deepcopy(given) return given end)()")
    config.for_host()
    # Functions are the same ones in a deep copy.
    assert config.eval("vim.deep_equal(given, copy)") is True


def test_what_is_given_under_our_name_counts(config: Config) -> None:
    config.setup(
        "{ strategies = { chat = { adapter = 'openai', roles = { user = 'a' } } },"
        " interactions = { chat = { adapter = 'anthropic' } } }"
    )
    assert config.get("interactions.chat.adapter") == "anthropic"
    assert config.get("interactions.chat.roles.user") == "a"
    assert config.findings["problems"] == []


@pytest.mark.parametrize(
    ("path", "ours"),
    [
        ("strategies.chat.roles.llm", "interactions.chat.roles.llm"),
        ("memory.mine.files", "rules.mine.files"),
        (
            "strategies.chat.tools.cmd_runner.opts.require_approval_before",
            "interactions.chat.tools.run_command.opts.require_approval_before",
        ),
        ("adapters.mine", "adapters.http.mine"),
    ],
)
def test_a_mistake_at_an_old_place_is_named_where_it_counts(config: Config, path: str, ours: str) -> None:
    assert f"{ours}: got number 7" in config.setup(at(path, "7")).errors


@pytest.mark.parametrize("path", ["strategies", "memory", "adapters", "strategies.chat", "memory.opts", "opts"])
@pytest.mark.parametrize("value", ["7", "'x'", "false", "{ 1 }", "function() end"])
def test_nothing_breaks_at_the_places_that_are_moved(config: Config, path: str, value: str) -> None:
    config.setup(at(path, value))
    assert config.for_host()["chat"]["adapter"] == "offline"
