"""Draws the chart of `/cost`: tokens of each request, its size without management, limits, and marks.

    window ⠂⠂⠂⠂⠂⠂⠂⡠⠔⠂⠂     ← one line for each limit within the chart
           ⢀⣀⣠⣴⠊⢀⣀⣠⣴      ← the area is the size sent, the line the size without management
         0 ⣿⣿⣿⣿⣿⣿⣿⣿⣿
               ✂    ◆      ← changes before the request above

If there are more requests than columns, each column shows the largest of several. The line may leave the chart at the
top, so that requests too large to be sent do not flatten the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import msgspec

from codecompanion.formats.cutting import cells
from codecompanion.reports.context_sizes import ContextSize, Mark
from codecompanion.reports.drawn.dots import Dots, Span
from codecompanion.reports.markdown import tokens_text

NARROW = 60
LABEL_CELLS_NARROW, LABEL_CELLS = 7, 14
ROWS_NARROW, ROWS = 8, 12
MAX_CELLS_A_REQUEST = 4
MIN_BARS = 3
MIN_FILL = 0.5
"""Minimum share of the window that a request must fill for a chart, unless context management changed something."""
ROOM_ABOVE = 2.0
"""Maximum of the vertical axis, as a multiple of the largest size sent."""
MARGIN = 1.02
"""Factor for the space above the highest value, without which a limit at the very top would not show."""
_SIGNS: dict[Mark, str] = {"edit": "✂", "compaction": "◆", "undo": "↶"}
_ASCII_SIGNS: dict[Mark, str] = {"edit": "e", "compaction": "C", "undo": "u"}
_FRONT: tuple[Mark, ...] = ("compaction", "edit", "undo")
"""Marks by priority: if a cell has several, the first of these is shown."""
_LEGEND: tuple[Mark, ...] = ("edit", "compaction", "undo")
_INK_OF: dict[Mark, str] = {"edit": "edit", "compaction": "compaction", "undo": "limit"}


class ChartLine(msgspec.Struct, frozen=True):
    """One line of the chart, with its colours."""

    text: str
    spans: tuple[Span, ...] = ()


class _Bin(msgspec.Struct, frozen=True):
    """A column of the chart: the largest of its requests, and the changes before any of them."""

    sent: int
    without: int
    marks: frozenset[Mark]


class _Look(msgspec.Struct, frozen=True):
    """The layout of the chart: `label` cells left of the axis, `across` dots per cell."""

    width: int
    label: int
    rows: int
    ascii: bool

    @property
    def across(self) -> int:
        return 1 if self.ascii else 2

    @property
    def cells(self) -> int:
        return self.width - self.label - 1

    @property
    def margin(self) -> str:
        return " " * (self.label + 1)

    @property
    def signs(self) -> dict[Mark, str]:
        return _ASCII_SIGNS if self.ascii else _SIGNS


def is_worth_drawing(sizes: Sequence[ContextSize]) -> bool:
    """Return whether a chart shows more than a block of low bars: changes, or requests that come close to a limit."""
    return len(sizes) >= MIN_BARS and any(
        size.marks or size.missing or size.sent >= MIN_FILL * size.window > 0 for size in sizes
    )


def size_chart(sizes: Sequence[ContextSize], width: int, *, ascii: bool = False) -> list[ChartLine]:
    """Return the chart of one or more requests, at most `width` cells wide; `width` must be at least 40."""
    narrow = width < NARROW
    label, rows = (LABEL_CELLS_NARROW, ROWS_NARROW) if narrow else (LABEL_CELLS, ROWS)
    look = _Look(width, label, rows, ascii)
    bins, step = _bins(sizes, look.cells, look.across)
    dots = Dots(-(-len(bins) * step // look.across), rows, ascii=ascii)
    limits = _limits(sizes[-1])
    top = _top(bins, [tokens for _, tokens in limits])

    def level(tokens: float) -> int:
        return round(tokens / top * dots.height)

    _draw(dots, bins, step, level, limits)
    labels = _labels(limits, top, level, look)
    named = zip(reversed(range(rows)), dots.lines(), strict=True)
    lines = [_labelled(labels.get(row, ""), look, *line) for row, line in named]
    numbers = _numbers(len(sizes), dots.width // look.across, look)
    return [*lines, *_mark_line(bins, step, look), numbers, *_legend(sizes, bins, look, labels.values())]


def _bins(sizes: Sequence[ContextSize], cells: int, across: int) -> tuple[list[_Bin], int]:
    """Return the columns and their width in dots, rounded down to whole cells if possible, to align the marks below."""
    room = cells * across
    each = -(-len(sizes) // room)
    groups = [sizes[at : at + each] for at in range(0, len(sizes), each)]
    bins = [
        _Bin(
            max(size.sent for size in group),
            max(size.without for size in group),
            frozenset(mark for size in group for mark in size.marks),
        )
        for group in groups
    ]
    step = max(1, min(MAX_CELLS_A_REQUEST * across, room // len(bins)))
    return bins, step - step % across if step > across else step


def _limits(newest: ContextSize) -> list[tuple[str, int]]:
    """Return the limits of the newest request by name, most important first."""
    named = (("window", newest.window), ("compact", newest.compact_at), ("edit", newest.edit_at))
    return [(name, tokens) for name, tokens in named if tokens]


def _top(bins: Sequence[_Bin], limits: Sequence[int]) -> float:
    """Return the number of tokens at the upper edge."""
    sent, without = max(one.sent for one in bins), max(one.without for one in bins)
    highest = max([sent, *(limit for limit in limits if limit <= ROOM_ABOVE * sent)])
    return MARGIN * max(highest, min(without, ROOM_ABOVE * highest), 1)


def _draw(
    dots: Dots, bins: Sequence[_Bin], step: int, level: Callable[[float], int], limits: Sequence[tuple[str, int]]
) -> None:
    for _, limit in limits:
        for x in range(0, dots.width, dots.across):
            dots.dot(x, level(limit) - 1, "limit")
    before = 0
    for at, one in enumerate(bins):
        height, line = max(1, level(one.sent)), level(one.without)
        for x in range(at * step, (at + 1) * step):
            dots.column(x, 0, height, "sent")
            if one.without > one.sent or before > height:
                low, high = sorted((line - 1, max(before, height) if before else line - 1))
                dots.column(x, max(height, low), high + 1, "without")
            before = line - 1 if one.without > one.sent else 0
            if line > dots.height and x % 4 == 0:
                dots.dot(x, dots.height - 1, "without")


def _labels(
    limits: Sequence[tuple[str, int]], top: float, level: Callable[[float], int], look: _Look
) -> dict[int, str]:
    """Return the label of each row, from the bottom."""
    up = 1 if look.ascii else 4
    labels = {0: "0"}
    for name, tokens in limits:
        row = (level(tokens) - 1) // up
        if 0 < row < look.rows:
            said = name if look.label == LABEL_CELLS_NARROW else f"{name} {tokens_text(tokens)}"
            labels.setdefault(row, said)
    labels.setdefault(look.rows - 1, tokens_text(round(top / MARGIN)))
    return labels


def _labelled(label: str, look: _Look, text: str, spans: Sequence[Span]) -> ChartLine:
    before = f"{label:>{look.label}} "
    moved = tuple(Span(span.first + len(before), span.end + len(before), span.ink) for span in spans)
    colour = (Span(0, len(before), "limit"),) if label else ()
    return ChartLine((before + text).rstrip(), (*colour, *moved))


def _mark_line(bins: Sequence[_Bin], step: int, look: _Look) -> Iterator[ChartLine]:
    """Yield the line with a sign below each request preceded by a change, if there are any changes."""
    cells: dict[int, set[Mark]] = {}
    for at, one in enumerate(bins):
        if one.marks:
            cells.setdefault(at * step // look.across, set()).update(one.marks)
    if not cells:
        return
    text, spans = look.margin, list[Span]()
    for cell in range(max(cells) + 1):
        mark = next((mark for mark in _FRONT if mark in cells.get(cell, ())), None)
        first = len(text.encode())
        text += look.signs[mark] if mark else " "
        if mark:
            spans.append(Span(first, len(text.encode()), _INK_OF[mark]))
    yield ChartLine(text, tuple(spans))


def _numbers(requests: int, cells: int, look: _Look) -> ChartLine:
    """Return the line with the numbers of the requests."""
    last = str(requests)
    gap = cells - 1 - len(last)
    text = look.margin + ("1" if requests == 1 else f"1{' ' * max(1, gap)}{last}")
    return ChartLine(text, (Span(0, len(text), "limit"),))


def _legend(
    sizes: Sequence[ContextSize], bins: Sequence[_Bin], look: _Look, labels: Collection[str]
) -> Iterator[ChartLine]:
    """Yield the legend of the signs used, without a figure that already labels the axis."""
    there = {mark for one in bins for mark in one.marks}
    most = max(one.sent for one in bins), max(one.without for one in bins)
    largest = tokens_text(most[0])
    words = [("#" if look.ascii else "⣿", "sent" if largest in labels else f"sent, up to {largest}", "sent")]
    if any(one.without > one.sent for one in bins):
        said = "without" if look.label == LABEL_CELLS_NARROW else "without management"
        words.append(("*" if look.ascii else "⠒", f"{said}, up to {tokens_text(most[1])}", "without"))
    marks: list[tuple[str, str, str]] = [(look.signs[mark], mark, _INK_OF[mark]) for mark in _LEGEND if mark in there]
    together = _legend_line(words, look)
    if look.width >= NARROW and cells(together.text) <= look.width:
        yield together
    else:
        yield from (_legend_line([word], look) for word in words)
    if marks:
        yield _legend_line(marks, look)
    each = -(-len(sizes) // len(bins))
    if each > 1:
        text = f"{look.margin}each column: the largest of {each}"
        yield ChartLine(text, (Span(0, len(text), "limit"),))


def _legend_line(words: Sequence[tuple[str, str, str]], look: _Look) -> ChartLine:
    text, spans = look.margin, list[Span]()
    for sign, meaning, ink in words:
        first = len(text.encode())
        text += sign
        spans.append(Span(first, len(text.encode()), ink))
        said = len(text.encode())
        text += f" {meaning}"
        spans.append(Span(said, len(text.encode()), "limit"))
        text += "   "
    return ChartLine(text.rstrip(), tuple(spans))
