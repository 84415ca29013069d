"""User options for shaping requests: values, mistakes, `:checkhealth`, the meter (R-303, R-347, R-350)."""

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


def test_by_default_the_policy_decides_and_no_facts_are_sent(config: Config) -> None:
    """R-347, R-350."""
    config.setup("{}")
    chat = for_host(config)
    assert chat["response_style"] is None
    assert list(chat["context_packet"]["enabled_sections"]) == []


def test_the_options_reach_the_host(config: Config) -> None:
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
        ("response_style = true", "interactions.chat.opts.response_style", "got true"),
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
def test_a_mistake_is_reported_with_its_key(config: Config, option: str, key: str, value: str) -> None:
    """R-347, R-350: the report appears at startup and includes the expected value."""
    config.setup("{ %s }" % (OPTS % option))
    assert key in config.errors
    assert value in config.errors


def test_checkhealth_shows_the_active_values(nvim_factory: Callable[..., Nvim]) -> None:
    """R-347, R-350."""
    nvim = nvim_factory()
    nvim.lua(
        "require('codecompanion').setup({ %s })"
        % (OPTS % "policy = 'kodacode', context_packet = { enabled_sections = { 'git' } }")
    )
    nvim.command("checkhealth codecompanion")
    report = "\n".join(nvim.lines())
    assert "policy = kodacode, response_style = set by the policy" in report
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
    """R-303: a full cell per 10 %, half a cell from 5 % on."""
    assert config.nvim.lua("return require('codecompanion.chat.state.chat_status').gauge(...)", ratio) == expected


@pytest.mark.parametrize(
    ("ratio", "group"),
    [(0.799, "CodeCompanionMeter"), (0.8, "CodeCompanionMeterHigh"), (0.949, "CodeCompanionMeterHigh"),
     (0.95, "CodeCompanionMeterFull"), (1.2, "CodeCompanionMeterFull")],
)  # fmt: skip
def test_the_meter_changes_its_colour(config: Config, ratio: float, group: str) -> None:
    """R-303: it shows a warning colour from 80 % on and an error colour from 95 % on."""
    meter = {"tokens": 1, "window": 1000, "ratio": ratio, "exact": True}
    chunks = config.nvim.lua(
        "return require('codecompanion.chat.state.chat_status').meter_chunks({ bufnr = 1, meter = ... }, 200)", meter
    )
    assert {chunk[1] for chunk in chunks} == {group}


def test_the_header_shows_that_compaction_is_paused(config: Config) -> None:
    """R-545: "paused" replaces the inactive thresholds and precedes the gauge, even if there are only a few cells."""
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
                "local meter, room = ...\nlocal status = require('codecompanion.chat.state.chat_status')\n"
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


@pytest.mark.parametrize(("assumed", "text"), [(True, "ctx~ 2.1k/~32.0k 6%"), (False, "ctx~ 2.1k/32.0k 6%")])
def test_the_header_marks_an_assumed_window(config: Config, assumed: bool, text: str) -> None:
    """R-506: the mark is in the header from the beginning, not only in a notice."""
    meter = {"tokens": 2_082, "window": 32_000, "ratio": 2_082 / 32_000, "exact": False, "assumed": assumed}
    assert config.nvim.lua("return require('codecompanion.chat.state.chat_status').meter_text(...)", meter) == text


def test_the_inspector_shows_an_assumed_window_and_the_setting(config: Config) -> None:
    """R-506: the text of the one-time notice can be read again here; a known window has no note."""
    code = "return require('codecompanion.chat.lists.inspector').lines(..., true, 60)"
    guess = "The context window of m1 is unknown: 32,000 tokens are assumed. Set it in setup(): models = …"
    result = {"rows": [], "total": 2_000, "window": 32_000, "guess": guess}
    lines = config.nvim.lua(code, result)
    assert " of ~32k " in lines[0]
    assert " ".join(lines).endswith(guess)
    assert all(len(line) <= 60 for line in lines)
    assert not any("~" in line for line in config.nvim.lua(code, result | {"guess": ""}))


