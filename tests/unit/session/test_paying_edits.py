"""The policy `adaptive` in a chat: edits wait for a cold prompt cache, and recovery does not (lesson 22)."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.prompt_slots import Loss
from codecompanion.adapters.speed import Speed
from codecompanion.errors import ContextOverflow
from codecompanion.model.history import UsageReported
from codecompanion.model.messages import Usage
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


async def test_a_users_own_server_keeps_its_cache_over_a_break(tmp_path: Path) -> None:
    """Clearing would only make the server read the chat again; if the window gets tight, results are cleared anyway."""
    bench, session = await make_chat(tmp_path)
    own_server(bench)
    await play(bench, session, TURNS)
    bench.services.clock = lambda: 1000.0 + 100 * bench.adapter.cache_lifetime_s
    await play(bench, session, 1)
    assert bench.of(ContextEdited) == []
    assert await session.control.recover(ContextOverflow("too long"))
    assert bench.of(ContextEdited)


def own_server(bench: Bench) -> None:
    entry = AdapterSettings(name="first", kind="offline", base_url="http://localhost:8080", local_server=True)
    entry = msgspec.structs.replace(entry, context_window=200_000)
    bench.services.adapters.add(bench.adapter, entry)


async def test_a_chat_that_lost_its_slot_is_cleared_at_once(tmp_path: Path) -> None:
    """The whole chat is read again anyway, so clearing unneeded results saves the time to read them."""
    bench, session = await make_chat(tmp_path)
    own_server(bench)
    await play(bench, session, TURNS)
    bench.adapter.loses = "other_request"
    await play(bench, session, 1)
    assert len(bench.of(ContextEdited)) == 1


async def test_how_fast_the_server_reads_decides_whether_a_lost_chat_is_cleared(tmp_path: Path) -> None:
    bench, session = await make_chat(tmp_path)
    own_server(bench)
    await play(bench, session, TURNS)
    bench.adapter.loses, bench.adapter.is_fast = "restart", Speed(reads=1e6)
    await play(bench, session, 1)
    assert bench.of(ContextEdited) == []
    bench.adapter.is_fast = Speed(reads=500.0)
    await play(bench, session, 1)
    assert len(bench.of(ContextEdited)) == 1


class Server:
    """Reports how much of each prompt was read: only the new part, or all of it once the slot was lost."""

    def __init__(self) -> None:
        self.sizes, self.has_lost = [0], False

    def __call__(self, request: ChatRequest) -> Reply:
        size = sum(message.tokens for message in request.messages) + 2_500
        replied = next((m.tokens for m in reversed(request.messages) if m.role == "assistant"), 0)
        read = size if self.has_lost or size < self.sizes[-1] else size - self.sizes[-1] - replied
        self.sizes.append(size)
        *steps, finished = reads_and_answers(request)
        usage = Usage(read, 10, cache_read_tokens=size - read)
        return (*steps, msgspec.structs.replace(finished, usage=usage, read_tokens=read))


@pytest.mark.parametrize("known", ["", "other_request"])
async def test_a_reply_that_read_the_chat_again_is_shown_and_the_next_turn_is_cold(tmp_path: Path, known: Loss) -> None:
    """This is reported only for the user's own server; the cause is named where it is known."""
    (tmp_path / "a.txt").write_text("\n".join(f"line {number} of the file" for number in range(700)))
    server = Server()
    bench = Bench(tmp_path, ScriptedAdapter("first", server), window=200_000)
    own_server(bench)
    session = await bench.open()
    await choose_policy(session, "adaptive")
    await play(bench, session, TURNS)
    reports = [event.payload for event in await session.log.events() if isinstance(event.payload, UsageReported)]
    assert [report.read_again for report in reports] == [None] * 2 * TURNS
    server.has_lost = True
    session.control.adapter().loses = known  # type: ignore[attr-defined]
    await play(bench, session, 1)
    reports = [event.payload for event in await session.log.events() if isinstance(event.payload, UsageReported)]
    again = [report.read_again for report in reports[2 * TURNS :]]
    assert again[0] is not None
    assert again[0].why == known
    assert 0.8 * server.sizes[-2] < again[0].tokens <= server.sizes[-2]
    edited = len(bench.of(ContextEdited))
    assert edited == (1 if known else 0), "within the turn the next request follows immediately"
    server.has_lost, bench.adapter.loses = False, ""
    await play(bench, session, 1)
    assert len(bench.of(ContextEdited)) == 1


async def test_a_server_that_kept_what_it_should_have_lost_is_believed(tmp_path: Path) -> None:
    """llama.cpp keeps prompts in memory beside its slots (`--cache-ram`)."""
    bench = Bench(tmp_path, ScriptedAdapter("first", Server()), window=200_000)
    (tmp_path / "a.txt").write_text("short")
    own_server(bench)
    session = await bench.open()
    await play(bench, session, 2)
    bench.adapter.loses = "other_request"
    await play(bench, session, 1)
    assert bench.adapter.loses == ""


async def test_a_refused_request_is_edited_without_weighing(tmp_path: Path) -> None:
    bench, session = await make_chat(tmp_path)
    await play(bench, session, TURNS)
    before = session.control.measured().tokens
    assert await session.control.recover(ContextOverflow("too long"))
    assert bench.of(ContextEdited)
    assert session.control.measured().tokens < before
