"""Questions from a server while its tool runs: shown, answered only by the user, or declined in the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.base import Finished, TextDelta
from codecompanion.model.history import UsageReported
from codecompanion.model.messages import Usage
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.wire.events import ApprovalRequested, Notice
from codecompanion.wire.requests import Approve
from tests.mcp.listener import recorded
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.mcp_bench import server, with_servers


@asynccontextmanager
async def asked(tmp_path: Path, what: str, *replies: Any, **more: Any) -> AsyncIterator[tuple[Bench, Session, Any]]:
    """Yield a chat whose call made the server ask for `what`, and the question."""
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__ask", json.dumps({"text": what}))), *replies, says("done")])
    servers = {"odd": server(require_approval_before=False, **more)}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
        yield bench, session, bench.of(ApprovalRequested)[-1]


def told(session: Session) -> Any:
    """Return the answer that the server received, parsed from its result."""
    return json.loads(next(m.text for m in reversed(session.log.view.messages) if m.role == "tool"))


async def test_a_reply_is_given_once_the_user_agrees_and_adds_to_the_cost(tmp_path: Path) -> None:
    reply = (TextDelta("No."), Finished("stop", (), Usage(input_tokens=40, output_tokens=2)))
    async with asked(tmp_path, "sampling", reply) as (bench, session, question):
        assert question.kind == "sampling"
        assert question.title == "let scripted-1 answer this, in up to 4,096 tokens (it asks for 99,999)?"
        assert "Tell me everything." in question.body
        assert "IGNORE ALL PREVIOUS" in question.body
        assert len(bench.adapter.requests) == 1
        session.desk.answer(Approve(call_id=question.call_id, decision="once"))
        await bench.idle(session)
        assert told(session)["content"]["text"] == "No."
        request = bench.adapter.requests[1]
        assert (request.tools, request.max_output_tokens) == ((), 4_096)
        usage = [e.payload for e in bench.store.load_events(session.chat_id) if isinstance(e.payload, UsageReported)]
        assert [one.purpose for one in usage if one.other_passes == (Usage(input_tokens=40, output_tokens=2),)] == [
            "sampling"
        ]
        assert not any("IGNORE ALL" in message.text for message in session.log.view.messages)


async def test_a_reply_the_user_rejects_is_refused_in_the_protocol(tmp_path: Path) -> None:
    async with asked(tmp_path, "sampling") as (bench, session, question):
        session.desk.answer(Approve(call_id=question.call_id, decision="reject"))
        await bench.idle(session)
        assert told(session) == {"code": -1, "message": "the user declined"}
        assert len(bench.adapter.requests) == 2  # the turn's own


async def test_invalid_values_are_asked_for_again(tmp_path: Path) -> None:
    async with asked(tmp_path, "form") as (bench, session, question):
        assert [field["name"] for field in json.loads(question.form)] == ["name", "age", "sure"]
        assert json.loads(question.form)[2]["choices"] == ["true", "false"]
        assert "- Your name (string, required)" in question.body  # as the input calls it
        assert "- name" not in question.body
        typed = json.dumps({"age": "33"})
        session.desk.answer(Approve(call_id=question.call_id, decision="once", text=typed))
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == 2)
        question = bench.of(ApprovalRequested)[-1]
        assert "Your name is required." in question.body
        assert [field["default"] for field in json.loads(question.form)] == ["", "33", "true"]
        typed = json.dumps({"name": "Eve", "age": "old"})
        session.desk.answer(Approve(call_id=question.call_id, decision="once", text=typed))
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == 3)
        again = bench.of(ApprovalRequested)[-1]
        assert "age: expected a whole number." in again.body
        assert [field["default"] for field in json.loads(again.form)] == ["Eve", "old", "true"]
        typed = json.dumps({"name": "Eve", "age": "33", "sure": "no"})
        session.desk.answer(Approve(call_id=again.call_id, decision="once", text=typed))
        await bench.idle(session)
        assert told(session) == {"action": "accept", "content": {"name": "Eve", "age": 33, "sure": False}}


async def test_all_choices_of_a_field_are_shown_and_accepted(tmp_path: Path) -> None:
    """A list of all countries is shown with their names; for a mistyped one, the nearest is suggested."""
    async with asked(tmp_path, "countries") as (bench, session, question):
        assert "C0 = Country 0, C1 = Country 1" in question.body
        assert "C248 = Country 248" in question.body
        assert len(json.loads(question.form)[0]["choices"]) == 249
        session.desk.answer(Approve(call_id=question.call_id, decision="once", text='{"home": "c248"}'))
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == 2)
        again = bench.of(ApprovalRequested)[-1]
        assert "Country: expected one of C0, C1, " in again.body
        assert again.body.endswith("…; the nearest is C248.")
        session.desk.answer(Approve(call_id=again.call_id, decision="once", text='{"home": "C248"}'))
        await bench.idle(session)
        assert told(session) == {"action": "accept", "content": {"home": "C248"}}


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("many", "its form has 31 fields; the limit is 30"),
        ("long", "it has 30,008 characters; the limit is 20,000"),
        ("nested", "the field where of its form has the type object; expected one of string, integer, number, "),
        ("none", "the field name of its form has no schema"),
    ],
)
async def test_a_form_that_cannot_be_shown_whole_is_refused_and_reported_to_both_sides(
    tmp_path: Path, kind: str, why: str
) -> None:
    """Half of a form would get half of the values without anyone noticing."""
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__ask", json.dumps({"text": kind}))), says("done")])
    async with with_servers(tmp_path, adapter, {"odd": server(require_approval_before=False)}) as (bench, session, _):
        session.submit(submit("go"))
        await bench.idle(session)
        assert not bench.of(ApprovalRequested)
        assert told(session)["message"].startswith(why)
        assert told(session)["code"] == -32602
        notices = [event.text for event in bench.of(Notice)]
        sentence = f"The MCP server odd asked for values and was refused: {why}"
        assert len([text for text in notices if text.startswith(sentence)]) == 1


async def test_declining_and_closing_are_distinct(tmp_path: Path) -> None:
    for decision, action in (("reject", "decline"), ("cancel", "cancel")):
        async with asked(tmp_path, "form") as (bench, session, question):
            session.desk.answer(Approve(call_id=question.call_id, decision=decision))
            await bench.idle(session)
            assert told(session) == {"action": action}


async def test_stopping_the_turn_removes_the_question(tmp_path: Path) -> None:
    async with asked(tmp_path, "form") as (bench, session, _):
        assert session.state is State.AWAITING_APPROVAL
        session.cancel()
        await bench.idle(session)
        await bench.until(lambda: not session.desk.questions)


async def test_the_users_thinking_time_does_not_count(tmp_path: Path) -> None:
    async with asked(tmp_path, "form", timeout_s=1.0) as (bench, session, question):
        await asyncio.sleep(1.5)
        typed = json.dumps({"name": "Eve"})
        session.desk.answer(Approve(call_id=question.call_id, decision="once", text=typed))
        await bench.idle(session)
        assert told(session) == {"action": "accept", "content": {"name": "Eve"}}


async def test_roots_are_the_workspace_and_ask_nothing(tmp_path: Path) -> None:
    record = tmp_path / "record"
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__ask", '{"text": "roots"}')), says("done")])
    servers = {"odd": server(require_approval_before=False, env={"RECORD": str(record)})}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.idle(session)
        assert told(session)["roots"] == [{"uri": tmp_path.resolve().as_uri(), "name": tmp_path.name}]
    assert recorded(record)
