"""The rows that attack suites record, summed over all workers and printed at the end of a run."""

from __future__ import annotations

import pytest

KEY = "attack"
"""The name of the test property that contains a row: [name, tried, held]."""


def print_table(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table, one line per kind of attack."""
    rows = dict[str, tuple[int, int]]()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for key, row in getattr(report, "user_properties", ()):
                if key == KEY and getattr(report, "when", "") == "call":
                    name, tried, held = row
                    before = rows.get(name, (0, 0))
                    rows[name] = (before[0] + tried, before[1] + held)
    if not rows:
        return
    terminalreporter.section("attacks")
    width = max(map(len, rows))
    terminalreporter.write_line(f"{'attack':{width}}  {'tried':>8}  {'held':>8}")
    for name, (tried, held) in sorted(rows.items()):
        terminalreporter.write_line(f"{name:{width}}  {tried:>8,}  {held:>8,}", red=held < tried)
    sums = [sum(row[index] for row in rows.values()) for index in (0, 1)]
    terminalreporter.write_line(f"{'all':{width}}  {sums[0]:>8,}  {sums[1]:>8,}", bold=True)
