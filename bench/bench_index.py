"""Measures the code index: building, updating, size and memory.

    python -m bench.bench_index [--files 1500] [--source DIR]… [--huge] [--json]

The corpus comes from this machine: the source of Python and of the packages of `.venv`, or the folders given by
`--source` (checkouts of public repositories). It is copied to a temporary folder and put under git. `--huge` adds
100,000 small files: there the first answer must not wait for the index. CPU times are those of the worker process; the
others are wall times of this one, as median and 95th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from codecompanion.formats.code_words import index_words
from codecompanion.session.code.project_index import ProjectIndex
from codecompanion.workspace.project_files import Choice, list_project_files, read_project_file
from codecompanion.workspace.text_search import files_with

REPEAT = 30
QUERIES = (
    "parse the header of a message",
    "open a connection with a timeout",
    "getEncodedValue default",
    "iterate over lines of a file",
    "raise an error when the key is missing",
)


def sources(given: list[Path]) -> Iterator[tuple[Path, str]]:
    """Yield files and their places in the corpus."""
    for folder in given or [Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))]:
        for path in list_project_files(folder.resolve(), Choice()).paths if given else python_files(folder):
            yield folder / path, f"{folder.name.replace('site-', '')}/{path}"


def python_files(folder: Path) -> Iterator[str]:
    """Yield the Python files of an installation."""
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if "site-packages" not in name and "dist-packages" not in name:
            yield name


def make_corpus(root: Path, given: list[Path], files: int) -> None:
    """Copy `files` files; when there are fewer, repeat them under another folder."""
    made, turn = 0, 0
    while made < files:
        for path, name in sources(given):
            if made == files:
                break
            if read_project_file(path.parent, path.name, Choice()).why_not:
                continue
            target = root / (f"copy{turn}" if turn else "") / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            made += 1
        turn += 1
    git(root)


def git(root: Path) -> None:
    """Put a folder under git."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "-c", "gc.auto=0", "add", "-A"], cwd=root, check=True, **quiet)  # type: ignore[call-overload]
    name = ["-c", "user.name=bench", "-c", "user.email=b@e", "-c", "gc.auto=0"]
    subprocess.run(["git", *name, "commit", "-qm", "all"], cwd=root, check=True)


