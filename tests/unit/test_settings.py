"""Settings for Python: defaults without Neovim, errors that name the user's key path."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion import settings
from codecompanion.adapters.base import AdapterSettings
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import ConfigError

REPO = Path(__file__).parents[2]


def test_an_empty_configuration_yields_the_defaults() -> None:
    loaded = settings.load({})
    assert loaded.chat.adapter == "offline"
    assert loaded.chat.context_management == {}
    assert loaded.chat.max_provider_requests_per_turn == 32
    assert loaded.tools.entries["delete_file"].require_approval_before
    assert not loaded.tools.entries["delete_file"].allowed_in_yolo_mode
    assert not loaded.tools.entries["read_file"].require_approval_before
    assert loaded.rules.autoload == ("default",)


def test_the_default_rule_files_equal_the_requirement() -> None:
    """R-549."""
    files = settings.load({}).rules.groups["default"].files
    assert " ".join(file.path for file in files) == (
        ".clinerules .cursorrules .goosehints .rules .windsurfrules .github/copilot-instructions.md"
        " AGENT.md AGENTS.md CLAUDE.md CLAUDE.local.md ~/.claude/CLAUDE.md"
    )
    assert [file.path for file in files if file.parser == "claude"] == [
        "CLAUDE.md",
        "CLAUDE.local.md",
        "~/.claude/CLAUDE.md",
    ]


def test_the_defaults_are_a_fresh_copy_each_time() -> None:
    settings.defaults()["chat"]["adapter"] = "changed"
    assert settings.load({}).chat.adapter == "offline"


def test_sections_are_merged_field_by_field() -> None:
    loaded = settings.load({"chat": {"adapter": "openai"}, "tools": {"entries": {"memory": {"enabled": False}}}})
    assert loaded.chat.adapter == "openai"
    assert loaded.chat.policy == "codecompanion"
    assert not loaded.tools.entries["memory"].enabled
    assert loaded.tools.entries["memory"].timeout_s == 60


def test_every_built_in_adapter_is_a_complete_entry() -> None:
    """The dicts here and the struct of the adapters must not drift apart."""
    for name, entry in settings.load({}).adapters.items():
        assert set(entry) == set(AdapterSettings.__struct_fields__)
        assert msgspec.convert(entry, AdapterSettings, strict=False).name == name


def test_a_users_own_adapter_starts_from_the_compatible_one() -> None:
    entry = settings.load({"adapters": {"local": {"base_url": "http://127.0.0.1:8080/v1"}}}).adapters["local"]
    converted = msgspec.convert(entry, AdapterSettings)
    assert (converted.name, converted.kind, converted.formatted_name) == ("local", "openai_compatible", "local")
    assert converted.base_url == "http://127.0.0.1:8080/v1"
    assert converted.max_tokens_field == "max_tokens"


def test_a_built_in_adapter_keeps_missing_fields() -> None:
    entry = settings.load({"adapters": {"openai": {"base_url": "http://127.0.0.1:1"}}}).adapters["openai"]
    assert (entry["kind"], entry["key"], entry["base_url"]) == ("openai", "OPENAI_API_KEY", "http://127.0.0.1:1")


def test_empty_lua_tables_count_as_tables() -> None:
    """Neovim writes an empty table as an empty list."""
    loaded = settings.load({"models": [], "adapters": [], "tools": {"entries": []}, "chat": []})
    assert loaded == settings.load({})


def test_models_are_limits() -> None:
    assert settings.load({"models": {"m": {"context_window": 8192}}}).models == {"m": ModelLimits(8192, 0)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"chta": {}}, "chta: unknown key"),
        ({"chat": {"polcy": "x"}}, "interactions.chat.opts.polcy: unknown key"),
        ({"chat": {"policy": 3}}, "interactions.chat.opts.policy: got `int`; expected `str`"),
        ({"chat": {"adapter": 3}}, "interactions.chat.adapter: got `int`; expected `str`"),
        (
            {"chat": {"adapter": "nope"}},
            "interactions.chat.adapter: there is no adapter 'nope'; expected anthropic, ",
        ),
        ({"chat": {"on_compact": "x"}}, "interactions.chat.opts.on_compact: Invalid enum value 'x'"),
        ({"chat": {"compaction_timeout_s": "x"}}, "interactions.chat.opts.compaction_timeout: got `str`"),
        ({"chat": {"budget": -1}}, "interactions.chat.opts.budget: got -1.0; expected US dollars"),
        (
            {"chat": {"budget": 5, "budget_warn": 80}},
            "interactions.chat.opts.budget_warn: got 80.0; expected a fraction",
        ),
        (
            {"chat": {"total_budget_warn": 0.5}},
            "interactions.chat.opts.total_budget_warn: it has no effect without interactions.chat.opts.total_budget",
        ),
        ({"chat": "offline"}, "interactions.chat.opts: got str; expected a table"),
        (
            {"adapters": {"x": {"bse_url": 1}}},
            "adapters.http.x.bse_url: unknown key; expected address_key, aws_profile",
        ),
        ({"adapters": {"x": 1}}, "adapters.http.x: got int; expected a table"),
        (
            {"models": {"a": {}, "b.c": {"context_window": "8k"}}},
            "models.b.c.context_window: got `str`; expected `int`",
        ),
        ({"tools": {"entries": {"nope": {}}}}, "interactions.chat.tools.nope: unknown key; expected code_search, c"),
        ({"tools": {"entries": {"memory": {"timeout_s": "x"}}}}, "interactions.chat.tools.memory.timeout_s: got `str`"),
        ({"tools": {"yolo": 1}}, "interactions.chat.tools.opts.yolo: got `int`; expected `bool`"),
        ({"rules": {"groups": {"g": {"description": ""}}}}, "rules.g: Object missing required field `files`"),
        ({"rules": {"autoload": "default"}}, "rules.opts.chat.autoload: got `str`; expected `array`"),
        ({"log_level": "LOUD"}, "opts.log_level: Invalid enum value 'LOUD'"),
        ({"workspace": {"root": 1}}, "workspace.root: got `int`; expected `str`"),
    ],
)
def test_a_mistake_names_the_users_key_path(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        settings.load(given)


def test_the_built_in_prompt_is_sent_by_default() -> None:
    assert settings.load({}).chat.full_system_prompt("built in") == "built in"


def test_a_system_prompt_may_contain_the_built_in_one() -> None:
    chat = settings.load({"chat": {"system_prompt": "A ${default_system_prompt} B"}}).chat
    assert chat.full_system_prompt("built in") == "A built in B"
    assert settings.load({"chat": {"system_prompt": ""}}).chat.full_system_prompt("built in") == ""


def test_settings_can_be_read_from_an_installed_package_without_neovim(tmp_path: Path) -> None:
    """The command line works without Neovim: nothing but the package's own folder is read."""
    code = "from codecompanion import settings; print(settings.load({}).chat.adapter)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPO / "python"), "PATH": ""},
        check=False,
    )
    assert done.stdout == "offline\n", done.stderr


