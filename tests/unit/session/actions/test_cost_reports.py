"""Reports are rebuilt often as a chat grows: only new events are read, and the result is identical."""

from __future__ import annotations

from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Usage
from codecompanion.session.actions.cost_reports import MAX_CHATS, Reports
from codecompanion.wire.requests import ShowCost, ShowTrace
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


async def test_an_incremental_report_equals_one_from_scratch(tmp_path, monkeypatch):
    """R-360: events that were already read are not read again."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("hello", Usage(900, 20))))
    session = await bench.open()
    following, read = Reports(), []
    load = type(bench.store).load_events

    def watched(store, chat_id, since=0):
        events = load(store, chat_id, since)
        read.append(len(events))
        return events

    monkeypatch.setattr(type(bench.store), "load_events", watched)
    for number in (1, 2, 3):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        shown = following.show_cost(bench.services, ShowCost(chat="chat-1"))
        trace = following.show_trace(bench.services, ShowTrace(chat="chat-1", turn=1))
    assert sum(read) == session.log.view.last_seq
    assert shown == Reports().show_cost(bench.services, ShowCost(chat="chat-1"))
    assert trace == Reports().show_trace(bench.services, ShowTrace(chat="chat-1", turn=1))
    assert trace["turns"] == 3


async def test_only_a_few_chats_stay_cached(tmp_path):
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    reports = Reports()
    for number in range(MAX_CHATS + 3):
        reports.show_cost(bench.services, ShowCost(chat=f"chat-{number}"))
    assert len(reports._readers) == MAX_CHATS


async def test_an_exact_count_is_shown_beside_the_estimate(tmp_path):
    """With `tokenizer = "exact"`, the messages currently in the context are counted exactly."""
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("hello", Usage(900, 20))))
    session = await bench.open()
    session.submit(submit("question " * 50, 1))
    await bench.idle(session)
    asked = ShowCost(chat="chat-1", width=80)
    assert "counted here" not in Reports().show_cost(bench.services, asked)["text"]
    bench.services.count_text = lambda text: len(text.split())
    text = Reports().show_cost(bench.services, asked)["text"]
    messages = session.log.view.messages
    exact = sum(map(MessageCounter(bench.services.count_text).message, messages))
    estimated = sum(map(MessageCounter().message, messages))
    assert exact != estimated
    assert f"| exact (o200k_base) | {exact:,} |" in " ".join(text.split())
    assert f"| estimate | ~{estimated:,} |" in " ".join(text.split())
