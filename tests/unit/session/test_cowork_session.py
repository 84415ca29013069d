"""CoWork's policies in a live chat: handoff, events, recovery, chats without tools (R-421…R-460)."""

from __future__ import annotations

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.errors import ContextOverflow
from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.summary_frame import HANDOFF, bare_summary
from codecompanion.wire.events import Compacted, Meter, PolicyEvent, TurnFinished
from codecompanion.wire.requests import UndoChange
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit
from tests.unit.session.test_native_compaction import talk

WINDOW = 4_000
LONG = "some words of an answer. " * 60


class Scripted:
    """Answers every request at length and writes numbered summaries; refuses the chosen requests."""

    def __init__(self, refuse: int = 0, summaries: bool = True) -> None:
        self.refuse, self.summaries, self.written = refuse, summaries, 0

    def __call__(self, request: ChatRequest) -> Reply:
        if request.purpose == "summary":
            self.written += 1
            return says(f"SUMMARY {self.written}" if self.summaries else "")
        if self.refuse and any("too much" in message.text for message in request.messages):
            self.refuse -= 1
            return (ContextOverflow("s: the request is too long for the model."),)
        return says(LONG)


def bench_of(tmp_path, script, policy="cowork", window=WINDOW, **fields) -> Bench:
    return Bench(tmp_path, ScriptedAdapter("s", script), window=window, settings={"policy": policy, **fields})


def named(bench: Bench, name: str) -> list[dict]:
    return [event.fields for event in bench.of(PolicyEvent) if event.name == name]


def summaries(session) -> list[tuple[int, Message]]:
    messages = session.log.view.messages
    return [(index, message) for index, message in enumerate(messages) if message.tag == SUMMARY_TAG]


async def test_a_long_chat_is_handed_off_repeatedly(tmp_path):
    """R-421, R-424, R-443, R-445: one pinned summary follows the first message; each summary reads the one before."""
    adapter = ScriptedAdapter("s", Scripted())
    bench = Bench(tmp_path, adapter, window=WINDOW, settings={"policy": "cowork"})
    session = await bench.open()
    await talk(bench, session, 30)
    compacted = bench.of(Compacted)
    assert len(compacted) >= 3
    assert {event.trigger for event in compacted} == {"proactive"}
    ((index, summary),) = summaries(session)
    assert session.log.view.messages[0].text == "question 1"
    assert index == 1
    assert summary.pinned
    assert summary.text.startswith(f"<cowork_compaction_summary>\n{HANDOFF}SUMMARY {len(compacted)}\n")
    asked = [r.messages[-1].text for r in adapter.requests if r.purpose == "summary"]
    assert "[previous summary]" not in asked[0].split("<conversation>")[1]
    assert "<conversation>\n[previous summary]\nSUMMARY 1\n" in asked[1]
    assert [event.reason for event in bench.of(TurnFinished)] == ["done"] * 30


async def test_the_summary_prompt_names_the_task(tmp_path):
    """R-435: the task is the title of the chat."""
    adapter = ScriptedAdapter("s", Scripted())
    bench = Bench(tmp_path, adapter, window=WINDOW, settings={"policy": "cowork"})
    session = await bench.open()
    await talk(bench, session, 12)
    assert session.log.title == "question 1"
    asked = [request.messages[-1].text for request in adapter.requests if request.purpose == "summary"]
    assert asked
    assert all("\n\nThe task is called: question 1\n\n" in prompt.split("<conversation>")[0] for prompt in asked)


async def test_the_users_words_survive_every_handoff(tmp_path):
    """R-431: they are quoted or counted, and carried over from summary to summary."""
    bench = bench_of(tmp_path, Scripted())
    session = await bench.open()
    await talk(bench, session, 30)
    ((_, summary),) = summaries(session)
    kept = "\n".join(message.text for message in session.log.view.messages)
    for i in range(15, 31):
        assert f"question {i}" in kept
    assert "question 2\n" in f"{summary.text}\n" or "older messages are not listed" in summary.text


