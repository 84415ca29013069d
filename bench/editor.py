"""Measures the plugin, and codecompanion.nvim beside it, in a real Neovim with an attached UI and a loopback server.

    python -m bench.editor [--quick] [--only NAME …] [--runs 3] [--json FILE] [--markdown] [--peer CHECKOUT]
    python -m bench.editor --show FILE [--markdown]

Each measurement is taken in three runs, each in fresh editors, ours and the peer's in turn. It prints the median,
smallest and largest of the runs, the ratio to the peer in the same run, and the growth exponent from one size to the
next (1 = in proportion). `--quick` uses small histories and one run, to check that every measurement works. `--peer` is
a checkout of codecompanion.nvim with one of plenary.nvim beside it. `--markdown` prints the tables of
`doc/measured.md`, `--json` stores every sample, `--show` prints a stored run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.figures import OURS, PEER, Measurement, Taken
from bench.measurements import MEASUREMENTS
from bench.plugins import Ours, Peer, Side
from bench.report import Machine, markdown, text
from bench.working_area import Room
from harness import find_nvim

RUNS = 3
BY_NAME = {measurement.name: measurement for measurement in MEASUREMENTS}


def take(measurement: Measurement, runs: int, room: Room, peer: Side | None) -> list[Taken]:
    """Take a measurement of both sides in turn; every second run begins with the peer."""
    taken = []
    for run in range(runs):
        for size in measurement.quick_sizes if room.quick else measurement.sizes:
            sides: list[tuple[str, Side]] = [(OURS, Ours())]
            if peer and size in measurement.peer_sizes:
                sides.append((PEER, peer))
            for name, side in reversed(sides) if run % 2 else sides:
                began = time.monotonic()
                samples = measurement.measure(side, size, room)
                taken.append(Taken(measurement.name, run, name, size, samples, time.monotonic() - began))
    return taken


def checkout(name: str) -> Peer:
    """Return the peer; raises `ArgumentTypeError` when this is not a checkout, or plenary.nvim is not beside it."""
    path = Path(name).expanduser().resolve()
    if not (path / "lua" / "codecompanion" / "init.lua").is_file():
        raise argparse.ArgumentTypeError(f"{path} is not a checkout of codecompanion.nvim")
    if not (path.parent / "plenary.nvim" / "lua").is_dir():
        raise argparse.ArgumentTypeError(f"it needs plenary.nvim beside it ({path.parent}/plenary.nvim)")
    return Peer(path)


class Watch:
    """The load and CPU use of the machine since the watch was started."""

    def __init__(self) -> None:
        self._wall, self._own, self._all, self._load = time.monotonic(), _own_s(), _all_s(), os.getloadavg()[0]

    def read(self, runs: int, *, quick: bool) -> Machine:
        """Return the elapsed time, and the load of other programs."""
        own = _own_s() - self._own
        busy, total = (now - then for now, then in zip(_all_s(), self._all, strict=True))
        return Machine(
            cores=os.cpu_count() or 1,
            neovim=_first_line(find_nvim() or "nvim"),
            python=platform.python_version(),
            load_before=self._load,
            load_after=os.getloadavg()[0],
            others=max(0.0, busy - own) / total if total else 0.0,
            wall_s=time.monotonic() - self._wall,
            cpu_s=own,
            runs=runs,
            quick=quick,
        )


def _own_s() -> float:
    """Return the CPU seconds of the bench and of the programs it has run."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _all_s() -> tuple[float, float]:
    """Return the busy seconds and the total seconds of all cores."""
    with Path("/proc/stat").open(encoding="utf-8") as file:
        fields = [int(field) / os.sysconf("SC_CLK_TCK") for field in file.readline().split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _first_line(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]


def main() -> int:
    """Run the measurements and print each as soon as it is taken, or print a stored run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small histories, one run: does each measurement work?")
    parser.add_argument("--only", action="append", choices=BY_NAME, default=[], metavar="NAME", help=", ".join(BY_NAME))
    parser.add_argument("--runs", type=int, default=0, help=f"runs of each measurement ({RUNS})")
    parser.add_argument("--json", type=Path, help="keep every sample in this file")
    parser.add_argument("--show", type=Path, metavar="FILE", help="print what --json has kept, measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print the tables of doc/measured.md")
    parser.add_argument("--peer", type=checkout, help="a checkout of codecompanion.nvim, plenary.nvim beside it")
    arguments = parser.parse_args()
    names, show = arguments.only or list(BY_NAME), markdown if arguments.markdown else text
    if arguments.show:
        kept = json.loads(arguments.show.read_text(encoding="utf-8"))
        taken = [Taken(**one) for one in kept["taken"]]
        for name in names:
            _print(BY_NAME[name], taken, show)
        print(Machine(**kept["machine"]).line())
        return 0
    runs = arguments.runs or (1 if arguments.quick else RUNS)
    watch, taken = Watch(), list[Taken]()
    with tempfile.TemporaryDirectory(prefix="codecompanion-bench-") as folder:
        room = Room(Path(folder), arguments.quick)
        for name in names:
            taken += take(BY_NAME[name], runs, room, arguments.peer)
            _print(BY_NAME[name], taken, show)
            machine = watch.read(runs, quick=arguments.quick)
            if arguments.json:
                kept = {"machine": asdict(machine), "taken": [asdict(one) for one in taken]}
                arguments.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
    print(machine.line())
    return 0


def _print(measurement: Measurement, taken: Sequence[Taken], show: Callable[..., Iterator[str]]) -> None:
    """Print the results of a measurement, if there are any."""
    if any(one.measurement == measurement.name for one in taken):
        print("\n".join(show(measurement, taken)) + "\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
