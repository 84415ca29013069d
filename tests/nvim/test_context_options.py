"""How requests are shaped, as the user sets it: options, mistakes, `:checkhealth`, the meter (R-303, R-347, R-350)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness import Nvim
from test_config import Config

OPTS = "interactions = { chat = { opts = { %s } } }"


@pytest.fixture
def config(nvim_factory: Callable[..., Nvim]) -> Config:
    return Config(nvim_factory())


def for_host(config: Config) -> dict[str, Any]:
    chat: dict[str, Any] = config.eval("config.for_host().chat")
    return chat


def test_by_default_the_policy_decides_and_no_facts_go_along(config: Config) -> None:
    """R-347, R-350."""
    config.setup("{}")
    chat = for_host(config)
    assert chat["response_style"] is None
    assert list(chat["context_packet"]["enabled_sections"]) == []


def test_what_is_set_reaches_the_host(config: Config) -> None:
    """R-347, R-350."""
    config.setup(
        "{ %s }" % (OPTS % "response_style = 'default', context_packet = { enabled_sections = { 'repo', 'git' } }")
    )
    assert config.errors == ""
    chat = for_host(config)
    assert chat["response_style"] == "default"
    assert chat["context_packet"]["enabled_sections"] == ["repo", "git"]


@pytest.mark.parametrize(
    ("option", "key", "value"),
    [
        ("response_style = 'short'", "interactions.chat.opts.response_style", '"short"'),
        ("response_style = true", "interactions.chat.opts.response_style", "boolean"),
        (
            "context_packet = { enabled_sections = { 'repo', 'gti' } }",
            "interactions.chat.opts.context_packet.enabled_sections",
            '"gti"',
        ),
        (
            "context_packet = { enabled_section = {} }",
            "interactions.chat.opts.context_packet.enabled_section",
            "unknown",
        ),
    ],
)
def test_a_mistake_is_named_with_its_key(config: Config, option: str, key: str, value: str) -> None:
    """R-347, R-350: at startup, with what was expected."""
    config.setup("{ %s }" % (OPTS % option))
    assert key in config.errors
    assert value in config.errors


def test_checkhealth_shows_what_is_in_force(nvim_factory: Callable[..., Nvim]) -> None:
    """R-347, R-350."""
    nvim = nvim_factory()
    nvim.lua(
        "require('codecompanion').setup({ %s })"
        % (OPTS % "policy = 'kodacode', context_packet = { enabled_sections = { 'git' } }")
    )
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert "policy = kodacode, response_style = as the policy says" in report
    assert "context_packet = git" in report


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (0.0, "▕░░░░░░░░░░▏"),
        (0.049, "▕░░░░░░░░░░▏"),
        (0.05, "▕▌░░░░░░░░░▏"),
        (0.1, "▕█░░░░░░░░░▏"),
        (0.89, "▕████████▌░▏"),
        (1.0, "▕██████████▏"),
        (1.7, "▕██████████▏"),
    ],
)
def test_the_gauge_has_ten_cells(config: Config, ratio: float, expected: str) -> None:
    """R-303: a full cell for every 10 %, half a cell from 5 % on."""
    assert config.nvim.lua("return require('codecompanion.chat.status').gauge(...)", ratio) == expected


@pytest.mark.parametrize(
    ("ratio", "group"),
    [(0.799, "CodeCompanionMeter"), (0.8, "CodeCompanionMeterHigh"), (0.949, "CodeCompanionMeterHigh"),
     (0.95, "CodeCompanionMeterFull"), (1.2, "CodeCompanionMeterFull")],
)  # fmt: skip
def test_the_meter_changes_its_colour(config: Config, ratio: float, group: str) -> None:
    """R-303: a warning from 80 % on, an error from 95 % on."""
    meter = {"tokens": 1, "window": 1000, "ratio": ratio, "exact": True}
    chunks = config.nvim.lua(
        "return require('codecompanion.chat.status').meter_chunks({ bufnr = 1, meter = ... }, 200)", meter
    )
    assert {chunk[1] for chunk in chunks} == {group}


def test_the_header_says_that_compaction_is_paused(config: Config) -> None:
    """R-545: in the place of the marks that do not count now; before the bar and in few cells, too."""
    meter = {
        "tokens": 1,
        "window": 1000,
        "ratio": 0.1,
        "exact": True,
        "edit_at": 650,
        "compact_at": 850,
        "paused": True,
    }
    ways = {
        room: "".join(
            chunk[0]
            for chunk in config.nvim.lua(
                "local meter, room = ...\nlocal status = require('codecompanion.chat.status')\n"
                "return status.meter_chunks({ bufnr = 1, meter = meter }, room)",
                meter,
                room,
            )
        )
        for room in (60, 40, 25, 4)
    }
    assert ways[60].startswith("compaction paused   ctx 1/1.0k 10%")
    assert ways[40] == "compaction paused   ctx 1/1.0k 10%"
    assert ways[25] == "paused ctx 1/1.0k 10%"
    assert ways[4] == "10%"


@pytest.mark.parametrize(
    ("meter", "expected"),
    [
        ({"tokens": 35_800, "window": 40_000, "ratio": 0.895, "exact": False}, "ctx~ 35.8k/40.0k 89%"),
        ({"tokens": 999, "window": 1_000_000, "ratio": 0.000999, "exact": True}, "ctx 999/1.0M 0%"),
        ({"tokens": 1_200, "window": 4_000, "ratio": 0.3, "exact": True}, "ctx 1.2k/4.0k 30%"),
    ],
)
def test_the_label_of_the_meter(config: Config, meter: dict[str, Any], expected: str) -> None:
    """R-303: `ctx~` for an estimate; the share is rounded down."""
    assert config.nvim.lua("return require('codecompanion.chat.status').meter_text(...)", meter) == expected
