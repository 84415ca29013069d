"""Finds and replaces exact, unique text, with errors that tell the model how to fix the call. Pure.

Line endings do not have to match: the search treats them all as Unix line endings, and the file keeps its own, even if
they are mixed.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from difflib import SequenceMatcher, get_close_matches

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats.regex import regex
from codecompanion.formats.text_files import TextFile, printable, split_lines

_NUMBERED = regex(r"^ *\d+\t", re.MULTILINE)
_MAX_SHOWN_LINES = 12
_MAX_SHOWN_PLACES = 10
_MAX_CANDIDATES = 400


class Edited(msgspec.Struct, frozen=True):
    """An edited file, and the 1-based first and last lines of each replacement's new text."""

    file: TextFile
    places: tuple[tuple[int, int], ...]


def replace_text(file: TextFile, old: str, new: str, replace_all: bool = False) -> Edited:
    """Replace `old`, which must occur exactly once unless `replace_all` is true, with `new`.

    If the text is not found, line numbers copied from `read_file` at the start of every line are stripped.

    Raises:
        ToolError: `old` is not found (quotes the nearest text), is ambiguous (lists the lines), or equals `new`.
    """
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if old == new:
        raise ToolError("old_text and new_text are identical; nothing was changed.")
    text = file.text.replace("\r\n", "\n")
    starts = list(_occurrences(text, old))
    if not starts and _all_numbered(old):
        old = _NUMBERED.sub("", old)
        new = _NUMBERED.sub("", new) if _all_numbered(new) else new
        starts = list(_occurrences(text, old))
    if not starts:
        raise ToolError(_not_found(text, old))
    if len(starts) > 1 and not replace_all:
        raise ToolError(_ambiguous(text, starts))
    return Edited(
        msgspec.structs.replace(file, text=_spliced(file, text, starts, old, new)), _places(text, starts, old, new)
    )


def _occurrences(text: str, old: str) -> Iterator[int]:
    if not old:
        if not text:
            yield 0
            return
        raise ToolError("old_text is empty but the file is not; quote the lines to change, or adjacent lines.")
    position = text.find(old)
    while position >= 0:
        yield position
        position = text.find(old, position + len(old))


def _spliced(file: TextFile, text: str, starts: list[int], old: str, new: str) -> str:
    """Return the original text with the spans found in `text` replaced, and everything else unchanged byte for byte."""
    breaks = [match.start() - index for index, match in enumerate(re.finditer("\r\n", file.text))]

    def original(position: int) -> int:
        return position + bisect_left(breaks, position)

    pieces, done = [], 0
    for start in starts:
        begin, end = original(start), original(start + len(old))
        replaced = file.text[begin:end]
        newline = file.newline
        if "\n" in replaced:
            newline = "\r\n" if "\r\n" in replaced else "\n"
        pieces += [file.text[done:begin], new.replace("\n", newline)]
        done = end
    return "".join((*pieces, file.text[done:]))


def _places(text: str, starts: list[int], old: str, new: str) -> tuple[tuple[int, int], ...]:
    height = new.count("\n") + (not new.endswith("\n"))
    places, line, done, shift = [], 1, 0, new.count("\n") - old.count("\n")
    for index, start in enumerate(starts):
        line += text.count("\n", done, start)
        done = start
        first = line + index * shift
        places.append((first, max(first, first + height - 1)))
    return tuple(places)


def _all_numbered(text: str) -> bool:
    lines = split_lines(text)
    return bool(lines) and all(_NUMBERED.match(line) for line in lines)


def _ambiguous(text: str, starts: list[int]) -> str:
    lines = [str(text.count("\n", 0, start) + 1) for start in starts[:_MAX_SHOWN_PLACES]]
    more = f" and {len(starts) - len(lines)} more" if len(starts) > len(lines) else ""
    return (
        f"old_text occurs {len(starts)} times, at lines {', '.join(lines)}{more}; nothing was changed."
        " Add the lines before or after the one you mean, or set replace_all."
    )


def _not_found(text: str, old: str) -> str:
    """Return the error message, quoting the lines that differ only in whitespace or are most similar."""
    wanted = [line.strip() for line in split_lines(old)]
    lines = split_lines(text)
    stripped = [line.strip() for line in lines]
    head = "old_text was not found in the file; nothing was changed."
    if not any(wanted):
        return f"{head} It contains only whitespace; quote a line with text."
    same = [at for at in range(len(lines)) if stripped[at : at + len(wanted)] == wanted]
    if same:
        places = ", ".join(_range(at, len(wanted)) for at in same[:_MAX_SHOWN_PLACES])
        return (
            f"{head} Only whitespace differs (tabs, spaces, or at line ends) from {places}."
            f" Use the file's own text:\n{_quote(lines, same[0], len(wanted))}"
        )
    at = _most_similar(stripped, wanted)
    if at is None:
        return f"{head} The file contains nothing similar; read it again."
    return f"{head} The most similar text is {_range(at, len(wanted))}:\n{_quote(lines, at, len(wanted))}"


def _most_similar(lines: list[str], wanted: list[str]) -> int | None:
    """Return the first line of the range that is most similar to the wanted lines, or None if nothing is similar."""
    anchors: dict[int, int] = {}
    exact: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        if line:
            exact.setdefault(line, []).append(offset)
    for at, line in enumerate(lines):
        for offset in exact.get(line, ())[:3]:
            anchors[max(0, at - offset)] = anchors.get(max(0, at - offset), 0) + 1
    if not anchors:
        longest = max(range(len(wanted)), key=lambda offset: len(wanted[offset]))
        some = list(dict.fromkeys(line for line in lines if line))[:2000]
        near = get_close_matches(wanted[longest][:500], [line[:500] for line in some], n=1, cutoff=0.6)
        found = [at for at, line in enumerate(lines) if near and line[:500] == near[0]]
        return max(0, found[0] - longest) if found else None
    best = sorted(anchors, key=lambda at: -anchors[at])[:_MAX_CANDIDATES]
    most = anchors[best[0]]
    close = [at for at in best if anchors[at] == most][:20]
    target = "\n".join(wanted)[:2000]
    return max(
        close,
        key=lambda at: SequenceMatcher(None, "\n".join(lines[at : at + len(wanted)])[:2000], target).quick_ratio(),
    )


def _range(at: int, count: int) -> str:
    return f"line {at + 1}" if count == 1 else f"lines {at + 1} to {at + count}"


def _quote(lines: list[str], at: int, count: int) -> str:
    shown = lines[at : at + min(count, _MAX_SHOWN_LINES)]
    more = ["…"] if count > len(shown) else []
    return printable("\n".join([f"{at + 1 + index}\t{line[:500]}" for index, line in enumerate(shown)] + more))
