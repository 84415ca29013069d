"""The options of an adapter of kind `anthropic`: the known keys of `AdapterSettings.options` (R-536)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

RESERVED = frozenset({"model", "messages", "tools", "system", "context_management", "compaction", "betas"})
"""Keys of the body that the request itself sets, or that have their own option."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class ToolClearing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings for clearing old tool results on the server (`clear_tool_uses_20250919`).

    trigger: minimum input tokens. keep: number of tool uses to keep. clear_at_least: minimum tokens to clear; 0 means
    any number. Defaults are those on the page "Context editing".
    """

    trigger: Count = 100_000
    keep: Count = 3
    exclude_tools: tuple[str, ...] = ("memory",)
    clear_at_least: Count = 0


class MessagesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The options of one entry.

    compaction: None compacts with models known to support it, True with any model (for a gateway that compacts for
    others), False never. compaction_instructions: replace the provider's own summary prompt. pause_after_compaction:
    stop after the compaction and send the request again. cache: set breakpoints for prompt caching. image_input,
    document_input: if False, send a note instead.
    """

    compaction: bool | None = None
    compaction_instructions: str = ""
    pause_after_compaction: bool = False
    clear_tool_uses: ToolClearing | None = None
    cache: bool = True
    cache_ttl: Literal["5m", "1h"] = "5m"
    image_input: bool = True
    document_input: bool = True
