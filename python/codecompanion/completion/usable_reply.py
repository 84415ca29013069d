"""Cleans up a model's reply for insertion at the cursor: no repeated code, no incomplete line, no blank suggestion.

Models write too much, repeat the code around the gap, or fall into a loop. Apart from converting the indentation style,
this module only removes text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from codecompanion.completion.families import Family
from codecompanion.formats.regex import regex

MAX_CHARS = 16_000
MAX_LINES = 60
MAX_REPEATS = 2
"""Maximum number of times a line may repeat in a row."""
MIN_KNOWN_CHARS = 6
"""Minimum length of a line that can identify a position; shorter lines such as `}` and `end` are everywhere."""

_FENCE = regex(r"\A\s*```[^\n]*\n(.*?)(?:\n```.*)?\Z", re.DOTALL)
_NO_CODE = regex(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
"""Characters that never occur in code: the model is off track, or the server sent something else."""
_INDENT = regex(r"^[ \t]+(?=\S)", re.MULTILINE)
_WORDS = regex(r"\w")
_CLOSERS = regex(r"[)\]}>\"'`;,]+\s*\Z")
_PAIRS = {")": "(", "]": "[", "}": "{"}


class Place(msgspec.Struct, frozen=True):
    """The cursor position: the text before and after it in the editor."""

    before: str
    after: str

    @property
    def line_start(self) -> str:
        """Return the line up to the cursor."""
        return self.before.rpartition("\n")[2]

    @property
    def line_rest(self) -> str:
        """Return the line from the cursor on."""
        return self.after.partition("\n")[0]


def usable(text: str, place: Place, family: Family, stop: tuple[str, ...], *, multi_line: bool, is_cut: bool) -> str:
    """Return the part of the reply that can be inserted at the cursor, or "" if there is none.

    `is_cut`: the reply reached the token limit, so its last line is incomplete.
    """
    text = _until(text[:MAX_CHARS].replace("\r\n", "\n").replace("\r", ""), (*stop, *family.tokens))
    text = _NO_CODE.split(text, maxsplit=1)[0].rstrip("\ufffd")
    if not family.fills_in:
        text = _without_fence(text)
        text = _without_start(text, place.line_start)
    if is_cut and text.count("\n") > text.startswith("\n"):
        text = text.rpartition("\n")[0]
    if not multi_line:
        text = text.partition("\n")[0]
    text = _indented_alike(text, place)
    text = _without_line_above(text, place)
    text = _before_known_lines(text, place)
    text = _on_its_line(text, place.line_rest)
    text = _without_loop(text)
    return "\n".join(text.split("\n")[:MAX_LINES]).rstrip()


def _until(text: str, marks: tuple[str, ...]) -> str:
    ends = (text.find(mark) for mark in marks if mark)
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def _without_fence(text: str) -> str:
    """Return the code inside a fenced reply, a format that chat models use; return other replies unchanged."""
    fenced = _FENCE.match(text)
    return str(fenced[1]) if fenced else text


def _without_start(text: str, line_start: str) -> str:
    """Return the text without the beginning of the cursor's line, which models without infilling tend to repeat."""
    start = line_start.strip()
    found = text.lstrip()
    return found[len(start) :] if start and _WORDS.search(start) and found.startswith(start) else text


def _indented_alike(text: str, place: Place) -> str:
    """Convert the text to the file's indentation style; leave it unchanged if the file mixes tabs and spaces."""
    around = [found[0] for side in (place.before, place.after) for found in _INDENT.finditer(side)]
    own = [found[0] for found in _INDENT.finditer(text) if found.start() or not place.line_start]
    with_tabs = all(indent.startswith("\t") for indent in around)
    if not around or not own or (not with_tabs and any("\t" in indent for indent in around)):
        return text
    width = _width(own if with_tabs else around)

    def changed(found: re.Match[str]) -> str:
        indent = found[0]
        if not found.start() and place.line_start:
            return indent
        if not with_tabs:
            return indent.replace("\t", " " * width)
        levels, rest = divmod(len(indent), width)
        return indent if "\t" in indent else "\t" * levels + " " * rest

    return _INDENT.sub(changed, text)


