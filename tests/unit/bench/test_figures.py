"""Figures from the samples of a benchmark: medians of runs, ratios within a run, growth within a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.figures import OURS, PEER, Figure, Measurement, Spread, Taken, rows, spread, value
from bench.report import Machine, markdown, number, text

FIRST = Figure("first", "sent → first token")
TURNS = Measurement("turns", "A turn", (FIRST,), lambda side, size, room: {}, size_unit="messages", note="A note.")


def taken(run: int, side: str, size: int, *samples: float) -> Taken:
    """Return the samples of one run."""
    return Taken("turns", run, side, size, {"first": samples})


def three_runs() -> list[Taken]:
    """Return three runs in which we are twice as fast as the peer, however busy the machine was."""
    made = []
    for run, busy in enumerate((1.0, 3.0, 2.0)):
        made += [taken(run, OURS, 100, 10 * busy, 9 * busy, 11 * busy), taken(run, PEER, 100, 20 * busy)]
        made += [taken(run, OURS, 10_000, 1_000 * busy)]
    return made


def test_a_run_yields_its_median_and_the_report_the_median_of_the_runs() -> None:
    row = next(rows(TURNS, three_runs()))
    assert row.ours == Spread(20.0, 10.0, 30.0)


def test_the_ratio_to_the_peer_is_computed_within_a_run() -> None:
    row = next(rows(TURNS, three_runs()))
    assert row.ratio == Spread(0.5, 0.5, 0.5)


def test_growth_is_the_exponent_from_one_size_to_the_next_within_a_run() -> None:
    small, large = rows(TURNS, three_runs())
    assert small.growth is None
    assert large.growth == Spread(pytest.approx(1.0), pytest.approx(1.0), pytest.approx(1.0))  # type: ignore[arg-type]


def test_a_size_of_zero_has_no_growth_after_it() -> None:
    found = list(rows(TURNS, [taken(0, OURS, 0, 5.0), taken(0, OURS, 100, 10.0)]))
    assert [row.growth for row in found] == [None, None]


def test_a_run_of_one_side_alone_has_no_ratio() -> None:
    (row,) = rows(TURNS, [taken(0, OURS, 100, 5.0), taken(1, PEER, 100, 10.0)])
    assert row.ratio is None
    assert row.peer == Spread(10.0, 10.0, 10.0)


def test_other_measurements_do_not_count() -> None:
    other = Taken("memory", 0, OURS, 100, {"first": [99.0]})
    (row,) = rows(TURNS, [other, taken(0, OURS, 100, 5.0)])
    assert row.ours.high == 5.0


def test_a_p95_is_a_sample_and_the_nearest_rank() -> None:
    samples = [float(at) for at in range(1, 41)]
    assert value(Figure("key", "", of="p95"), samples) == 38.0
    assert value(Figure("key", "", of="p95"), [7.0]) == 7.0


def test_the_spread_of_no_samples_is_zero() -> None:
    assert spread([]) is None


def test_a_number_has_only_its_significant_digits() -> None:
    shown = [number(value) for value in (1234.5, 12.34, 1.234, 0.5, 0.0042, 0.0)]
    assert shown == ["1,234", "12.3", "1.23", "0.50", "0.004", "0.00"]


def test_the_lines_name_size_ratio_and_exponent() -> None:
    head, small, large = text(TURNS, three_runs())
    assert head == "turns: A turn"
    assert "100 messages" in small
    assert "20.0 (10.0–30.0) ms" in small
    assert "ratio 0.50" in small
    assert "exponent 1.00" in large
    assert "10,000 messages" in large


def test_the_table_has_a_row_for_each_figure_and_a_column_for_each_size() -> None:
    assert list(markdown(TURNS, three_runs())) == [
        "**A turn** (`--only turns`). A note.",
        "",
        "|  | 100 messages | 10,000 messages | growth |",
        "|---|---|---|---|",
        "| sent → first token | 20.0 (10.0–30.0) ms · **0.50** | 2,000 (1,000–3,000) ms | 1.00 |",
    ]


def test_the_table_of_one_size_has_no_growth_and_a_figure_without_samples_no_row() -> None:
    once = replace(TURNS, figures=(FIRST, Figure("step", "a step")), size_unit="", note="")
    assert list(markdown(once, [taken(0, OURS, 0, 5.0)])) == [
        "**A turn** (`--only turns`)",
        "",
        "|  | measured |",
        "|---|---|",
        "| sent → first token | 5.00 ms |",
    ]


def test_a_size_of_one_is_singular() -> None:
    one = replace(TURNS, size_unit="buffers", note="")
    assert list(markdown(one, [taken(0, OURS, 1, 5.0)]))[2] == "|  | 1 buffer |"


def test_the_report_shows_the_load_of_the_machine_and_marks_a_quick_run() -> None:
    machine = Machine(2, "NVIM v0.11.4", "3.11.7", 1.5, 4.0, 0.25, 600.0, 300.0, 3)
    assert "load average 1.5 → 4.0, other programs used 25% of the cores." in machine.line()
    quick = Machine(2, "NVIM v0.11.4", "3.11.7", 1.5, 4.0, 0.25, 600.0, 300.0, 3, quick=True)
    assert "mean nothing" in quick.line()
