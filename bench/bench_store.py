"""Measures the session store on this machine's disk.

    python -m bench.bench_store [--messages 10000] [--json]

Every figure is a median (or p95, longest, where labelled). Ratios compare with the floor measured in the same run: a
bare fdatasync for an append, a plain SELECT for a load.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message, Role
from codecompanion.store.opening import open_memory_store, open_store
from codecompanion.store.store import Store

CHAT = "bench"
WORDS = [
    f"{stem}{ending}" for stem in ("pars", "ident", "buff", "tok", "lay", "comp") for ending in map(str, range(700))
]


def text_of(size: int, rng: random.Random) -> str:
    """Return text of about `size` characters from 4,200 words."""
    return " ".join(rng.choices(WORDS, k=max(1, size // 7)))


def said(text: str, role: Role = "user") -> MessageAdded:
    """Return a log payload."""
    return MessageAdded(message=Message(id="m", role=role, content=text))


def timed(work: Callable[[], object], repeat: int) -> list[float]:
    """Return the times in ms, sorted."""
    times = []
    for _ in range(repeat):
        before = time.perf_counter()
        work()
        times.append((time.perf_counter() - before) * 1e3)
    return sorted(times)


def spread(times: list[float]) -> str:
    """Return median, p95 and longest."""
    return f"{statistics.median(times):8.2f} {times[int(len(times) * 0.95)]:8.2f} {times[-1]:8.2f}"


def flush_times(folder: Path) -> list[float]:
    """Return the cost of one 4 kB write with fdatasync: no durable append can be faster."""
    with (folder / "flush").open("wb") as file:

        def write() -> None:
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())

        return timed(write, 200)


def fill(store: Store, messages: int, rng: random.Random) -> None:
    """Write a chat of 1 kB messages, in groups."""
    futures = [store.append(CHAT, [said(text_of(1_000, rng))]) for _ in range(messages)]
    for future in futures:
        future.result()


def index_times(rng: random.Random) -> dict[str, list[float]]:
    """Return the cost of the full-text index, in memory: on a disk the wait for the flush hides it."""
    store, result = open_memory_store(), {}
    roles: tuple[tuple[str, Role], ...] = (("with", "user"), ("without", "system"))  # a system prompt is not indexed
    for size in (1_000, 100_000):
        for name, role in roles:
            texts = iter([text_of(size, rng) for _ in range(100)])
            result[f"append in memory {name} full-text index, {size}"] = timed(
                lambda texts=texts, role=role: store.append("a", [said(next(texts), role)]).result(), 100
            )
    store.close()
    return result


def measure(messages: int) -> dict[str, list[float]]:
    """Return the times in ms of all measurements, by name."""
    rng = random.Random(1)
    result: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        result["open, new"] = timed(lambda: open_store(folder).close(), 1)
        result["fdatasync of 4 kB (floor)"] = flush_times(Path(place))
        store = open_store(folder)
        for size in (100, 1_000, 10_000, 100_000):
            texts = iter([text_of(size, rng) for _ in range(400)])
            repeat = 200 if size < 100_000 else 40
            result[f"append durable, {size} characters"] = timed(
                lambda texts=texts: store.append("a", [said(next(texts))]).result(), repeat
            )
        result |= index_times(rng)
        result["append, caller's thread only"] = timed(lambda: store.append("b", [said("x" * 1_000)]), 500)
        result["append 100 at once, all durable"] = timed(
            lambda: [f.result() for f in [store.append("b", [said("x" * 1_000)]) for _ in range(100)]], 20
        )
        partial = "y" * 50_000
        result["save_partial of 50 kB"] = timed(lambda: store.save_partial("b", partial).result(), 50)
        result[f"write {messages} messages of 1 kB"] = timed(lambda: fill(store, messages, rng), 1)
        result["append durable after them"] = timed(lambda: store.append(CHAT, [said("next one")]).result(), 100)
        store.close()
        result["open, existing"] = timed(lambda: open_store(folder).close(), 20)
        store = open_store(folder)
        with sqlite3.connect(folder / "sessions.db") as plain:
            select = "SELECT seq, ts, payload FROM events WHERE chat_id = ? ORDER BY seq"
            result["plain SELECT of the chat (floor)"] = timed(lambda: plain.execute(select, (CHAT,)).fetchall(), 7)
        plain.close()
        result[f"load_events, {messages} messages"] = timed(lambda: store.load_events(CHAT), 7)
        newest = store.last_seq(CHAT)
        result["load_events, the newest 50"] = timed(lambda: store.load_events(CHAT, newest - 50), 50)
        result["list_sessions"] = timed(store.list_sessions, 50)
        result["search, one common word"] = timed(lambda: store.search("pars6"), 20)
        result["search, two rare words"] = timed(lambda: store.search("buff123 lay456"), 20)
        for size in (1_000_000, 10_000_000):
            result[f"put_blob of {size // 1_000_000} MB"] = timed(
                lambda size=size: store.put_blob(rng.randbytes(size)), 5
            )
        result["quick check of the whole file"] = timed(store.check, 3)
        store.close()
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.messages)
    medians = {name: statistics.median(times) for name, times in result.items()}
    if arguments.json:
        print(json.dumps(medians))
        return
    print(f"{'milliseconds':52} {'median':>8} {'p95':>8} {'longest':>8}")
    for name, times in result.items():
        print(f"{name:52} {spread(times)}")
    load, floor = medians[f"load_events, {arguments.messages} messages"], medians["plain SELECT of the chat (floor)"]
    append, flush = medians["append durable, 1000 characters"], medians["fdatasync of 4 kB (floor)"]
    print(f"\nload / SELECT {load / floor:.1f}   append / fdatasync {append / flush:.1f}")


if __name__ == "__main__":
    main()
