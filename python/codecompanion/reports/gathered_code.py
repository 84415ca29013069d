"""Writes the section of `/trace` on the code gathered for the questions of a turn (R-268).

It lists each piece with its location, source, score and tokens, dropped pieces with reasons, the classification of the
question, and gatherers that timed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from codecompanion.formats.cutting import cut_mark
from codecompanion.formats.plural import counted
from codecompanion.model.gathered import likely_text
from codecompanion.reports.markdown import Page, duration_text, one_line, table, tokens_text
from codecompanion.reports.record import Stretch

MAX_DROPPED = 20
_BY = {"model": "by a model", "keywords": "by keywords", "index": "by the index"}
"""How a question was classified, in words, by classifier; none if code was requested."""
WAS_ASKED_FOR = "code was requested"
NOT_INDEXED = "the index was not complete yet: the rest was searched as text"


def gathered_code(turn: Stretch, page: Page) -> list[str]:
    """Return the lines of the section; none for a turn that gathered no code."""
    if not turn.gathered:
        return []
    lines = ["", "## Gathered code"]
    for event in turn.gathered:
        lines += _one(event.fields, page)
    return lines


def _one(fields: Mapping[str, Any], page: Page) -> Iterator[str]:
    pieces: Sequence[Mapping[str, Any]] = fields.get("pieces", ())
    yield ""
    yield f"- {_how_much(fields, pieces)}"
    yield f"- {classified_text(fields)}"
    terms = ", ".join(fields.get("terms", ()))
    if terms:
        yield f"- searched for: {one_line(terms)}"
    if fields.get("is_index_partial"):
        yield f"- {NOT_INDEXED}"
    late = ", ".join(fields.get("timed_out", ()))
    if late:
        yield f"- timed out: {late}"
    for who, why in fields.get("failed", {}).items():
        yield f"- {who} failed: {one_line(str(why))}"
    for note in fields.get("notes", ()):
        yield f"- {one_line(note)}"
    if pieces:
        rows = [(*_numbers(piece), place_of(piece)) for piece in pieces]
        yield ""
        yield from table(("score", "tokens", "source", "what"), rows, page.width, "rrll")
    dropped = fields.get("dropped", ())
    if dropped:
        count = fields.get("dropped_count", len(dropped))
        yield from ("", f"### Not sent ({count})", "")
        left = [
            (_numbers(piece)[0], place_of(piece), one_line(piece.get("why", ""))) for piece in dropped[:MAX_DROPPED]
        ]
        yield from table(("score", "what", "why"), left, page.width, "rll")


def _how_much(fields: Mapping[str, Any], pieces: Sequence[Mapping[str, Any]]) -> str:
    above = sum(piece.get("is_above", False) for piece in pieces)
    pieces = [piece for piece in pieces if piece["path"] and not piece.get("is_above")]
    files = len({piece["path"] for piece in pieces})
    took = duration_text(fields.get("duration_ms", 0))
    total, budget = tokens_text(fields.get("total_tokens", 0)), tokens_text(fields.get("budget_tokens", 0))
    if not fields.get("message_id"):
        is_out = fields.get("is_codebase_related") is False and fields.get("classified_by") in _BY
        return f"nothing sent: question did not look project-related · {took}" if is_out else f"nothing sent · {took}"
    code = f"{counted(len(pieces), 'snippet')} from {counted(files, 'file')}"
    more = f" · {above} already sent" if above else ""
    return f"{code}{more} · {total} of {budget} tokens by characters/4, without the headings · {took}"


def classified_text(fields: Mapping[str, Any]) -> str:
    """Return the classification of the question, in words."""
    by = who_classified(fields.get("classified_by", ""), fields.get("likelihood"))
    if not by:
        return WAS_ASKED_FOR
    if not fields.get("is_codebase_related"):
        return not_about(by, fields)
    about = ", ".join(fields.get("categories", ())) or "the project"
    sure = f"{fields.get('confidence', '')} confidence, " if fields.get("likelihood") is None else ""
    return f"about {about} · {sure}{by} · {fields.get('type', '')}".rstrip(" ·")


def not_about(by: str, fields: Mapping[str, Any]) -> str:
    """Return the classification of a question that did not look project-related, but may name files."""
    is_named = any(piece.get("source") == "mention" for piece in fields.get("pieces", ()))
    return f"{'only the named files: ' if is_named else ''}not about the project ({by})"


def who_classified(source: str, likelihood: float | None) -> str:
    """Return the classifier, and the likelihood that the question is about the project; "" if code was requested."""
    by = _BY.get(source, "")
    return f"{by}, {likely_text(likelihood)}" if by and likelihood is not None else by


def _numbers(piece: Mapping[str, Any]) -> tuple[str, str, str]:
    return f"{piece.get('score', 0):.2f}", f"{piece.get('tokens', 0):,}", str(piece.get("source", ""))


def place_of(piece: Mapping[str, Any]) -> str:
    """Return the location and definition of a piece, and whether an earlier message still showed it to the model."""
    above = " · already sent" if piece.get("is_above") else ""
    if not piece["path"]:
        return f"{piece.get('source', '')}{above}"
    lines = f":{piece['start']}-{piece['end']}" if piece.get("start") else ""
    lines += cut_mark(piece.get("is_cut", False), piece.get("of", 0))
    return one_line(f"{piece['path']}{lines} {piece.get('name', '')}".rstrip()) + above
