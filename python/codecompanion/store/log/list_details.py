"""Adds details to the list of chats: the user's messages, and the last reply of similar chats.

Both are optional: they are left out if the file is from an older version or a page is damaged.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.store.log.previews import preview_of
from codecompanion.store.log.tail_state import read_state
from codecompanion.store.log.totals import SessionInfo

_SELECT_REPLY = """SELECT payload FROM events WHERE chat_id = ? AND type = 'message_added'
    AND instr(CAST(payload AS TEXT), '"role":"assistant"') > 0 ORDER BY seq DESC LIMIT 1"""


def with_details(connection: sqlite3.Connection, chats: Sequence[SessionInfo]) -> list[SessionInfo]:
    """Return the chats with `typed`, `questions`, and `last_reply` where title and last question are another chat's."""
    alike = Counter((chat.title, chat.last_question) for chat in chats)
    found = []
    for chat in chats:
        reply, state = "", None
        try:
            state = read_state(connection, chat.id)
            if alike[chat.title, chat.last_question] > 1:
                reply = _last_reply(connection, chat.id)
        except sqlite3.DatabaseError:
            pass  # the list is shown without the details; reading the chat reports the damage
        typed, questions = (state.typed, state.questions) if state else (-1, ())
        found.append(msgspec.structs.replace(chat, typed=typed, questions=questions, last_reply=reply))
    return found


def _last_reply(connection: sqlite3.Connection, chat_id: str) -> str:
    """Return the beginning of the model's last message, or "" if it has no text."""
    row = connection.execute(_SELECT_REPLY, (chat_id,)).fetchone()
    try:
        content = json.loads(row[0])["message"]["content"] if row else ""
    except (KeyError, TypeError, *NOT_READABLE):
        return ""
    return preview_of(content) if isinstance(content, str) else ""
