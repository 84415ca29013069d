"""Restores the indentation of a reply's lines, once the change is known.

A line of the file keeps its bytes, including its alignment and trailing white space. New and changed lines are indented
by the reverse of the change, and wrapped or unwrapped lines keep the depth that the model gave them.
"""

from __future__ import annotations

import re
from collections import Counter

from codecompanion.edit_in_place.indent_change import IndentChange, wanted_lead
from codecompanion.edit_in_place.indentation import (
    Style,
    columns,
    compact,
    file_style,
    is_closing,
    is_preprocessor_directive,
    lead_of,
    style_of,
    text_of,
)
from codecompanion.edit_in_place.matching import matching_lines
from codecompanion.edit_in_place.place import is_blank
from codecompanion.edit_in_place.quoted import Quoted, is_indented_code
from codecompanion.wire.requests import EditPlace

_RULE = re.compile(r"^[^\s#=:][^#=:]{0,400}::?(?!=)")
"""Matches a line of a Makefile that may be followed by recipes."""
_HARD_BREAK = frozenset({"markdown", "md", "quarto", "rmd", "mdx", "vimwiki"})
"""Filetypes in which trailing white space is significant."""


def restored(
    change: IndentChange,
    found: Quoted,
    place: EditPlace,
    *,
    may_change_steps: bool = True,
    style: Style | None = None,
) -> tuple[str, ...]:
    """Return the lines for the file: indentation may change, but the text is always that of the reply.

    The reply is returned unchanged if restoring lost a line or changed its text. `may_change_steps`: as for
    `change_of`. `style`: that of the file, if known.
    """
    restoring = _Restoring(change, found, place, style or file_style(place))
    if not may_change_steps:
        restoring.foreign_step = 0
    lines = restoring.lines()
    return lines if _texts(lines) == _texts(found.lines) else found.lines


def _texts(lines: tuple[str, ...]) -> list[str]:
    return [text for line in lines if (text := text_of(line))]


