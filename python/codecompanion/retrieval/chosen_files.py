"""Fits the user's choices into the budget: named files, pins, the active file (R-213, R-248).

No line is sent twice, however the choices overlap. Files that do not fit together share the budget evenly. If a file
exceeds its share, the parts that the question asks for are sent first, then its beginning, truncated after a line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from codecompanion.model.code import Definition
from codecompanion.model.gathered import Dropped, Snippet, chars_to_tokens
from codecompanion.retrieval.line_runs import not_shown, runs_of
from codecompanion.retrieval.rendering import frame_chars
from codecompanion.retrieval.selection import NO_ROOM_FOR_A_LINE, cut_to_budget, share_evenly
from codecompanion.retrieval.smart_snippets import MAX_LINES_AFTER_START, find_elements, split_lines

RELATED_SHARE = 0.5
"""Share of a file's room for parts that match the question without being named; the rest is its beginning."""
_MIN_NAME = 3

Wanted = Mapping[str, Sequence[Snippet]]
"""Maps paths to the parts that the question asks for, best first; parts that it names have a score of 1.0."""


def wanted_parts(
    whole: Snippet, definitions: Sequence[Definition], found: Sequence[Snippet], terms: Collection[str]
) -> list[Snippet]:
    """Return the parts of a file that the question asks for: definitions it names, then other parts `found` there.

    `terms`: words of the question, lower case. A file without a grammar is scanned for lines that define one of the
    terms.
    """
    names = {term for term in terms if len(term) >= _MIN_NAME}
    lines = split_lines(whole.text)
    places = [(one.start, one.end, str(one.kind), one.name) for one in definitions if one.name.lower() in names]
    places = places or _defining(lines, names)
    named = [_lines_of(whole, lines, *place) for place in sorted(places, key=lambda place: place[1] - place[0])]
    others = sorted(
        (one for one in found if one.path == whole.path and not one.is_selected), key=lambda one: -one.score
    )
    return named + [
        msgspec.structs.replace(_lines_of(whole, lines, one.start, one.end, one.kind, one.name), score=one.score)
        for one in others
        if one.end <= len(lines)
    ]


def _defining(lines: Sequence[str], names: Collection[str]) -> list[tuple[int, int, str, str]]:
    """Return the definitions with one of these names, found by patterns."""
    places = list[tuple[int, int, str, str]]()
    for number, line in enumerate(lines, 1) if names else ():
        lower = line.lower()
        if not any(name in lower for name in names):
            continue
        for _, kind, name in find_elements((line,)):
            if name.lower() in names:
                after = find_elements(lines[number : number + MAX_LINES_AFTER_START])
                length = after[0][0] - 1 if after else MAX_LINES_AFTER_START
                places.append((number, min(number + length, len(lines)), kind, name))
    return places


def _lines_of(whole: Snippet, lines: Sequence[str], start: int, end: int, kind: str, name: str) -> Snippet:
    text = "\n".join(lines[start - 1 : end])
    end = min(end, len(lines))
    return msgspec.structs.replace(whole, start=start, end=end, text=text, kind=kind, name=name, is_cut=True)


def fit_chosen(
    chosen: Sequence[Snippet], budget_tokens: int, wanted: Wanted, max_file_tokens: int = 0
) -> tuple[list[Snippet], list[Dropped]]:
    """Return the snippets to send (all of them if they fit) and the files that are left out entirely.

    `max_file_tokens`: limit for one file, 0 = no limit.
    """
    groups = [_Group(of, wanted.get(path, ())) for path, of in by_path(chosen).items()]
    sizes = [min(one.size, max_file_tokens or one.size) for one in groups]
    shares = share_evenly(sizes, max(0, budget_tokens))
    kept = [group.in_room(share) for group, share in zip(groups, shares, strict=True)]
    used = [_size(of) for of in kept]
    for place, group in enumerate(groups):
        if used[place] < sizes[place]:
            room = used[place] + budget_tokens - sum(used)
            longer = group.in_room(min(room, sizes[place]))
            if _size(longer) > used[place]:
                kept[place], used[place] = longer, _size(longer)
    dropped = [one for group, of in zip(groups, kept, strict=True) if not of for one in group.chosen]
    return [one for of in kept for one in of], [Dropped(one, NO_ROOM_FOR_A_LINE) for one in dropped]


class _Group:
    """The user's choices in one file: disjoint parts in order, and the parts to send first."""

    def __init__(self, chosen: Sequence[Snippet], asked: Sequence[Snippet]) -> None:
        self.chosen, self.asked = chosen, asked
        self.parts = without_shared_lines(chosen)
        self.size = _size(self.parts)

    def in_room(self, max_tokens: int) -> list[Snippet]:
        """Return the parts that fit: all of them, or first those that the question asks for, then the beginning."""
        if self.size <= max_tokens:
            return list(self.parts)
        taken, kept, left = set[int](), list[Snippet](), max_tokens
        there = {number for one in self.parts for number in range(one.start, one.end + 1)}
        for one in self.asked:
            is_named = one.score >= 1.0
            for part in runs_of(one, there - taken):
                cost = part.tokens + chars_to_tokens(frame_chars(part))
                if cost <= left - (0 if is_named else int((1 - RELATED_SHARE) * max_tokens)):
                    kept.append(part)
                    taken.update(range(part.start, part.end + 1))
                    left -= cost
        for part in (run for one in self.parts for run in (runs_of(one, there - taken) if taken else [one])):
            frame = chars_to_tokens(frame_chars(part)) if kept else 0
            short = cut_to_budget(part, left - frame)
            if short is None:
                break
            kept.append(short)
            left -= short.tokens + frame
            if short.is_cut and short.end < part.end:
                break
        return kept


def without_shared_lines(chosen: Sequence[Snippet]) -> list[Snippet]:
    """Return the snippets of one file without overlapping lines; the longest stay unchanged."""
    shown, parts = set[int](), list[Snippet]()
    for one in sorted(chosen, key=lambda one: one.start - one.end):
        parts += not_shown(one, shown)
        shown.update(range(one.start, one.end + 1))
    return sorted(parts, key=lambda one: one.start)


def by_path(chosen: Sequence[Snippet]) -> dict[str, list[Snippet]]:
    """Return the snippets grouped by path, with the files in their original order."""
    found = dict[str, list[Snippet]]()
    for one in chosen:
        found.setdefault(one.path, []).append(one)
    return found


def _size(parts: Sequence[Snippet]) -> int:
    return sum(one.tokens for one in parts)
