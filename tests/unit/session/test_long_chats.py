"""The cost of a request in a long chat: proportional to the new messages (lesson 31)."""

from __future__ import annotations

import pytest

from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import PolicyEvent, ViewChanged
from codecompanion.model.messages import Message, Usage
from codecompanion.session.window import native_side
from codecompanion.wire.events import Compacted
from tests.unit.session.fakes import Bench, ScriptedAdapter, says
from tests.unit.session.test_native_compaction import talk


@pytest.mark.parametrize("reports", [True, False])
async def test_a_request_processes_only_new_messages(tmp_path, monkeypatch, reports):
    """This also applies to an endpoint that reports no usage."""
    usage = Usage(input_tokens=9_000, output_tokens=10) if reports else None
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("answer", usage), native=True))
    session = await bench.open()
    for number in range(200):
        await session.attach(Message(id=f"f{number}", role="user", tag="file", path=f"{number}", content="words"))
    await talk(bench, session, 1)
    looked_at = []
    real_blocks, real_count = native_side.live_blocks, MessageCounter.count_messages

    def blocks(messages):
        looked_at.extend(messages)
        return real_blocks(messages)

    def count(self, messages):
        looked_at.extend(messages)
        return real_count(self, messages)

    monkeypatch.setattr(native_side, "live_blocks", blocks)
    monkeypatch.setattr(MessageCounter, "count_messages", count)
    await talk(bench, session, 3, first=2)
    assert 0 < len(looked_at) < 60


@pytest.mark.slow("a chat of many turns")
async def test_a_turn_reads_the_log_only_after_a_change_of_the_view(tmp_path, monkeypatch):
    """R-330: the omitted turns of a request are known without scanning all of them again."""
    counter, text = MessageCounter(), "words and words " * 100

    def answer(request):
        prompt = counter.count_messages(request.messages) + counter.tools(request.tools)
        return says(text, Usage(prompt, counter.text(text)))

    bench = Bench(tmp_path, ScriptedAdapter("s", answer), window=30_000, settings={"policy": "kodacode"})
    session = await bench.open()
    number = 0
    while len(bench.of(Compacted)) < 2:
        number += 1
        await talk(bench, session, 1, first=number)
    loads, load_events = [], bench.store.load_events

    def counted(chat_id):
        loads.append(chat_id)
        return load_events(chat_id)

    monkeypatch.setattr(bench.store, "load_events", counted)
    await talk(bench, session, 3, first=number + 1)
    assert len(bench.of(Compacted)) == 2
    assert loads == []
    pruned = [e.payload.fields for e in load_events("chat-1") if _is_pruned(e.payload)]
    ids = [turn for fields in pruned for turn in fields["turn_ids"]]
    assert [fields["turn_ids"] for fields in pruned[-3:]] == [[], [], []]
    assert {fields["omitted_prior_turns"] for fields in pruned[-3:]} == {len(ids)}
    assert pruned[-1]["omitted_prior_turns"] + pruned[-1]["prior_turns"] == number + 2

    again = await bench.resume()
    assert again is not None
    loads.clear()
    await talk(bench, again, 3, first=number + 4)
    assert len(loads) <= 1
    pruned = [e.payload.fields for e in load_events("chat-1") if _is_pruned(e.payload)]
    assert [fields["turn_ids"] for fields in pruned[-3:]] == [ids, [], []]

    newest = [e.payload.change_id for e in load_events("chat-1") if isinstance(e.payload, ViewChanged)][-1]
    await again.log.undo([newest], by_user=True)
    await talk(bench, again, 1, first=number + 7)
    undone = [e.payload.fields for e in load_events("chat-1") if _is_pruned(e.payload)][-1]
    assert undone["omitted_prior_turns"] < len(ids)
    assert undone["omitted_prior_turns"] + undone["prior_turns"] == number + 6
    assert undone["turn_ids"] == []


def _is_pruned(payload):
    return isinstance(payload, PolicyEvent) and payload.name == "context_pruned"
