"""The user's settings as Python needs them: frozen values, read from what `config.for_host()` in Lua sends.

The defaults live once, in the option schema `lua/codecompanion/config/schema.lua`; `settings_defaults.json` beside this
file is generated from it (`make doc`), so the command line works without Neovim. Lua has
already checked what the user wrote; the checks here hold for the command line and for a Lua side of another version.

Adapter entries stay plain dicts in the shape of `adapters.base.AdapterSettings` (an edge this module may not import).
Those that are built in are `builtin_adapters.json`, which Lua reads too; what the user's entries say is resolved in
`adapters/entries`.
`context_management` holds only what the user set: the policy brings its own defaults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import ConfigError
from codecompanion.settings_sections import GatheringSettings, McpServerSettings, McpSettings
from codecompanion.settings_sections import Section as _Section

ResponseStyle = Literal["default", "terse"]
PacketSection = Literal["repo", "git", "git_dirty_summary", "diagnostics"]
OnCompact = Literal["auto", "submit", "ask", "stop"]
CompletionEndpoint = Literal["ollama", "llamacpp", "completions", "mistral", "deepseek", "chat"]
LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]

DEFAULT_PROMPT_MARK = "${default_system_prompt}"
"""Where `interactions.chat.opts.system_prompt` names the built-in prompt, also inside a function's answer."""


class ContextPacketSettings(_Section, frozen=True):
    """Which facts of the workspace go along with a turn (R-350)."""

    enabled_sections: tuple[PacketSection, ...]


class MemorySettings(_Section, frozen=True):
    """What may go into the memory (R-446, R-449). `exclude` are regular expressions."""

    enabled: bool
    exclude: tuple[str, ...]


class ChatSettings(_Section, frozen=True):
    """What `interactions.chat` says about every new chat.

    `model` "" = the adapter's own. `adapter_policies` names the policy of chats with an adapter, `policies` are the
    user's own ones, `strategies` the user's functions by name. `system_prompt` None = the built-in one.
    `max_provider_requests_per_turn` < 0 = unlimited. `budget` and `total_budget` are US dollars, 0 = unlimited;
    `…_warn` are shares of them, 0..1, 0 = never.
    `context_window` is for every model, in tokens; 0 = each has its own (R-103).
    `context_management` holds only the keys the user set (R-503); triggers are 0 < t < 1 of the window,
    tokens ≥ 2, or False. `checkpoint_every_messages` 0 = only the checkpoints a policy asks for.
    """

    adapter: str
    model: str
    context_window: Annotated[int, msgspec.Meta(ge=0)]
    policy: str
    adapter_policies: dict[str, str]
    policies: dict[str, dict[str, Any]]
    strategies: dict[str, str]
    system_prompt: str | None
    max_provider_requests_per_turn: int
    max_output_continuations: int
    budget: float
    budget_warn: float
    total_budget: float
    total_budget_warn: float
    on_compact: OnCompact
    tell_open_file: bool
    tokenizer: Literal["estimate", "exact"]
    compaction_timeout_s: float
    checkpoint_every_messages: int
    memory: MemorySettings
    response_style: ResponseStyle | None
    live_attachments: bool
    context_packet: ContextPacketSettings
    context_management: dict[str, Any]

    def full_system_prompt(self, built_in: str) -> str:
        """Return the system prompt to send, with `${default_system_prompt}` replaced by `built_in`."""
        if self.system_prompt is None:
            return built_in
        return self.system_prompt.replace(DEFAULT_PROMPT_MARK, built_in)


class ToolSettings(_Section, frozen=True):
    """One tool. `timeout_s` is the limit of one call; `allowed_in_yolo_mode` False = asks even then.

    Only of `run_command`: `allowed_prefixes`: beginnings of commands that run without asking; `keep_variables`,
    `hide_variables`: names of environment variables that commands get, or do not get.
    """

    enabled: bool
    require_approval_before: bool
    allowed_in_yolo_mode: bool
    timeout_s: float
    allowed_prefixes: tuple[str, ...] = ()
    keep_variables: tuple[str, ...] = ()
    hide_variables: tuple[str, ...] = ()


class OwnToolSettings(_Section, frozen=True):
    """A tool of the user's own: a function in Python (`module:function`, `file.py:function`), or "" = one in Lua.

    `parameters` is the JSON schema of the arguments, None when it has to be found out, or when there are none.
    """

    python: str
    description: str
    parameters: Any
    settings: ToolSettings


class ToolGroupSettings(_Section, frozen=True):
    """A group of the user's own. `collapse`: the context block has one line for it, and not one for each tool."""

    tools: tuple[str, ...]
    description: str
    system_prompt: str
    collapse: bool


