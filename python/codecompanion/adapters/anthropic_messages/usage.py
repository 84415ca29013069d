"""Converts the token counts of a Messages endpoint to `Usage`, whose figures do not overlap (R-538, lesson 7).

`input_tokens` does not include tokens read from the cache or written to it. With `iterations`, the size of the context
is that of the last `message` entry; the other entries (compaction, earlier rounds of server tools) are billed too.
Sources: the page "Threshold compaction" and the SDK type `BetaUsage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.adapters.base import ServerEdit
from codecompanion.formats.byte_limits import MAX_PASSES
from codecompanion.model.messages import Usage

_READ = (
    *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    *("output_tokens_details", "iterations"),
)
MAX_TOKENS = 10**12
"""Maximum plausible token count; a larger report is invalid."""


class Counted(msgspec.Struct, frozen=True):
    """The usage of the pass that wrote the reply (None if it was not reported) and of the other passes."""

    reply: Usage | None = None
    other_passes: tuple[Usage, ...] = ()
    compactions: tuple[Usage, ...] = ()
    """Usage of the compaction passes among the other passes."""


def normalise_usage(reported: object) -> Counted:
    """Return the usage of a reply from the reported counts."""
    if not isinstance(reported, Mapping):
        return Counted()
    passes = reported.get("iterations")
    listed = passes[-MAX_PASSES:] if isinstance(passes, list) else []
    entries = [entry for entry in listed if isinstance(entry, Mapping)]
    read = [(str(entry.get("type", "")), _one_pass(entry)) for entry in entries]
    last = max((k for k, (kind, usage) in enumerate(read) if kind == "message" and usage is not None), default=None)
    compactions = tuple(usage for kind, usage in read if kind == "compaction" and usage is not None)
    if last is None:
        reply = None if compactions and not _has_input(reported) else _one_pass(reported)
        return Counted(reply, tuple(usage for _, usage in read if usage is not None), compactions)
    reply = read[last][1]
    others = tuple(usage for k, (_, usage) in enumerate(read) if k != last and usage is not None)
    if reply is not None and len(entries) == 1:
        # Details are reported only for the reply as a whole.
        reply = msgspec.structs.replace(reply, reasoning_tokens=_reasoning(reported, reply.output_tokens))
    return Counted(reply, others, compactions)


def merge_usage(earlier: object, later: object) -> object:
    """Return the newest figures: the cumulative ones in `message_delta` replace those in `message_start`."""
    if not isinstance(later, Mapping):
        return earlier
    newest = {name: later[name] for name in _READ if later.get(name) is not None}
    return {**earlier, **newest} if isinstance(earlier, Mapping) else newest


def read_server_edits(reported: object) -> tuple[ServerEdit, ...]:
    """Return the edits the server made to the prompt (`context_management.applied_edits`, R-541).

    Entries without counts are skipped: LiteLLM's proxy also lists compactions, even failed ones.
    """
    applied = reported.get("applied_edits") if isinstance(reported, Mapping) else None
    edits: list[ServerEdit] = []
    for edit in applied[:MAX_PASSES] if isinstance(applied, list) else []:
        if isinstance(edit, Mapping):
            items = _count(edit, "cleared_tool_uses") or _count(edit, "cleared_thinking_turns") or 0
            tokens = _count(edit, "cleared_input_tokens") or 0
            if items or tokens:
                edits.append(ServerEdit(str(edit.get("type", "")), tokens, items))
    return tuple(edits)


def _one_pass(reported: Mapping[str, Any]) -> Usage | None:
    fresh, output = _count(reported, "input_tokens"), _count(reported, "output_tokens")
    if fresh is None and output is None:
        return None
    return Usage(
        input_tokens=fresh or 0,
        output_tokens=output or 0,
        cache_read_tokens=_count(reported, "cache_read_input_tokens") or 0,
        cache_write_tokens=_count(reported, "cache_creation_input_tokens") or 0,
        reasoning_tokens=_reasoning(reported, output or 0),
    )


def _has_input(reported: Mapping[str, Any]) -> bool:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return any(_count(reported, name) for name in names)


def _reasoning(reported: Mapping[str, Any], output: int) -> int:
    details = reported.get("output_tokens_details")
    told = _count(details, "thinking_tokens") if isinstance(details, Mapping) else None
    return min(told or 0, output)


def _count(table: Mapping[str, Any], name: str) -> int | None:
    value = table.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS:
        return value
    return None
