"""The user's settings, read from the result of `config.for_host()` in Lua; their sections are in `settings_sections`.

The defaults are defined once, in the option schema `lua/codecompanion/config/schema.lua`; `settings_defaults.json`
beside this file is generated from it (`make doc`), so the command line works without Neovim. Lua has already checked
the user's values; the checks here are for the command line, and for Lua code of a different version.

Adapter entries stay plain dicts in the shape of `adapters.base.AdapterSettings` (which this module may not import). The
built-in ones are in `builtin_adapters.json`, which Lua reads too; the user's entries are resolved in
`adapters/entries`. `context_management` has only the keys that the user set: the policy has its own defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.settings_sections import (
    ChatSettings,
    CompletionSettings,
    GatheringSettings,
    LogLevel,
    McpServerSettings,
    McpSettings,
    RuleGroup,
    RulesSettings,
    SandboxSettings,
    Section,
    ToolSettings,
    ToolsSettings,
    TrustSettings,
    WorkspaceSettings,
)


class Settings(Section, frozen=True):
    """All configuration values that Python reads."""

    chat: ChatSettings
    adapters: dict[str, dict[str, Any]]
    models: dict[str, ModelLimits]
    tools: ToolsSettings
    rules: RulesSettings
    context: GatheringSettings
    completion: CompletionSettings
    mcp: McpSettings
    workspace: WorkspaceSettings
    trust: TrustSettings
    sandbox: SandboxSettings
    log_level: LogLevel


# Maps paths of `Settings` to the user's key paths, longest first.
_KEY_PATHS = (
    ("chat.adapter", "interactions.chat.adapter"),
    ("chat.model", "interactions.chat.adapter.model"),
    ("chat.adapter_policies", "interactions.chat.opts.policy"),
    ("chat.compaction_timeout_s", "interactions.chat.opts.compaction_timeout"),
    ("chat", "interactions.chat.opts"),
    ("adapters", "adapters.http"),
    ("tools.entries", "interactions.chat.tools"),
    ("tools", "interactions.chat.tools.opts"),
    ("rules.groups", "rules"),
    ("rules", "rules.opts.chat"),
    ("context.timeout_s", "context.timeout"),
    ("context.utility_model", "context.utility.model"),
    ("completion.timeout_s", "completion.timeout"),
    ("mcp.wait_s", "mcp.wait"),
    ("log_level", "opts.log_level"),
)

_NAMED_TABLES: dict[str, type[msgspec.Struct]] = {
    "models": ModelLimits,
    "tools.entries": ToolSettings,
    "rules.groups": RuleGroup,
    "mcp.servers": McpServerSettings,
}


def defaults() -> dict[str, Any]:
    """Return the settings of an empty configuration (a fresh copy): those of `config.for_host()`, plus adapters."""
    loaded: dict[str, Any] = msgspec.json.decode(_data("settings_defaults.json"))
    return {**loaded, "adapters": {name: builtin_entry(name) for name in builtin_adapters()}}


@cache
def builtin_adapters() -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of the built-in adapters (read-only)."""
    adapters: dict[str, dict[str, Any]] = msgspec.json.decode(_data("builtin_adapters.json"))["adapters"]
    return adapters


def builtin_entry(name: str) -> dict[str, Any]:
    """Return a built-in adapter in the shape of `AdapterSettings` (a fresh copy)."""
    entry: dict[str, Any] = msgspec.json.decode(_entry(name))
    return entry


@cache
def _entry(name: str) -> bytes:
    base = msgspec.json.decode(_data("builtin_adapters.json"))["base"]
    said = {key: value for key, value in builtin_adapters()[name].items() if key in base}
    return msgspec.json.encode({**base, **said, "name": name})


def load(given: Mapping[str, Any]) -> Settings:
    """Return the settings: `given` (from `config.for_host()`, or a part of it) merged over the defaults.

    Sections are merged field by field, `adapters`, `models` and `tools.entries` also name by name; an adapter that is
    not built in starts from the entry `openai_compatible`.

    Raises:
        ConfigError: a key or adapter is unknown, or a value has the wrong type; the message names the key path.
    """
    merged = _merge(given)
    try:
        settings = typed.convert(merged, Settings)
    except msgspec.ValidationError as error:
        raise _named(error, merged) from error
    if settings.chat.adapter not in settings.adapters:
        known = ", ".join(sorted(settings.adapters))
        raise ConfigError("interactions.chat.adapter", f"there is no adapter {settings.chat.adapter!r}", known)
    if settings.context.utility and settings.context.utility not in settings.adapters:
        known = ", ".join(sorted(settings.adapters))
        raise ConfigError("context.utility", f"there is no adapter {settings.context.utility!r}", known)
    for name in ("budget", "total_budget"):
        _check_budget(name, getattr(settings.chat, name), getattr(settings.chat, f"{name}_warn"))
    return settings


