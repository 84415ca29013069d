"""Decides which file reads a future edit is likely to need (lesson 24), and explains why in plain words.

Measured on recorded coding sessions: when a file had not been touched for 8, 16, 32, 64 or 128 messages, the model
still needed 10, 8, 7, 4 and 1 % of its newest reads verbatim. If the file had been edited since, the share was 4, 1, 1,
1 and 0 %, because the edit contains the new text. In both cases it was far lower once the user had written a new
message. Searches, commands and results of edits are almost never needed.
"""

from __future__ import annotations

import posixpath
from typing import Annotated

import msgspec

from codecompanion.context.editing.file_uses import FileUses
from codecompanion.context.strategy_parameters import KeepReads
from codecompanion.formats.plural import counted

NotNegative = Annotated[int, msgspec.Meta(ge=0)]


def why_needed(index: int, uses: FileUses, keep: KeepReads) -> str:
    """Return the reason why the result at this index is likely to be needed, or "" if it is not."""
    if not uses.is_newest(index):
        return ""
    path, total = uses.of_result[index].path, len(uses.messages)
    name = posixpath.basename(path)
    is_edited = uses.last_edited.get(path, -1) > index
    touched = uses.last_touched(index)
    if uses.last_typed > touched:
        limit = keep.edited_spoken if is_edited else keep.unedited_spoken
    else:
        limit = keep.edited if is_edited else keep.unedited
    if total - touched <= limit:
        return f"{name} was last used {counted(total - touched, 'message')} ago"
    named = uses.named_by_user.get(name, -1)
    if named >= 0 and total - named <= keep.named:
        return f"you mentioned {name} {counted(total - named, 'message')} ago"
    if not is_edited and uses.before[-1] - uses.before[index + 1] < keep.near_tokens:
        return f"{name} was shown recently"
    return ""


def why_not_needed(index: int, uses: FileUses) -> str:
    """Return why the superfluous result at this index is not needed."""
    use = uses.of_result.get(index)
    if use is None or use.access == "edited":
        return "old, and not a file read"
    name = posixpath.basename(use.path)
    if uses.last_read[use.path] > index:
        return f"{name} was read again later"
    return f"{name} has not been used for {counted(len(uses.messages) - uses.last_touched(index), 'message')}"
