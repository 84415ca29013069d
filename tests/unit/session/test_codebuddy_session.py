"""A chat under the policy `codebuddy`: window, status event, failures (R-101, R-103, R-109, R-136, R-140…R-144)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import AdapterError
from codecompanion.model.history import PolicyEvent as Logged
from codecompanion.model.messages import Message, Usage
from codecompanion.session.compaction.compaction import AT_ONCE
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.wire.events import Compacted, Meter, Notice, PolicyEvent
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit

PATIENCE = "word " * 400
"""About 400 tokens."""


def bench_with(tmp_path: Path, adapter: ScriptedAdapter, window: int, **settings: Any) -> Bench:
    return Bench(
        tmp_path, adapter, window=window, settings={"policy": "codebuddy", **settings}, tools={"enabled": False}
    )


async def talk(bench: Bench, session: Session, exchanges: int) -> None:
    for number in range(exchanges):
        session.submit(submit(f"{number} {PATIENCE}", number + 1))
        await bench.idle(session)


def statuses(bench: Bench) -> list[dict[str, Any]]:
    return [event.fields for event in bench.of(PolicyEvent) if event.name == "context_window_status"]


def answers(request: ChatRequest, text: str = PATIENCE) -> Reply:
    """Return a reply whose usage reports the real request size, so that counts are exact."""
    counter = MessageCounter()
    return says(text, Usage(counter.count_messages(request.messages), counter.text(text)))


def is_summary_request(request: ChatRequest) -> bool:
    return any("<conversation>" in message.text for message in request.messages)


async def test_the_status_is_sent_while_there_is_a_warning(tmp_path: Path) -> None:
    """R-144, R-110: none below 80 %, `warning` from there, `critical` with the tier that answered it; logged, too."""
    bench = bench_with(tmp_path, ScriptedAdapter("first", answers), 12_000)
    session = await bench.open()
    await talk(bench, session, 16)
    told = statuses(bench)
    levels = [status["warningLevel"] for status in told]
    assert levels[0] == "warning"
    assert "critical" in levels
    assert all(status["usageTokens"] >= 0.8 * 12_000 for status in told)
    assert {status["budgetTokens"] for status in told} == {12_000}
    acted = [(status["compacted"], status["tier"]) for status in told if status["warningLevel"] == "critical"]
    assert (True, 2) in acted
    assert all((status["sentTokens"] < status["usageTokens"]) == status["compacted"] for status in told)
    assert all(status["sentTokens"] <= 12_000 for status in told)
    logged = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, Logged)]
    assert [p.fields for p in logged if p.name == "context_window_status"] == told


async def test_a_failing_summariser_is_never_fatal(tmp_path: Path) -> None:
    """R-143, R-120: the last tier answers, the pending request is sent, and no typed text is lost."""

    def answer(request: ChatRequest) -> Reply:
        if is_summary_request(request):
            return (AdapterError("the summariser is down"),)
        return answers(request)

    adapter = ScriptedAdapter("first", answer)
    bench = bench_with(tmp_path, adapter, 12_000)
    session = await bench.open()
    await talk(bench, session, 16)
    assert any(status["tier"] == 4 for status in statuses(bench))
    last = adapter.requests[-1]
    assert last.messages[-1].text == f"15 {PATIENCE}"
    assert any(m.text.startswith("[Conversation context \u2014 ") for m in session.log.view.messages)
    # The card names no summariser that failed.
    by = {event.summariser for event in bench.of(Compacted) if event.tier == 4}
    assert by
    assert all(who.startswith("no model") and who.endswith(" failed)") for who in by)
    said = [message.text for message in _all_messages(bench)]
    assert [f"{number} {PATIENCE}" in said for number in range(16)] == [True] * 16


def _all_messages(bench: Bench) -> list[Message]:
    found = [getattr(event.payload, "message", None) for event in bench.store.load_events("chat-1")]
    return [message for message in found if isinstance(message, Message)]


async def test_a_summary_that_fills_the_window_is_reported(tmp_path: Path) -> None:
    """R-136: text still over the budget after the last tier is reported, and the request is sent anyway."""
    adapter = ScriptedAdapter(
        "first", lambda request: answers(request, "ok" if is_summary_request(request) else PATIENCE)
    )
    bench = bench_with(tmp_path, adapter, 4_600)
    session = await bench.open()
    await talk(bench, session, 3)
    session.submit(submit("now " + "word " * 2800, 99))
    await bench.idle(session)
    over = [event for event in bench.of(PolicyEvent) if event.name == "context_still_over_budget"]
    assert over
    assert over[0].fields["tokens"] > over[0].fields["budget_tokens"]
    assert adapter.requests[-1].messages[-1].text.startswith("now ")


@pytest.mark.parametrize(("window", "said"), [(4_000, 1), (30_000, 0)])
async def test_a_window_without_room_for_a_reply_is_reported_once(tmp_path: Path, window: int, said: int) -> None:
    """R-109: the report refers to the budget of the source, and appears once per model, over any number of messages."""
    target = {"at": 1.0, "measure": "messages", "basis": "budget"}
    adapter = ScriptedAdapter("first", lambda request: says("ok"))
    bench = bench_with(tmp_path, adapter, window, context_management={"compaction": {"target": target}})
    session = await bench.open()
    for number in range(3):
        session.submit(submit("hi", number + 1))
        await bench.idle(session)
    texts = [notice.text for notice in bench.of(Notice) if "and a reply fill the window" in notice.text]
    assert len(texts) == said


async def test_another_policy_reports_no_budget(tmp_path: Path) -> None:
    """R-109 is about the budget of R-107 only."""
    bench = Bench(tmp_path, ScriptedAdapter("first", lambda request: says("ok")), window=4_000)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert not any("has no room" in notice.text for notice in bench.of(Notice))


async def test_an_unknown_model_gets_16000_tokens_and_one_warning(tmp_path: Path) -> None:
    """R-101, R-103: one warning that names the model, none for a known one."""
    bench = bench_with(tmp_path, ScriptedAdapter("first", lambda request: says("ok")), 0)
    session = await bench.open()
    for number in range(3):
        session.submit(submit("hi", number + 1))
        await bench.idle(session)
    assert (session.control.limits.context_window, session.control.limits.source) == (16_000, "default")
    assert not bench.of(Notice)
    await session.attach(Message(id="f", role="user", tag="selection", path="a", content="word " * 14_000))
    for number in range(3, 6):
        session.submit(submit("hi", number + 1))
        await bench.idle(session)
    assert len([notice for notice in bench.of(Notice) if "16,000 tokens are assumed" in notice.text]) == 1


async def test_the_setting_is_the_window_of_every_model(tmp_path: Path) -> None:
    """R-101, R-103: step one; a window chosen by the user causes no warning."""
    bench = bench_with(tmp_path, ScriptedAdapter("first", lambda request: says("ok")), 64_000, context_window=8_000)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert (session.control.limits.context_window, session.control.limits.source) == (8_000, "user")
    assert not any("is unknown" in notice.text for notice in bench.of(Notice))


async def test_the_use_of_the_window_can_be_seen_without_a_compaction(tmp_path: Path) -> None:
    """R-139: tokens, their share of the window, and the rest for messages; nothing changes."""
    bench = bench_with(tmp_path, ScriptedAdapter("first", answers), 12_000)
    session = await bench.open()
    await talk(bench, session, 2)
    meter = bench.of(Meter)[-1]
    assert meter.ratio == meter.tokens / meter.window < 0.9
    assert meter.window == 12_000
    assert 0 < session.control.room.fixed < meter.tokens
    assert statuses(bench) == []


async def test_every_request_is_checked(tmp_path: Path) -> None:
    """R-142: checks have no pause of 30 s or 3 messages here; lesson 6 requires one before every request."""
    bench = bench_with(tmp_path, ScriptedAdapter("first", answers), 12_000)
    session = await bench.open()
    await talk(bench, session, 16)
    requests = [request for request in bench.adapter.requests if not is_summary_request(request)]
    sizes = [session.services.count_text("".join(m.text for m in request.messages)) for request in requests]
    assert max(sizes) <= 0.9 * 12_000


async def test_one_compaction_runs_at_a_time_and_typed_messages_wait(tmp_path: Path) -> None:
    """R-140, R-141: a chat has one session and one queue; a second summary is never requested in parallel."""
    release = asyncio.Event()

    def answer(request: ChatRequest) -> Reply:
        return (release, *answers(request, "short")) if is_summary_request(request) else answers(request)

    adapter = ScriptedAdapter("first", answer)
    bench = bench_with(tmp_path, adapter, 12_000)
    session = await bench.open()
    for number in range(30):
        session.submit(submit(f"{number} {PATIENCE}", number + 1))
        await bench.until(lambda: asking(adapter) > 0 or (session.state is State.IDLE and session.task is None))
        if asking(adapter):
            break
    session.submit(submit("typed meanwhile", 100))
    session.compact("")
    assert 1 <= asking(adapter) <= AT_ONCE, "parts of one compaction"
    release.set()
    await bench.idle(session)
    delivered = [m for m in session.log.view.messages if m.text == "typed meanwhile"]
    assert len(delivered) == 1
    assert adapter.requests[-1].messages[-1].text == "typed meanwhile"


def asking(adapter: ScriptedAdapter) -> int:
    """Return the number of summary requests."""
    return sum(is_summary_request(request) for request in adapter.requests)
