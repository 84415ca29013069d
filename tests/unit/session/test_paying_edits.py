"""The policy `adaptive` in a chat: edits wait for the prompt cache to be cold, and recovery does not (lesson 22)."""

from __future__ import annotations

import json
from pathlib import Path

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.errors import ContextOverflow
from codecompanion.placeholders import TOOL_RESULT_CLEARED
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.session import Session
from codecompanion.wire.events import ContextEdited
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit

TURNS = 9


def reads_and_answers(request: ChatRequest) -> Reply:
    """Read the same file in each turn, then answer at a length that is expensive to send again."""
    if request.messages[-1].role == "tool":
        return says("a long answer " * 2000)
    return calls((f"c{len(request.messages)}", "read_file", json.dumps({"path": "a.txt"})))


async def play(bench: Bench, session: Session, turns: int) -> None:
    for number in range(turns):
        session.submit(submit(f"look at it again, {number}", number + 1))
        await bench.idle(session)


async def make_chat(root: Path, window: int = 200_000) -> tuple[Bench, Session]:
    (root / "a.txt").write_text("\n".join(f"line {number} of the file" for number in range(700)))
    bench = Bench(root, ScriptedAdapter("first", reads_and_answers), window=window)
    session = await bench.open()
    await choose_policy(session, "adaptive")
    return bench, session


async def test_outdated_reads_are_cleared_when_the_cache_is_cold(tmp_path: Path) -> None:
    bench, session = await make_chat(tmp_path)
    await play(bench, session, TURNS)
    assert bench.of(ContextEdited) == []
    bench.services.clock = lambda: 1000.0 + 2 * bench.adapter.cache_lifetime_s
    await play(bench, session, 1)
    edited = bench.of(ContextEdited)
    assert len(edited) == 1
    assert edited[0].tokens_after < 0.9 * edited[0].tokens_before
    results = [message for message in session.log.view.messages if message.role == "tool"]
    assert results[0].text == TOOL_RESULT_CLEARED
    assert TOOL_RESULT_CLEARED not in results[-1].text


async def test_a_server_of_the_users_own_keeps_its_cache_over_a_break(tmp_path: Path) -> None:
    """Clearing would only make it read again; when the window gets tight it is done all the same."""
    bench, session = await make_chat(tmp_path)
    bench.services.adapters.add(
        bench.adapter,
        AdapterSettings(name="first", kind="offline", base_url="http://localhost:8080", local_server=True),
    )
    await play(bench, session, TURNS)
    bench.services.clock = lambda: 1000.0 + 100 * bench.adapter.cache_lifetime_s
    await play(bench, session, 1)
    assert bench.of(ContextEdited) == []
    assert await session.control.recover(ContextOverflow("too long"))
    assert bench.of(ContextEdited)


async def test_a_refused_request_is_edited_without_weighing(tmp_path: Path) -> None:
    bench, session = await make_chat(tmp_path)
    await play(bench, session, TURNS)
    before = session.control.measured().tokens
    assert await session.control.recover(ContextOverflow("too long"))
    assert bench.of(ContextEdited)
    assert session.control.measured().tokens < before
