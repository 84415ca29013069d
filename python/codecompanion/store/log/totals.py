"""Keeps a row of totals per chat, for the picker and the budget, in step with its events (R-358)."""

from __future__ import annotations

import contextlib
import sqlite3

import msgspec

from codecompanion.model import history
from codecompanion.model.messages import is_typed_by_user
from codecompanion.store.log.checksum import is_row_sound, row_sum
from codecompanion.store.log.encoding import storable
from codecompanion.store.log.previews import preview_of

_TOTALS = (
    "title, cwd, adapter, model, created, updated, messages, last_seq, cost_usd, unpriced, "
    "first_question, last_question, forked_from, family, purpose"
)
_SELECT_TOTALS = f"SELECT {_TOTALS} FROM chats WHERE chat_id = ?"  # noqa: S608 - a constant
_MARKS = ", ".join("?" * len(_TOTALS.split(",")))
_SAVE_TOTALS = f"INSERT OR REPLACE INTO chats(chat_id, {_TOTALS}, sum) VALUES (?, {_MARKS}, ?)"  # noqa: S608 - a constant
_SELECT_SUMS = f"SELECT sum, chat_id, {_TOTALS} FROM chats"  # noqa: S608 - a constant


class SessionInfo(msgspec.Struct, frozen=True):
    """A stored chat in the picker. `updated`: seconds since the epoch; `messages`: number from the user and the model.

    `owned`: another running Neovim has it open, so it is read-only here. `first_question` and `last_question`: the
    beginnings of the user's first and last message. `forked_from`: the chat that this one is a branch of; `family`: the
    first chat of that tree ("" for a chat that was never forked from another). `draft`: it has unsent text. `typed`:
    number of messages typed by the user, -1 if unknown; `questions`: the beginnings of the last of them, oldest first,
    empty if unknown; `last_reply`: the beginning of the model's last message, if
    another chat in the list has the same title and last question (`list_details`).
    """

    id: str
    title: str
    updated: float
    messages: int
    cwd: str
    adapter: str
    model: str
    owned: bool = False
    created: float = 0.0
    first_question: str = ""
    last_question: str = ""
    forked_from: str = ""
    family: str = ""
    draft: bool = False
    typed: int = -1
    questions: tuple[str, ...] = ()
    last_reply: str = ""


class Spent(msgspec.Struct, frozen=True):
    """The cost of provider calls in US dollars, and the number of calls left out because their price is unknown."""

    usd: float = 0.0
    unpriced: int = 0


class Totals(msgspec.Struct):
    """The row of totals of a chat, updated with each event."""

    title: str = ""
    cwd: str = ""
    adapter: str = ""
    model: str = ""
    created: float = 0.0
    updated: float = 0.0
    messages: int = 0
    last_seq: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    first_question: str = ""
    last_question: str = ""
    forked_from: str = ""
    family: str = ""
    purpose: str = ""

    def count(self, payload: history.EventPayload, ts: float) -> None:
        """Add an event to the totals; a user's rename or a policy event (final snapshot) does not change `updated`."""
        self.last_seq += 1
        is_renamed = isinstance(payload, history.TitleSet) and payload.by_user
        if not is_renamed and not isinstance(payload, history.PolicyEvent):
            self.updated = ts
        match payload:
            case history.ChatCreated():
                self.adapter, self.model, self.cwd = map(storable, (payload.adapter, payload.model, payload.cwd))
                self.purpose = storable(payload.purpose)
            case history.ModelSet():
                self.adapter, self.model = storable(payload.adapter), storable(payload.model)
            case history.TitleSet():
                self.title = storable(payload.title)
                self.purpose = "" if payload.by_user else self.purpose  # a user who names a chat wants to find it
            case history.ChatForked():
                self.forked_from, self.family = payload.from_chat, payload.family
                self.purpose = ""
                self.cost_usd, self.unpriced = 0.0, 0  # copied events were paid for in the other chat
            case history.MessageAdded(message=message) if is_typed_by_user(message):
                self.messages += 1
                self.last_question = preview_of(message.text)
                self.first_question = self.first_question or self.last_question
            case history.MessageAdded(message=message) if message.role == "assistant":
                self.messages += 1
            case history.UsageReported(cost_usd=None):
                self.unpriced += 1
            case history.UsageReported(cost_usd=float() as cost):
                self.cost_usd += cost
            case _:
                pass


