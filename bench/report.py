"""The report of a bench run: lines for a terminal, tables for the documents. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.figures import Measurement, Row, Spread, Taken, rows


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and its other load during the run. `others`: share of all cores used by other programs, 0 to 1."""

    cores: int
    neovim: str
    python: str
    load_before: float
    load_after: float
    others: float
    wall_s: float
    cpu_s: float
    runs: int
    quick: bool = False

    def line(self) -> str:
        """Return one sentence that describes the machine and the run."""
        quick = "; a quick run, its figures mean nothing" if self.quick else ""
        return (
            f"{self.cores} cores, {self.neovim}, Python {self.python}; {self.runs} runs in {self.wall_s / 60:.0f} min,"
            f" {self.cpu_s / 60:.0f} min of CPU; load average {self.load_before:.1f} → {self.load_after:.1f},"
            f" other programs used {self.others:.0%} of the cores{quick}."
        )


def number(value: float) -> str:
    """Return a number as text with about three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 or not value else f"{value:.1g}"


def spread(found: Spread | None, unit: str = "") -> str:
    """Return `median (low–high) unit`; only the median when all runs agree."""
    if found is None:
        return ""
    middle, low, high = number(found.median), number(found.low), number(found.high)
    text = middle if low == high else f"{middle} ({low}–{high})"
    return f"{text} {unit}".strip()


def label(row: Row, measurement: Measurement) -> str:
    """Return the label of a line: the figure, and the size if the measurement has sizes."""
    if not measurement.size_unit:
        return row.figure.title
    return f"{row.figure.title}, {_sized(row.size, measurement.size_unit)}"


def _sized(size: int, unit: str) -> str:
    return f"{size:,} {unit.removesuffix('s') if size == 1 else unit}"


def text(measurement: Measurement, taken: Sequence[Taken]) -> Iterator[str]:
    """Yield the lines of a measurement for a terminal."""
    yield f"{measurement.name}: {measurement.title}"
    for row in rows(measurement, taken):
        cells = [f"  {label(row, measurement):<66}{spread(row.ours, row.figure.unit):>26}"]
        if row.peer:
            cells.append(f"peer {spread(row.peer)}; ratio {spread(row.ratio)}")
        if row.growth:
            cells.append(f"exponent {spread(row.growth)}")
        yield "   ".join(cells).rstrip()


def markdown(measurement: Measurement, taken: Sequence[Taken]) -> Iterator[str]:
    """Yield the lines of a table for the documents: a row for each figure, a column for each size."""
    found = list(rows(measurement, taken))
    sizes = sorted({row.size for row in found})
    grows = any(row.growth for row in found)
    note = f". {measurement.note}" if measurement.note else ""
    yield f"**{measurement.title}** (`--only {measurement.name}`){note}"
    yield ""
    heads = [_sized(size, measurement.size_unit) for size in sizes] if measurement.size_unit else ["measured"]
    heads = ["", *heads, *(["growth"] if grows else [])]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for figure in measurement.figures:
        of_figure = {row.size: row for row in found if row.figure == figure}
        if not of_figure:
            continue
        cells = [_cell(of_figure[size]) if size in of_figure else "" for size in sizes]
        exponents = [f"{row.growth.median:.2f}" for row in of_figure.values() if row.growth]
        yield "| " + " | ".join([figure.title, *cells, *([", ".join(exponents)] if grows else [])]) + " |"


def _cell(row: Row) -> str:
    """Return the value and, if there is one, its ratio to the peer."""
    return spread(row.ours, row.figure.unit) + (f" · **{spread(row.ratio)}**" if row.ratio else "")
