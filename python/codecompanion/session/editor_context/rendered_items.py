"""Renders editor context for the model: a heading line, and the text in a fenced code block that the text cannot end.

The content is data, never instructions: nothing in a text, path or title can leave its fence or its line. Text that
does not fit is truncated, with a note. The first line begins with the mention as the user wrote it, so that the model
can match it with the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats.cutting import cut_line
from codecompanion.formats.fencing import fenced, label_of
from codecompanion.formats.plural import counted
from codecompanion.formats.text_files import printable, split_lines
from codecompanion.model.mentioned import Mentioned, Reference, ShownLines
from codecompanion.model.messages import Message
from codecompanion.session.editor_context.already_sent import Occurrence, fingerprint, has_lines
from codecompanion.wire.requests import EditorItem, EditorText

MIN_TOKENS = 40
"""Minimum room for text in tokens; with less, not even a few lines fit."""
_MAX_TITLE, _MAX_NAMED, _MAX_QUOTED = 300, 20, 80
_REMOVED = "since removed from context"
NOTHING_NAMED: Mapping[int, Occurrence] = {}

CountTokens = Callable[[str], int]


class Rendered(msgspec.Struct, frozen=True):
    """An item as a message: its content, its line in the chat, and references to the parts sent elsewhere.

    `is_whole`: no part is truncated, left out or only referred to.
    """

    content: str
    mentioned: Mentioned
    references: tuple[Reference, ...] = ()
    is_whole: bool = False


class _Shown(msgspec.Struct, frozen=True):
    """Text as sent: the lines that fit, and the 0-based position of the first of these lines in the whole text."""

    text: EditorText
    body: str
    lines: int
    of: int
    start: int = 0


def opening(written: str) -> str:
    """Return the beginning of an item's content."""
    return f"`{one_line(written)}`: "


def render_absent(item: EditorItem, why: str, short: str = "") -> Rendered:
    """Return an item without content, with the reason for its absence."""
    title = f"{one_line(item.written)} · {one_line(short or why)}"
    return Rendered(f"{opening(item.written)}{one_line(why)}.", Mentioned(one_line(item.written), title))


def unchanged(item: EditorItem, known: Message) -> Rendered:
    """Return a reference to an earlier message, for an item with unchanged content."""
    other = "" if known.mentioned is None else known.mentioned.written
    name = "" if other == one_line(item.written) else f" as `{other}`"
    found = render_absent(item, f"unchanged since it was sent{name} above", "already sent, unchanged")
    gone = f"{opening(item.written)}the same as sent{name} above; {_REMOVED}, ask the user for it if needed."
    return msgspec.structs.replace(found, references=(Reference((known.id,), found.content, gone),))


def render_duplicate(item: EditorItem, other: str, other_id: str) -> Rendered:
    """Return a reference to another item in the same message, for an item with identical content."""
    found = render_absent(item, f"the same as `{other}`", f"the same as {other}")
    same = f"{opening(item.written)}the same as `{other}` of the same message"
    gone = f"{same}; {_REMOVED}, ask the user for it if needed."
    return msgspec.structs.replace(found, references=(Reference((other_id,), found.content, gone),))


def render(
    item: EditorItem, root: Path, room: int, count: CountTokens, named: Mapping[int, Occurrence] = NOTHING_NAMED
) -> Rendered:
    """Return an item as a message of at most about `room` tokens; its texts are added in order.

    `named`: texts that are already in the request, by their index.
    """
    if not item.texts:
        return render_absent(item, item.nothing or "there is nothing to show")
    shown, left_out, parts, references = list[_Shown](), list[EditorText](), list[str](), list[Reference]()
    for at, text in enumerate(item.texts):
        if at in named:
            references.append(_reference(text, named[at], root))
            parts.append(references[-1].text)
            continue
        fitting = _fitting(text, item.keep, room, count, is_only=len(item.texts) == 1)
        if fitting is None:
            left_out.append(text)
            continue
        shown.append(fitting)
        parts.append(_part(fitting, item.keep, root))
        room -= count(fitting.body) + _MAX_TITLE // 10
    if not parts:
        return render_absent(item, "left out: no room in the context window", "no room for it")
    if left_out:
        names = ", ".join(f"`{name_of(text, root)}`" for text in left_out[:_MAX_NAMED])
        more = f" and {len(left_out) - _MAX_NAMED} more" if len(left_out) > _MAX_NAMED else ""
        parts.append(f"Left out: no room in the context window: {names}{more}.")
    is_whole = not (named or left_out) and all(one.lines == one.of for one in shown)
    mentioned = Mentioned(
        one_line(item.written),
        _title(item, shown, left_out, named, root),
        tuple(dict.fromkeys(name_of(one.text, root) for one in shown if one.text.path)),
        tuple(_lines_of(one, root) for one in shown),
        fingerprint(item) if is_whole else "",
    )
    return Rendered(opening(item.written) + "\n".join(parts), mentioned, tuple(references), is_whole)


