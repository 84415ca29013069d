"""Writes the page of `replay --html`: a small chart per policy for each session, and a table of the figures.

The page shows exactly the figures of the table on the command line, computed by the same code.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.formats.plural import counted
from codecompanion.reports.cache_price import READ_PRICE, WRITE_PRICE, CacheKind
from codecompanion.reports.markdown import tokens_text
from codecompanion.reports.pages.html import escaped, page
from codecompanion.reports.pages.size_svg import Point, scale_of, size_svg
from codecompanion.reports.pages.style import BASE
from codecompanion.reports.replay import Figures, relative_cost

_STYLE = """
body { max-width: 84rem; }
.charts { display: grid; gap: 1.6rem 1.4rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem; align-items: baseline; }
figcaption b { font-size: 1rem; }
figcaption span { color: var(--quiet); font-size: .85rem; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 10.5px system-ui, sans-serif; fill: var(--quiet); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--line); stroke-width: 1; }
.window { stroke: var(--limit); stroke-width: 1; stroke-dasharray: 5 4; }
.area { fill: var(--fill); }
.sent { fill: none; stroke: var(--sent); stroke-width: 1.75; stroke-linejoin: round; }
.ghost { fill: none; stroke: var(--ghost); stroke-width: 1.25; stroke-dasharray: 1.5 2.5; stroke-linejoin: round; }
.edit { stroke: var(--edit); stroke-width: 1.75; }
.compaction { fill: var(--compaction); stroke: var(--paper); stroke-width: .75; }
.fault { stroke: var(--fault); stroke-width: 1.75; fill: none; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; list-style: none; margin: 1rem 0 1.4rem; padding: 0;
  color: var(--quiet); font-size: .9rem; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend svg { width: 26px; height: 14px; flex: none; }
.best { font-weight: 700; }
"""
_LEGEND = (
    ('<path class="area" d="M0,13 V4 H26 V13 Z"/><path class="sent" d="M0,4 H26"/>', "tokens sent"),
    ('<path class="ghost" d="M0,7 H26"/>', "without management"),
    ('<path class="window" d="M0,7 H26"/>', "window"),
    ('<path class="edit" d="M13,3 v8"/>', "edit"),
    ('<path class="compaction" d="M13,2 l5,5 -5,5 -5,-5 z"/>', "compaction"),
    ('<path class="fault" d="M10,4 l6,6 m0,-6 l-6,6"/>', "fault: an edit needed text that was gone"),
)
_HEAD = ("policy", "requests", "tokens, sum", "largest request", "edits", "compactions", "relative cost", "faults")


class Session(msgspec.Struct, frozen=True):
    """One recorded session: its name, and the figures of each request under each policy, starting with no policy."""

    name: str
    walks: Sequence[Sequence[Figures]]


class Replayed(msgspec.Struct, frozen=True):
    """The data of the page. `totals` are in the order of `labels`; `command` is the command line."""

    labels: Sequence[str]
    sessions: Sequence[Session]
    totals: Sequence[Figures]
    window: int
    cache: CacheKind
    command: str
    version: str


def replay_page(replayed: Replayed) -> str:
    """Return the page."""
    files = counted(len(replayed.sessions), "session")
    price = "without a prompt cache"
    if replayed.cache != "none":
        price = f"with a prompt cache of {replayed.cache} (read {READ_PRICE}, write {WRITE_PRICE})"
    body = [
        "<main>\n<h1>Requests under each policy</h1>\n",
        f'<p class="quiet">{files} played request by request, window {replayed.window:,} tokens, priced {price}.</p>\n',
        _legend(),
        *(_session(number, session, replayed) for number, session in enumerate(replayed.sessions)),
        _table(replayed),
        "</main>\n",
        "<footer><p>Made by <code>",
        escaped(replayed.command),
        f"</code>, CodeCompanion {escaped(replayed.version)}. <code>:help codecompanion-replay</code> explains the"
        " figures.</p></footer>\n",
    ]
    return page("Replay: requests under each policy", BASE + _STYLE, "".join(body), made_by=_maker(replayed))


def _maker(replayed: Replayed) -> str:
    return f"codecompanion {replayed.version}"


def _legend() -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 26 14" aria-hidden="true">{shape}</svg>{words}</li>\n' for shape, words in _LEGEND
    )
    return f'<ul class="legend" aria-label="Legend">\n{items}</ul>\n'


def _session(number: int, session: Session, replayed: Replayed) -> str:
    walks = [tuple(_point(figures) for figures in walk) for walk in session.walks]
    unmanaged, managed = walks[0], walks[1:]
    scale = scale_of(managed, unmanaged, replayed.window)
    charts = []
    for row, (label, points) in enumerate(zip(replayed.labels, walks, strict=True)):
        key = f"s{number}p{row}"
        drawn = size_svg(_shown(label), points, unmanaged if row else (), scale, key=key)
        caption = f"<b>{escaped(_shown(label))}</b> <span>{_caption(session, row)}</span>"
        charts.append(f"<figure>\n<figcaption>{caption}</figcaption>\n{drawn}</figure>\n")
    heading = f"<h2>{escaped(session.name)}</h2>\n"
    return f'<section>\n{heading}<div class="charts">\n{"".join(charts)}</div>\n</section>\n'


def _point(figures: Figures) -> Point:
    return Point(figures.peak, figures.edits, figures.compactions, figures.faults)


def _shown(label: str) -> str:
    return "no management" if label == "(none)" else label


def _caption(session: Session, row: int) -> str:
    """Return the caption beside the name of a policy: the two most important figures."""
    sums = [sum(walk, Figures()) for walk in (session.walks[0], session.walks[row])]
    said = [f"{tokens_text(sums[1].prompt_tokens)} tokens"]
    if row and sums[1].compared_requests:
        said.append(f"cost {relative_cost(sums[1], sums[0]):.3f}")
    if sums[1].overflows:
        said.append(f"{sums[1].overflows:,} too large")
    return " · ".join(said)


def _table(replayed: Replayed) -> str:
    costs = [relative_cost(row, replayed.totals[0]) if row.compared_requests else None for row in replayed.totals]
    lowest = min((cost for cost in costs if cost is not None), default=None)
    rows = []
    for label, row, cost in zip(replayed.labels, replayed.totals, costs, strict=True):
        faults = f"{row.faults:,} of {row.text_edits:,}" if row.text_edits else "–"
        price = "–" if cost is None else f"{cost:.3f}"
        best = ' class="best"' if cost is not None and cost == lowest else ""
        figures = (
            f"{row.requests:,}",
            f"{row.prompt_tokens:,}",
            f"{row.peak:,}",
            f"{row.edits:,}",
            f"{row.compactions:,}",
        )
        cells = "".join(f"<td>{figure}</td>" for figure in figures)
        rows.append(
            f'<tr><th scope="row">{escaped(_shown(label))}</th>{cells}<td{best}>{price}</td><td>{faults}</td></tr>\n'
        )
    head = "".join(f'<th scope="col">{name}</th>' for name in _HEAD)
    return (
        '<section>\n<h2 id="figures">Figures</h2>\n<div class="wide" role="region" aria-labelledby="figures"'
        ' tabindex="0">\n<table>\n<caption>All sessions together; the lowest cost is bold</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n</table>\n</div>\n{_notes(replayed)}</section>\n"
    )


def _notes(replayed: Replayed) -> str:
    unmanaged = replayed.totals[0]
    notes = [
        "Relative cost: everything sent, including summaries and files read again after a fault, relative to no"
        " management. Faults: edits of files whose text had been cleared, out of all edits that quote the old text."
    ]
    left = unmanaged.requests - unmanaged.compared_requests
    if left:
        those = "request is" if left == 1 else "requests are"
        only = f"cost compares the other {unmanaged.compared_requests:,}"
        only = only if unmanaged.compared_requests else "so there is no cost to compare with"
        notes.append(f"Without management {left:,} {those} larger than the window and could not be sent; {only}.")
    return "".join(f'<p class="quiet">{escaped(note)}</p>\n' for note in notes)
