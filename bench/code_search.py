"""Search in the index of a generated project of 100,000 and of 1,000,000 lines: time and CPU of a query.

`bench.bench_search` measures the same in real folders.
"""

from __future__ import annotations

import itertools
import random
import resource
import time
from pathlib import Path

from bench.bench_search import WARM_UP, Project, make_index, queries_of
from bench.figures import Figure, Measurement, Samples
from bench.plugins import Side
from bench.working_area import Room
from codecompanion.session.code.search_options import SearchOptions
from codecompanion.session.code.searcher import CodeSearcher

FILE_LINES = 200
WORDS = (
    "read write open close index query token cursor buffer window chunk parse render merge split cache store frame"
    " layer route guard batch retry queue event field value entry group order price stock user login session page"
).split()


def code_search(side: Side, size: int, room: Room) -> Samples:
    """Ask questions built from the names a project defines; its index is built once, each run asks other questions."""
    root = room.once(("project", size), lambda: _write_project(room.fresh("project"), size))
    reader = room.once(("index", size), lambda: make_index(root, root.with_suffix(".db")))
    search = CodeSearcher(Project(root, reader))
    number = len(room.times(60)) + WARM_UP
    run = next(room.once(("searches", size), itertools.count))
    asked = queries_of(reader, number * (run + 1))[-number:]
    wall, cpu = list[float](), list[float]()
    for place, text in enumerate(asked):
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        search.search(text, SearchOptions())
        took, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF)
        if place >= WARM_UP:
            wall.append(took * 1000)
            cpu.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return {"wall": wall, "cpu": cpu}


def _write_project(root: Path, lines: int) -> Path:
    """Write Python files of 200 lines, with names of three words; the same ones each time."""
    chosen = random.Random(21)
    for number in range(lines // FILE_LINES):
        folder = root / chosen.choice(WORDS) / chosen.choice(WORDS)
        folder.mkdir(parents=True, exist_ok=True)
        written: list[str] = []
        while len(written) < FILE_LINES:
            name, called = ("_".join(chosen.sample(WORDS, 3)) for _ in range(2))
            written += [f"def {name}_{number}({chosen.choice(WORDS)}, {chosen.choice(WORDS)}_count):"]
            written += [f'    """{" ".join(chosen.sample(WORDS, 6)).capitalize()}."""']
            written += [f"    {word} = {called}({word}, {chosen.randint(1, 99)})" for word in chosen.sample(WORDS, 6)]
            written += [f"    return {chosen.choice(WORDS)}", ""]
        (folder / f"{chosen.choice(WORDS)}_{number}.py").write_text("\n".join(written[:FILE_LINES]), encoding="utf-8")
    return root


MEASUREMENTS = (
    Measurement(
        "code_search",
        "Searching the code index of a project",
        (Figure("wall", "time per query, p95", of="p95"), Figure("cpu", "CPU time per query, p95", of="p95")),
        code_search,
        sizes=(100_000, 1_000_000),
        quick_sizes=(2_000,),
        size_unit="lines",
    ),
)