def _check_budget(name: str, limit: float, warn: float) -> None:
    """Raise `ConfigError` for an invalid budget, or for a warning threshold without a budget (R-358)."""
    key = key_path(f"chat.{name}")
    if not 0 <= limit < float("inf"):
        raise ConfigError(key, f"got {limit}", "US dollars, 0 = unlimited")
    if not 0 <= warn <= 1:
        raise ConfigError(f"{key}_warn", f"got {warn}", "a fraction between 0 and 1, 0 = never")
    if warn and not limit:
        raise ConfigError(f"{key}_warn", f"it has no effect without {key}", "both or neither")


def key_path(field_path: str) -> str:
    """Return the user's key path for a dotted path in `Settings` (`chat.policy` → `interactions.chat.opts.policy`)."""
    for ours, theirs in _KEY_PATHS:
        if field_path == ours or field_path.startswith(ours + "."):
            return theirs + field_path[len(ours) :]
    return field_path


@cache
def _data(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


def _merge(given: Mapping[str, Any]) -> dict[str, Any]:
    merged = defaults()
    for name, value in given.items():
        default = merged.get(name)
        if name == "adapters":
            merged[name] = _merge_adapters(default or {}, _as_table(value, "adapters"))
        elif name == "tools":
            tools = _as_table(value, "tools")
            entries = _merge_entries(merged["tools"]["entries"], _as_table(tools.get("entries", {}), "tools.entries"))
            merged[name] = {**merged["tools"], **tools, "entries": entries}
        elif isinstance(default, dict):
            merged[name] = {**default, **_as_table(value, name)}
        else:
            merged[name] = value
    return merged


def _merge_adapters(built_in: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    fields = frozenset(built_in["openai_compatible"])
    merged = dict(built_in)
    for name, entry in given.items():
        table = _as_table(entry, f"adapters.{name}")
        unknown = sorted(set(table) - fields)
        if unknown:
            raise ConfigError(f"adapters.http.{name}.{unknown[0]}", "unknown key", ", ".join(sorted(fields)))
        base = built_in.get(name) or {**built_in["openai_compatible"], "formatted_name": name}
        merged[name] = {**base, **table, "name": name}
    return merged


def _merge_entries(built_in: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(built_in)
    for name, entry in given.items():
        if name not in built_in:
            raise ConfigError(f"interactions.chat.tools.{name}", "unknown key", ", ".join(sorted(built_in)))
        merged[name] = {**built_in[name], **_as_table(entry, f"tools.entries.{name}")}
    return merged


def _as_table(value: object, path: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    # An empty Lua table is an empty list in JSON.
    if isinstance(value, list) and not value:
        return {}
    raise ConfigError(key_path(path), f"got {type(value).__name__}", "a table")


def _named(error: msgspec.ValidationError, merged: dict[str, Any]) -> ConfigError:
    """Return the error with the user's key path instead of msgspec's `$.models[...].context_window`."""
    text, _, where = str(error).partition(" - at ")
    path = _with_names(where.strip("`").removeprefix("$").lstrip("."), merged)
    unknown = re.search(r"unknown field `([^`]+)`", text)
    if unknown:
        return ConfigError(key_path(f"{path}.{unknown[1]}".lstrip(".")), "unknown key")
    expected = re.search(r"[Ee]xpected (.+), got (.+)", text)
    if expected:
        return ConfigError(key_path(path), f"got {expected[2]}", expected[1])
    return ConfigError(key_path(path), text)


def _with_names(path: str, merged: dict[str, Any]) -> str:
    """Return the path with the key that msgspec omits: `models[...]` → `models.gpt-4.1`."""
    prefix, anonymous, rest = path.partition("[...]")
    kind = _NAMED_TABLES.get(prefix)
    if not anonymous or kind is None:
        return path
    table: Any = merged
    for part in prefix.split("."):
        table = table[part]
    wrong = next((name for name, entry in table.items() if not _converts(entry, kind)), "")
    return f"{prefix}.{wrong}{rest}"


def _converts(entry: object, kind: type[msgspec.Struct]) -> bool:
    try:
        typed.convert(entry, kind)
    except msgspec.ValidationError:
        return False
    return True
