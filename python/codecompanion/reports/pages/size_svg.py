"""Draws one small chart of a replay: the size of each request under one policy, and without management.

All charts of a session have the same axes, so that they can be compared. The area is the size sent, the thin line the
size without management, which may leave the chart at the top. Signs on and below the curve differ in shape, and the
chart is described in words for screen readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from codecompanion.reports.markdown import tokens_text
from codecompanion.reports.pages.html import escaped

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 14, 30
MAX_POINTS = 320
"""Maximum number of points, more than the chart's width in pixels; with more requests, each point is the largest of
several.
"""
ROOM_ABOVE = 2.0


class Point(msgspec.Struct, frozen=True):
    """One request, or the largest of several: its tokens, and the changes before it."""

    tokens: int
    edits: int = 0
    compactions: int = 0
    faults: int = 0


class Scale(msgspec.Struct, frozen=True):
    """The axes of all charts of one session: number of requests, tokens at the upper edge."""

    requests: int
    top: int
    window: int

    def x(self, request: float) -> float:
        """Return the x position of a request (0-based)."""
        share = request / (self.requests - 1) if self.requests > 1 else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, tokens: float) -> float:
        """Return the y position of a size."""
        return round(TOP + (1 - tokens / self.top) * (HEIGHT - TOP - BOTTOM), 1)


def scale_of(walks: Sequence[Sequence[Point]], unmanaged: Sequence[Point], window: int) -> Scale:
    """Return the axes that fit all charts: up to the largest size sent, and the window if it is near."""
    managed = max((point.tokens for walk in walks for point in walk), default=0)
    whole = max((point.tokens for point in unmanaged), default=0)
    highest = max(managed or whole, window if window <= ROOM_ABOVE * max(managed, whole) else 0)
    top = max(highest, min(whole, ROOM_ABOVE * highest), 1)
    return Scale(max([len(unmanaged), 1, *(len(walk) for walk in walks)]), round(1.04 * top), window)


def size_svg(name: str, points: Sequence[Point], unmanaged: Sequence[Point], scale: Scale, *, key: str) -> str:
    """Return the chart as SVG; `key` must be unique in the page. `unmanaged` is empty if `points` are unmanaged."""
    shapes = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="{key}-t" aria-describedby="{key}-d">',
        f'<title id="{key}-t">{escaped(name)}: tokens of each request</title>',
        f'<desc id="{key}-d">{escaped(_in_words(points, scale))}</desc>',
        f'<clipPath id="{key}-c"><rect x="{LEFT}" y="{TOP - 4}" width="{WIDTH - LEFT - RIGHT}"'
        f' height="{HEIGHT - TOP - BOTTOM + 4}"/></clipPath>',
        *_axes(scale),
        f'<g clip-path="url(#{key}-c)">',
        *_curves(points, unmanaged, scale),
        "</g>",
        *_off_chart(points, scale),
        *_signs(points, scale),
        "</svg>",
    ]
    return "\n".join(shapes) + "\n"


def _in_words(points: Sequence[Point], scale: Scale) -> str:
    if not points:
        return "No request."
    peak = max(point.tokens for point in points)
    edits, compactions = sum(point.edits for point in points), sum(point.compactions for point in points)
    return (
        f"{len(points)} requests, from {tokens_text(points[0].tokens)} to {tokens_text(points[-1].tokens)} tokens, at"
        f" most {tokens_text(peak)} of a window of {tokens_text(scale.window)}; edits: {edits},"
        f" compactions: {compactions}, faults: {sum(point.faults for point in points)}."
    )


def _axes(scale: Scale) -> Iterator[str]:
    ticks = [0, *(at for at in _round_sizes(scale.top) if not (0 <= abs(at - scale.window) < scale.top / 12))]
    for tokens in ticks:
        y = scale.y(tokens)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5}" text-anchor="end">{_short(tokens)}</text>'
    if scale.window <= scale.top:
        y = scale.y(scale.window)
        yield f'<line class="window" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5}" text-anchor="end">{_short(scale.window)}</text>'
        yield f'<text class="limit" x="{LEFT + 4}" y="{y - 4}">window</text>'
    for request, anchor in ((1, "start"), (scale.requests, "end")):
        if request == 1 or scale.requests > 1:
            x = scale.x(request - 1) if scale.requests > 1 else LEFT
            yield f'<text class="tick" x="{x}" y="{HEIGHT - 4}" text-anchor="{anchor}">{request}</text>'
    if scale.requests > 1:
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield f'<text class="tick" x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">requests</text>'


def _short(tokens: int) -> str:
    return tokens_text(tokens).replace(".0k", "k").replace(".0M", "M")


def _round_sizes(top: int) -> list[int]:
    """Return two to four round numbers below the upper edge."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if top / (size * factor) < 5:
                return [size * factor * at for at in range(1, int(top / (size * factor)) + 1)]
        size *= 10