def test_the_inspector_leaves_out_shares_and_prices_that_are_rounded_to_zero(config: Config) -> None:
    """Other shares are rounded, not cut."""
    rows = [
        {"role": "tools", "tokens": 3_244, "cost": 0.0016, "name": "10 tool schemas"},
        {"role": "user", "tokens": 50, "cost": 0.000025, "preview": "why?"},
        {"role": "user", "tokens": 6, "cost": 0.000003, "preview": "hello"},
    ]
    result = {"rows": rows, "total": 3_300, "window": 128_000, "cost": 0.001628}
    code = "return require('codecompanion.chat.lists.inspector').lines(..., true, 100)"
    lines = [" ".join(line.split()) for line in config.nvim.lua(code, result)]
    assert lines[3:7] == [
        "3.2k 98 % $0.0016 tools 10 tool schemas",
        "50 2 % user why?",
        "6 user hello",
        "3.3k sum, ~$0.0016",
    ]


def bars(config: Config, **more: Any) -> list[str]:
    """Return the bar at every width from 4 to 220."""
    meter = {"tokens": 35_800, "window": 128_000, "ratio": 0.2797, "exact": False, "edit_at": 83_200}
    chat = {"adapter": "openai", "model": "gpt-4o", "state": "idle", "label": "", "outgoing": {}, "approvals": {}}
    chat |= {"put_away": {}, "title": "Why does foo() return nil on an empty table?", "bufnr": 1} | more
    chat["meter"] = meter | {"compact_at": 108_800} | chat.get("meter", {})
    found: list[str] = config.nvim.lua(
        "local chat, found = ..., {}\nfor width = 4, 220 do\n"
        "  local chunks = require('codecompanion.chat.buffer.bar').chunks(chat, width)\n"
        "  found[#found + 1] = table.concat(vim.tbl_map(function(c) return c[1] end, chunks))\nend\n"
        "return found",
        chat,
    )
    return found


TITLE = "Why does foo() return nil on an empty table?"
HALF_FULL = {"ratio": 0.62, "exact": True}


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({}, {200: f"{TITLE} · gpt-4o · ~27 %", 40: "Why does foo() return … · gpt-4o · ~27 %", 20: "gpt-4o · ~27 %"}),
        (
            {"meter": HALF_FULL},
            {
                120: f"{TITLE} · gpt-4o · 62 % · edit 65 % · compact 85 %",
                80: "Why does foo() return nil on an … · gpt-4o · 62 % · edit 65 % · compact 85 %",
                40: "Why does foo() return … · gpt-4o · 62 %",
            },
        ),
        ({"meter": {"ratio": 0.49}}, {200: f"{TITLE} · gpt-4o · ~49 %"}),
        (
            {"meter": {"window": 32_000, "assumed": True}},
            {80: f"{TITLE} · gpt-4o · 27 % of ~32k", 28: "Why does … · gpt-4o · 27 %"},
        ),
        (
            {"state": "streaming", "label": "running grep_search"},
            {
                200: "running grep_search · gpt-4o · ~27 %",
                30: "running grep_search · ~27 %",
                20: "running · ~27 %",
            },
        ),
        (
            {"other_model": "qwen3-8b"},
            {
                200: f"{TITLE} · gpt-4o → qwen3-8b · ~27 %",
                40: "Why does … · gpt-4o → qwen3-8b · ~27 %",
                20: "qwen3-8b · ~27 %",
            },
        ),
        ({"model": "", "title": "openai"}, {80: "openai · ~27 %"}),
        ({"yolo": True}, {60: "YOLO · Why does foo() return nil on an … · gpt-4o · ~27 %", 20: "YOLO · ~27 %"}),
        ({"model": "accounts/fireworks/models/" + "long-" * 9, "title": ""}, {24: "accounts/firewo… · ~27 %"}),
    ],
)
def test_the_bar_of_a_chat_is_short(config: Config, more: dict[str, Any], at: dict[int, str]) -> None:
    """It has the title, model and percentage; the state replaces the title, and thresholds are shown from 50 % on."""
    lines = bars(config, **more)
    assert {width: lines[width - 4] for width in at} == at