def read_spent(connection: sqlite3.Connection, chat_id: str | None = None) -> Spent:
    """Return the cost of one chat, or of all chats including deleted ones, from the totals without reading logs."""
    row = connection.execute(
        """SELECT TOTAL(usd), COALESCE(SUM(unpriced), 0) FROM (
            SELECT cost_usd AS usd, unpriced FROM chats WHERE ?1 IS NULL OR chat_id = ?1
            UNION ALL SELECT usd, unpriced FROM deleted_spending WHERE ?1 IS NULL
        )""",
        (chat_id,),
    ).fetchone()
    return Spent(*row)


def read_unpriced(connection: sqlite3.Connection) -> list[history.UsageReported]:
    """Return the usage reports without a price of all chats, without those copied from another chat."""
    rows = connection.execute(
        """SELECT payload FROM events WHERE type = 'usage_reported' AND instr(payload, '"cost_usd"') = 0
            AND chat_id IN (SELECT chat_id FROM chats WHERE unpriced > 0)
            AND seq > (SELECT COALESCE(MAX(seq), 0) FROM events AS fork
                WHERE fork.chat_id = events.chat_id AND fork.type = 'chat_forked')"""
    )
    found = []
    for (stored,) in rows:
        with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):  # a damaged row
            payload = history.decode_payload(bytes(stored))
            found += [payload] if isinstance(payload, history.UsageReported) else []
    return found


def read_totals(connection: sqlite3.Connection, chat_id: str) -> Totals | None:
    """Return the chat's row of totals, or None if the chat does not exist."""
    row = connection.execute(_SELECT_TOTALS, (chat_id,)).fetchone()
    return Totals(*row) if row else None


def read_all_totals(connection: sqlite3.Connection) -> dict[str, Totals]:
    """Return the rows of totals, keyed by chat id."""
    rows = connection.execute(f"SELECT chat_id, {_TOTALS} FROM chats").fetchall()  # noqa: S608 - a constant
    return {row[0]: Totals(*row[1:]) for row in rows}


def save_totals(connection: sqlite3.Connection, chat_id: str, totals: Totals) -> None:
    """Write the chat's row of totals."""
    values = (chat_id, *msgspec.structs.astuple(totals))
    connection.execute(_SAVE_TOTALS, (*values, row_sum(values)))


def damaged_rows(connection: sqlite3.Connection) -> list[str]:
    """Return the chats whose row of totals is damaged; their logs still contain the data."""
    return [str(row[1]) for row in connection.execute(_SELECT_SUMS) if not is_row_sound(row[1:], row[0])]


def list_rows(
    connection: sqlite3.Connection,
    *,
    cwd: str | None = None,
    chat_id: str | None = None,
    family: str | None = None,
    limit: int = 1,
    empty: bool = False,
) -> list[tuple[SessionInfo, str | None]]:
    """Return the chats worth resuming (with messages or a draft), newest first, each with its owner.

    Chats without a window (`purpose`) are found only by their id. `empty`: include chats without messages.
    """
    rows = connection.execute(
        """SELECT owner, chats.chat_id, title, updated, messages, cwd, adapter, model, 0, created, first_question,
            last_question, forked_from, family,
            EXISTS (SELECT 1 FROM scratch WHERE scratch.chat_id = chats.chat_id AND kind = 'draft')
        FROM chats LEFT JOIN leases ON leases.chat_id = chats.chat_id
        WHERE (?1 IS NULL OR cwd = ?1) AND (chats.chat_id = ?2 OR (?2 IS NULL AND purpose = ''))
          AND (?3 IS NULL OR family = ?3 OR chats.chat_id = ?3)
          AND (?5 OR messages > 0 OR EXISTS (SELECT 1 FROM scratch WHERE scratch.chat_id = chats.chat_id))
        ORDER BY updated DESC, chats.chat_id LIMIT ?4""",
        (cwd if cwd is None else storable(cwd), chat_id, family, limit, empty),
    ).fetchall()
    return [(SessionInfo(*(*info, bool(draft))), owner) for owner, *info, draft in rows]
