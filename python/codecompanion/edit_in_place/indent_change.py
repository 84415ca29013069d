"""Detects how a reply changed the indentation of the lines it quotes, and reverses the change.

Models drop indentation (of all lines, or of the first), replace tabs with spaces or spaces with tabs, use a different
step, or move everything to the right. A reply is assumed to have only one such change: the one that leaves the fewest
lines moved without a reason. A line has a reason to move if a different line encloses it than before: it was wrapped or
unwrapped, and stays where the model put it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import msgspec

from codecompanion.edit_in_place.indentation import (
    begins_block,
    columns,
    continues_on_next_line,
    file_style,
    is_closing,
    lead_of,
    opens_block,
    style_of,
    text_of,
)
from codecompanion.edit_in_place.place import is_blank
from codecompanion.edit_in_place.quoted import Quoted, is_indented_code, moves_only, quoted
from codecompanion.wire.requests import EditPlace

_STEPS = (2, 4, 8, 3)
_MAX_SHIFTS = 8
"""Maximum number of pairs of different indentations from which a shift of all lines is derived."""

Kind = Literal["same", "tabs as spaces", "spaces as tabs", "other step"]


class IndentChange(msgspec.Struct, frozen=True):
    """How the indentation of a reply differs from that of the file.

    `file_step`, `reply_step`: spaces per level, or per tab if one side has tabs. `left_out`: leading white space that
    only the file has. `added`: leading white space that only the reply has.
    """

    kind: Kind = "same"
    file_step: int = 0
    reply_step: int = 0
    left_out: str = ""
    added: str = ""
    has_lost_first: bool = False

    @property
    def is_none(self) -> bool:
        """Whether the reply has the file's indentation."""
        return self.kind == "same" and not self.left_out and not self.added

    def in_reply(self, lead: str) -> str:
        """Return the reply's form of an indentation of the file."""
        return self.added + self._spelled(lead.removeprefix(self.left_out))

    def in_file(self, lead: str) -> str:
        """Return the file's form of an indentation of the reply."""
        return self.left_out + self._unspelled(lead.removeprefix(self.added))

    def _spelled(self, lead: str) -> str:
        match self.kind:
            case "tabs as spaces":
                return lead.expandtabs(self.reply_step)
            case "spaces as tabs":
                return _tabs(len(lead.expandtabs(self.file_step)), self.file_step)
            case "other step" if "\t" not in lead:
                return " " * _restepped(len(lead), self.file_step, self.reply_step)
            case _:
                return lead

    def _unspelled(self, lead: str) -> str:
        match self.kind:
            case "tabs as spaces":
                return _tabs(len(lead.expandtabs(self.reply_step)), self.reply_step)
            case "spaces as tabs":
                return lead.expandtabs(self.file_step)
            case "other step" if "\t" not in lead:
                return " " * _restepped(len(lead), self.reply_step, self.file_step)
            case _:
                return lead