def _lines_of(shown: _Shown, root: Path) -> ShownLines:
    text = shown.text
    if not has_lines(text) or text.partial:
        return ShownLines()
    return ShownLines(name_of(text, root), text.first + shown.start, text.whole and shown.lines == shown.of)


def _reference(text: EditorText, occurrence: Occurrence, root: Path) -> Reference:
    """Return the sentence that replaces the text; a part of a file is identified by its first and last line."""
    body = printable(text.text).rstrip("\n")
    lines = split_lines(body)
    heading = _heading(_Shown(text, body, len(lines), len(lines)), "head", root).removesuffix(":")
    ends = [cut_line(line.replace("`", "'"), _MAX_QUOTED) for line in (lines[0], lines[-1])]
    quoted = "" if text.whole else f", from `{ends[0]}` to `{ends[1]}`"
    place = "it is in this message" if occurrence.beside else "it is above"
    was = "it was in the same message" if occurrence.beside else "it was above"
    begin = f"{heading}{quoted}: not sent again, because"
    gone = f"{begin} {was}, {occurrence.where}; {_REMOVED}, read the file if needed."
    return Reference(occurrence.ids, f"{begin} {place}, {occurrence.where}.", gone)


def one_line(text: str) -> str:
    """Return a string as one line, without unprintable characters."""
    return " ".join(printable(text).split())[:_MAX_TITLE]


def relative(path: str, root: Path) -> str:
    """Return a path as the tools show it: relative to the workspace if it is inside."""
    whole = Path(path)
    return whole.relative_to(root).as_posix() if whole.is_relative_to(root) else path


def name_of(text: EditorText, root: Path) -> str:
    """Return the name of a text: the path of its file as the tools show it, or its title."""
    return one_line(relative(text.path, root) if text.path else text.title).replace("`", "'")


def _fitting(text: EditorText, keep: str, room: int, count: CountTokens, *, is_only: bool) -> _Shown | None:
    """Return the text, or as much of its head or tail as fits; None if nothing fits or the text cannot be truncated."""
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
    """Return as much of the head or the tail as fits, in whole lines if it contains several."""
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
    """Return the heading line above the text."""
    text, whole = shown.text, shown.lines == shown.of
    title = one_line(text.title)
    parts = [f"{title} `{name_of(text, root)}`".lstrip() if text.path else title]
    if text.first:
        first = text.first + shown.start
        last = first + max(0, shown.lines - 1)
        is_all = text.whole and whole
        parts.append(f"all {counted(shown.lines, 'line')}" if is_all else f"lines {first}-{last}")
    if text.unsaved:
        parts.append("with unsaved changes")
    if not whole:
        end = "first" if keep == "head" else "last"
        parts.append(f"only the {end} {shown.lines:,} of {counted(shown.of, 'line')} fit")
    return ", ".join(parts) + ":"


def _title(
    item: EditorItem,
    shown: Sequence[_Shown],
    left_out: Sequence[EditorText],
    named: Mapping[int, Occurrence],
    root: Path,
) -> str:
    """Return the line shown in the chat, such as `#{buffer} lua/foo.lua · 120 lines`."""
    lines, of = sum(one.lines for one in shown), sum(one.of for one in shown)
    only = item.texts[0] if len(item.texts) == 1 else None
    files = len([one for one in shown if one.text.path]) + len(named)
    if only is not None and only.path:
        name, count = name_of(only, root), len(split_lines(printable(only.text).rstrip("\n")))
        where = f":{only.first}-{only.first + count - 1}" if only.first and not only.whole else ""
        what = "" if name in item.written else f" {name}{where}"
    elif not files:
        what = ""
    else:
        what = f" {files} of {counted(len(item.texts), 'file')}" if left_out else f" {counted(files, 'file')}"
    sizes = [f"cut, {lines:,} of {counted(of, 'line')}" if lines < of else counted(lines, "line")] if shown else []
    if named:
        short = {_already(one) for one in named.values()}
        how = short.pop() if len(short) == 1 else "already sent"
        sizes.append(how if not shown else f"{counted(len(named), 'file')} {how}")
    return f"{one_line(item.written)}{what} · {', '.join(sizes)}"


def _already(occurrence: Occurrence) -> str:
    return occurrence.short if occurrence.beside else f"already sent, {occurrence.short}"
