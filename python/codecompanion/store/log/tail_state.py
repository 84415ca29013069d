"""Stores the state at the end of a chat's log, so that the chat can be shown from only its newest events.

One row per chat, written in the transaction of the events it covers. It is valid up to `covers_seq`: an older plugin
with the same file open appends events without it, and `TailState.after` adds those later. If the row is damaged or
missing (as in a file from an older version), the whole log is read once and the row is rewritten.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.formats import typed
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.history import ChatCreated, LogEvent, MessageAdded, ModelSet, PolicySet, TitleSet
from codecompanion.model.messages import is_typed_by_user
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.previews import preview_of

MAX_QUESTIONS, QUESTION_CHARS = 10, 80
"""Number of the user's newest messages whose beginnings are kept, for the list of chats, and their maximum length."""
MAX_CHOICES = 8
"""Number of model choices kept: the last choice before the newest events is needed, and those events contain few."""
_SELECT = "SELECT covers_seq, state, sum FROM tail_state WHERE chat_id = ?"
_SAVE = "INSERT OR REPLACE INTO tail_state(chat_id, covers_seq, state, sum) VALUES (?, ?, ?, ?)"


class ModelChoice(msgspec.Struct, frozen=True, array_like=True):
    """The adapter and model that the chat uses from event `seq` on."""

    seq: int
    adapter: str
    model: str


class TailState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state after all events up to `covers_seq`.

    `typed` counts the user's messages; `questions`: the beginnings of the last of them, oldest first (an older plugin
    kept none); `purpose` is the purpose of the chat.
    """

    covers_seq: int = 0
    typed: int = 0
    title: str = ""
    policy: str = ""
    purpose: str = ""
    models: tuple[ModelChoice, ...] = ()
    questions: tuple[str, ...] = ()

    def after(self, events: Iterable[LogEvent]) -> TailState:
        """Return the state after more events; events that are already covered are skipped."""
        covers_seq, typed, title, policy, purpose = self.covers_seq, self.typed, self.title, self.policy, self.purpose
        models, questions = list(self.models), list(self.questions)
        for event in events:
            if event.seq <= covers_seq:
                continue
            covers_seq = event.seq
            match event.payload:
                case MessageAdded(message=message) if is_typed_by_user(message):
                    typed += 1
                    questions.append(cut_line(preview_of(message.text), QUESTION_CHARS))
                case ChatCreated() | ModelSet() as chosen:
                    models.append(ModelChoice(covers_seq, storable(chosen.adapter), storable(chosen.model)))
                    purpose = chosen.purpose if isinstance(chosen, ChatCreated) else purpose
                case TitleSet():
                    title = event.payload.title
                case PolicySet():
                    policy = event.payload.policy
                case _:
                    pass
        kept, asked = tuple(models[-MAX_CHOICES:]), tuple(questions[-MAX_QUESTIONS:])
        return TailState(covers_seq, typed, storable(title), storable(policy), storable(purpose), kept, asked)


def _sum(covers_seq: int, stored: bytes) -> int:
    return zlib.crc32(stored, covers_seq & 0xFFFFFFFF)


def read_state(connection: sqlite3.Connection, chat_id: str) -> TailState | None:
    """Return the chat's state, or None if it is missing or damaged."""
    row = connection.execute(_SELECT, (chat_id,)).fetchone()
    if row is None:
        return None
    covers_seq, stored, stored_sum = row
    try:
        if _sum(covers_seq, stored) != stored_sum:
            return None
        state = typed.read_json(stored, type=TailState)
    except (TypeError, *NOT_READABLE):
        return None
    return state if state.covers_seq == covers_seq else None


def save_state(connection: sqlite3.Connection, chat_id: str, state: TailState) -> None:
    """Write the chat's state."""
    stored = msgspec.json.encode(state)
    connection.execute(_SAVE, (chat_id, state.covers_seq, stored, _sum(state.covers_seq, stored)))


def forget_state(connection: sqlite3.Connection, chat_id: str) -> None:
    """Delete the chat's state, because events that it covers have changed."""
    connection.execute("DELETE FROM tail_state WHERE chat_id = ?", (chat_id,))


def keep_state(connection: sqlite3.Connection, chat_id: str, before_seq: int, events: Sequence[LogEvent]) -> None:
    """Update the state to the end of a log that ended at `before_seq` before these events.

    A state that does not reach `before_seq` stays unchanged: it remains valid for the events it covers.
    """
    state = read_state(connection, chat_id) if before_seq or (events and events[0].seq > 1) else TailState()
    if state is not None and state.covers_seq == before_seq:
        save_state(connection, chat_id, state.after(events))