def _tabs(size: int, step: int) -> str:
    return "\t" * (size // step) + " " * (size % step)


def _restepped(size: int, old: int, new: int) -> int:
    return size // old * new + size % old


Moves = Counter[tuple[str, str, tuple[str, str] | None, bool, bool, bool]]


class _Evidence(msgspec.Struct, frozen=True):
    """Counts of a reply's indentation features, computed once for all changes to try.

    `moves`: a line's indentation in the file and in the reply; the same for its enclosing line, or None; whether the
    same line encloses it in the file; whether it may be deeper, or less deep.

    `closing`: indentations of lines like `}` whose number differs in the reply, so that they cannot be matched.

    `new`: indentations of lines that are not in the region; `changed`: those of changed lines, in the file and in the
    reply.

    `blocks`: indentations of a line that opens a block, of the line below it, and of that second line in the file (None
    if it is not in the region).
    """

    moves: Moves
    closing: Counter[str]
    new: Counter[str]
    changed: Counter[tuple[str, str]]
    blocks: Counter[tuple[str, str, str | None]]


def _evidence(found: Quoted, *, without: int = -1) -> _Evidence:
    """Count the indentation features to explain. `without`: the index of a line to ignore."""
    moves, closing, new, changed = Moves(), Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    were, are = (Counter(map(text_of, some)) for some in (found.region, found.lines))
    for at, line in enumerate(found.lines):
        if not is_indented_code(line) or at == without:
            continue
        old, parent, keeps = found.partner[at], found.parent[at], found.keeps_parent[at]
        if old < 0:
            new[lead_of(line)] += 1
            if found.place[at] >= 0:
                changed[lead_of(found.region[found.place[at]]), lead_of(line)] += 1
            continue
        text = text_of(line)
        is_first = at == found.first and not any(map(text_of, found.region[:old]))
        if is_closing(line) and were[text] != are[text] and not is_first:
            closing[lead_of(line)] += 1
            continue
        above = found.partner[parent] if keeps and parent >= 0 and parent != without else -1
        of_parent = (lead_of(found.region[above]), lead_of(found.lines[parent])) if above >= 0 else None
        may_move = found.may_be_deeper[at], found.may_be_less_deep[at]
        moves[lead_of(found.region[old]), lead_of(line), of_parent, keeps, *may_move] += 1
    return _Evidence(moves, closing, new, changed, Counter(_blocks(found)))


def _blocks(found: Quoted) -> Iterator[tuple[str, str, str | None]]:
    for top, bottom in pairwise(at for at, line in enumerate(found.lines) if is_indented_code(line)):
        above, line = found.lines[top], found.lines[bottom]
        high, low = lead_of(above), lead_of(line)
        own = lead_of(found.region[found.partner[bottom]]) if found.partner[bottom] >= 0 else None
        if len(low) > len(high) and begins_block(above) and not text_of(line).startswith("- "):
            yield high, low, own


class _Trials:
    """Tries possible changes and finds the one that explains the reply best."""

    def __init__(self, found: Quoted, place: EditPlace, *, may_change_steps: bool) -> None:
        self._found, self._place = found, place
        self._said = [line for line in found.lines if is_indented_code(line)]
        self._file, self._reply = file_style(place), style_of(found.lines)
        self._wanted = wanted_lead(place)
        self._first_in_file = next(map(lead_of, filter(is_indented_code, found.region)), self._wanted)
        self._evidence = {False: _evidence(found), True: self._evidence_without_first()}
        self._leads = {lead_of(line) for line in found.region}
        self._moves_only = moves_only(found)
        self._may_change_steps = may_change_steps

    def _evidence_without_first(self) -> _Evidence:
        """Count the features, assuming that the first line kept its indentation."""
        first, lines = self._found.first, list(self._found.lines)
        if first >= 0:
            lines[first] = self._first_in_file + lines[first]
        return _evidence(quoted(tuple(lines), self._found.region), without=first)

    def best(self) -> IndentChange:
        none = IndentChange()
        if not self._said or (cost := self._cost(none))[:2] == (0, 0):
            return none
        best = none
        for change in self._possible():
            if (other := self._cost(change)) < cost:
                best, cost = change, other
        return best

    # ---- possible changes

    def _possible(self) -> Iterator[IndentChange]:
        can_lose_first = len(self._said) > 1 and not lead_of(self._said[0]) and self._first_in_file
        for kind, file_step, reply_step in self._spellings():
            change = IndentChange(kind, file_step, reply_step)
            yield change
            for left_out, added in self._shifts(change):
                if left_out or added:
                    yield msgspec.structs.replace(change, left_out=left_out, added=added)
            if can_lose_first:
                yield msgspec.structs.replace(change, has_lost_first=True)

    def _spellings(self) -> Iterator[tuple[Kind, int, int]]:
        yield "same", 0, 0
        if not self._may_change_steps:
            return
        file, reply = self._file, self._reply
        steps = [file.step] if file.step else [self._place.width, *_STEPS]
        if file.has_tabs and reply.has_spaces:
            for step in (8,) if file.is_compact else dict.fromkeys((reply.step or self._place.width, *_STEPS)):
                yield "tabs as spaces", step, step
        if file.has_spaces and reply.has_tabs:
            for step in dict.fromkeys((*steps, *_STEPS)):
                yield "spaces as tabs", step, step
        if file.has_spaces and reply.has_spaces:
            for old in dict.fromkeys(step for step in (file.step, *_STEPS) if step):
                for new in dict.fromkeys(step for step in (reply.step, *_STEPS) if step):
                    if old != new:
                        yield "other step", old, new

    def _shifts(self, change: IndentChange) -> Iterator[tuple[str, str]]:
        """Yield the possible shifts of all lines, as (left out, added)."""
        lowest = min((lead_of(line) for line in self._said), key=columns)
        pairs = [(self._wanted, lowest)]
        if not self._place_only:
            counts = Counter(move[:2] for move in self._evidence[False].moves)
            pairs += sorted(counts, key=counts.__getitem__, reverse=True)
        seen = set()
        for in_file, in_reply in pairs[:_MAX_SHIFTS]:
            shift = _shift(change, in_file, in_reply)
            if shift is not None and shift not in seen and self._may_be_moved(shift[1], lowest):
                seen.add(shift)
                yield shift

    @property
    def _place_only(self) -> bool:
        return not self._found.region

    def _may_be_moved(self, added: str, lowest: str) -> bool:
        """Return whether a shift may be undone; a single line, or lines that only moved, may be intentional."""
        if added:
            return (
                len(added.expandtabs(8)) > 1
                and lowest.startswith(added)
                and not self._moves_only
                and len(self._said) > 1
                and not self._place_only
            )
        return not (self._moves_only and lowest)

    # ---- unexplained features

    def _cost(self, change: IndentChange) -> tuple[int, int, int, int, int]:
        """Return the counts of anomalies that a change leaves, most serious first.

        These are lines moved without a reason, other odd lines, parts of the change, lines moved because a different
        line encloses them, and indentation steps that occur nowhere.
        """
        evidence = self._evidence[change.has_lost_first]
        spelled: dict[str, str] = {}

        def explains(in_file: str, in_reply: str) -> bool:
            if in_file not in spelled:
                spelled[in_file] = change.in_reply(in_file)
            return spelled[in_file] == in_reply

        moved = odd = wrapped = explained = 0
        new_leads, changed = evidence.new.copy(), evidence.changed.copy()
        depths = {columns(change.in_file(lead)) for lead in (*evidence.new, *evidence.closing)}
        for (old, new, of_parent, keeps, may_be_deeper, may_be_less_deep), count in evidence.moves.items():
            is_explained, depth = explains(old, new), columns(old)
            new_depth = depth if is_explained else columns(change.in_file(new))
            depths.add(new_depth)
            explained += count * is_explained
            if keeps:
                moved += count * (is_explained != (of_parent is None or explains(*of_parent)))
            elif (new_depth > depth and not may_be_deeper) or (new_depth < depth and not may_be_less_deep):
                moved += count
            if is_explained:
                # The left-out indentation never preceded it (the end of a here-document).
                odd += count * (not old.startswith(change.left_out))
            else:
                wrapped += count
                new_leads[new] += count
                changed[old, new] += count
        if change.has_lost_first:
            depths.add(columns(self._first_in_file))
        without_reason = (
            moved + self._is_misplaced(change, min(depths, default=0), explained) + self._at_the_top(change)
        )
        odd += self._foreign(change, new_leads, evidence.blocks) + self._respelled(change, changed)
        # A model that drops indentation drops all of it.
        odd += bool(change.left_out) and all(lead_of(line) for line in self._said)
        parts = 2 * (change.kind != "same") + bool(change.left_out or change.added) + 2 * change.has_lost_first
        return without_reason, odd, parts, wrapped, self._strangeness(change)

    def _is_misplaced(self, change: IndentChange, depth: int, explained: int) -> int:
        """Return 1 if the code as a whole would be indented more or less than the region, else 0."""
        wanted = columns(self._wanted)
        if depth > wanted:
            is_shifted = bool(change.left_out or change.added)
            return int(is_shifted or (not explained and len(self._said) > 1 and not self._place_only))
        return int(depth < wanted)

    def _at_the_top(self, change: IndentChange) -> int:
        """Return how many of the first lines are not at the region's indentation or are indented for no reason."""
        found, first = self._found, self._found.first
        above = self._first_in_file if change.has_lost_first else change.in_file(lead_of(self._said[0]))
        odd = int(not self._place_only and found.partner[first] < 0 and columns(above) != columns(self._first_in_file))
        if len(self._said) < 2 or lead_of(self._said[0]) or not self._first_in_file:
            return odd
        step = columns(change.in_file(lead_of(self._said[1]))) - columns(above)
        second = next(at for at in range(first + 1, len(found.lines)) if is_indented_code(found.lines[at]))
        if found.partner[first] >= 0 and found.partner[second] >= 0:
            return odd
        if opens_block(self._said[0]):
            unit = 8 if not self._file.has_spaces else self._file.step
            return odd + (step <= 0 if not unit else step != unit)
        if found.place[first] >= 0 and found.place[second] >= 0:
            old, below = (columns(lead_of(found.region[found.place[at]])) for at in (first, second))
            return odd + (step != below - old)
        return odd + (step > 0 and not continues_on_next_line(self._said[0]))

    def _foreign(self, change: IndentChange, new: Counter[str], blocks: Counter[tuple[str, str, str | None]]) -> int:
        """Return how many lines would have an indentation style that the file does not use."""
        file = self._file
        leads = [(own, lines) for lead, lines in new.items() if (own := change.in_file(lead)) not in self._leads]
        if file.is_compact:
            return sum(lines for own, lines in leads if " " * 8 in own)
        if file.has_tabs and file.has_spaces:
            return 0
        count = sum(lines for own, lines in leads if (own.startswith("  ") if file.has_tabs else "\t" in own))
        for (high, low, in_region), lines in blocks.items():
            if in_region is not None and change.in_reply(in_region) == low:
                continue
            above, below = change.in_file(high), change.in_file(low)
            if file.has_tabs:
                count += lines * (below != above + "\t")
            elif file.step:
                count += lines * (below != above + " " * file.step)
        return count

    def _respelled(self, change: IndentChange, changed: Counter[tuple[str, str]]) -> int:
        """Return how many lines would have spaces where they had tabs."""
        if self._file.is_compact:
            return 0
        pairs = ((old, change.in_file(new), lines) for (old, new), lines in changed.items())
        return sum(
            lines for old, new, lines in pairs if old.count("\t") > new.count("\t") and columns(new) >= columns(old)
        )

    def _strangeness(self, change: IndentChange) -> int:
        """Return how many of the change's steps occur neither in the file nor in the reply."""
        file, odd = self._file, 0
        known = file.step or self._place.width
        if change.kind != "same":
            odd += change.kind != "tabs as spaces" and change.file_step != known
            odd += change.kind == "other step" and change.reply_step != self._reply.step
            odd += change.kind == "tabs as spaces" and not file.is_compact and change.reply_step != self._reply.step
        return odd


def _shift(change: IndentChange, in_file: str, in_reply: str) -> tuple[str, str] | None:
    """Return the (left-out, added) indentation that turns one indentation into the other, or None if there is none."""
    plain = change.in_file(in_reply)
    if in_file.endswith(plain):
        return in_file[: len(in_file) - len(plain)], ""
    spelled = change.in_reply(in_file)
    if in_reply.endswith(spelled):
        return "", in_reply[: len(in_reply) - len(spelled)]
    return None


def wanted_lead(place: EditPlace) -> str:
    """Return the indentation that the code should have at `place`."""
    said = [lead_of(line) for line in place.region if is_indented_code(line)]
    if said:
        return min(said, key=columns)
    below = next((line for line in place.after if not is_blank(line)), "")
    above = next((line for line in reversed(place.before) if not is_blank(line)), "")
    return min(lead_of(above), lead_of(below), key=columns)


def change_of(found: Quoted, place: EditPlace, *, may_change_steps: bool = True) -> IndentChange:
    """Return how the reply changed the indentation. `may_change_steps`: False if the user asked for such a change."""
    return _Trials(found, place, may_change_steps=may_change_steps).best()
