"""Shows gathered code, or a preview of it, as rows the user can act on: `/context`, and `K` below a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from codecompanion.errors import InputError
from codecompanion.model.chosen_code import (
    GATHERED_EVENT,
    NOTHING_CHOSEN,
    ChosenCode,
    ChosenPiece,
    anchor_of,
    choice_event,
    nearest,
)
from codecompanion.model.gathered import PIN_IS_GONE, Gathered
from codecompanion.model.history import LogEvent, MessageAdded, PolicyEvent
from codecompanion.model.messages import GATHERED_TAG, Message, is_typed_by_user
from codecompanion.reports.gathered_code import NOT_INDEXED, WAS_ASKED_FOR, not_about, place_of, who_classified
from codecompanion.retrieval.compose import TAKEN_OUT
from codecompanion.session.chat.chat import Chat
from codecompanion.session.codebase.code_request import CodeRequest
from codecompanion.session.codebase.gathered_message import gathered_record
from codecompanion.session.codebase.shown_code import SOURCES, how_much
from codecompanion.session.message_context.gathering import NO_CODE, NO_ROOM
from codecompanion.wire.requests import ChooseCode, PreviewCode, ShowGathered

State = Literal["in", "out", "left out", "pinned"]
_NOTHING_ASKED = "Nothing to search for yet: write a question after /context, or send a message first."
_ABOVE = "already sent: not sent again"
_OFF = "No code is added to messages: context.enabled is false."
_WITH_IT, _ON_REQUEST = "Sent with the message:", "Sent with #{codebase}:"


class CodeRow(msgspec.Struct, frozen=True):
    """A row for a code snippet: its location, gatherer and score, whether it is sent to the model, and if not, why.

    `kind` and `name` are those of the definition; `anchor` and `anchor_at` those of `ChosenPiece`. `chosen_at`: the
    first line of the user's choice if the definition has moved since, 0 = unchanged. `is_above`: the model still has
    the snippet from an earlier question, so it is not sent again.
    """

    path: str
    start: int
    end: int
    what: str
    source: str
    score: float
    tokens: int
    state: State
    why: str = ""
    kind: str = ""
    name: str = ""
    anchor: str = ""
    anchor_at: int = 0
    chosen_at: int = 0
    is_above: bool = False


class CodeReport(msgspec.Struct, frozen=True):
    """The `/context` page: a title, lines above the rows, the rows (best first), and the text for the model."""

    title: str
    head: tuple[str, ...]
    rows: tuple[CodeRow, ...]
    text: str = ""
    text_title: str = "Sent to the model:"
    root: str = ""
    can_choose: bool = False


async def preview_code(chat: Chat, request: PreviewCode) -> CodeReport:
    """Return the code that would be gathered for a question now, without logging anything.

    Without a question, the user's newest message is used. No model is asked, except by the gathering itself.

    Raises:
        InputError: there is no question, or gathering is off.
    """
    question = request.question.strip() or _newest_question(chat.log.view.messages)
    services = chat.services
    if not question:
        raise InputError(_NOTHING_ASKED)
    if services.gatherer is None or services.settings.context.enabled is False:
        raise InputError(_OFF)
    if not request.snapshot.send_code:
        raise InputError(NO_CODE)
    code_request = await chat.gathering.code_request(question, request.snapshot)
    gathered, says = await chat.gathering.preview(question, request.snapshot, code_request)
    if gathered is None:
        raise InputError(NO_ROOM)
    fields = gathered_record(gathered, "preview" if gathered.text.strip() else "", "").fields
    report = _report(fields, chat.log.chosen, gathered.text, chat.meter.scaled)
    as_sent = _as_sent(code_request, gathered)
    is_asked = code_request is not None and code_request.mentions.codebase
    head = report.head if is_asked else tuple(one for one in report.head if one != WAS_ASKED_FOR)
    head = (*as_sent, *head, *(code_request.told if code_request is not None else ()), *says)
    rows, root = _with_anchors(report.rows, gathered), services.root(request.snapshot)
    title = _ON_REQUEST if as_sent else _WITH_IT
    return msgspec.structs.replace(report, head=head, rows=rows, text_title=title, root=str(root), can_choose=True)


def _with_anchors(rows: Sequence[CodeRow], gathered: Gathered) -> tuple[CodeRow, ...]:
    """Return the rows; rows without a name get the anchors that identify them later."""
    dropped = (one.snippet for one in gathered.selection.dropped)
    texts = {(one.path, one.start): one.text for one in (*dropped, *gathered.selection.snippets) if not one.name}
    anchors = {place: anchor_of(text) for place, text in texts.items()}
    found = ((row, *anchors.get((row.path, row.start), ("", 0))) for row in rows)
    return tuple(msgspec.structs.replace(row, anchor=anchor, anchor_at=at) for row, anchor, at in found)


def _as_sent(code_request: CodeRequest | None, gathered: Gathered) -> tuple[str, ...]:
    """Return notes on how sending the question unchanged would differ from the rows shown."""
    if code_request is None or not code_request.is_wanted:
        return (_NOT_BY_ITSELF,)
    said = gathered.classification
    by = who_classified(said.overruled, said.likelihood)
    is_named = any(one.source == "mention" for one in gathered.found)
    if not by or code_request.mentions.codebase or is_named:
        return ()
    return (_NOT_ABOUT.format(by=by),)


_NOT_BY_ITSELF = (
    "No code is added to this message. To add the code below, write #{codebase} in it, or name a file with @."
)
_NOT_ABOUT = (
    "No code is added to this message (not about the project, {by}). To add the code below, write #{{codebase}} in it."
)


async def show_gathered(chat: Chat, request: ShowGathered) -> CodeReport:
    """Return the code gathered for a sent message, and how much of it the model still has.

    Raises:
        InputError: the chat has no such message.
    """
    events = await chat.log.events()
    message = next((m for m in _messages(events) if m.id == request.item and m.tag == GATHERED_TAG), None)
    if message is None:
        raise InputError(f"Nothing in this chat has the id {request.item!r}.")
    fields: Mapping[str, Any] = next(
        (e.payload.fields for e in events if _is_record(e) and e.payload.fields["message_id"] == message.id),  # type: ignore[union-attr]
        {"message_id": message.id, "pieces": msgspec.to_builtins(message.gathered)},
    )
    shown = request.tokens or chat.meter.scaled(message.tokens)
    report = _report(fields, NOTHING_CHOSEN, message.text, partial(_part, shown, message.tokens))
    now = next((m for m in chat.log.view.messages if m.id == message.id), None)
    if now is None or now.content != message.content:
        said = "The code was cleared: the model has only the names."
    else:
        said = f"~{shown:,} tokens with headings and map"
    report = msgspec.structs.replace(report, head=(said, *report.head))
    return msgspec.structs.replace(report, root=str(chat.root()))


async def choose_code(chat: Chat, request: ChooseCode) -> str:
    """Leave a snippet out of the next question, pin it in this chat, or reset it; return its new state.

    The choice is logged.

    Raises:
        StoreError: the choice could not be stored; nothing is changed.
    """
    piece = ChosenPiece(
        request.path, request.start, request.end, request.kind, request.name, request.anchor, request.anchor_at
    )
    await chat.log.write_beside(choice_event(piece, request.choice))
    if request.choice == "left_out":
        return f"Left out of the next question: {piece.place}"
    if request.choice == "pinned":
        return f"Pinned in this chat: {piece.place}"
    return f"No longer left out or pinned: {piece.place}"


def _is_record(event: LogEvent) -> bool:
    return isinstance(event.payload, PolicyEvent) and event.payload.name == GATHERED_EVENT


def _messages(events: Sequence[LogEvent]) -> list[Message]:
    return [event.payload.message for event in events if isinstance(event.payload, MessageAdded)]


def _newest_question(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if is_typed_by_user(message)), "")


def _report(fields: Mapping[str, Any], chosen: ChosenCode, text: str, size: Callable[[int], int]) -> CodeReport:
    """Return the page about gathered code; `size` converts a count by characters into one like the meter's."""
    pins, pieces = list(chosen.pinned), fields.get("pieces", ())
    rows = [_row(piece, "in", chosen, pins, size) for piece in pieces]
    new = [row for row, piece in zip(rows, pieces, strict=True) if not piece.get("is_above")]
    above = len(rows) - len(new)
    rows += [_row(piece, "out", chosen, pins, size) for piece in fields.get("dropped", ())]
    gone = [note for note in fields.get("notes", ()) if note.startswith(PIN_IS_GONE)]
    rows += [_lost(pin, any(f" {pin.place}," in note for note in gone)) for pin in pins]
    taken = [row for row in new if row.state in ("in", "pinned") and not row.why]
    code = [row.path for row in taken if row.path]
    tokens = sum(row.tokens for row in taken if row.path)  # the budget covers the code only
    title = how_much(code, above)
    head = []
    if fields.get("budget_tokens"):
        head.append(
            f"~{tokens:,} tokens of code, at most {size(fields['budget_tokens']):,} · {fields['duration_ms']} ms"
        )
        head.append(_understood(fields))
    if fields.get("terms"):
        head.append(f"searched for: {', '.join(fields['terms'])}")
    if fields.get("is_index_partial"):
        head.append(NOT_INDEXED)
    if fields.get("timed_out"):
        head.append(f"timed out: {', '.join(fields['timed_out'])}")
    head += [f"{who} failed: {why}" for who, why in fields.get("failed", {}).items()]
    head += fields.get("notes", ())
    return CodeReport(title, tuple(" ".join(line.split()) for line in head), tuple(rows), text)


