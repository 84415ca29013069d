"""The changes of files that a chat's log tells of, and which of them are reverted now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.formats.cutting import cut
from codecompanion.model.history import FileChangeEnded, FileChangeStarted, LogEvent, MessageAdded, TurnStarted
from codecompanion.model.messages import is_typed_by_user

TITLE_CHARS = 60


class FileChanged(msgspec.Struct, frozen=True, kw_only=True):
    """One change: what the log says of it. `after` is the sha256 of what it left; `reverted`: it does not count now.

    `turn` is the number of the turn and `question` what the user asked in it; `tool` is "" for a revert.
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

    @property
    def id(self) -> str:
        """Return the id of the change."""
        return self.began.change_id


def changes_of(events: Sequence[LogEvent]) -> list[FileChanged]:
    """Return the changes that were made, or may have been when the host was interrupted, oldest first."""
    if not any(isinstance(event.payload, FileChangeStarted) for event in events):
        return []  # most chats: nothing else of a long log need be read
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
    reverted = reverted_ids(found)
    return [msgspec.structs.replace(change, reverted=change.id in reverted) for change in found]


def reverted_ids(changes: Iterable[FileChanged]) -> frozenset[str]:
    """Return which changes do not count now; a revert that was itself reverted brings back what it reverted."""
    by_id: dict[str, FileChanged] = {}
    gone: dict[str, bool] = {}

    def set_gone(change_id: str, is_gone: bool) -> None:
        gone[change_id] = is_gone
        known = by_id.get(change_id)
        for reverted in known.began.reverts if known else ():
            set_gone(reverted, not is_gone)

    for change in changes:
        by_id[change.id] = change
        for reverted in change.began.reverts:
            set_gone(reverted, True)
    return frozenset(change_id for change_id, is_gone in gone.items() if is_gone)