def _width(indents: Sequence[str]) -> int:
    """Return the spaces per indentation level: 4 if all indents are multiples of 4, else the smallest indent."""
    lengths = [len(indent) for indent in indents if "\t" not in indent and len(indent) > 1]
    return 4 if all(length % 4 == 0 for length in lengths) else min(lengths)


def _without_line_above(text: str, place: Place) -> str:
    """Return the text without a first line that only repeats the line above it."""
    first, newline, rest = text.partition("\n")
    start = place.line_start
    if start.strip() and not first.strip():  # the cursor's line was complete
        following, _, later = rest.partition("\n")
        if _is_same(following, start):
            return newline + later if later.strip() else ""
        return text
    above = place.before.split("\n")[-2:-1]
    if not above or not _is_same(start + first, above[0]):
        return text
    return "" if start.strip() else rest.removeprefix(start)


def _is_same(line: str, other: str) -> bool:
    """Return whether two lines are equal; ubiquitous lines such as `}` do not count."""
    line = line.strip()
    return line == other.strip() and len(line) >= MIN_KNOWN_CHARS and bool(_WORDS.search(line))


def _before_known_lines(text: str, place: Place) -> str:
    """Return the text up to the point where it repeats the lines below the cursor."""
    following = [line.rstrip() for line in place.after.split("\n")[1:] if line.strip()][:2]
    if not following:
        return text
    lines = text.split("\n")
    if not place.line_rest.strip() and _is_same(place.line_start + lines[0], following[0]):
        return ""
    last = max((index for index, line in enumerate(lines) if line.strip()), default=0)
    for index in range(1, last + 1):
        line = lines[index].rstrip()
        if index == last and following[0].startswith(line) and len(line.strip()) >= MIN_KNOWN_CHARS:
            return "\n".join(lines[:index])
        if line == following[0]:
            after_it = next((one.rstrip() for one in lines[index + 1 :] if one.strip()), None)
            if _is_same(line, line) or after_it in (None, *following[1:]):
                return "\n".join(lines[:index])
    return text


def _on_its_line(text: str, line_rest: str) -> str:
    """Return the text shortened to fit before the rest of the cursor's line."""
    rest = line_rest.strip()
    if not rest:
        return text
    first = text.partition("\n")[0].rstrip()
    if _CLOSERS.fullmatch(rest):
        closing = _unpaired(text, rest[0])
        return text if closing < 0 else text[:closing]
    if first.endswith(rest):
        return first[: -len(rest)]
    whole = text.rstrip()
    return whole[: -len(rest)] if whole.endswith(rest) else first


def _unpaired(text: str, closer: str) -> int:
    """Return the index at which `closer` closes a bracket opened before the text, or -1."""
    opener = _PAIRS.get(closer)
    if opener is None:
        return text.find(closer) if text.count(closer) % 2 else -1
    depth, quote, is_escaped = 0, "", False
    for index, character in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif quote:
            quote = "" if character in (quote, "\n") else quote
        elif character in "\"'`":
            quote = character
        elif character == opener:
            depth += 1
        elif character == closer:
            if depth == 0:
                return index
            depth -= 1
    return -1


def _without_loop(text: str) -> str:
    """Return the text up to the point where one or a few lines start to repeat endlessly."""
    lines = text.split("\n")
    for size in (1, 2, 3):
        for start in range(len(lines) - size * (MAX_REPEATS + 1) + 1):
            block = lines[start : start + size]
            repeats = (lines[start + size * count : start + size * (count + 1)] for count in range(1, MAX_REPEATS + 1))
            if any(map(_WORDS.search, block)) and all(block == repeat for repeat in repeats):
                return "\n".join(lines[: start + size])
    return text
