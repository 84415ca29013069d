"""Reads pinned snippets, which the user wants with every question, from the current files; they are placed first.

A definition is identified by path and name, and additionally by type and line if several match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from codecompanion.model.chosen_code import ChosenPiece
from codecompanion.model.code import Definition
from codecompanion.model.gathered import PIN_IS_GONE, Snippet
from codecompanion.retrieval.smart_snippets import MAX_LINES_AFTER_START, find_elements, split_lines
from codecompanion.session.gather.project_code import CodeTexts, ProjectCode

UNPIN = " · /context, p unpins it"
PART_OF = 2
"""If a definition is more than this many times as long as the pinned range inside it, only that part was pinned."""


class ReadPins(msgspec.Struct, frozen=True):
    """The pinned snippets in their current state, and a note for each pin that was not found."""

    snippets: tuple[Snippet, ...] = ()
    notes: tuple[str, ...] = ()


def read_pinned(code: ProjectCode, pieces: Sequence[ChosenPiece], check: Callable[[], None]) -> ReadPins:
    """Return the pinned snippets; pins that are not found are reported, not replaced. Blocks."""
    found, notes = list[Snippet](), list[str]()
    taken = set[tuple[str, int]]()
    for piece in pieces:
        check()
        text = code.read(piece.path) if piece.path in code.listed(check) or piece.path in code.unsaved else None
        lines = split_lines(text) if text is not None else []
        here = current_pin(code, piece, lines, taken) if lines else None
        if here is None:
            notes.append(f"{PIN_IS_GONE} {piece.place}, {_missing_reason(code, piece, bool(lines))}{UNPIN}")
            continue
        taken.add((piece.path, here.start))
        found.append(
            Snippet(
                path=piece.path,
                start=here.start,
                end=here.end,
                text="\n".join(lines[here.start - 1 : here.end]),
                kind=here.kind,
                name=here.name,
                score=1.0,
                is_selected=True,
                source="pinned",
                scores=(("pinned", 1.0),),
            )
        )
    return ReadPins(tuple(found), tuple(notes))


def _missing_reason(code: ProjectCode, piece: ChosenPiece, is_read: bool) -> str:
    if is_read:
        return "it is no longer in that file"
    is_there = (code.root / piece.path).is_file()
    return "hidden, ignored and secret files are read only when named with @" if is_there else "there is no such file"


def current_pin(
    code: ProjectCode, piece: ChosenPiece, lines: Sequence[str], taken: set[tuple[str, int]]
) -> ChosenPiece | None:
    """Return a pin with its current lines, or None if its code is gone. `taken`: the first lines of other pins."""
    if piece.kind == "file":
        return msgspec.structs.replace(piece, start=1, end=len(lines))
    if not piece.name:
        return _by_lines(code.parse(piece.path).definitions, piece, lines)
    named = [one for one in _definitions(code, piece.path, lines) if one.name == piece.name]
    free = [one for one in named if (piece.path, one.start) not in taken] or named
    best = min(free, key=lambda one: (one.kind != piece.kind, abs(one.start - piece.start)), default=None)
    if best is None:
        return None
    length = piece.end - piece.start + 1
    if piece.end and best.start < piece.start < best.end and best.end - best.start + 1 > PART_OF * length:
        return msgspec.structs.replace(piece, end=min(piece.end, best.end))  # the piece is a part of a long definition
    return msgspec.structs.replace(piece, start=best.start, end=best.end, kind=best.kind)


def _by_lines(definitions: Sequence[Definition], piece: ChosenPiece, lines: Sequence[str]) -> ChosenPiece | None:
    """Locate a pin without a name: by the lines around its anchor, or by the definition that begins there."""
    start, count = max(1, piece.start), len(lines)
    if piece.anchor:
        known = start - 1 + piece.anchor_at
        same = [at for at, line in enumerate(lines) if line.strip()[: len(piece.anchor)] == piece.anchor]
        if not same:
            return None
        moved = min(same, key=lambda at: abs(at - known)) - known
        end = min(max(piece.end, start) + moved, count)
        return msgspec.structs.replace(piece, start=max(1, start + moved), end=end, kind=piece.kind or "block")
    if start > count:
        return None
    here = next((one for one in definitions if one.start == start), None)
    if here is not None and not piece.end:
        return ChosenPiece(piece.path, start, here.end, here.kind, here.name)
    end = piece.end or start + MAX_LINES_AFTER_START
    return msgspec.structs.replace(piece, start=start, end=min(end, count), kind=piece.kind or "block")


def _definitions(code: ProjectCode, path: str, lines: Sequence[str]) -> Sequence[Definition]:
    """Return the definitions of a file, found by its grammar, otherwise by patterns (R-225)."""
    if found := code.parse(path).definitions:
        return found
    elements = find_elements(lines)
    ends = [start - 1 for start, _, _ in elements[1:]] + [len(lines)]
    return [
        Definition(name=name, kind=kind, start=start, end=min(end, start + MAX_LINES_AFTER_START), line=start)  # type: ignore[arg-type]
        for (start, kind, name), end in zip(elements, ends, strict=True)
    ]


def places_of(code: CodeTexts, pieces: Sequence[ChosenPiece]) -> set[tuple[str, int]]:
    """Return (path, first line) of the chosen snippets in the current files, even if they have moved. Blocks."""
    places = set[tuple[str, int]]()
    for piece in pieces:
        defined = code.parse(piece.path).definitions if piece.name else ()
        named = [one for one in defined if one.name == piece.name]
        if not named or any(one.start <= piece.start <= one.end for one in named):
            places.add((piece.path, piece.start))
        if named:
            places.add((piece.path, min((one.start for one in named), key=lambda start: abs(start - piece.start))))
    return places
