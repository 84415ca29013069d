"""Lists the file changes in a chat's log, and which of them are currently reverted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from codecompanion.formats.cutting import cut
from codecompanion.model.history import (
    FileChangeEnded,
    FileChangeStarted,
    HunksGone,
    LogEvent,
    MessageAdded,
    TurnStarted,
)
from codecompanion.model.messages import is_typed_by_user

TITLE_CHARS = 60


class FileChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A file change in the log. `after`: the sha256 of the result; `reverted`: the change is currently not in effect.

    `places_gone`: the hunks of its diff (0-based) that are no longer in the file; `touched`: the hunks that a revert
    removed or restored. `turn` is the number of the turn, and `question` the user's message in it; `tool` is "" for a
    revert.
    """

    began: FileChangeStarted
    after: str
    added: int
    removed: int
    state: str
    ts: float
    turn: int
    question: str
    tool: str
    reverted: bool = False
    hunks_gone: frozenset[int] = frozenset()
    touched: frozenset[int] = frozenset()

    @property
    def is_unsaved(self) -> bool:
        """Return whether the change is in effect in a buffer, but not on disk yet."""
        return self.state == "unsaved" and not self.reverted

    @property
    def id(self) -> str:
        """Return the id of the change."""
        return self.began.change_id


def changes_of(events: Sequence[LogEvent]) -> list[FileChanged]:
    """Return the changes that were made, or may have been made before an interruption, oldest first."""
    if not any(isinstance(event.payload, FileChangeStarted) for event in events):
        return []  # true for most chats, and avoids the work below
    ended = {e.payload.change_id: e.payload for e in events if isinstance(e.payload, FileChangeEnded)}
    found: list[FileChanged] = []
    turn, question = 0, ""
    tools: dict[str, str] = {}
    for event in events:
        match event.payload:
            case TurnStarted(cycle=turn):
                question = ""
            case MessageAdded(message=message):
                tools.update((call.id, call.name) for call in message.tool_calls)
                if is_typed_by_user(message) and not question:
                    question = cut(" ".join(message.text.split()), TITLE_CHARS)
            case FileChangeStarted() as began:
                end = ended.get(began.change_id) or FileChangeEnded(change_id=began.change_id, state="interrupted")
                if end.state != "failed":
                    found.append(
                        FileChanged(
                            began=began,
                            after=end.after or began.after,
                            added=end.added,
                            removed=end.removed,
                            state=end.state,
                            ts=event.ts,
                            turn=turn,
                            question=question,
                            tool=tools.get(began.call_id, "") if began.call_id else "",
                        )
                    )
            case _:
                pass
    return _counted(found)


def _counted(changes: Sequence[FileChanged]) -> list[FileChanged]:
    """Return the changes, oldest first, each with its hunks that are currently not in effect.

    The newest revert of a tool's change records which hunks of that change are gone. A revert is in effect unless it is
    itself reverted by a revert that is in effect; in older logs without that record, the same applies to a tool's
    change.
    """
    gone: set[str] = set()
    for change in reversed(changes):  # a revert comes after the changes that it reverts
        if change.id not in gone:
            gone.update(change.began.reverts)
    now: dict[str, HunksGone] = {}
    touched: dict[str, frozenset[int]] = {}
    for change in changes:
        for told in change.began.gone:
            before = now.get(told.change_id)
            touched[change.id] = frozenset(told.hunks) ^ frozenset(before.hunks if before else ())
            now[told.change_id] = told
    return [
        msgspec.structs.replace(
            change,
            reverted=len(now[change.id].hunks) >= now[change.id].of if change.id in now else change.id in gone,
            hunks_gone=frozenset(now[change.id].hunks) if change.id in now else frozenset(),
            touched=touched.get(change.id, frozenset()),
        )
        for change in changes
    ]


def kind_of(change: FileChanged, changes: Mapping[str, FileChanged]) -> Literal["tool", "revert", "reapply"]:
    """Return the author of a change: a tool, or the user (a revert or reapplication)."""
    if not (change.began.reverts or change.began.gone):
        return "tool"
    return "revert" if would_reapply(change, changes) else "reapply"


def tool_changes(change: FileChanged, changes: Mapping[str, FileChanged]) -> list[FileChanged]:
    """Return the changes by tools that a change reverts or reapplies, or the change itself if a tool made it."""
    found: list[FileChanged] = []
    waiting = [change]
    while waiting:
        one = waiting.pop()
        about = (*one.began.reverts, *(told.change_id for told in one.began.gone))
        known = [changes[change_id] for change_id in about if change_id in changes]
        waiting += known
        if not known and one not in found:
            found.append(one)
    return found


def would_reapply(change: FileChanged, changes: Mapping[str, FileChanged]) -> bool:
    """Return whether reverting a change would reapply a tool's change: it is a revert or undoes a reapplied one."""
    is_back = False
    while change.began.reverts and change.began.reverts[0] in changes:
        change, is_back = changes[change.began.reverts[0]], not is_back
    return is_back