async def test_a_summary_is_reported_under_the_documents_name(tmp_path):
    """R-453, R-455: the event has summary, messages, tokens and `proactive`; the figures include the summary."""
    bench = bench_of(tmp_path, Scripted())
    session = await bench.open()
    await talk(bench, session, 12)
    fields = named(bench, "context_summarized")[0]
    assert fields["proactive"] is True
    assert fields["removedCount"] > 0
    assert "SUMMARY 1" in fields["summary"]
    assert 0 < fields["tokensAfter"] < fields["tokensBefore"]
    assert named(bench, "context_tools_truncated") == []


async def test_a_failing_summariser_leaves_raw_text_and_the_chat_continues(tmp_path):
    """R-434: there is no error and no unreported loss."""
    bench = bench_of(tmp_path, Scripted(summaries=False), window=6_000)
    session = await bench.open()
    await talk(bench, session, 20)
    ((_, summary),) = summaries(session)
    assert bare_summary(summary.text).startswith("Dropped context (raw, truncated):\n")
    assert [event.reason for event in bench.of(TurnFinished)] == ["done"] * 20


async def test_a_handoff_can_be_undone(tmp_path):
    """R-545: the summary is a change like any other."""
    bench = bench_of(tmp_path, Scripted(), window=8_000)
    session = await bench.open()
    await talk(bench, session, 4)
    before = session.log.view.messages
    assert await session.control.compact("")
    assert len(summaries(session)) == 1
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    assert session.log.view.messages == before


@pytest.mark.parametrize(("refusals", "names"), [(1, ["started", "completed"]), (2, ["started", "completed"] * 2)])
async def test_a_refused_request_is_shrunk_a_lot_and_sent_again(tmp_path, refusals, names):
    """R-451: it is shrunk to 35 %, at most twice, and each time this is reported."""
    bench = bench_of(tmp_path, Scripted(refuse=refusals), window=20_000)
    session = await bench.open()
    await talk(bench, session, 30)
    session.submit(submit("this is too much", 99))
    await bench.idle(session)
    told = [event.name.removeprefix("context_capacity_recovery_") for event in bench.of(PolicyEvent)]
    assert [name for name in told if name in ("started", "completed", "failed")] == names
    first = named(bench, "context_capacity_recovery_completed")[0]
    assert first["tokensAfter"] <= 7_000 < first["tokensBefore"]
    assert named(bench, "context_capacity_recovery_started")[0]["targetTokens"] <= 7_000
    assert bench.of(TurnFinished)[-1].reason == "done"


async def test_the_third_refusal_ends_the_turn_with_a_reason(tmp_path):
    """R-451: exhausted."""
    bench = bench_of(tmp_path, Scripted(refuse=3), window=20_000)
    session = await bench.open()
    await talk(bench, session, 30)
    session.submit(submit("this is too much", 99))
    await bench.idle(session)
    assert len(named(bench, "context_capacity_recovery_started")) == 2
    assert bench.of(TurnFinished)[-1].reason != "done"


async def test_a_chat_without_tools_is_a_summary_and_its_newest_messages(tmp_path):
    """R-457, R-460: `cowork_chat` is chosen because the policy is cowork and there are no tools."""
    adapter = ScriptedAdapter("s", Scripted())
    settings = {"policy": "cowork", "context_management": {"chat": {"min_tokens": 0}}}
    bench = Bench(tmp_path, adapter, settings=settings, tools={"enabled": False})
    session = await bench.open()
    assert session.control.policy.name == "cowork_chat"
    await talk(bench, session, 13)
    ((index, _),) = summaries(session)
    assert index == 0
    chats = [r for r in adapter.requests if r.purpose == "chat"]
    # System prompt, summary, the 16 newest messages, the current one.
    assert [len(r.messages) for r in chats[-2:]] == [24, 1 + 1 + 16 + 1]
    await talk(bench, session, 3, first=14)
    assert sum(r.purpose == "summary" for r in adapter.requests) == 1


async def test_the_meter_shows_the_threshold_of_the_next_handoff(tmp_path):
    """R-401: the threshold is 90 %; a stage that checks every request has no mark."""
    bench = bench_of(tmp_path, Scripted(), window=100_000)
    session = await bench.open()
    session.show_meter()
    assert bench.of(Meter)[-1].compact_at == 90_000
    chat = Bench(tmp_path, ScriptedAdapter("s", []), settings={"policy": "cowork"}, tools={"enabled": False})
    other = await chat.open()
    other.show_meter()
    assert chat.of(Meter)[-1].compact_at == 90_000