def _curves(points: Sequence[Point], unmanaged: Sequence[Point], scale: Scale) -> Iterator[str]:
    if points:
        xs, line = _line(points, scale)
        base = scale.y(0)
        yield f'<path class="area" d="M{xs[0]},{base} L{line} L{xs[-1]},{base} Z"/>'
        yield f'<path class="sent" d="M{line}"/>'
    if unmanaged:
        yield f'<path class="ghost" d="M{_line(unmanaged, scale)[1]}"/>'


def _off_chart(points: Sequence[Point], scale: Scale) -> Iterator[str]:
    """Yield the peak of a curve that leaves the chart at the top."""
    first = next((at for at, point in enumerate(points) if point.tokens > scale.top), None)
    if first is not None:
        x = max(LEFT + 90, scale.x(first)) - 8
        peak = _short(max(point.tokens for point in points))
        yield f'<text class="limit" x="{x}" y="{TOP + 6}" text-anchor="end">up to {peak} ↑</text>'


def _line(points: Sequence[Point], scale: Scale) -> tuple[list[float], str]:
    each = -(-len(points) // MAX_POINTS)
    places = [(at, max(point.tokens for point in points[at : at + each])) for at in range(0, len(points), each)]
    if len(points) == 1:
        width = (WIDTH - LEFT - RIGHT) / 2
        y = scale.y(points[0].tokens)
        return [LEFT, LEFT + width], f"{LEFT},{y} {LEFT + width},{y}"
    xs = [scale.x(min(at + each, len(points)) - 1 if at else 0) for at, _ in places]
    return xs, " ".join(f"{x},{scale.y(tokens)}" for x, (_, tokens) in zip(xs, places, strict=True))


def _signs(points: Sequence[Point], scale: Scale) -> Iterator[str]:
    """Yield a tick below the axis for each edit, a diamond on it for a compaction, a cross above it for a fault."""
    base = HEIGHT - BOTTOM
    kinds: tuple[tuple[Callable[[Point], int], Callable[[float], str]], ...] = (
        (lambda point: point.edits, lambda x: f'<path class="edit" d="M{x},{base + 2} v8"/>'),
        (
            lambda point: point.compactions,
            lambda x: f'<path class="compaction" d="M{x},{base + 1} l5,5 -5,5 -5,-5 z"/>',
        ),
        (
            lambda point: point.faults,
            lambda x: f'<path class="fault" d="M{x - 3},{base - 8} l6,6 m0,-6 l-6,6"/>',
        ),
    )
    for count, shape in kinds:
        drawn = dict.fromkeys(scale.x(at) for at, point in enumerate(points) if count(point))
        yield from (shape(x) for x in _apart(drawn))


def _apart(places: dict[float, None]) -> Iterator[float]:
    """Yield positions at least two pixels apart, skipping closer ones, which are indistinguishable."""
    last = -2.0
    for x in places:
        if x - last >= 2:
            yield x
            last = x
