"""Sections of the settings that stand for themselves: the base of all, and gathering code (R-263 … R-265).

They are part of `settings.Settings`; see there for where defaults come from.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from codecompanion.model.embedding import EmbeddingSettings


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections: no defaults here, they come from `settings_defaults.json`."""


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

    `utility` is the adapter that classifies, "" = words decide (R-267); `window` in tokens, 0 = the model's own;
    `budgets` are tokens by model.
    """

    enabled: bool | Literal["auto"]
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
