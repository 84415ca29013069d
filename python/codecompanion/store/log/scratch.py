"""Keeps data that is not history: drafts, the partial reply of a running stream, grants and calibration.

Permits belong to a repository, so its path is stored in place of a chat id. A read-only copy of a chat owned by another
host has its own draft, which passes to the chat's next owner when the copy's host is gone. Rows are overwritten in
place, without a separate fsync: they survive a killed host, not a power cut.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Literal

import msgspec

from codecompanion.model.messages import Message, is_typed_by_user

Kind = Literal["draft", "partial", "grants", "permits"]
_COPY = "draft:"
BETWEEN = "\n\n"
"""Separator between drafts that were joined (`chat/wire/draft.lua`)."""


class Calibration(msgspec.Struct, frozen=True):
    """The learned calibration of a model: reported tokens = `extra` + `ratio` × estimate, learned from `weight` tokens.

    `framing`: further tokens per message, learned from `framed` reports. `above` and `below`: the spread of reports
    around the count, as multiples of the usual one. `figures`: the version of how the figures are defined, 0 = older
    than versions.
    """

    adapter: str
    model: str
    ratio: float
    weight: int
    extra: float = 0.0
    updated: float = 0.0
    above: float = 1.0
    below: float = 1.0
    figures: int = 0
    framing: float = 0.0
    framed: float = 0.0


class ScratchRow(msgspec.Struct, frozen=True):
    """One stored text, as a row of the database."""

    chat_id: str
    kind: str
    text: bytes
    updated: float


def read_rows(connection: sqlite3.Connection) -> list[ScratchRow]:
    """Return all rows; damaged ones are left out."""
    rows = connection.execute(
        "SELECT chat_id, kind, text, updated FROM scratch WHERE typeof(text) = 'blob' AND typeof(chat_id) = 'text'"
        " AND typeof(kind) = 'text' AND typeof(updated) IN ('real', 'integer')"
    )
    return [ScratchRow(*row) for row in rows]


def keep_newer(connection: sqlite3.Connection, row: ScratchRow) -> None:
    """Write the row, unless the stored row is as new or newer."""
    connection.execute(
        "INSERT INTO scratch(chat_id, kind, text, updated) VALUES (?, ?, ?, ?) ON CONFLICT(chat_id, kind) DO UPDATE"
        " SET text = excluded.text, updated = excluded.updated WHERE excluded.updated > scratch.updated",
        msgspec.structs.astuple(row),
    )


def forget_chat(connection: sqlite3.Connection, chat_id: str) -> None:
    """Delete all rows of the chat."""
    connection.execute("DELETE FROM scratch WHERE chat_id = ? AND kind <> 'permits'", (chat_id,))


def copy_kind(owner: str, copy: str) -> str:
    """Return the kind under which the draft of a copy of another host's chat is stored."""
    return f"{_COPY}{owner}:{copy}"


def take_drafts(
    connection: sqlite3.Connection, chat_id: str, copy: str, kind: str, is_gone: Callable[[str], bool], now: float
) -> tuple[str, str]:
    """Return the draft of this kind ("" for a copy), and the text typed into copies whose hosts are gone.

    These texts are added to the stored draft. The text of `copy` itself is dropped, because it is still in that copy's
    input.
    """
    draft = load_text(connection, chat_id, kind) if kind == "draft" else ""
    kinds = connection.execute(
        "SELECT kind FROM scratch WHERE chat_id = ? AND substr(kind, 1, ?) = ? ORDER BY updated, kind",
        (chat_id, len(_COPY), _COPY),
    ).fetchall()
    texts = []
    for (found,) in kinds:
        owner, _, theirs = found.removeprefix(_COPY).partition(":")
        if theirs == copy or is_gone(owner):
            if theirs != copy:
                texts.append(load_text(connection, chat_id, found))
            clear_text(connection, chat_id, found)
    if texts:
        save_text(connection, chat_id, kind, BETWEEN.join(filter(None, (draft, *texts))), now)
    return draft, BETWEEN.join(texts)


def save_text(connection: sqlite3.Connection, chat_id: str, kind: Kind | str, text: str, now: float) -> None:
    """Save the newest text; empty text deletes the row. Bytes that are not UTF-8 survive as lone surrogates."""
    if not text:
        clear_text(connection, chat_id, kind)
        return
    connection.execute(
        "INSERT OR REPLACE INTO scratch(chat_id, kind, text, updated) VALUES (?, ?, ?, ?)",
        (chat_id, kind, text.encode("utf-8", "surrogatepass"), now),
    )


def load_text(connection: sqlite3.Connection, chat_id: str, kind: Kind | str) -> str:
    """Return the last saved text, or "" when there is none."""
    row = connection.execute("SELECT text FROM scratch WHERE chat_id = ? AND kind = ?", (chat_id, kind)).fetchone()
    return bytes(row[0]).decode("utf-8", "surrogatepass") if row else ""


def clear_text(connection: sqlite3.Connection, chat_id: str, kind: Kind | str) -> None:
    """Delete the text."""
    connection.execute("DELETE FROM scratch WHERE chat_id = ? AND kind = ?", (chat_id, kind))


def clear_superseded(connection: sqlite3.Connection, chat_id: str, message: Message, now: float) -> None:
    """Delete the scratch text that this logged message replaces."""
    if message.role == "assistant":
        clear_text(connection, chat_id, "partial")
    elif is_typed_by_user(message):
        draft, sent = load_text(connection, chat_id, "draft"), message.text
        if draft.strip() == sent.strip():
            clear_text(connection, chat_id, "draft")
        elif draft.startswith(sent + BETWEEN):
            # The draft began with the queued message, followed by the text typed in the meantime.
            save_text(connection, chat_id, "draft", draft[len(sent + BETWEEN) :], now)


def save_calibration(connection: sqlite3.Connection, calibration: Calibration) -> None:
    """Save the newest calibration of a model."""
    connection.execute(
        "INSERT OR REPLACE INTO calibration(adapter, model, ratio, weight, extra, updated, above, below, figures, "
        "framing, framed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        msgspec.structs.astuple(calibration),
    )


def load_calibration(connection: sqlite3.Connection) -> list[Calibration]:
    """Return all calibrations, without damaged rows (text in place of a number)."""
    rows = connection.execute(
        "SELECT CAST(adapter AS BLOB), CAST(model AS BLOB), ratio, weight, extra, updated, above, below, figures, "
        "framing, framed FROM calibration WHERE typeof(weight) = 'integer' AND typeof(figures) = 'integer' "
        "AND typeof(ratio) = 'real' AND typeof(extra) = 'real' AND typeof(updated) = 'real' "
        "AND typeof(above) = 'real' AND typeof(below) = 'real' "
        "AND typeof(framing) = 'real' AND typeof(framed) = 'real' ORDER BY 1, 2"
    )
    return [Calibration(_name(adapter), _name(model), *learned) for adapter, model, *learned in rows]


def _name(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")