class ToolsSettings(_Section, frozen=True):
    """The tools. `entries` names every built-in tool; `yolo`: new chats start with approvals switched off.

    `own` are the user's, by name; `groups` the user's, None = a built-in one is switched off. `default_tools` names
    tools and groups that new chats are offered, None = all.

    `max_result_chars`: a longer result is kept whole in the log and shown to the model as head and tail.
    `guarded_files`: patterns of files whose change is always asked about, besides those built in; `!` takes files out.
    """

    enabled: bool
    yolo: bool
    max_result_chars: int
    guarded_files: tuple[str, ...]
    entries: dict[str, ToolSettings]
    own: dict[str, OwnToolSettings]
    groups: dict[str, ToolGroupSettings | None]
    default_tools: tuple[str, ...] | None


class RuleFile(_Section, frozen=True):
    """A path, glob or folder of a group; `parser` is `none` or `claude` (follows `@path`), R-549."""

    path: str
    parser: Literal["none", "claude"]


class RuleGroup(_Section, frozen=True):
    """A group of rule files (`rules.<group>`), R-549. Groups that are not enabled are not sent by the editor."""

    description: str
    files: tuple[RuleFile, ...]


class RulesSettings(_Section, frozen=True):
    """Rules: the groups, and which of them every new chat starts with (`enabled` False = none)."""

    groups: dict[str, RuleGroup]
    autoload: tuple[str, ...]
    enabled: bool


class CompletionSettings(_Section, frozen=True):
    """Completion at the cursor (R-261). `url`, `adapter`, `api_key`, `family`: "" = not set; `tokens`: {} = a family's.

    `api_key` is where the key is (a variable's name, `cmd:…`, `file:…`), never the key. `timeout_s` is the limit of one
    request; `multi_line` False ends a suggestion with its first line; `project`: the model is shown other files too.
    """

    enabled: bool
    endpoint: CompletionEndpoint
    url: str
    adapter: str
    api_key: str
    model: str
    family: str
    tokens: dict[str, str]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    temperature: Annotated[float, msgspec.Meta(ge=0)]
    multi_line: bool
    project: bool
    timeout_s: float


class WorkspaceSettings(_Section, frozen=True):
    """The project the tools may touch. `root` "" = the working folder of the editor."""

    root: str


class Settings(_Section, frozen=True):
    """Everything Python reads of the user's configuration."""

    chat: ChatSettings
    adapters: dict[str, dict[str, Any]]
    models: dict[str, ModelLimits]
    tools: ToolsSettings
    rules: RulesSettings
    context: GatheringSettings
    completion: CompletionSettings
    mcp: McpSettings
    workspace: WorkspaceSettings
    log_level: LogLevel


# Where a part of the settings stands in the user's configuration, longest first.
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
    """Return the settings of an empty configuration (a fresh copy): what `config.for_host()` sends, and adapters."""
    loaded: dict[str, Any] = msgspec.json.decode(_data("settings_defaults.json"))
    return {**loaded, "adapters": {name: builtin_entry(name) for name in builtin_adapters()}}


@cache
def builtin_adapters() -> Mapping[str, Mapping[str, Any]]:
    """Return what the built-in adapters say about themselves (read-only)."""
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
    """Return the settings: `given` (what `config.for_host()` sends, or a part of it) over the defaults.

    Sections are merged field by field, `adapters`, `models` and `tools.entries` also name by name; an adapter that is
    not built in starts from the entry `openai_compatible`.

    Raises:
        ConfigError: unknown key, wrong type, or an adapter that does not exist; names the key path.
    """
    merged = _merge(given)
    try:
        settings = msgspec.convert(merged, Settings)
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
    """Refuse a budget that is none, and a warning without its budget (R-358)."""
    key = key_path(f"chat.{name}")
    if not 0 <= limit < float("inf"):
        raise ConfigError(key, f"got {limit}", "US dollars, 0 = unlimited")
    if not 0 <= warn <= 1:
        raise ConfigError(f"{key}_warn", f"got {warn}", "a share between 0 and 1, 0 = never")
    if warn and not limit:
        raise ConfigError(f"{key}_warn", f"it means nothing without {key}", "both or none")


def key_path(field_path: str) -> str:
    """Return the user's key path of a dotted path of `Settings` (`chat.policy` → `interactions.chat.opts.policy`)."""
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
    """Return the error with the user's key path in place of msgspec's `$.models[...].context_window`."""
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
    """Return the path with the key that msgspec leaves out: `models[...]` → `models.gpt-4.1`."""
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
        msgspec.convert(entry, kind)
    except msgspec.ValidationError:
        return False
    return True
