"""The sections of the settings: frozen values, each named like its key in the configuration.

They are part of `settings.Settings`; see there for the source of defaults and the handling of invalid values.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from codecompanion.model.embedding import EmbeddingSettings

ResponseStyle = Literal["default", "terse"]
PacketSection = Literal["repo", "git", "git_dirty_summary", "diagnostics"]
OnCompact = Literal["auto", "submit", "ask", "stop"]
CompletionEndpoint = Literal["ollama", "llamacpp", "completions", "mistral", "deepseek", "chat"]
LogLevel = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR"]

DEFAULT_PROMPT_MARK = "${default_system_prompt}"
"""The placeholder for the built-in prompt in `interactions.chat.opts.system_prompt`, even in a function's result."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections; the defaults are in `settings_defaults.json`."""


class ContextPacketSettings(Section, frozen=True):
    """Selects the workspace facts that are attached to a turn (R-350)."""

    enabled_sections: tuple[PacketSection, ...]


class MemorySettings(Section, frozen=True):
    """Settings for the memory's content (R-446, R-449), and how many tokens of it a new chat starts with (0 = none).

    `exclude` are regular expressions.
    """

    enabled: bool
    exclude: tuple[str, ...]
    max_tokens: int


class ChatSettings(Section, frozen=True):
    """The options of every new chat (`interactions.chat`).

    `model` "" = the adapter's default. `adapter_policies` maps adapters to policies, `policies` are user-defined,
    `strategies` maps names to the user's functions. `system_prompt` None = the built-in prompt.
    `max_provider_requests_per_turn` < 0 = unlimited. `budget` and `total_budget` are in US dollars, 0 = unlimited;
    `…_warn` are shares of these budgets, 0..1, 0 = never. `context_window` applies to every model, in tokens; 0 = each
    model has its own (R-103). `context_management` has only the keys that the user set (R-503); triggers are 0 < t < 1
    of the window, tokens ≥ 2, or False. `checkpoint_every_messages` 0 = only the checkpoints that a policy requests.
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
    tell_environment: bool
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


class ToolSettings(Section, frozen=True):
    """One tool. `timeout_s` is the time limit of one call; `allowed_in_yolo_mode` False = asks even in YOLO mode.

    Only for `run_command`: `allowed_prefixes`: beginnings of commands that run without asking; `keep_variables`,
    `hide_variables`: names of environment variables to pass to commands, or to withhold from them.
    """

    enabled: bool
    require_approval_before: bool
    allowed_in_yolo_mode: bool
    timeout_s: float
    allowed_prefixes: tuple[str, ...] = ()
    keep_variables: tuple[str, ...] = ()
    hide_variables: tuple[str, ...] = ()


class OwnToolSettings(Section, frozen=True):
    """A user-defined tool: a function in Python (`module:function`, `file.py:function`), or "" = a function in Lua.

    `parameters` is the JSON schema of the arguments, None if it must be derived or the tool has no arguments.
    """

    python: str
    description: str
    parameters: Any
    settings: ToolSettings


class ToolGroupSettings(Section, frozen=True):
    """A user-defined tool group. `collapse`: the context block shows one line for the group instead of one per tool."""

    tools: tuple[str, ...]
    description: str
    system_prompt: str
    collapse: bool


class ToolsSettings(Section, frozen=True):
    """The tools. `entries` names every built-in tool; `yolo`: new chats start with approvals turned off.

    `own` maps names to user-defined tools, `groups` to user-defined groups; None disables a built-in group.
    `default_tools` names the tools and groups offered to new chats, None = all.

    `max_result_chars`: a longer result is kept whole in the log, and the model sees its head and tail. `guarded_files`:
    patterns of files whose changes always need approval, in addition to the built-in patterns; `!` excludes files.
    """

    enabled: bool
    yolo: bool
    max_result_chars: int
    guarded_files: tuple[str, ...]
    entries: dict[str, ToolSettings]
    own: dict[str, OwnToolSettings]
    groups: dict[str, ToolGroupSettings | None]
    default_tools: tuple[str, ...] | None


class RuleFile(Section, frozen=True):
    """A path, glob or folder of a group; `parser` is `none` or `claude` (follows `@path`), R-549."""

    path: str
    parser: Literal["none", "claude"]


class RuleGroup(Section, frozen=True):
    """A group of rule files (`rules.<group>`), R-549. The editor does not send disabled groups."""

    description: str
    files: tuple[RuleFile, ...]


class RulesSettings(Section, frozen=True):
    """Rule groups, and the groups that every new chat starts with (`enabled` False = none)."""

    groups: dict[str, RuleGroup]
    autoload: tuple[str, ...]
    enabled: bool


class CompletionSettings(Section, frozen=True):
    """Completion at the cursor (R-261).

    `url`, `adapter`, `api_key`, `family`: "" = not set; `tokens`: {} = those of the family.

    `api_key` says where the key is (a variable's name, `cmd:…`, `file:…`), never the key itself. `timeout_s` is the
    time limit of one request; `multi_line` False ends a suggestion with its first line; `project`: the model sees other
    files too.
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


class SandboxSettings(Section, frozen=True):
    """The sandbox for commands: `auto` uses a sandbox if one exists, `required` runs no command without one.

    `write` and `read` are additional paths for commands, `~` is the home folder; `network` True = commands may use the
    network without asking.
    """

    mode: Literal["auto", "required", "off"]
    write: tuple[str, ...]
    read: tuple[str, ...]
    network: bool


class WorkspaceSettings(Section, frozen=True):
    """The project that tools may access. `root` "" = the working folder of the editor."""

    root: str


class TrustSettings(Section, frozen=True):
    """Workspace trust: patterns of folders that are trusted from the start; `enabled` False trusts every folder."""

    enabled: bool
    folders: tuple[str, ...]


class DiversitySettings(Section, frozen=True):
    """Settings that make search results differ from each other (R-264)."""

    enabled: bool
    lambda_: Annotated[float, msgspec.Meta(ge=0, le=1)] = msgspec.field(name="lambda")


class DecaySettings(Section, frozen=True):
    """Settings that lower a search result's score with the age of its file (R-264)."""

    enabled: bool
    half_life_days: Annotated[int, msgspec.Meta(ge=1, le=365)]


class HybridSettings(Section, frozen=True):
    """Weights for the results of hybrid search in the `document` pipeline (R-228, R-263)."""

    vector_weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    text_weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    top_k: Annotated[int, msgspec.Meta(ge=1, le=50)]
    mmr: DiversitySettings
    decay: DecaySettings


class GatheredMemorySettings(Section, frozen=True):
    """Memory files whose text is attached to gathered code (R-241); `project` is relative to the project."""

    enabled: bool
    user: str
    project: str


class TeamSettings(Section, frozen=True):
    """The source of the team description (R-240); `command` takes precedence over `file`, both empty = none."""

    enabled: bool
    file: str
    command: tuple[str, ...]


class GatheringSettings(Section, frozen=True):
    """How code is gathered for a question (R-263 … R-265).

    `pipeline` names the table in `retrieval/gather_pipelines/`; `hybrid` is used only by the document's pipeline.
    `utility` is the adapter that classifies, "" = a word list decides (R-267); `window` is the context window in
    tokens, 0 = the model's; `budgets` are tokens by model.
    """

    enabled: bool | Literal["auto"]
    pipeline: Literal["ranked", "document"]
    classify: bool
    utility: str
    utility_model: str
    window: Annotated[int, msgspec.Meta(ge=0)]
    budgets: dict[str, Annotated[int, msgspec.Meta(ge=0)]]
    timeout_s: Annotated[float, msgspec.Meta(gt=0)]
    include_hidden: bool
    max_file_size_mb: Annotated[float, msgspec.Meta(ge=0, le=100)]
    supplement_when_files_selected: bool
    hybrid: HybridSettings
    embedding: EmbeddingSettings
    memories: GatheredMemorySettings
    team: TeamSettings


class McpToolSettings(Section, frozen=True):
    """The user's settings for one tool of an MCP server; None = use the value of the server's entry."""

    enabled: bool | None = None
    require_approval_before: bool | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] | None = None


class McpServerSettings(Section, frozen=True):
    """One MCP server: `cmd` for stdio or `url` for HTTP. `env` and `headers` may contain `${NAME}`, `cmd:…`."""

    enabled: bool
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    require_approval_before: bool = True
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    start_timeout_s: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    tools: dict[str, McpToolSettings] = {}

    def __repr__(self) -> str:
        return "McpServerSettings()"  # env and headers contain keys


class McpSettings(Section, frozen=True):
    """MCP servers. `wait_s`: how many seconds a message waits for servers to start."""

    enabled: bool
    start_with_chat: bool
    wait_s: Annotated[float, msgspec.Meta(ge=0)]
    project_file: bool
    servers: dict[str, McpServerSettings]
