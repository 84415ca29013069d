"""Derives from the log which code the user pinned or excluded (`/context`).

A pin lasts as long as the chat and follows its definition; an exclusion applies to the next question that gets code.
No I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from codecompanion.model.history import EventPayload, LogEvent, PolicyEvent

CHOICE_EVENT, GATHERED_EVENT = "code_chosen", "code_gathered"
"""The names of the log events for a choice, and for the result of gathering."""


class ChosenPiece(msgspec.Struct, frozen=True):
    """A piece of code, identified by path and definition, or by its lines if it has no name (1-based, 0 = whole file).

    `start` and `end`: its lines when it was chosen or last sent. `anchor` is one of its lines, by which a piece without
    a name is found again; `anchor_at` is the index of that line.
    """

    path: str
    start: int = 0
    end: int = 0
    kind: str = ""
    name: str = ""
    anchor: str = ""
    anchor_at: int = 0

    def is_at(self, other: ChosenPiece) -> bool:
        """Return whether both currently start at the same line of the same file."""
        return (self.path, self.start) == (other.path, other.start)

    def is_same(self, other: ChosenPiece) -> bool:
        """Return whether both may be the same piece, wherever it has moved."""
        return (self.path, self.name) == (other.path, other.name)

    @property
    def place(self) -> str:
        """Return the location as text, `path:line name`."""
        return " ".join(filter(None, (f"{self.path}:{self.start}" if self.start else self.path, self.name)))


class ChosenCode(msgspec.Struct, frozen=True):
    """The current choices, in the order they were made."""

    pinned: tuple[ChosenPiece, ...] = ()
    left_out: tuple[ChosenPiece, ...] = ()


NOTHING_CHOSEN = ChosenCode()
_LOOKED_AT, _SAYS_MUCH, _MAX_ANCHOR = 60, 6, 200


def anchor_of(text: str) -> tuple[str, int]:
    """Return the first distinctive line of a string, for finding the string again, and the line's index."""
    lines = text.split("\n")[:_LOOKED_AT]
    says = [len(set(filter(str.isalnum, line))) for line in lines]
    best = next((at for at, count in enumerate(says) if count >= _SAYS_MUCH), says.index(max(says)))
    return (lines[best].strip()[:_MAX_ANCHOR], best) if says[best] else ("", 0)


def choice_event(piece: ChosenPiece, choice: str) -> PolicyEvent:
    """Return the log event of a choice: "pinned", "left_out", or "" to cancel either."""
    return PolicyEvent(name=CHOICE_EVENT, fields={**msgspec.to_builtins(piece), "choice": choice})


def chosen_after(chosen: ChosenCode, payload: EventPayload) -> ChosenCode:
    """Return the choices after one more event of the log."""
    if not isinstance(payload, PolicyEvent):
        return chosen
    if payload.name == GATHERED_EVENT and payload.fields.get("message_id"):
        return _after_question(chosen, payload.fields)
    return _after_choice(chosen, payload.fields) if payload.name == CHOICE_EVENT else chosen


def chosen_in(events: Iterable[LogEvent]) -> ChosenCode:
    """Return the choices after a whole log."""
    chosen = NOTHING_CHOSEN
    for event in events:
        chosen = chosen_after(chosen, event.payload)
    return chosen


def nearest(piece: ChosenPiece, among: Sequence[ChosenPiece]) -> ChosenPiece | None:
    """Return the piece in `among` that matches this one best, or None."""
    same = [one for one in among if piece.is_same(one)]
    return min(same, key=lambda one: abs(one.start - piece.start), default=None)


def _piece(fields: Mapping[str, Any]) -> ChosenPiece:
    return ChosenPiece(
        path=str(fields.get("path", "")),
        start=_line(fields.get("start")),
        end=_line(fields.get("end")),
        kind=str(fields.get("kind", "")),
        name=str(fields.get("name", "")),
        anchor=str(fields.get("anchor", "")),
        anchor_at=_line(fields.get("anchor_at")),
    )


def _line(value: object) -> int:
    """Return a line number read from a log that may be damaged."""
    return value if isinstance(value, int) else 0


def _after_choice(chosen: ChosenCode, fields: Mapping[str, Any]) -> ChosenCode:
    piece, choice = _piece(fields), fields.get("choice", "")
    pinned = tuple(one for one in chosen.pinned if not one.is_at(piece))
    left_out = tuple(one for one in chosen.left_out if not one.is_at(piece))
    if choice == "pinned":
        pinned = (*pinned, piece)
    elif choice == "left_out":
        left_out = (*left_out, piece)
    return ChosenCode(pinned, left_out)


def _after_question(chosen: ChosenCode, fields: Mapping[str, Any]) -> ChosenCode:
    """Return the choices after a question that got code: exclusions end, and pins get their current lines."""
    sent = [_piece(one) for one in fields.get("pieces", ()) if one.get("source") == "pinned"]
    pinned, groups = list(chosen.pinned), dict[tuple[str, str], list[int]]()
    for number, one in enumerate(pinned):
        if one.name:
            groups.setdefault((one.path, one.name), []).append(number)
    for (path, name), numbers in groups.items():
        now = sorted((one for one in sent if (one.path, one.name) == (path, name)), key=lambda one: one.start)
        if len(now) == len(numbers):  # definitions with the same name keep their order
            for number, one in zip(sorted(numbers, key=lambda n: pinned[n].start), now, strict=True):
                pinned[number] = msgspec.structs.replace(pinned[number], start=one.start, end=one.end)
    return ChosenCode(tuple(pinned))
