"""The sections of the settings: frozen values, each named as the key of the configuration that it is read from.

They are part of `settings.Settings`; see there for where defaults come from, and what becomes of a value that is wrong.
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
"""Where `interactions.chat.opts.system_prompt` names the built-in prompt, also inside a function's answer."""


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: no defaults here, they come from `settings_defaults.json`."""


class ContextPacketSettings(Section, frozen=True):
    """Which facts of the workspace go along with a turn (R-350)."""

    enabled_sections: tuple[PacketSection, ...]


class MemorySettings(Section, frozen=True):
    """What may go into the memory (R-446, R-449), and how many tokens of it a new chat starts with; 0 = none.

    `exclude` are regular expressions.
    """

    enabled: bool
    exclude: tuple[str, ...]
    max_tokens: int


class ChatSettings(Section, frozen=True):
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


class OwnToolSettings(Section, frozen=True):
    """A tool of the user's own: a function in Python (`module:function`, `file.py:function`), or "" = one in Lua.

    `parameters` is the JSON schema of the arguments, None when it has to be found out, or when there are none.
    """

    python: str
    description: str
    parameters: Any
    settings: ToolSettings


class ToolGroupSettings(Section, frozen=True):
    """A group of the user's own. `collapse`: the context block has one line for it, and not one for each tool."""

    tools: tuple[str, ...]
    description: str
    system_prompt: str
    collapse: bool


class ToolsSettings(Section, frozen=True):
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


class RuleFile(Section, frozen=True):
    """A path, glob or folder of a group; `parser` is `none` or `claude` (follows `@path`), R-549."""

    path: str
    parser: Literal["none", "claude"]


class RuleGroup(Section, frozen=True):
    """A group of rule files (`rules.<group>`), R-549. Groups that are not enabled are not sent by the editor."""

    description: str
    files: tuple[RuleFile, ...]


class RulesSettings(Section, frozen=True):
    """Rules: the groups, and which of them every new chat starts with (`enabled` False = none)."""

    groups: dict[str, RuleGroup]
    autoload: tuple[str, ...]
    enabled: bool


class CompletionSettings(Section, frozen=True):
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


class SandboxSettings(Section, frozen=True):
    """The sandbox for commands (issue 20): `auto` uses one if it exists, `required` runs no command without one.

    `write` and `read` are additional paths for commands, `~` is the home folder; `network` True = they need not ask for
    it.
    """

    mode: Literal["auto", "required", "off"]
    write: tuple[str, ...]
    read: tuple[str, ...]
    network: bool


class WorkspaceSettings(Section, frozen=True):
    """The project the tools may touch. `root` "" = the working folder of the editor."""

    root: str


class TrustSettings(Section, frozen=True):
    """Workspace trust (issue 20): patterns of folders that are trusted from the start; `enabled` False = all are."""

    enabled: bool
    folders: tuple[str, ...]


class DiversitySettings(Section, frozen=True):
    """Results that differ from each other (R-264)."""

    enabled: bool
    lambda_: Annotated[float, msgspec.Meta(ge=0, le=1)] = msgspec.field(name="lambda")


class DecaySettings(Section, frozen=True):
    """Results that are worth less the older their file is (R-264)."""

    enabled: bool
    half_life_days: Annotated[int, msgspec.Meta(ge=1, le=365)]


class HybridSettings(Section, frozen=True):
    """How the document's search weighs results (R-228, R-263)."""

    vector_weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    text_weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    top_k: Annotated[int, msgspec.Meta(ge=1, le=50)]
    mmr: DiversitySettings
    decay: DecaySettings


class GatheredMemorySettings(Section, frozen=True):
    """Memory files whose text goes along with gathered code (R-241); `project` is relative to the project."""

    enabled: bool
    user: str
    project: str


class TeamSettings(Section, frozen=True):
    """Where text about the team comes from (R-240); `command` goes before `file`, both empty = nowhere."""

    enabled: bool
    file: str
    command: tuple[str, ...]


class GatheringSettings(Section, frozen=True):
    """How code is gathered for a question (R-263 … R-265).

    `pipeline` names the table in `retrieval/gather_pipelines/`; `hybrid` counts for the document's. `utility` is the
    adapter that classifies, "" = words decide (R-267); `window` in tokens, 0 = the model's own; `budgets` are tokens by
    model.
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
    """What the user says of one tool of a server; None = as its server's entry says."""

    enabled: bool | None = None
    require_approval_before: bool | None = None
    timeout_s: Annotated[float, msgspec.Meta(gt=0)] | None = None


class McpServerSettings(Section, frozen=True):
    """One MCP server: `cmd` for stdio or `url` for HTTP. Texts of `env` and `headers` may hold `${NAME}`, `cmd:…`."""

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
        return "McpServerSettings()"  # env and headers hold keys


class McpSettings(Section, frozen=True):
    """MCP servers. `wait_s`: how long a message waits for servers that are starting."""

    enabled: bool
    start_with_chat: bool
    wait_s: Annotated[float, msgspec.Meta(ge=0)]
    project_file: bool
    claude_desktop: bool
    servers: dict[str, McpServerSettings]
