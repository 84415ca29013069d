"""Editor context as the model reads it: a line that says what it is, and its text in a fence that it cannot end.

Data, never instructions: nothing in a text, a path or a title can leave its fence or its line. What does not fit is cut
and says so. The first line begins with what the user wrote, so that the model knows what the question means by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.fencing import fenced, label_of
from codecompanion.formats.plural import counted
from codecompanion.formats.text_files import printable, split_lines
from codecompanion.model.messages import Mentioned
from codecompanion.wire.requests import EditorItem, EditorText

MIN_TOKENS = 40
"""With less room for a text not even a few lines of it fit."""
_MAX_TITLE, _MAX_NAMED = 300, 20

CountTokens = Callable[[str], int]


class Rendered(msgspec.Struct, frozen=True):
    """An item as a message: its content, and what the chat says of it."""

    content: str
    mentioned: Mentioned


class _Shown(msgspec.Struct, frozen=True):
    """A text as it is sent: the lines of it that fit, and where the first of them stands in it, 0-based."""

    text: EditorText
    body: str
    lines: int
    of: int
    start: int = 0


def opening(written: str) -> str:
    """Return how the content of an item begins."""
    return f"`{one_line(written)}`: "


def same_text(content: str, written: str) -> str:
    """Return what a content says whatever it was written for: two that say the same show the same."""
    return content.removeprefix(opening(written))


def said(item: EditorItem, why: str, short: str = "", same_as: str = "") -> Rendered:
    """Return an item of which nothing is shown, and why."""
    title = f"{one_line(item.written)} · {one_line(short or why)}"
    mentioned = Mentioned(one_line(item.written), title, same_as=same_as)
    return Rendered(f"{opening(item.written)}{one_line(why)}.", mentioned)


def render(item: EditorItem, root: Path, room: int, count: CountTokens) -> Rendered:
    """Return an item as a message that takes about `room` tokens at most; texts are taken in their order."""
    if not item.texts:
        return said(item, item.nothing or "there is nothing to show")
    shown, left_out = list[_Shown](), list[EditorText]()
    for text in item.texts:
        fitting = _fitting(text, item.keep, room, count, is_only=len(item.texts) == 1)
        if fitting is None:
            left_out.append(text)
            continue
        shown.append(fitting)
        room -= count(fitting.body) + _MAX_TITLE // 10
    if not shown:
        return said(item, "left out, because the context window has no room for it", "no room for it")
    parts = [_part(one, item.keep, root) for one in shown]
    if left_out:
        names = ", ".join(f"`{_name(text, root)}`" for text in left_out[:_MAX_NAMED])
        more = f" and {len(left_out) - _MAX_NAMED} more" if len(left_out) > _MAX_NAMED else ""
        parts.append(f"Left out, because they do not fit in the context window: {names}{more}.")
    paths = tuple(dict.fromkeys(_name(one.text, root) for one in shown if one.text.path))
    title = _title(item, shown, left_out, root)
    return Rendered(opening(item.written) + "\n".join(parts), Mentioned(one_line(item.written), title, paths))


def one_line(text: str) -> str:
    """Return a text on one line, without what is no text."""
    return " ".join(printable(text).split())[:_MAX_TITLE]


def relative(path: str, root: Path) -> str:
    """Return a path as the tools name it: from the workspace where it lies below it."""
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path


def _name(text: EditorText, root: Path) -> str:
    return one_line(relative(text.path, root) if text.path else text.title).replace("`", "'")


def _fitting(text: EditorText, keep: str, room: int, count: CountTokens, *, is_only: bool) -> _Shown | None:
    """Return a text, or its head or tail; None where it goes whole or not at all and does not fit."""
    body = printable(text.text).rstrip("\n")
    of = len(split_lines(body)) if body else 0
    if count(body) <= room:
        return _Shown(text, body, of, of)
    if room < MIN_TOKENS or (not is_only and not text.first and not text.whole):
        return None
    short = _cut(body, keep, room, count)
    lines = len(split_lines(short)) if short else 0
    return _Shown(text, short, lines, of, of - lines if keep == "tail" else 0) if lines else None


def _cut(body: str, keep: str, room: int, count: CountTokens) -> str:
    """Return so much of the head or the tail as fits, in whole lines where it has several."""
    size = len(body)
    while size > 0:
        piece = body[:size] if keep == "head" else body[-size:]
        cut = piece.rfind("\n") if keep == "head" else piece.find("\n")
        if cut > 0 and keep == "head":
            piece = piece[:cut]
        elif 0 <= cut < len(piece) - 1 and keep == "tail":
            piece = piece[cut + 1 :]
        tokens = count(piece)
        if tokens <= room:
            return piece
        size = min(size - 1, int(len(piece) * room / tokens))
    return ""


def _part(shown: _Shown, keep: str, root: Path) -> str:
    text = shown.text
    return f"{_heading(shown, keep, root)}\n{fenced(shown.body, label_of(text.path, text.language))}"


def _heading(shown: _Shown, keep: str, root: Path) -> str:
    """Return the line above a text."""
    text, whole = shown.text, shown.lines == shown.of
    title = one_line(text.title)
    parts = [f"{title} `{_name(text, root)}`".lstrip() if text.path else title]
    if text.first:
        first = text.first + shown.start
        last = first + max(0, shown.lines - 1)
        is_all = text.whole and whole
        parts.append(f"all {counted(shown.lines, 'line')}" if is_all else f"lines {first}-{last}")
    if text.unsaved:
        parts.append("with unsaved changes")
    if not whole:
        end = "first" if keep == "head" else "last"
        parts.append(f"only the {end} {shown.lines:,} of {counted(shown.of, 'line')}, because more does not fit")
    return ", ".join(parts) + ":"


def _title(item: EditorItem, shown: Sequence[_Shown], left_out: Sequence[EditorText], root: Path) -> str:
    """Return what the line in the chat says: `#{buffer} lua/foo.lua · 120 lines`."""
    lines, of = sum(one.lines for one in shown), sum(one.of for one in shown)
    only = shown[0] if len(item.texts) == 1 else None
    files = len([one for one in shown if one.text.path])
    if only is not None and only.text.path:
        name = _name(only.text, root)
        where = f":{only.text.first}-{only.text.first + only.of - 1}" if only.text.first and not only.text.whole else ""
        what = "" if name in item.written else f" {name}{where}"
    elif not files:
        what = ""
    else:
        what = f" {files} of {counted(len(item.texts), 'file')}" if left_out else f" {counted(files, 'file')}"
    size = f"cut, {lines:,} of {counted(of, 'line')}" if lines < of else counted(lines, "line")
    return f"{one_line(item.written)}{what} · {size}"
