"""Removes the superfluous parts of an old reply: long strings in its calls, and its reasoning.

Text that an edit replaced is no longer in the file. Text that an edit wrote is superfluous if a later result that is
kept shows the whole file. Text in other calls (a script, a prompt for another agent) has served its purpose. Names,
paths and short values stay, and the arguments stay valid JSON of the same shape. Reasoning that only its provider can
read is never edited, only removed as a whole, turn by turn; until then the reply is left unchanged (lesson 26).
"""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import lru_cache
from typing import Any

from codecompanion.context.editing.file_reads import file_use
from codecompanion.context.editing.file_uses import MIN_LONG_ARGUMENTS, FileUses
from codecompanion.context.message_facts.calls import read_arguments
from codecompanion.context.strategy_parameters import Arguments
from codecompanion.model.messages import Message, ReasoningPart, ToolCall, has_encrypted, is_protected, with_changes
from codecompanion.placeholders import ARGUMENT_CLEARED

MAX_KEPT_LENGTH = 200
"""Maximum length of a value that is always kept, because it is not worth a placeholder and describes the call."""


def shorten_calls(
    message: Message, index: int, uses: FileUses, what: Arguments, cleared: Collection[int] = ()
) -> Message:
    """Return the reply with long strings in its calls cleared, or the same object if there are none.

    `what`: the strings to clear: text that edits `replaced`, text that edits have `written` if a later result shows the
    whole file, and text in all `other` calls. Results in `cleared` (by index) do not count as shown.
    """
    if is_protected(message) or has_encrypted(message):
        return message
    calls = tuple(_shortened(call, index, uses, what, cleared) for call in message.tool_calls)
    if calls == message.tool_calls:
        return message
    return with_changes(message, tool_calls=calls, edited=True)


def without_reasoning(message: Message) -> Message:
    """Return the reply without its reasoning."""
    parts = () if isinstance(message.content, str) else message.content
    rest = tuple(part for part in parts if not isinstance(part, ReasoningPart))
    return with_changes(message, content=rest or "", edited=True)


def _shortened(call: ToolCall, index: int, uses: FileUses, what: Arguments, cleared: Collection[int]) -> ToolCall:
    if len(call.arguments) <= MIN_LONG_ARGUMENTS:
        return call
    use = file_use(call)
    if use is None or use.access != "edited":
        return _without_texts(call, old_only=False) if "other" in what else call
    shown = uses.last_shown.get(use.path, -1)
    is_shown = shown > index and shown not in cleared
    if "written" in what and is_shown:
        return _without_texts(call, old_only=False)
    return _without_texts(call, old_only=True) if "replaced" in what else call


@lru_cache(maxsize=8192)
def _without_texts(call: ToolCall, old_only: bool) -> ToolCall:
    arguments = _cleared(read_arguments(call.arguments), old_only)
    text = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(call.id, call.name, text) if len(text) < len(call.arguments) else call


def _cleared(value: Any, keep: bool) -> Any:
    """Return the value with its long strings replaced; with `keep`, only strings in fields named `old…`."""
    if isinstance(value, str):
        return value if keep or len(value) <= MAX_KEPT_LENGTH else ARGUMENT_CLEARED
    if isinstance(value, list):
        return [_cleared(item, keep) for item in value]
    if isinstance(value, dict):
        return {name: _cleared(item, keep and not name.lower().startswith("old")) for name, item in value.items()}
    return value
