"""S2 `clear_tool_results`: replace the content of old tool results by a placeholder (R-511…R-514)."""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.context.work import Env, Outcome, Skipped, Work
from codecompanion.cycles import is_aged
from codecompanion.invariants import pair_tool_calls
from codecompanion.messages import Message, is_protected, with_changes
from codecompanion.placeholders import TEMPLATES


class OlderThan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which results are old: outside the newest `count` cycles, or outside the newest `count` messages."""

    unit: Literal["cycles", "messages"] = "cycles"
    count: int = 3


class ClearToolResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of S2. `min_size` is in characters, strict; `exclude_tools` are tool names (R-512)."""

    older_than: OlderThan = OlderThan()
    min_size: int = 0
    exclude_tools: tuple[str, ...] = ()
    include_errors: bool = True
    template: str = "tool_result_cleared"
    only_if_shorter: bool = True


def clear_tool_results(work: Work, params: ClearToolResults, env: Env) -> Outcome:
    """Return the work with old results cleared; calls, user text and replies are not touched (R-511).

    A result is cleared iff it answers a call, is not edited yet, its tool is not excluded, it is old enough, and the
    placeholder is shorter than it (R-514). Running it again clears nothing.
    """
    placeholder = TEMPLATES[params.template]
    pairing = pair_tool_calls(work.messages)
    messages = list(work.messages)
    cleared: list[Message] = []
    for index, message in enumerate(work.messages):
        call = pairing.call_of.get(index)
        if call is None or message.edited or message.compacted or is_protected(message):
            continue
        if work.messages[call[0]].tool_calls[call[1]].name in params.exclude_tools:
            continue
        if message.is_error and not params.include_errors:
            continue
        if not _is_old(index, message, len(messages), params.older_than, env):
            continue
        size = len(message.text)
        if size <= params.min_size or (params.only_if_shorter and size <= len(placeholder) and not message.images):
            continue
        edited = with_changes(message, content=placeholder, edited=True)
        messages[index] = with_changes(edited, tokens=env.count(edited))
        cleared.append(message)
    if not cleared:
        return Skipped("nothing_to_clear", "no tool result is old enough to be cleared")
    return msgspec.structs.replace(work, messages=tuple(messages), cleared=(*work.cleared, *cleared))


def _is_old(index: int, message: Message, total: int, older_than: OlderThan, env: Env) -> bool:
    """Return whether the message lies outside what is kept in full."""
    if older_than.unit == "messages":
        return index < total - older_than.count
    return is_aged(message.cycle, env.cycle, older_than.count)