def _understood(fields: Mapping[str, Any]) -> str:
    """Describe how the question was classified; `/trace` uses the document's terms."""
    by = who_classified(fields.get("classified_by", ""), fields.get("likelihood"))
    if not by:
        return WAS_ASKED_FOR
    return f"about the project ({by})" if fields.get("is_codebase_related") else not_about(by, fields)


def _part(whole: int, estimate: int, tokens: int) -> int:
    """Return the count of a part of a message whose `estimate` is shown as `whole`."""
    return round(tokens * whole / estimate) if estimate else tokens


def _row(
    piece: Mapping[str, Any], state: State, chosen: ChosenCode, pins: list[ChosenPiece], size: Callable[[int], int]
) -> CodeRow:
    """Return the row of a snippet; a pin that matches it is removed from `pins`."""
    here = ChosenPiece(
        piece["path"], piece.get("start", 0), piece.get("end", 0), piece.get("kind", ""), piece.get("name", "")
    )
    why, source = piece.get("why", ""), piece.get("source", "")
    among = pins if source == "pinned" else [pin for pin in pins if pin.is_at(here)]
    pin = next((one for one in among if one.is_at(here)), None) or nearest(here, among)
    is_above = bool(piece.get("is_above"))
    why = why or (_ABOVE if is_above else "")
    if pin is not None:
        state = "pinned"
        pins.remove(pin)
    elif why == TAKEN_OUT or any(one.is_at(here) for one in chosen.left_out):
        state, why = "left out", "you left it out"
    return CodeRow(
        path=here.path,
        start=here.start,
        end=here.end,
        what=place_of({**piece, "is_above": False}),
        source=SOURCES.get(source, source),
        score=piece.get("score", 0.0),
        tokens=size(piece.get("tokens", 0)),
        state=state,
        why=why,
        kind=here.kind,
        name=here.name,
        chosen_at=pin.start if pin is not None and pin.start != here.start else 0,
        is_above=is_above,
    )


def _lost(pin: ChosenPiece, is_gone: bool) -> CodeRow:
    """Return the row of a pin that was not found, so that it can be unpinned."""
    return CodeRow(
        path=pin.path,
        start=pin.start,
        end=pin.end,
        what=pin.place,
        source="pinned",
        score=0.0,
        tokens=0,
        state="pinned",
        why="gone" if is_gone else "not searched for",
        kind=pin.kind,
        name=pin.name,
    )
