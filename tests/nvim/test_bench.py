"""Tests that every measurement of `make bench` still measures something, so that no benchmark is broken when needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import Measurement
from bench.measurements import MEASUREMENTS
from harness import REPO
from tests.patience import PATIENCE_S

OFTEN = ("cold_start", "turns")
"""Benchmarks that `make ci` runs too; the others share their code."""


@pytest.mark.slow("a run of every measurement, with hosts that really start")
@pytest.mark.parametrize(
    "measurement",
    [
        pytest.param(one, marks=[] if one.name in OFTEN else [pytest.mark.thorough("benches break seldom")])
        for one in MEASUREMENTS
    ],
    ids=lambda one: one.name,
)
def test_every_figure_has_samples_in_a_quick_run(measurement: Measurement, tmp_path: Path) -> None:
    """The command runs as for a user, but without the peer, whose checkout is not part of the project."""
    kept = tmp_path / "kept.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.editor", "--quick", "--only", measurement.name, "--json", str(kept)],
        cwd=REPO, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    taken = json.loads(kept.read_text(encoding="utf-8"))["taken"]
    assert [one["size"] for one in taken] == list(measurement.quick_sizes)
    for one in taken:
        samples = one["samples"]
        assert set(samples) == {figure.key for figure in measurement.figures}
        assert all(samples.values())
        assert all(value >= 0 for values in samples.values() for value in values)


def test_the_selectable_names_are_unique_and_in_the_help() -> None:
    names = [measurement.name for measurement in MEASUREMENTS]
    assert len(set(names)) == len(names)
    command = [sys.executable, "-m", "bench.editor", "--help"]
    help_text = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
    assert [name for name in names if name not in help_text] == []
