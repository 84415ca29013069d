"""The notes on reverted, reapplied and missing file changes: a message for the model, and a sentence for the user."""

from __future__ import annotations

from codecompanion.formats.regex import regex
from codecompanion.model.messages import REAPPLIED_TAG, REVERTED_TAG, Message

_NOTE = regex(r"The user (?P<verb>reverted|reapplied) (?P<which>.+?) of `")
_MISSING = regex(r"`(?P<name>.+)` no longer has (?P<which>.+?)\. Read the file again")
_FOR_USER = {"your change": "a change", "a part of your change": "part of a change"}


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
    """Return what a note says, as the user reads it in the chat: `You reverted 2 changes in calc.py.`."""
    missing = _MISSING.match(note.text)
    if missing:
        return missing_sentence(note.path or "", missing["which"])
    found = _NOTE.match(note.text)
    verb, which = found.group("verb", "which") if found else (note.tag, "changes")
    return f"You {verb} {_FOR_USER.get(which, which.removeprefix('your '))} in {note.path}."


def missing_sentence(name: str, which: str) -> str:
    """Return the sentence that says which changes a file no longer has."""
    return f"{name} no longer has {which.replace('a part of your', 'part of the').replace('your', 'the')}."