class _Restoring:
    def __init__(self, change: IndentChange, found: Quoted, place: EditPlace, style: Style) -> None:
        self._change, self._found, self._place = change, found, place
        self._leads = [lead_of(line) for line in found.lines]
        if change.has_lost_first:
            first = next(filter(is_indented_code, found.region), None)
            self._leads[found.first] = change.in_reply(wanted_lead(place) if first is None else lead_of(first))
        self._style = style
        self._own = self._own_lines()
        self.foreign_step = self._step_of_foreign_lines()
        self._hunk: tuple[int, int] | None = None
        self._leads_of_hunk: dict[str, str] = {}

    def lines(self) -> tuple[str, ...]:
        found, result = self._found, list[str]()
        below = self._below()
        above = -1
        for at, line in enumerate(found.lines):
            own = self._own.get(at)
            if own is not None:
                above = own
                result.append(self._quoted(found.region[own], line))
            elif is_preprocessor_directive(line):
                result.append(line)
            elif not text_of(line):
                result.append(line if self._change.is_none else "")
            elif (whole := self._aligned(at, result)) is not None:
                result.append(whole)
            else:
                moved = found.region[found.partner[at]] if found.partner[at] >= 0 else line
                result.append(self._new_lead(at, result, above, below[at]) + self._quoted(moved, line).lstrip(" \t"))
        return tuple(result)

    def _own_lines(self) -> dict[int, int]:
        """Map each quoted line of the reply to its line in the region, using the now known indentation."""
        region, change = self._found.region, self._change
        spelled = {lead: change.in_reply(lead) for lead in {lead_of(line) for line in region}}
        old = [spelled[lead_of(line)] + text_of(line) if text_of(line) else "" for line in region]
        lines = zip(self._leads, self._found.lines, strict=True)
        new = [lead + text_of(line) if text_of(line) else "" for lead, line in lines]
        own = {right: left for left, right in matching_lines(old, new)}
        for at, place in enumerate(self._found.place):
            if place >= 0 and not text_of(old[place]) and not text_of(new[at]):
                own.setdefault(at, place)
        return own

    def _below(self) -> list[int]:
        """Return for each line of the reply the next quoted line of the region."""
        result, below = [], len(self._found.region)
        for at in range(len(self._found.lines) - 1, -1, -1):
            result.append(below)
            below = self._own.get(at, below)
        return result[::-1]

    def _quoted(self, old: str, line: str) -> str:
        """Return the file's version of a line that the reply has as `line`."""
        end = line[len(line.rstrip(" \t")) :]
        if end and not is_blank(line) and self._place.filetype in _HARD_BREAK:
            return old.rstrip(" \t") + end
        return old

    def _aligned(self, at: int, result: list[str]) -> str | None:
        """Return the line at its former distance from its parent if the parent is unchanged, else None."""
        found, partner, parent = self._found, self._found.partner[at], self._found.parent[at]
        if (
            self._change.is_none
            or self._change.has_lost_first
            or not found.keeps_parent[at]
            or is_closing(found.lines[at])
        ):
            return None
        old = found.region[partner]
        if parent < 0:
            return old
        above = found.region[found.partner[parent]]
        if result[parent] == above:
            return old
        if self._style.is_compact:
            return compact(
                columns(lead_of(result[parent])) + columns(lead_of(old)) - columns(lead_of(above))
            ) + old.lstrip(" \t")
        if not lead_of(old).startswith(lead_of(above)):
            return None
        return lead_of(result[parent]) + old[len(lead_of(above)) :]

    # ---- lines that are not in the file

    def _new_lead(self, at: int, result: list[str], above: int, below: int) -> str:
        change, lead = self._change, self._leads[at]
        if change.is_none:
            return self._without_foreign(lead, result)
        if self._found.partner[at] < 0 and (known := self._lead_nearby(at, lead, above, below)) is not None:
            return known
        if change.kind == "tabs as spaces" and not self._may_have_tabs(result):
            return lead
        return change.in_file(lead)

    def _lead_nearby(self, at: int, lead: str, above: int, below: int) -> str | None:
        """Return the indentation of a line that this line replaces or follows, if the reply indents both equally."""
        region, change = self._found.region, self._change
        if self._hunk != (above, below):
            self._hunk, self._leads_of_hunk = (above, below), {}
            counts = Counter(lead_of(line) for line in region[above + 1 : below] if not is_blank(line))
            for own in sorted(counts, key=counts.__getitem__, reverse=True):
                self._leads_of_hunk.setdefault(change.in_reply(own), own)
        if lead in self._leads_of_hunk:
            return self._leads_of_hunk[lead]
        if 0 <= above < below < len(region) and not any(
            lead_of(region[place]).startswith(change.left_out) for place in (above, below)
        ):
            return change.in_file(lead).removeprefix(change.left_out)  # inside the text of a here-document
        if at - 1 in self._own:
            own = lead_of(region[above])
            if own and own.startswith(change.left_out) and change.in_reply(own) == lead:
                return own
        return None

    def _may_have_tabs(self, result: list[str]) -> bool:
        """Return whether the next line may be indented by tabs: in a Makefile only recipes are."""
        if self._place.filetype != "make":
            return True
        lines = (line for some in (reversed(result), reversed(self._place.before)) for line in some)
        above = next((line for line in lines if not is_blank(line)), "")
        return above.startswith("\t") or _RULE.match(above) is not None

    # ---- quoted lines are unchanged, only new ones are indented differently

    def _step_of_foreign_lines(self) -> int:
        """Return the spaces per level of new lines in a file with tabs, minus those per tab in a file with spaces.

        0 means that new lines have the file's indentation.
        """
        if not self._change.is_none:
            return 0
        lines = self._found.lines
        new = [line for at, line in enumerate(lines) if at not in self._own and not is_blank(line)]
        file, said = self._style, style_of(new)
        if file.has_tabs and not file.has_spaces and said.has_spaces and not said.has_tabs:
            sizes = {len(lead_of(line)) for line in new}
            steps = (size for size in (said.step, 4, 8, 2, 3) if size and not any(number % size for number in sizes))
            return next(steps, 0)
        if file.has_spaces and not file.has_tabs and said.has_tabs and not said.has_spaces:
            return -(file.step or self._place.width)
        return 0

    def _without_foreign(self, lead: str, result: list[str]) -> str:
        step = self.foreign_step
        if step < 0:
            return lead.expandtabs(-step)
        if step == 0 or not self._may_have_tabs(result):
            return lead
        return "\t" * (len(lead) // step) + " " * (len(lead) % step)
