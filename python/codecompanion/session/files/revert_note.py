"""The notes for the model on reverted, reapplied and missing file changes, and the sentence for the user."""

from __future__ import annotations

from codecompanion.formats.regex import regex
from codecompanion.model.messages import REAPPLIED_TAG, REVERTED_TAG, Message

_MISSING = regex(r"`(?P<name>.+)` no longer has (?P<which>.+?)\. Read the file again")


def revert_note(name: str, which: str, message_id: str, *, back: bool) -> Message:
    """Return the message that tells the model which changes of a file were reverted or reapplied."""
    text = (
        f"The user {'reapplied' if back else 'reverted'} {which} of `{name}`. Read the file again before you change it."
    )
    tag = REAPPLIED_TAG if back else REVERTED_TAG
    return Message(id=message_id, role="user", tag=tag, path=name, content=text)


def missing_note(name: str, which: str, message_id: str) -> Message:
    """Return the message that tells the model which changes of a file are neither in a buffer nor on disk any more."""
    text = f"`{name}` no longer has {which}. Read the file again before you change it."
    return Message(id=message_id, role="user", tag=REVERTED_TAG, path=name, content=text)


def sentence_for_user(note: Message) -> str:
    """Return the text of a note as shown in the chat, "" for a revert: the row of its call shows it."""
    found = _MISSING.match(note.text)
    if not found:
        return ""
    which = found["which"].replace("a part of your", "part of the").replace("your", "the")
    return f"{note.path} no longer has {which}."
