"""kill -9 between any two writes of an undo, a redo, a restore or a pin leaves the state before or after it (R-545)."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.invariants import violations
from codecompanion.model.view import project
from codecompanion.store.opening import open_store
from codecompanion.wire.requests import Pin, RedoChange, RestoreMessage, UndoChange, Unpin
from tests.unit.session.fakes import Bench, ScriptedAdapter, says
from tests.unit.session.history.test_undo import KEEP_ALL, ask, reader, talked

ROOT = Path(__file__).resolve().parents[3]
CHAT = "chat-1"
STORY = (
    Pin(chat=CHAT, text="use tabs"),
    UndoChange(chat=CHAT),
    RedoChange(chat=CHAT),
    UndoChange(chat=CHAT),
    UndoChange(chat=CHAT),
    RedoChange(chat=CHAT),
    RestoreMessage(chat=CHAT, item="c0"),
    Pin(chat=CHAT, item="c0"),
    Unpin(chat=CHAT, number=1),
    UndoChange(chat=CHAT),
)


async def test_each_manual_change_is_one_write_and_a_kill_after_it_leaves_that_view(tmp_path):
    """R-545: reopened after every write, the view is one that the user has seen."""
    bench = Bench(tmp_path, reader(), settings=KEEP_ALL)
    session = await talked(bench, 2)
    session.compact("")
    await bench.idle(session)
    known = [event.payload for event in bench.store.load_events(CHAT)]
    seen = [session.log.view.messages]
    for request in STORY:
        await ask(session, request)
        seen.append(session.log.view.messages)
    written = [event.payload for event in bench.store.load_events(CHAT)][len(known) :]
    assert len(written) == len(STORY)
    for number in range(len(written) + 1):
        again = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("THE END")))
        again.store.append(CHAT, [*known, *written[:number]]).result()
        again.store.release(CHAT).result()
        resumed = await again.resume()
        assert resumed is not None
        assert resumed.log.view.messages == seen[number]
        assert violations(resumed.log.view.messages) == []


KILLED = """
import asyncio, sys
from pathlib import Path
from codecompanion.wire.requests import Pin, RedoChange, RestoreMessage, UndoChange
from codecompanion.store.opening import open_store
from tests.unit.session.fakes import Bench, says
from tests.unit.session.history.test_undo import KEEP_ALL, reader, talked

async def main():
    root = Path(sys.argv[1])
    bench = Bench(root, reader(), settings=KEEP_ALL, store=open_store(root / "store"))
    session = await talked(bench, 2)
    session.compact("")
    await bench.idle(session)
    print("ready", flush=True)
    chat = {"chat": "chat-1"}
    while True:
        for request in (UndoChange(**chat), RedoChange(**chat), RestoreMessage(**chat, item="c0"), UndoChange(**chat)):
            await session.edits.carry_out(request)
            print("done", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_process_killed_during_an_undo_leaves_the_old_or_the_new_view(tmp_path, seed):
    """R-545: kill -9 of a real process on a real file, anywhere between two writes."""
    (tmp_path / "a.txt").write_text("word " * 2000)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT)])}
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(random.Random(seed).randrange(1, 25)):
            assert process.stdout.readline() == "done\n"
        process.kill()  # it runs ahead of the output read here: anywhere between two writes
    store = open_store(tmp_path / "store")
    events = store.load_events(CHAT)
    first = next(place for place, event in enumerate(events) if isinstance(event.payload, ViewChanged))
    full, compacted = project(events[:first]).messages, project(events[: first + 1]).messages
    view = project(events).messages
    restored = [m for m in view if m.role == "tool" and m.tool_call_id == "c0"]
    original = next(
        e.payload.message for e in events if isinstance(e.payload, MessageAdded) and e.payload.message.role == "tool"
    )
    assert view in (full, compacted) or [m.content for m in restored] == [original.content]
    assert violations(view) == []

    async def reopened():
        bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("THE END")), store=store)
        session = await bench.resume()
        assert session is not None
        assert msgspec.json.encode(session.log.view.messages) == msgspec.json.encode(view)

    asyncio.run(reopened())
    store.close()
