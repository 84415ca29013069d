"""What of an old reply nobody needs any more: long texts its calls brought along, and its reasoning.

The text that an edit replaced is gone from the file. The text it wrote is superfluous when a later result shows the
whole file and stays. What other calls brought (a script, a prompt for another agent) has been carried out. Names, paths
and short values stay, and the arguments stay valid JSON of the same shape. Reasoning that only its provider can read is
never edited and goes as a whole, turn by turn; while it is there, the reply is left alone (lesson 26).
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
"""Characters: a shorter value is not worth a placeholder, and tells what the call was about."""


def shorten_calls(
    message: Message, index: int, uses: FileUses, what: Arguments, cleared: Collection[int] = ()
) -> Message:
    """Return the reply with long texts of its calls cleared; the very same message when there is nothing to do.

    `what`: the texts that edits `replaced`, those they have `written` where the file is shown as a whole after the
    reply, those of all `other` calls. What `cleared` results show (by index) does not count as shown.
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
    """Return the value with its long texts replaced; with `keep` only those of fields called `old…`."""
    if isinstance(value, str):
        return value if keep or len(value) <= MAX_KEPT_LENGTH else ARGUMENT_CLEARED
    if isinstance(value, list):
        return [_cleared(item, keep) for item in value]
    if isinstance(value, dict):
        return {name: _cleared(item, keep and not name.lower().startswith("old")) for name, item in value.items()}
    return value
