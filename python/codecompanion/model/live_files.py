"""Projects the attached files and buffers of a chat, and the model's knowledge of each, from the log.

Changes of a live attachment are sent to the model before the user's next message. The version last shown to the model
is the base of the next diff; edits by the model's own tools are part of its knowledge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from codecompanion.model.history import (
    EventPayload,
    FileChangeEnded,
    FileChangeStarted,
    LogEvent,
    MessageAdded,
    PolicyEvent,
    ViewChanged,
)
from codecompanion.model.messages import UPDATE_TAG, Message

LIVE_EVENT = "attachment_live"
"""The name of the log event that turns live updates of an attachment on or off."""
LIVE_TAGS = frozenset({"file", "buffer"})
GONE, UNREADABLE = "gone", "unreadable"
"""Values in place of the sha256 of a missing or unreadable text."""
_NOT_DONE = ("failed", "unknown", "interrupted")


class Edit(msgspec.Struct, frozen=True):
    """A change made by a tool of the chat, or by a revert, with the sha256 of the file's bytes before and after."""

    change_id: str
    call_id: str
    before: str
    after: str
    is_done: bool = False


class LiveFile(msgspec.Struct, frozen=True):
    """One attached file. `item` is its attachment, `shown` the sha256 of the text last shown to the model.

    `parts`: the messages that together show that text, starting with the full text; `edits`: later changes by tools.
    `outside`: its location if that is not below the workspace.
    """

    kind: str
    path: str
    item: str
    live: bool
    shown: str
    parts: tuple[str, ...]
    edits: tuple[Edit, ...] = ()
    outside: str = ""


Files = Mapping[str, LiveFile]
NO_FILES: Files = {}


def files_after(files: Files, payload: EventPayload) -> Files:
    """Return the attached files, by path, after one more event of the log; the same object if nothing changed."""
    if isinstance(payload, MessageAdded):
        return _after_message(files, payload.message) if payload.message.file is not None else files
    if not files:
        return files
    match payload:
        case ViewChanged(kind="detached" | "cleared"):
            gone = frozenset(payload.removed)
            left = {path: one for path, one in files.items() if one.item not in gone}
            return left if len(left) < len(files) else files
        case PolicyEvent(name="attachment_live"):
            return _toggled(files, str(payload.fields.get("path", "")), payload.fields.get("live") is True)
        case FileChangeStarted():
            return _begun(files, payload)
        case FileChangeEnded():
            return _ended(files, payload)
        case _:
            return files


def files_in(events: Iterable[LogEvent], undone: Sequence[str] = ()) -> Files:
    """Return the attached files after a whole log, ignoring undone changes."""
    files, left_out = NO_FILES, frozenset(undone)
    for event in events:
        if not (isinstance(event.payload, ViewChanged) and event.payload.change_id in left_out):
            files = files_after(files, event.payload)
    return files


def live_event(path: str, live: bool) -> PolicyEvent:
    """Return the log event that turns live updates of an attachment on or off."""
    return PolicyEvent(name=LIVE_EVENT, fields={"path": path, "live": live})


def _with(files: Files, one: LiveFile) -> Files:
    return {**files, one.path: one}


def _after_message(files: Files, message: Message) -> Files:
    file, path = message.file, message.path or ""
    if file is None:
        return files
    if message.tag in LIVE_TAGS:
        one = LiveFile(message.tag or "", path, message.id, file.live, file.sha256, (message.id,), outside=file.outside)
        return _with(files, one)
    known = files.get(path)
    if message.tag != UPDATE_TAG or known is None:
        return files
    parts = (*known.parts, message.id) if file.is_diff else (message.id,)
    return _with(files, msgspec.structs.replace(known, shown=file.sha256, parts=parts, edits=()))


def _toggled(files: Files, path: str, live: bool) -> Files:
    known = files.get(path)
    return files if known is None else _with(files, msgspec.structs.replace(known, live=live))


def _begun(files: Files, change: FileChangeStarted) -> Files:
    known = files.get(change.name) or files.get(change.path)
    if known is None:
        return files
    edit = Edit(change.change_id, change.call_id, change.before, change.after)
    return _with(files, msgspec.structs.replace(known, edits=(*known.edits, edit)))


def _ended(files: Files, ended: FileChangeEnded) -> Files:
    for known in files.values():
        for at, edit in enumerate(known.edits):
            if edit.change_id == ended.change_id:
                done = msgspec.structs.replace(edit, after=ended.after or edit.after, is_done=True)
                now = () if ended.state in _NOT_DONE else (done,)
                edits = (*known.edits[:at], *now, *known.edits[at + 1 :])
                return _with(files, msgspec.structs.replace(known, edits=edits))
    return files
