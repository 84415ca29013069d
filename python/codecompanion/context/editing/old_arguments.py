"""Shorten what an edit call brought along, once nobody needs it any more: the text it replaced, the text it wrote.

The replaced text is gone from the file. The written text is superfluous when a later result shows the whole file.
Names, paths and short values stay, and the arguments stay valid JSON of the same shape. A reply whose reasoning only
its provider can read is left alone (lesson 26).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from codecompanion.context.editing.file_reads import FileUses, file_use
from codecompanion.context.ledger.facts import read_arguments
from codecompanion.model.messages import Message, ToolCall, has_encrypted, is_protected, with_changes
from codecompanion.placeholders import ARGUMENT_CLEARED

MAX_KEPT_LENGTH = 200
"""Characters: a shorter value is not worth a placeholder, and tells what the edit was about."""


def shorten_edits(message: Message, index: int, uses: FileUses) -> Message:
    """Return the reply with the old texts of its edits cleared; the very same message when there is nothing to do.

    The new texts go as well where the file is shown as a whole after the reply.
    """
    if is_protected(message) or has_encrypted(message):
        return message
    calls = tuple(_shortened(call, index, uses) for call in message.tool_calls)
    if calls == message.tool_calls:
        return message
    return with_changes(message, tool_calls=calls, edited=True)


def _shortened(call: ToolCall, index: int, uses: FileUses) -> ToolCall:
    use = file_use(call)
    if use is None or use.access != "edited" or len(call.arguments) <= 2 * MAX_KEPT_LENGTH:
        return call
    return _without_texts(call, old_only=uses.last_shown.get(use.path, -1) <= index)


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
