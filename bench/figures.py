"""Measurements as data, and the figures derived from their samples. Pure: no editor, no clock.

A measurement is taken in several runs, each in a fresh editor, followed by the peer's. A run yields a median per
figure. The report gives the median, the smallest and the largest of the runs; the ratio to the peer and the growth from
one size to the next are taken within a run, so that a busy machine affects both sides.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OURS, PEER = "ours", "peer"
Samples = Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a measurement; `key` is its name in the samples. `of` aggregates the samples: median or p95."""

    key: str
    title: str
    unit: str = "ms"
    of: str = "median"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement: the function that takes it, and its sizes.

    `measure(side, size, room)` returns samples by key. `peer_sizes`: the sizes at which the peer is measured too, empty
    = it has no equivalent. `note`: context that a reader needs for comparison.
    """

    name: str
    title: str
    figures: tuple[Figure, ...]
    measure: Callable[[Any, int, Any], Samples]
    sizes: tuple[int, ...] = (0,)
    quick_sizes: tuple[int, ...] = (0,)
    size_unit: str = ""
    peer_sizes: tuple[int, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Taken:
    """The samples of one run of one side at one size, and the time it took."""

    measurement: str
    run: int
    side: str
    size: int
    samples: Samples
    took_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of the runs, the smallest and the largest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report. `ratio` is ours divided by the peer's, `growth` the exponent since the previous size."""

    figure: Figure
    size: int
    ours: Spread
    peer: Spread | None = None
    ratio: Spread | None = None
    growth: Spread | None = None


def value(figure: Figure, samples: Sequence[float]) -> float:
    """Return the aggregate value of a run."""
    if figure.of == "p95":
        return sorted(samples)[max(0, math.ceil(0.95 * len(samples)) - 1)]
    return statistics.median(samples)


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of the values of all runs; None without any."""
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def rows(measurement: Measurement, taken: Sequence[Taken]) -> Iterator[Row]:
    """Yield a row for each figure at each measured size."""
    sizes = sorted({one.size for one in taken if one.measurement == measurement.name})
    for figure in measurement.figures:
        ours = {size: _by_run(measurement, figure, OURS, size, taken) for size in sizes}
        for before, size in itertools.pairwise((None, *sizes)):
            own, peer = ours[size], _by_run(measurement, figure, PEER, size, taken)
            found = spread(list(own.values()))
            if found is None:
                continue
            ratios = [own[run] / peer[run] for run in own if peer.get(run)]
            smaller = ours.get(before, {}) if before else {}
            grown = [
                math.log(own[run] / smaller[run]) / math.log(size / before)
                for run in own
                if before and smaller.get(run) and own[run] > 0
            ]
            yield Row(figure, size, found, spread(list(peer.values())), spread(ratios), spread(grown))


def _by_run(measurement: Measurement, figure: Figure, side: str, size: int, taken: Sequence[Taken]) -> dict[int, float]:
    return {
        one.run: value(figure, one.samples[figure.key])
        for one in taken
        if (one.measurement, one.side, one.size) == (measurement.name, side, size) and one.samples.get(figure.key)
    }
