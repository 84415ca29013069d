"""The fault table of MCP servers: after any fault the chat continues, and the model or the user reads a sentence.

Four things are true in every row: the turn ends, each call has exactly one result, the chat takes the next message,
and a server's output is in the history only as a result or the description of a tool.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from codecompanion.wire.events import Notice, TurnFinished
from tests.unit.session.fakes import ScriptedAdapter, calls, says, submit
from tests.unit.session.mcp_bench import server, with_servers

pytestmark = pytest.mark.slow("each fault in a server process of its own")


class Row(NamedTuple):
    """A fault: the server's behaviour, the tool that is called, and the text that the model (or the user) reads."""

    name: str
    ways: tuple[str, ...]
    tool: str = "echo"
    result: str = ""
    notice: str = ""


ROWS = (
    Row("garbage between messages", ("garbage",), result="echo: x"),
    Row("output without end", ("endless",), notice="it printed 1,000 lines that are not messages"),
    Row("a message of 20 MB", (), "huge", "it sent a message longer than 16 MB."),
    Row("silence at the start", ("hang",), notice="is still starting"),
    Row("the end at the start", ("die",), notice="it ended; it printed: I cannot start"),
    Row("silence in a call", (), "wait", "did not answer within 0.5 s; the call was stopped."),
    Row("the end in a call", (), "die", "it ended."),
    Row("two answers", ("twice",), result="echo: x"),
    Row("answers to nothing", ("wrong-ids",), result="echo: x"),
    Row("a flood of changes", ("flood",), result="echo: x"),
    Row("a list that is none", ("no-list",), notice="its answer violates the protocol"),
    Row("a list without end", ("endless-pages",), "again_0", "the user"),
    Row("a deaf process with daemons", ("deaf", "spawn"), result="echo: x"),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_fault_is_a_sentence_and_the_chat_continues(tmp_path: Path, row: Row) -> None:
    script = [calls(("c1", f"odd__{row.tool}", '{"text": "x"}')), says("done"), says("and on")]
    entry = server(*row.ways, require_approval_before=False, timeout_s=0.5 if row.tool == "wait" else 60.0)
    adapter = ScriptedAdapter("s", script)
    async with with_servers(tmp_path, adapter, {"odd": entry}, wait_s=1.0 if "hang" in row.ways else 60.0) as parts:
        bench, session, _ = parts
        for text in ("go", "again"):
            session.submit(submit(text))
            await bench.idle(session)
        results = [message for message in session.log.view.messages if message.role == "tool"]
        assert [message.tool_call_id for message in results] == ["c1"]
        if row.result and row.tool != "again_0":
            assert row.result in results[0].text
        if row.notice:
            assert any(row.notice in event.text for event in bench.of(Notice)), bench.of(Notice)
            assert "There is no tool named" in results[0].text
        assert [event.reason for event in bench.of(TurnFinished)] == ["done", "done"]
        assert bench.bugs == []
