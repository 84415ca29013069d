"""The cost of a long chat for its host: turns, resume, the first turn after it, compaction, and a second chat.

    python -m bench.bench_length [--messages 200,10000] [--turns 40] [--only turns,files,resume,compaction]

A real session with SQLite and checkpoint files on disk; the model answers at once, so all measured time is ours. The
median and the p95 of each figure are printed, in ms; `cpu` is of the whole process, independent of other load. `stall`
is the longest time the host's loop was blocked: the delay of a stream in another chat.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.keys.redact import redact
from codecompanion.context.summary_text.sections import load_schema
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import ChatCreated, EventPayload, MessageAdded, TurnEnded, TurnStarted
from codecompanion.model.messages import Message, ToolCall, with_changes
from codecompanion.session.services import Keeping
from codecompanion.session.session import Session
from codecompanion.store.files.checkpoints import CheckpointFiles
from codecompanion.store.files.memory_files import MemoryFiles
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from codecompanion.wire.events import Restored
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit

CHAT = "bench"
TICK_S, LIMIT_S = 0.001, 120
SUMMARY = "".join(f"{load_schema('cc_9').heading(n)}\n- it all went well, {n}\n" for n in range(1, 10))


class Stalls:
    """The longest block of the loop, measured by a task that wakes up every millisecond."""

    def __init__(self) -> None:
        self.longest_ms = 0.0

    async def watch(self) -> None:
        """Run until cancelled."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.perf_counter()
            self.longest_ms = max(self.longest_ms, (now - last - TICK_S) * 1000)
            last = now

    def take(self) -> float:
        """Return the longest block so far, and start over."""
        longest, self.longest_ms = self.longest_ms, 0.0
        return longest


def row(name: str, figures: Sequence[float], unit: str = "ms") -> None:
    """Print median and p95 of some figures."""
    ordered = sorted(figures)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    print(f"{name:<64}{statistics.median(ordered):>10.1f}{p95:>10.1f} {unit}", flush=True)


