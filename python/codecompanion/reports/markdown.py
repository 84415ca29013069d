"""Formats figures and tables of reports as Markdown that is also readable as plain text.

Tables are padded and never wider than the window; if figures leave no room, they become lists. Token counts look as in
the meter (R-303).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo

import msgspec

from codecompanion.formats.cutting import cells, cut_cells_at_word, squeeze_cells

PRICE_UNKNOWN = "price unknown"
INCLUDED = "included"
LOCAL = "local"
"""Words used instead of a price if a subscription pays, or the user's own servers answer."""
MIN_LAST, MIN_NAME = 12, 12
"""Minimum cells of the last column and of a name; a name also keeps at least a third of its width."""
MAX_ITEM_ROWS = 4
"""Maximum screen rows of a list item."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The display settings of a report: window columns, time zone, name of the price list; `ascii`: no Braille."""

    width: int = 80
    zone: tzinfo = UTC
    price_table: str = ""
    ascii: bool = False


def tokens_text(tokens: int) -> str:
    """Return a count as the meter shows it: `999`, `1.2k`, `35.8k`, `1.0M`."""
    if abs(tokens) < 1000:
        return str(tokens)
    if abs(tokens) < 999_950:
        return f"{tokens / 1000:.1f}k"
    return f"{tokens / 1_000_000:.1f}M"


def usd_text(usd: float | None) -> str:
    """Return an amount in US dollars, small amounts with more digits; "price unknown" for None (R-359)."""
    if usd is None:
        return PRICE_UNKNOWN
    sign, amount = ("-" if usd < 0 else ""), abs(usd)
    if 0 < amount < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${amount:,.4f}" if 0 < amount < 0.1 else f"{sign}${amount:,.2f}"


def share_text(part: float, whole: float) -> str:
    """Return a share as a whole percentage, or "" if the whole is zero."""
    return f"{round(100 * part / whole)} %" if whole else ""


def duration_text(ms: float) -> str:
    """Return a duration: `320 ms`, `4.2 s`, `3 min 5 s`."""
    if ms < 1000:
        return f"{round(ms)} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    return f"{minutes} min {seconds} s"


def expected_text(seconds: float) -> str:
    """Return an estimated duration: `20 s`, `3 min`."""
    return f"{round(seconds)} s" if seconds < 90 else f"{round(seconds / 60)} min"


def clock_text(ts: float, page: Page) -> str:
    """Return the day and time of an event."""
    return datetime.fromtimestamp(ts, page.zone).strftime("%Y-%m-%d %H:%M")


def one_line(text: str) -> str:
    """Return a string on one line, safe inside a table cell or a heading."""
    return " ".join(text.split()).replace("|", "¦").replace("`", "'")


def page_text(lines: Iterable[str]) -> str:
    """Return the lines as one string, with at most one empty line in a row."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    return "\n".join(kept)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int, right: str = "") -> list[str]:
    """Return a table; `right` has an `r` for every right-aligned column (`" rr"`), which has figures.

    If it is too wide, the last column is truncated, then names are shortened in the middle. Figures are never
    shortened: if they leave no room, each row becomes a list item.
    """
    if not rows:
        return []
    columns = len(head)
    sides = ["r" if i < len(right) and right[i] == "r" else "l" for i in range(columns)]
    natural = [max(cells(line[i]) for line in (head, *rows)) for i in range(columns)]
    sizes = _fitted(natural, sides, width - 3 * columns - 1)
    if sizes is None:
        return [_item(head, row, width) for row in rows]
    rule = [("-" * (size - 1) + ":") if side == "r" else "-" * size for size, side in zip(sizes, sides, strict=True)]
    return [_row(line, sizes, sides) for line in (head, rule, *rows)]


def _fitted(natural: Sequence[int], sides: Sequence[str], room: int) -> list[int] | None:
    """Return the widths of the columns within `room` cells, or None if they do not fit."""
    sizes, last = list(natural), len(natural) - 1
    for column in sorted(range(len(sizes)), key=lambda i: (i != last, -natural[i])):
        least = min(natural[column], MIN_LAST if column == last else max(MIN_NAME, natural[column] // 3))
        if sides[column] == "l":
            sizes[column] = max(least, min(sizes[column], room - sum(sizes) + sizes[column]))
    return sizes if sum(sizes) <= room else None


def _item(head: Sequence[str], row: Sequence[str], width: int) -> str:
    """Return a row as a list item: its name, then each figure with its heading."""
    figures = [f"{name} {text}".strip() for name, text in zip(head[1:], row[1:], strict=True) if text not in ("", "-")]
    name = row[0] if any(not c.isdigit() for c in row[0]) else f"{head[0]} {row[0]}"
    return cut_cells_at_word(f"- {name}: {', '.join(figures)}", MAX_ITEM_ROWS * width)


def _row(line: Sequence[str], sizes: Sequence[int], sides: Sequence[str]) -> str:
    padded = []
    for column, (text, size, side) in enumerate(zip(line, sizes, sides, strict=True)):
        shown = cut_cells_at_word(text, size) if column == len(line) - 1 else squeeze_cells(text, size)
        gap = " " * (size - cells(shown))
        padded.append(gap + shown if side == "r" else shown + gap)
    return f"| {' | '.join(padded)} |"
