"""The cost and the losses of each policy on recorded sessions, one table per folder and window (lessons 21–24).

    python bench/bench_replay.py [--window N …] [--cache 5m|1h|none] [--policy P …] [--fitted NAME …] [FILE|DIR …]
    python bench/bench_replay.py --fixed 20000 --window 64000 [--policy P …] [FILE|DIR …]
    python bench/bench_replay.py --marks [--window N …] [--policy P …] [FILE|DIR …]

Each policy that follows a document has two rows: with our additions, and `strict` without them. `--marks` prints one
row for each addition instead: in how many sessions the requests change without it, and the cost of that. `--fixed N`
gives every request N tokens of system prompt and tools, instead of the recorded ones.

The same figures as `python -m codecompanion replay`, by folder, with the time a walk takes. `--fitted` names the
folders (such as one developer's sessions) that parameters were chosen on: their sum is printed beside that of all
others, the `held out` ones. Only the latter predict a policy's results on unseen sessions. Goal of `adaptive` at
200,000 tokens and a 5-minute cache: cost ≤ 0.85 at ≤ 0.5 % faults, and no folder above 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from codecompanion.cli.commands.replay import UNMANAGED
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.strict import RECALL, SUFFIX, deviations, without
from codecompanion.model.transcript_format import read_bytes
from codecompanion.reports.cache_price import CacheKind
from codecompanion.reports.replay import Figures, Recording, read_recording, relative_cost, walk, walk_requests

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "transcripts"
WINDOWS = [200_000, 64_000]
ROW = "{:<14} {:>8} {:<20} {:>8} {:>13} {:>9} {:>6} {:>6} {:>7} {:>11} {:>8} {:>7}"
HEADINGS = (
    "data",
    "window",
    "policy",
    "requests",
    "tokens",
    "peak",
    "edits",
    "comp.",
    "cost",
    "faults",
    "too long",
    "s",
)
MARK_ROW = "{:<14} {:>8} {:<64} {:>9} {:>7} {:>9} {:>9}"
MARK_HEADINGS = ("policy", "window", "without", "sessions", "cost", "faults", "too long")
Walks = tuple[tuple[Figures, ...], ...]


def default_policies() -> list[str]:
    """Return every policy, each that follows a document also in its strict form."""
    names = []
    for name in policy_names():
        names += [name] if load_policy(name).ours else [name, name + SUFFIX]
    return names


def find_sessions(paths: Sequence[Path]) -> Iterator[tuple[str, list[Path]]]:
    """Yield each folder with its transcripts."""
    files = sorted({file for path in paths for file in (path.rglob("*.jsonl") if path.is_dir() else (path,))})
    for folder in sorted({file.parent for file in files}):
        yield folder.name, [file for file in files if file.parent == folder]


def read(file: Path, fixed: int | None = None) -> Recording:
    """Return the recording in a transcript file, with another fixed part if one is given."""
    recording = read_recording(read_bytes(file.read_bytes().split(b"\n"), str(file)).messages)
    if fixed is None:
        return recording
    return msgspec.structs.replace(recording, sizes=msgspec.structs.replace(recording.sizes, fixed=fixed))


def measure(recordings: Sequence[Recording], name: str, window: int, cache: CacheKind) -> tuple[Figures, float]:
    """Return the figures of all recordings under a policy, and the seconds the walks took."""
    policy = None if name == UNMANAGED else load_policy(name)
    began = time.perf_counter()
    total = Figures()
    for recording in recordings:
        total += walk(recording, policy, window, cache)
    return total, time.perf_counter() - began


def print_row(data: str, window: int, name: str, figures: Figures, plain: Figures, took_s: float) -> None:
    """Print one line of the table."""
    cost = f"{relative_cost(figures, plain):.3f}" if figures.compared_requests else "-"
    faults = f"{figures.faults}/{figures.text_edits}" if figures.text_edits else "-"
    cells = (
        data, window, name, figures.requests, f"{figures.prompt_tokens:,}", f"{figures.peak:,}", figures.edits,
        figures.compactions, cost, faults, figures.overflows, f"{took_s:.2f}",
    )  # fmt: skip
    print(ROW.format(*cells))


def print_marks(recordings: Sequence[Recording], names: Sequence[str], window: int, cache: CacheKind) -> None:
    """Print the results without each of our additions, except `recall`: only chats read the memory."""
    plain = sum((walk(recording, None, window, cache) for recording in recordings), Figures())

    def walked(policy: Policy) -> Walks:
        return tuple(walk_requests(recording, policy, window, cache) for recording in recordings)

    def print_one(name: str, place: str, found: Walks, whole: Walks) -> None:
        figures = sum((figures for requests in found for figures in requests), Figures())
        others = sum(one != other for one, other in zip(found, whole, strict=True))
        cost, faults = f"{relative_cost(figures, plain):.3f}", f"{figures.faults}/{figures.text_edits}"
        print(MARK_ROW.format(name, window, place, others, cost, faults, figures.overflows))

    for name in names:
        policy = load_policy(name)
        places = [one.place for one in deviations(policy) if one.place != RECALL]
        whole = walked(policy)
        print_one(name, "(with all)", whole, whole)
        for place in places:
            print_one(name, place, walked(without(policy, frozenset({place}), name)), whole)
        print_one(name, "(strict)", walked(without(policy, frozenset(places), name)), whole)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Replay recorded sessions under each policy.")
    parser.add_argument("--window", type=int, action="append", default=[])
    parser.add_argument("--cache", choices=["5m", "1h", "none"], default="5m")
    parser.add_argument("--policy", action="append", default=[])
    parser.add_argument("--fitted", action="append", default=[], help="a folder that parameters were chosen on")
    parser.add_argument("--fixed", type=int, help="tokens of system prompt and tools in every request")
    parser.add_argument("--marks", action="store_true", help="what each addition to a document changes")
    parser.add_argument("path", nargs="*", type=Path, default=[DEFAULT])
    options = parser.parse_args()
    if options.marks:
        names = options.policy or [name for name in policy_names() if not load_policy(name).ours]
        recordings = [read(file, options.fixed) for _, files in find_sessions(options.path) for file in files]
        print(MARK_ROW.format(*MARK_HEADINGS))
        for window in options.window or WINDOWS:
            print_marks(recordings, names, window, options.cache)
        return
    names = [UNMANAGED, *(options.policy or default_policies())]
    print(ROW.format(*HEADINGS))
    totals: dict[tuple[str, int, str], tuple[Figures, float]] = {}
    for data, files in find_sessions(options.path):
        sums = [*(["fitted" if data in options.fitted else "held out"] if options.fitted else []), "all"]
        recordings = [read(file, options.fixed) for file in files]
        for window in options.window or WINDOWS:
            plain = Figures()
            for name in names:
                figures, took_s = measure(recordings, name, window, options.cache)
                plain = figures if name == UNMANAGED else plain
                print_row(data, window, name, figures, plain, took_s)
                for part in sums:
                    before, spent = totals.get((part, window, name), (Figures(), 0.0))
                    totals[part, window, name] = before + figures, spent + took_s
    for (part, window, name), (figures, took_s) in sorted(totals.items(), key=lambda entry: entry[0][0], reverse=True):
        print_row(part, window, name, figures, totals[part, window, UNMANAGED][0], took_s)


if __name__ == "__main__":
    main()
