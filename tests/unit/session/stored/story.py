"""One chat under each policy, played identically by every version, to compare a newer one with an older.

`python -m tests.unit.session.stored.story` stores it with the current code, in the folder of its store format; an
existing folder is never rewritten.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.model.messages import Message
from codecompanion.session.session import Session
from codecompanion.session.storage.open_chat import open_new
from codecompanion.session.storage.open_stored import open_stored
from codecompanion.store.log.migrations import MIGRATIONS
from codecompanion.store.opening import open_store
from codecompanion.store.sqlite_connection import FILE_NAME
from codecompanion.store.store import Store
from codecompanion.wire.requests import OpenChat, RedoChange, Snapshot, Submit, UndoChange
from tests.summaries import nine_sections
from tests.unit.session.fakes import ALL_TOOLS, Bench, Reply, ScriptedAdapter, calls, says

HERE = Path(__file__).parent
WINDOW = 6_000
TURNS = 7
EXPECTED = "expected.json"
YOUNGER_TOOLS = ("code_search",)
"""Tools added after a story was stored: in a window this small, one more schema means one turn less in view."""


def model() -> ScriptedAdapter:
    """Return a model that reads a file for every question, and can summarise."""
    numbers = iter(range(10_000))

    def answer(request: ChatRequest) -> Reply:
        if request.purpose == "summary":
            return says(nine_sections("The user asks about parts of a.txt."))
        if request.messages[-1].role == "tool":
            return says("It says word, again and again. " * 10)
        return calls((f"c{next(numbers)}", "read_file", '{"path": "a.txt"}'), text="I read it.")

    return ScriptedAdapter("s", answer)


def bench_on(root: Path, policy: str) -> Bench:
    """Return a host on the store in the folder, which is also its workspace."""
    (root / "a.txt").write_text("word " * 900, encoding="utf-8")
    store = open_store(root, clock=lambda: 1000.0)
    tools = {**ALL_TOOLS, "entries": {name: {"enabled": False} for name in YOUNGER_TOOLS}}
    return Bench(root, model(), window=WINDOW, store=store, settings={"policy": policy}, tools=tools)


async def ask(bench: Bench, session: Session, number: int) -> None:
    """Ask the n-th question and wait for the answer."""
    text = f"Question {number}: what does part {number} say? " + ("Never change a.txt." if number == 1 else "")
    session.submit(Submit(chat=session.chat_id, submit_id=number, text=text, snapshot=Snapshot()))
    await bench.idle(session)


def shown(messages: Iterable[Message], root: Path) -> list[str]:
    """Return the text of each message, in a form that renaming in our code does not change."""
    return [
        f"{m.role} {hashlib.sha256(m.text.replace(str(root), 'ROOT').encode()).hexdigest()[:12]} {m.text[:40]!r}"
        + "".join(f" {call.name}" for call in m.tool_calls)
        for m in messages
    ]


async def tell(root: Path, policy: str) -> dict[str, Any]:
    """Store the chat of a policy; return its final view."""
    bench = bench_on(root, policy)
    session = await open_new(bench.services, OpenChat(chat=f"chat-{policy}", snapshot=Snapshot(), adapter="s"))
    for number in range(1, TURNS + 1):
        await ask(bench, session, number)
    view = shown(session.log.view.messages, root)
    await session.close()
    await _closed(bench.store)
    return {"view": view}


async def go_on(root: Path, policy: str) -> dict[str, Any]:
    """Open the stored chat, undo, redo, ask once more; return the view and the requests."""
    bench = bench_on(root, policy)
    chat = f"chat-{policy}"
    session = await open_stored(bench.services, OpenChat(chat=chat, snapshot=Snapshot(), resume=chat))
    assert session is not None
    found = {"view": shown(session.log.view.messages, root)}
    await session.edits.carry_out(UndoChange(chat=chat, change_id=""))
    found["undone"] = shown(session.log.view.messages, root)
    await session.edits.carry_out(RedoChange(chat=chat))
    found["redone"] = shown(session.log.view.messages, root)
    await ask(bench, session, TURNS + 1)
    found["sent"] = shown(bench.adapter.requests[-1].messages, root)
    await session.close()
    await _closed(bench.store)
    assert not bench.bugs, bench.bugs
    return found


async def _closed(store: Store) -> None:
    await asyncio.to_thread(store.close)


def write() -> None:
    """Write the story and its expected results in the folder of today's format."""
    folder = HERE / f"format_{len(MIGRATIONS)}"
    folder.mkdir()
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        expected = {policy: asyncio.run(tell(root, policy)) for policy in policy_names()}
        with sqlite3.connect(root / FILE_NAME) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (folder / f"{FILE_NAME}.gz").write_bytes(gzip.compress((root / FILE_NAME).read_bytes(), mtime=0))
        for policy in policy_names():
            with tempfile.TemporaryDirectory() as opened:
                shutil.copy(root / FILE_NAME, opened)
                expected[policy] |= asyncio.run(go_on(Path(opened), policy))
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (folder / EXPECTED).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
