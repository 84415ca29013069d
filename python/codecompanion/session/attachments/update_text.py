"""Builds the message about a changed attached file: its new text, or a diff if that is shorter. Pure."""

from __future__ import annotations

import msgspec

from codecompanion.formats.fencing import fenced, label_of
from codecompanion.model.live_files import GONE, UNREADABLE
from codecompanion.model.messages import UPDATE_TAG, AttachedFile, Message
from codecompanion.tools.files.diff import count_lines, file_diff

_WHOLE = "`{path}` has changed since you last saw it. Its current text:"
_AGAIN = "`{path}` exists again. Its current text:"
_DIFF = "`{path}` has changed since you last saw it:"
_NOT_ABOVE = (
    "`{path}` has changed. Its earlier text is no longer in this conversation; this is the diff to the version you saw"
    " last, and read_file shows the whole file:"
)
_ENDLESS = "(Its last line has no newline at the end.)"
_NO_NEWLINE = "(The last line now has no newline at the end.)"
_NEWLINE = "(The last line now has a newline at the end.)"
_GONE = "`{path}` has been deleted or moved since you last saw it."
_RENAMED = "`{path}` is gone since you last saw it; `{new}` beside it has its old text."
_UNREADABLE = "`{path}` can no longer be read as text: {why}"
TOO_LARGE = "`{path}` has changed since you last saw it, in too many places to show here. Read it when you need it."


class Now(msgspec.Struct, frozen=True):
    """The current state of a file.

    `text`: its content, or None; in that case `why` is the read error, or "" if the file is gone.
    """

    sha256: str
    text: str | None = None
    why: str = ""
    renamed: str = ""


def whole_text(path: str, now: Now, message_id: str, *, again: bool = False) -> Message:
    """Return the message with the file's full text."""
    text = now.text or ""
    end = "" if text.endswith("\n") or not text else f"\n{_ENDLESS}"
    content = f"{(_AGAIN if again else _WHOLE).format(path=path)}\n{fenced(text, label_of(path))}{end}"
    return _message(path, content, AttachedFile(sha256=now.sha256), message_id)


def difference(path: str, base: str, now: Now, message_id: str, *, is_above: bool = True) -> Message:
    """Return the message with the diff between the text the model knows and the current text."""
    text = now.text or ""
    diff = file_diff(path, base, text)
    ends = base.endswith("\n") or not base, text.endswith("\n") or not text
    end = "" if ends[0] == ends[1] else "\n" + (_NEWLINE if ends[1] else _NO_NEWLINE)
    content = f"{(_DIFF if is_above else _NOT_ABOVE).format(path=path)}\n{fenced(diff, 'diff')}{end}"
    return _message(path, content, AttachedFile(sha256=now.sha256, is_diff=True), message_id)


def absence(path: str, now: Now, message_id: str) -> Message:
    """Return the message about a file that no longer exists or can no longer be read as text."""
    if now.sha256 == UNREADABLE:
        content = _UNREADABLE.format(path=path, why=now.why)
    else:
        content = (_RENAMED if now.renamed else _GONE).format(path=path, new=now.renamed)
    return _message(path, content, AttachedFile(sha256=now.sha256), message_id)


def too_large(path: str, message_id: str) -> Message:
    """Return the message about a change that is too large to send.

    Later diffs still start from the text the model knows.
    """
    return Message(id=message_id, role="user", tag=UPDATE_TAG, path=path, content=TOO_LARGE.format(path=path))


def title_of_update(message: Message) -> str:
    """Return a short title of an update message: the file and its new state."""
    path, file = message.path or "", message.file
    if file is None:
        return f"{path} · changed, too large to send"
    if file.sha256 == GONE:
        return f"{path} · gone"
    if file.sha256 == UNREADABLE:
        return f"{path} · not readable"
    if not file.is_diff:
        return f"{path} · whole"
    added, removed = count_lines(body_of_update(message))
    return f"{path} · +{added} −{removed}"


def body_of_update(message: Message) -> str:
    """Return the text shown in the fold: the diff or the file's text, without the surrounding sentences."""
    lines = message.text.split("\n")
    fences = [at for at, line in enumerate(lines) if line.startswith("```")]
    if len(fences) < 2 or message.file is None or message.file.sha256 in (GONE, UNREADABLE):
        return message.text
    return "\n".join(lines[fences[0] + 1 : fences[-1]])


def _message(path: str, content: str, file: AttachedFile, message_id: str) -> Message:
    return Message(id=message_id, role="user", tag=UPDATE_TAG, path=path, content=content, file=file)
