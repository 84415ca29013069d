"""Measures the indentation of lines: tabs or spaces, how many, and which line encloses which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from codecompanion.edit_in_place.place import is_blank
from codecompanion.wire.requests import EditPlace

_MAX_AROUND = 400
"""Number of surrounding lines to read on each side."""
_FEW, _SOME = 0.1, 0.2
_MAX_STEP = 8
_EIGHT_SPACES = re.compile(r"[ \t]* {8}")
_LAST_CHARS = 200
_OPENS_AT_END = re.compile(r"(?:[:{(\[]|=>|->|\b(?:then|do|else|begin|try|repeat|in)|\bfunction\b.*\)|<[^/!?][^<>]*>)$")
_OPENS_AT_START = re.compile(
    r"(?:def|class|module|if|unless|while|until|for|function|case|when|elif|else|elsif|begin|rescue|ensure)\b"
)
_PREPROCESSOR = re.compile(r"#(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion|error)\b")
_CLOSING = re.compile(r"\W{0,40}|(?:end|fi|done|esac)\W?|</\w{1,40}>")
_CONTINUES = (*",([{\\+-*/%=&|.?:<>",)
"""Line endings after which the next line may continue with any indentation."""


def lead_of(line: str) -> str:
    """Return the tabs and spaces at the start of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def text_of(line: str) -> str:
    """Return a line without surrounding white space."""
    return line.strip(" \t\r")


def columns(lead: str) -> int:
    """Return the width of an indentation in columns; a tab reaches to the next multiple of 8."""
    return len(lead.expandtabs(8))


def opens_block(line: str) -> bool:
    """Return whether the next line may be indented below this one."""
    text = text_of(line)
    return _OPENS_AT_START.match(text) is not None or _OPENS_AT_END.search(text[-_LAST_CHARS:]) is not None


def begins_block(line: str) -> bool:
    """Return whether the next line is indented exactly one level more; after an open bracket it may be anywhere."""
    return opens_block(line) and not line.rstrip().endswith(("(", "["))


def continues_on_next_line(line: str) -> bool:
    """Return whether the next line may continue this one, with any indentation."""
    return text_of(line).endswith(_CONTINUES)


def compact(size: int) -> str:
    """Return an indentation of `size` columns, with a tab for every eight columns."""
    return "\t" * (size // 8) + " " * (size % 8)


def is_closing(line: str) -> bool:
    """Return whether a line is blank or only ends a block, as many lines of a file do."""
    return _CLOSING.fullmatch(text_of(line)) is not None


def is_preprocessor_directive(line: str) -> bool:
    """Return whether a line starts at the margin: a preprocessor directive, which is never indented."""
    return line.startswith("#") and _PREPROCESSOR.match(line) is not None


class Style(msgspec.Struct, frozen=True):
    """An indentation style. `step`: spaces per level, or 0 if unknown.

    `is_compact`: a level is less than a tab, and every eight columns are written as a tab, as with Vim's `softtabstop`.
    """

    has_tabs: bool
    has_spaces: bool
    step: int = 0
    is_compact: bool = False


def style_of(lines: Iterable[str]) -> Style:
    """Return the indentation style of the lines."""
    said = [line for line in lines if not is_blank(line)]
    leads = [lead_of(line) for line in said]
    return Style(
        has_tabs=any("\t" in lead for lead in leads),
        has_spaces=any(lead.startswith("  ") for lead in leads),
        step=_step(said),
    )


def file_style(place: EditPlace) -> Style:
    """Return the file's indentation style: from the region, else the lines around it, else the buffer's options.

    If only a few surrounding lines are indented, they are text in a string and do not show the file's style.
    """
    region = style_of(place.region)
    near = (*place.before[-_MAX_AROUND:], *place.region, *place.after[:_MAX_AROUND])
    tabs = sum(line.startswith("\t") for line in near if not is_blank(line))
    spaces = sum(line.startswith("  ") for line in near if not is_blank(line))
    if not tabs and not spaces:
        return Style(has_tabs=place.tabs, has_spaces=not place.tabs)
    few = (tabs + spaces) * _FEW
    has_tabs, has_spaces = region.has_tabs or tabs > few, region.has_spaces or spaces > few
    return Style(
        has_tabs,
        has_spaces,
        step=region.step or style_of(near).step or _step(near, is_block=False),
        is_compact=has_tabs and has_spaces and _is_compact(near),
    )


def _is_compact(near: Sequence[str]) -> bool:
    deep = tabs = below_spaces = 0
    above = ""
    for line in near:
        if not is_blank(line):
            tabs += line.startswith("\t")
            deep += _EIGHT_SPACES.match(line) is not None
            below_spaces += line.startswith("\t") and above.startswith("  ") and "\t" not in lead_of(above)
            above = line
    return below_spaces > 0 and deep <= tabs * _SOME


def _step(lines: Sequence[str], *, is_block: bool = True) -> int:
    """Return the number of spaces by which most blocks, or most lines, are indented; 0 if none are."""
    steps = Counter[int]()
    for above, below in pairwise(line for line in lines if not is_blank(line)):
        high, low = lead_of(above), lead_of(below)
        size = len(low) - len(high)
        if "\t" not in low and 2 <= size <= _MAX_STEP and low.startswith(high):
            steps[size] += not is_block or begins_block(above)
    most = max(steps.values(), default=0)
    return min(size for size, count in steps.items() if count == most) if most else 0


def parents(leads: Sequence[str | None]) -> list[int]:
    """Return for each line the index of its enclosing line: the nearest one above with less indentation, or -1 if none.

    `leads`: None for a blank line.
    """
    found: list[int] = []
    above: list[tuple[int, int]] = []
    for at, lead in enumerate(leads):
        if lead is None:
            found.append(-1)
            continue
        depth = columns(lead)
        while above and above[-1][1] >= depth:
            above.pop()
        found.append(above[-1][0] if above else -1)
        above.append((at, depth))
    return found
