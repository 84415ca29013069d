"""The cost of a turn in a chat with a long history, under every policy (lesson 31).

    python -m bench.bench_turn [--long 10000] [--turns 30]

The log of the long chat has many messages, that of the short one 100; all but the newest 40 are compacted away. A turn
is a user message, a tool call with its result, and an answer, through the real session and a real SQLite file; the
model answers at once. Prints the median per turn, and the ratio of the two chats in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import (
    ChatCreated,
    EventPayload,
    Insertion,
    MessageAdded,
    TurnEnded,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import SUMMARY_TAG, Message, ToolCall, with_changes
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

SHORT, KEPT = 100, 40
CHAT = "bench"
READ = ("c", "read_file", '{"path": "a.txt"}')


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=30)
    arguments = parser.parse_args()
    print(f"{'policy':<16}{SHORT:>10} messages{arguments.long:>12} messages{'ratio':>8}")
    for policy in policy_names():
        short = asyncio.run(measure(policy, SHORT, arguments.turns))
        long = asyncio.run(measure(policy, arguments.long, arguments.turns))
        print(f"{policy:<16}{short * 1000:>16.2f} ms{long * 1000:>18.2f} ms{long / short:>8.2f}")


async def measure(policy: str, history: int, turns: int) -> float:
    """Return the median seconds of a turn in a stored chat with `history` messages."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "a.txt").write_text("a line of the file\n" * 40, encoding="utf-8")
        store = open_store(root / "store")
        try:
            write_history(store, history, policy)
            script = iter(reply for _ in range(turns + 5) for reply in (calls(READ), says("That is it.")))
            adapter = ScriptedAdapter("offline", lambda request: next(script))
            bench = Bench(root, adapter, window=200_000, store=store, settings={"policy": policy})
            session = await bench.resume(CHAT)
            assert session is not None
            took = []
            for number in range(turns):
                began = time.perf_counter()
                session.submit(submit(f"question {number}", number + 1))
                await bench.idle(session)
                took.append(time.perf_counter() - began)
            assert not bench.bugs, bench.bugs
            await session.stop()
            return statistics.median(took[5:])
        finally:
            store.close()


def write_history(store: Store, count: int, policy: str) -> None:
    """Store a chat of `count` messages, of which a compaction left the newest in view."""
    counter = MessageCounter()
    payloads: list[EventPayload] = [ChatCreated(adapter="offline", model="", policy=policy, cwd="")]
    ids: list[str] = []
    for number in range(count // 4):
        turn, cycle = f"turn-{number}", number + 1
        payloads.append(TurnStarted(turn_id=turn, cycle=cycle))
        call = ToolCall(f"call-{number}", "read_file", '{"path": "a.txt"}')
        for message in (
            Message(id=f"{number}u", role="user", content=f"question {number} " * 8, cycle=cycle, turn_id=turn),
            Message(id=f"{number}c", role="assistant", tool_calls=(call,), cycle=cycle, turn_id=turn),
            Message(
                id=f"{number}r", role="tool", content="a line\n" * 60, tool_call_id=call.id, cycle=cycle, turn_id=turn
            ),
            Message(id=f"{number}a", role="assistant", content=f"answer {number} " * 30, cycle=cycle, turn_id=turn),
        ):
            payloads.append(MessageAdded(message=with_changes(message, tokens=counter.message(message))))
            ids.append(message.id)
        payloads.append(TurnEnded(turn_id=turn, reason="done"))
    summary = Message(id="summary", role="user", content="What came before. " * 50, tag=SUMMARY_TAG)
    payloads.append(
        ViewChanged(
            change_id="compaction", kind="compacted", removed=tuple(ids[:-KEPT]), inserted=(Insertion(summary),)
        )
    )
    store.acquire(CHAT).result()
    store.append(CHAT, payloads).result()


if __name__ == "__main__":
    main()