def history(count: int, *, size: int = 400, files: bool = False) -> list[EventPayload]:
    """Return the log of a chat of `count` messages of about `size` characters each, all in view."""
    counter, made = MessageCounter(), list[EventPayload]()
    made.append(ChatCreated(adapter="offline", model="", policy="", cwd=""))
    for number in range(count // 4):
        turn, cycle = f"turn-{number}", number + 1
        path = f"src/file_{number if files else 0}.py"
        call = ToolCall(f"call-{number}", "read_file", json.dumps({"path": path}))
        body = f"line {number} of a file that says something = {number}\n" * max(1, size // 40)
        made.append(TurnStarted(turn_id=turn, cycle=cycle))
        for message in (
            Message(id=f"{number}u", role="user", content=f"question {number} " * 8, cycle=cycle, turn_id=turn),
            Message(id=f"{number}c", role="assistant", tool_calls=(call,), cycle=cycle, turn_id=turn),
            Message(id=f"{number}r", role="tool", content=body, tool_call_id=call.id, cycle=cycle, turn_id=turn),
            Message(id=f"{number}a", role="assistant", content=f"answer {number} " * 30, cycle=cycle, turn_id=turn),
        ):
            made.append(MessageAdded(message=with_changes(message, tokens=counter.message(message))))
        made.append(TurnEnded(turn_id=turn, reason="done"))
    return made


def store_chat(root: Path, payloads: Sequence[EventPayload]) -> Store:
    """Return a store on disk with the chat."""
    store = open_store(root / "store")
    store.acquire(CHAT).result()
    for start in range(0, len(payloads), 5000):
        store.append(CHAT, payloads[start : start + 5000]).result()
    return store


class Host:
    """One host's chat, its model and the clock of its requests."""

    def __init__(self, root: Path, store: Store, window: int = 20_000_000, **settings: object) -> None:
        self.asked_at = 0.0
        self.bench = Bench(root, ScriptedAdapter("offline", self._reply), window=window, store=store, settings=settings)
        state = root / "state"
        files = CheckpointFiles(state)
        self.bench.services.keeping = Keeping(files, MemoryFiles(root / "memories", state), redact)

    def _reply(self, request: ChatRequest) -> Reply:
        self.asked_at = time.perf_counter()
        return says(SUMMARY if request.purpose == "summary" else "It all went well, and that is all. " * 8)

    async def turn(self, session: Session, number: int) -> tuple[float, float]:
        """Run a turn; return (ms until the model was asked, ms of CPU until idle)."""
        began, cpu = time.perf_counter(), time.process_time()
        session.submit(submit(f"question {number}", number))
        await self.bench.idle(session)
        return (self.asked_at - began) * 1000, (time.process_time() - cpu) * 1000


@asynccontextmanager
async def host(payloads: Sequence[EventPayload], window: int = 20_000_000, **settings: object) -> AsyncIterator[Host]:
    """Yield a host with that chat stored."""
    with tempfile.TemporaryDirectory(prefix="codecompanion-bench-") as folder:
        store = store_chat(Path(folder), payloads)
        made = Host(Path(folder), store, window, **settings)
        try:
            yield made
            assert not made.bench.bugs, made.bench.bugs
        finally:
            store.close()


async def turns(name: str, payloads: Sequence[EventPayload], count: int) -> None:
    """Run turn after turn in an open chat, first without pauses, then with them."""
    async with host(payloads) as made:
        session = await made.bench.resume(CHAT)
        assert session is not None
        stalls = Stalls()
        watching = asyncio.create_task(stalls.watch())
        for number in range(5):
            await made.turn(session, number)
        await session.effects.settled()
        stalls.take()
        first, cpu, stalled = [], [], []
        began = time.process_time()
        for number in range(count):
            asked, _ = await made.turn(session, 100 + number)
            first.append(asked)
            stalled.append(stalls.take())
            await asyncio.sleep(0.05 if number % 2 else 0)
        await session.effects.settled()
        cpu.append((time.process_time() - began) * 1000 / count)
        watching.cancel()
        row(f"{name}: submit → request", first)
        row(f"{name}: the loop stands still", stalled)
        row(f"{name}: CPU a turn, with what follows it", cpu, "ms CPU")


async def resume(name: str, payloads: Sequence[EventPayload], count: int) -> None:
    """Measure resuming a chat: the first blocks, all blocks, the first turn after it, and the delay of another chat."""
    paint, whole, first, stalled = [], [], [], []
    for _ in range(count):
        async with host(payloads) as made:
            other = await made.bench.open("other")
            await made.turn(other, 1)
            stalls, told = Stalls(), list[float]()
            take = made.bench.services.emit

            def emit(event: object, take: object = take, told: list[float] = told) -> None:
                if isinstance(event, Restored):
                    told.append(time.perf_counter())
                take(event)  # type: ignore[operator]

            made.bench.services.emit = emit
            watching = asyncio.create_task(stalls.watch())
            await asyncio.sleep(0.02)
            stalls.take()
            began = time.perf_counter()
            session = await made.bench.resume(CHAT)
            assert session is not None
            paint.append((told[0] - began) * 1000)
            whole.append((time.perf_counter() - began) * 1000)
            stalled.append(stalls.take())
            await asyncio.sleep(0.5)
            asked, _ = await made.turn(session, 100)
            first.append(asked)
            await session.stop()
            await session.effects.settled()
            watching.cancel()
    row(f"{name}: resume → first piece told", paint)
    row(f"{name}: resume → open", whole)
    row(f"{name}: resume, another chat stands still", stalled)
    row(f"{name}: first turn after it, submit → request", first)


async def compaction(name: str, payloads: Sequence[EventPayload], count: int) -> None:
    """Measure `/compact` with an instant summariser: until the view has changed, and the delay of another chat."""
    took, stalled, cpu = [], [], []
    for _ in range(count):
        async with host(payloads, on_compact="stop") as made:
            session = await made.bench.resume(CHAT)
            assert session is not None
            await made.turn(session, 1)
            await session.effects.settled()
            stalls = Stalls()
            watching = asyncio.create_task(stalls.watch())
            await asyncio.sleep(0.02)
            stalls.take()
            began, used, before = time.perf_counter(), time.process_time(), session.log.compactions
            session.compact("")
            while session.log.compactions == before:
                await asyncio.sleep(TICK_S)
                assert time.perf_counter() - began < LIMIT_S, "the compaction does not come to an end"
            took.append((time.perf_counter() - began) * 1000)
            await made.bench.idle(session)
            stalled.append(stalls.take())
            await session.effects.settled()
            cpu.append((time.process_time() - used) * 1000)
            watching.cancel()
    row(f"{name}: /compact → changed", took)
    row(f"{name}: /compact, another chat stands still", stalled)
    row(f"{name}: /compact, CPU with what follows it", cpu, "ms CPU")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", default="200,1000,5000,10000")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--only", default="turns,files,resume,compaction")
    arguments = parser.parse_args()
    only = arguments.only.split(",")
    print(f"{'':<64}{'median':>10}{'p95':>10}")
    for count in map(int, arguments.messages.split(",")):
        if "turns" in only:
            asyncio.run(turns(f"{count:,} messages", history(count), arguments.turns))
        if "resume" in only:
            asyncio.run(resume(f"{count:,} messages", history(count), arguments.times))
    if "files" in only:
        asyncio.run(turns("50,000 messages, 12,500 files", history(50_000, size=40, files=True), 10))
    if "compaction" in only:
        for megabytes in (1, 10):
            payloads = history(400 * megabytes, size=9_000)
            asyncio.run(compaction(f"{megabytes} MB", payloads, arguments.times))


if __name__ == "__main__":
    main()