@pytest.mark.parametrize("more", [{}, {"meter": HALF_FULL}, {"meter": {"paused": True}}, {"yolo": True}])
@pytest.mark.parametrize("state", [{}, {"state": "streaming", "label": "waiting for the model"}])
def test_the_bar_drops_its_parts_in_order(config: Config, more: dict[str, Any], state: dict[str, Any]) -> None:
    """The title is shortened first, then the thresholds and the model are dropped.

    The percentage stays and nothing is repeated.
    """
    lines = bars(config, **more, **state)
    for width, line in enumerate(lines, 4):
        assert len(line) <= width, (width, line)
        assert "%" in line or width < 5, (width, line)
        parts = line.split(" · ")
        assert len(parts) == len(set(parts)), (width, line)
    narrowest = [next((w for w, line in enumerate(lines, 4) if part in line), 999) for part in
                 (" %", "gpt-4o", "Why doe", "edit 65 %")]  # fmt: skip
    assert (narrowest[2] == 999) is bool(state), "the state in place of the title"
    assert narrowest == sorted(narrowest) or state


ASSUMED = {"window": 32_000, "assumed": True}


@pytest.mark.parametrize(
    ("more", "at"),
    [
        (
            {"approvals": [{"event": {"title": "run_command ls", "kind": ""}}]},
            {36: "waiting for approval · 27 % of ~32k", 24: "approve? · 27 % of ~32k"},
        ),
        (
            {"approvals": [{"event": {"title": "", "kind": "compact"}}]},
            {33: "waiting: compact? · 27 % of ~32k", 24: "compact? · 27 % of ~32k"},
        ),
        ({"label": "waiting for the model"}, {33: "waiting · 27 % of ~32k"}),
        ({"label": "running run_command python3 -m unittest"}, {35: "running run_command · 27 % of ~32k"}),
        ({"label": "starting clock and files (MCP)"}, {33: "starting MCP · 27 % of ~32k"}),
        ({"label": "reading about 3.1k tokens, ≈ 12 s"}, {36: "reading 3.1k tokens · 27 % of ~32k"}),
        ({"state": "compacting", "label": "compacting the chat"}, {33: "compacting · 27 % of ~32k"}),
    ],
)
def test_a_narrow_bar_words_the_state_shorter(config: Config, more: dict[str, Any], at: dict[int, str]) -> None:
    lines = bars(config, meter=ASSUMED, **({"state": "streaming"} | more))
    assert {width: lines[width - 4] for width in at} == at
    assert not any("…" in line for line in lines[26 - 4 :])


@pytest.mark.parametrize("more", [{}, {"state": "streaming", "label": "running grep_search"}])
def test_a_pause_of_compaction_is_shown_at_every_width(config: Config, more: dict[str, Any]) -> None:
    """R-545: the pause is shown from 40 columns on, even while something is running."""
    for width, line in enumerate(bars(config, meter={"paused": True}, **more), 4):
        if width >= 36:
            assert "paused" in line, (width, line)
            assert more.get("label", "") in line
        assert len(line) <= width


@pytest.mark.parametrize(
    ("meter", "expected"),
    [
        ({"tokens": 35_800, "window": 40_000, "ratio": 0.895, "exact": False}, "ctx~ 35.8k/40.0k 89%"),
        ({"tokens": 999, "window": 1_000_000, "ratio": 0.000999, "exact": True}, "ctx 999/1.0M 0%"),
        ({"tokens": 1_200, "window": 4_000, "ratio": 0.3, "exact": True}, "ctx 1.2k/4.0k 30%"),
    ],
)
def test_the_meter_has_a_label(config: Config, meter: dict[str, Any], expected: str) -> None:
    """R-303: `ctx~` marks an estimate; the percentage is rounded down."""
    assert config.nvim.lua("return require('codecompanion.chat.state.chat_status').meter_text(...)", meter) == expected