def spread(times: list[float]) -> dict[str, float]:
    """Return median and p95 in ms."""
    ordered = sorted(times)
    return {
        "median_ms": round(ordered[len(ordered) // 2] * 1e3, 2),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)] * 1e3, 2),
    }


async def timed(work: Callable[[], Awaitable[object]], repeat: int = REPEAT) -> dict[str, float]:
    """Return the duration of an operation."""
    times = []
    for _ in range(repeat):
        before = time.perf_counter()
        await work()
        times.append(time.perf_counter() - before)
    return spread(times)


def memory_mb() -> float:
    """Return the memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1000
    return 0.0


async def measure(root: Path, cache: Path) -> dict[str, Any]:
    """Return the figures of one corpus."""
    index = ProjectIndex(root, cache)
    before_cpu, before = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    first = await timed(index.refresh, 1)
    state = await index.wait()
    wall = time.perf_counter() - before
    after_cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
    counts = await index.counts()
    files = index.reader.files().values()
    size = sum(one.size for one in files if not one.why_not)
    found: dict[str, Any] = {
        "files": counts.files,
        "lines": sum(one.lines for one in files),
        "source_mb": round(size / 1e6, 2),
        "worker_cpu_s": round(after_cpu.ru_utime + after_cpu.ru_stime - before_cpu.ru_utime - before_cpu.ru_stime, 2),
        "worker_wall_s": round(wall, 2),
        "phase": state.phase,
        "first_refresh": first,
        "database_of_source": round(counts.bytes / size, 3),
    }
    del files
    await index.close()
    return found


async def follow(root: Path, cache: Path) -> dict[str, Any]:
    """Return the cost of updating an existing index in the host; run in a separate process."""
    before = memory_mb()
    index = ProjectIndex(root, cache)
    found: dict[str, Any] = {"open": await timed(index.refresh, 1), "nothing_changed": await timed(index.refresh)}
    paths = list(index.reader.stats())
    path = paths[len(paths) // 2]
    text = index.read_text(path) or ""
    turn = 0

    async def save() -> None:
        nonlocal turn
        turn += 1
        (root / path).write_text(f"{text}\ndef saved_{turn}():\n    return {turn}\n")
        fresh = await index.refresh()
        assert fresh.written == 1, fresh

    async def type_on() -> None:
        nonlocal turn
        turn += 1
        fresh = await index.refresh({path: f"{text}\ndef typed_{turn}():\n    return {turn}\n"})
        assert fresh.written == 1, fresh

    found["saved_lines"] = text.count("\n")
    found["after_a_save"] = await timed(save)
    found["unsaved_buffer"] = await timed(type_on)
    (root / path).write_text(text)

    async def ask() -> None:
        nonlocal turn
        turn += 1
        words = " OR ".join(f'"{word}"' for word in dict.fromkeys(index_words(QUERIES[turn % len(QUERIES)])))
        query = (
            "SELECT c.id, bm25(chunk_text, 4, 2, 1) AS rank FROM chunk_text JOIN chunks c ON c.id = chunk_text.rowid"
            " WHERE chunk_text MATCH ? ORDER BY rank LIMIT 50"
        )
        await index.refresh()
        with index.reader.reading() as connection:
            assert connection.execute(query, (words,)).fetchall()

    found["refresh_and_words"] = await timed(ask)
    found["host_memory_mb"] = round(memory_mb() - before, 1)
    await index.close()
    return found


async def huge(root: Path, cache: Path, files: int) -> dict[str, Any]:
    """Return how soon a very large project answers while its index grows."""
    for row in range(files):
        folder = root / f"d{row // 1000}" / f"e{row // 100 % 10}"
        if row % 100 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{row}.py").write_text(f"def function_{row}(x):\n    return x + {row}\n")
    git(root)
    index = ProjectIndex(root, cache)
    before = time.perf_counter()
    fresh = await index.refresh()
    listed = time.perf_counter() - before
    before = time.perf_counter()
    hits = await asyncio.to_thread(index.files_with, ["function_77777"], fresh.pending)
    searched = time.perf_counter() - before
    assert hits == ["d77/e7/f77777.py"], hits
    growing = await timed(index.refresh, 5)
    before = time.perf_counter()
    await index.wait()
    found = {
        "files": files,
        "first_refresh_s": round(listed, 2),
        "text_search_s": round(searched, 2),
        "searcher": files_with(root, ["function_77777"]).searcher,
        "refresh_while_growing": growing,
        "built_after_s": round(time.perf_counter() - before, 1),
        "refresh_when_built": await timed(index.refresh, 5),
        "database_mb": round((await index.counts()).bytes / 1e6, 1),
        "host_memory_mb": round(memory_mb(), 1),
    }
    await index.close()
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1_500)
    parser.add_argument("--source", type=Path, action="append", default=[])
    parser.add_argument("--huge", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--follow", nargs=2, type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.follow:
        print(json.dumps(asyncio.run(follow(*arguments.follow))))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root, cache = Path(folder, "corpus"), Path(folder, "cache")
        root.mkdir()
        make_corpus(root, arguments.source, arguments.files)
        found = {"build": asyncio.run(measure(root, cache))}
        command = [sys.executable, "-m", "bench.bench_index", "--follow", str(root), str(cache)]
        done = subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).resolve().parents[1])
        found["follow"] = json.loads(done.stdout)
        if arguments.huge:
            big = Path(folder, "huge")
            big.mkdir()
            found["huge"] = asyncio.run(huge(big, cache, 100_000))
    if arguments.json:
        print(json.dumps(found))
        return
    for part, figures in found.items():
        print(part)
        for name, value in figures.items():
            shown = "  ".join(f"{key} {number}" for key, number in value.items()) if isinstance(value, dict) else value
            print(f"  {name:24} {shown}")


if __name__ == "__main__":
    os.environ.setdefault("GIT_CONFIG_GLOBAL", os.devnull)
    main()