def test_gathering_code_has_the_documents_defaults() -> None:
    """R-263, R-264, R-265."""
    found = settings.load({}).context
    assert (found.enabled, found.classify, found.utility, found.supplement_when_files_selected) == (
        "auto",
        True,
        "",
        True,
    )
    assert (found.include_hidden, found.max_file_size_mb, found.timeout_s, found.team.enabled) == (False, 1, 8, False)
    hybrid = found.hybrid
    assert (hybrid.vector_weight, hybrid.text_weight, hybrid.top_k) == (0.7, 0.3, 10)
    assert (hybrid.mmr.enabled, hybrid.mmr.lambda_, hybrid.decay.enabled, hybrid.decay.half_life_days) == (
        False,
        0.7,
        False,
        30,
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"windw": 1}, "context"),
        ({"enabled": "always"}, "context.enabled"),
        ({"utility": "no_such_adapter"}, "context.utility"),
        ({"timeout_s": 0}, "context.timeout"),
        ({"embedding": {"urll": "x"}}, "context.embedding"),
        ({"budgets": {"gpt-4o": -1}}, "context.budgets"),
    ],
)
def test_a_mistake_in_gathering_code_names_its_key(given: dict[str, Any], named: str) -> None:
    """R-265."""
    with pytest.raises(ConfigError, match=named.replace(".", r"\.")):
        settings.load({"context": given})
