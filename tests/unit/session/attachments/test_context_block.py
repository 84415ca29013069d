"""Attachments join the view at the next boundary, all in one commit (R-548)."""

from __future__ import annotations

import asyncio

from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.messages import Message
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


def file(name: str, text: str) -> Message:
    return Message(id=f"{name}-{text}", role="user", content=text, tag="file", path=name)


async def test_attachments_added_during_a_turn_join_in_one_commit(tmp_path):
    """Each attachment used to have its own commit, which cost a disk flush of two milliseconds."""
    gate = asyncio.Event()
    adapter = ScriptedAdapter("offline", [(gate, *says("first")), says("second")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(file("a.py", "old"))
    session.submit(submit("hello", 1))
    await bench.until(lambda: adapter.requests)
    seen, append = list[list[object]](), bench.services.store.append
    bench.services.store.append = lambda chat, payloads: (seen.append(list(payloads)), append(chat, payloads))[1]
    await session.attach(file("a.py", "new"), file("b.py", "one"), file("b.py", "two"))
    session.submit(submit("go on", 2))
    gate.set()
    await bench.idle(session)
    joined = [commit for commit in seen if any(isinstance(p, MessageAdded) and p.message.tag for p in commit)]
    assert len(joined) == 1
    told = [p.removed if isinstance(p, ViewChanged) else p.message.id for p in joined[0] if not hasattr(p, "turn_id")]
    assert told == [("a.py-old",), "a.py-new", "b.py-one", ("b.py-one",), "b.py-two"]
    assert [m.id for m in session.log.view.messages if m.tag == "file"] == ["a.py-new", "b.py-two"]
