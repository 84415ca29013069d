"""A provider's own compaction in a chat: R-534, R-537, R-539…R-543, R-551; lessons 10, 11, 16."""

from __future__ import annotations

import pytest

from codecompanion.adapters.base import CompactionBegun, CompactionDone, Finished, TextDelta
from codecompanion.context.server_side import live_blocks, threshold
from codecompanion.errors import Overloaded, RequestRejected, StreamCut
from codecompanion.model import history
from codecompanion.model.history import UsageReported, ViewChanged
from codecompanion.model.messages import CompactionPart, Message, Usage
from codecompanion.model.view import project
from codecompanion.session.actions.preview_compaction import preview
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.state import State
from codecompanion.wire.events import Compacted, CompactionFailed, CompactionStarted, Meter, Notice, Restored
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, calls, says, submit
from tests.unit.session.turn.test_turn import READ, stored_view

BLOCK = CompactionPart(origin="scripted@s", encrypted='[{"type":"compaction","content":"S"}]', text="S", tokens=50)
USAGE = Usage(input_tokens=400, output_tokens=20)


def compacts_and_says(text: str, usage: Usage | None = USAGE) -> Reply:
    done = CompactionDone(BLOCK, Usage(input_tokens=90_000, output_tokens=50))
    return (CompactionBegun(), done, TextDelta(text), Finished("stop", (), usage, "", (done.usage,)))


def native(*replies: Reply, name: str = "s", **fields: object) -> ScriptedAdapter:
    return ScriptedAdapter(name, list(replies), native=True, **fields)


async def talk(bench, session, number, first=1):
    for i in range(first, first + number):
        session.submit(submit(f"question {i}", i))
        await bench.idle(session)


@pytest.mark.parametrize(
    ("compact_at", "window", "reserve", "wanted"),
    [(85_000, 100_000, 0, 85_000), (27_000, 100_000, 0, 50_000), (27_000, 32_000, 0, 0), (85_000, 100_000, 20_000, 0),
     (None, 100_000, 0, 0)],
)  # fmt: skip
def test_the_threshold_is_the_triggers_but_at_least_the_providers_minimum(compact_at, window, reserve, wanted):
    """R-536, R-539: if the window is too small for it, compaction stays ours."""
    assert threshold(compact_at, window, reserve) == wanted


async def test_a_request_asks_the_provider_to_compact_at_the_trigger(tmp_path):
    """R-534: the client's own compaction is off, editing is not. Unanswered messages are not summarised."""
    adapter = native(says("ok"), says("ok"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert [request.compact_at for request in adapter.requests] == [0, 85_000]


@pytest.mark.parametrize("off", [{"compaction": {"trigger": False}}, {"enabled": False}])
async def test_disabled_compaction_also_disables_the_providers(tmp_path, off):
    """Lesson 13."""
    adapter = native(says("ok"), says("ok"))
    bench = Bench(tmp_path, adapter, settings={"context_management": off})
    session = await bench.open()
    await talk(bench, session, 2)
    assert [request.compact_at for request in adapter.requests] == [0, 0]


async def test_a_compaction_in_a_reply_replaces_the_history(tmp_path):
    """R-537, R-539, R-541, R-551: rules and the open question stay word for word; the user sees it like our own."""
    adapter = native(says("one"), compacts_and_says("two"), says("three"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await session.attach(Message(id="rules-1", role="user", tag="rules", path="AGENTS.md", content="Use tabs."))
    await talk(bench, session, 2)
    view = session.log.view.messages
    assert [m.text for m in view] == ["Use tabs.", "", "question 2", "two"]
    assert view[1].compaction == BLOCK
    assert stored_view(bench).messages == view
    [started], [compacted] = bench.of(CompactionStarted), bench.of(Compacted)
    assert (started.trigger, compacted.messages, compacted.summary) == ("proactive", 2, "S")
    assert "provider" in compacted.summariser
    await talk(bench, session, 1, first=3)
    assert [m.text for m in adapter.requests[2].messages[1:]] == ["Use tabs.", "", "question 2", "two", "question 3"]


async def test_the_meter_shows_the_providers_remainder(tmp_path):
    """R-538, lessons 7, 8, 45: the last pass is counted; the compaction pass is billed but not counted."""
    adapter = native(says("one", Usage(input_tokens=90_000, output_tokens=5)), compacts_and_says("two"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    meter = bench.of(Meter)[-1]
    assert 400 + 20 <= meter.tokens <= 400 + 20 + 40
    [_, reported] = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, UsageReported)]
    assert reported.usage == USAGE
    assert reported.cost_usd == (400 + 90_000) / 1e6
    assert [usage.input_tokens for usage in reported.other_passes] == [90_000]


async def test_in_a_loop_the_question_stays_in_the_users_words(tmp_path):
    """R-551: the provider may summarise the loop, but not its question."""
    (tmp_path / "a.txt").write_text("content")
    adapter = native(calls(READ), compacts_and_says("done"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    assert [m.text for m in session.log.view.messages] == ["", "question 1", "done"]


async def test_a_second_compaction_replaces_the_first(tmp_path):
    """R-527: at most one live block."""
    adapter = native(compacts_and_says("one"), compacts_and_says("two"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert len(live_blocks(session.log.view.messages)) == 1
    assert len(bench.of(Compacted)) == 2


async def test_a_failed_compaction_changes_nothing(tmp_path):
    """R-537: null content is a no-op; the user is notified."""
    adapter = native(says("one"), (CompactionBegun(), CompactionDone(None), TextDelta("two"), Finished("stop")))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert [m.text for m in session.log.view.messages] == ["question 1", "one", "question 2", "two"]
    [failed] = bench.of(CompactionFailed)
    assert "Nothing was changed" in failed.reason


async def test_an_interrupted_stream_keeps_the_block(tmp_path):
    """R-539: the question stays open."""
    adapter = native(says("one"), (CompactionDone(BLOCK), TextDelta("tw"), StreamCut("cut")))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    view = session.log.view.messages
    assert [m.text for m in view] == ["", "question 2", "tw"]
    assert view[-1].cut


async def test_a_stream_interrupted_during_a_compaction_ends_the_compaction(tmp_path):
    """R-543: there is exactly one end."""
    adapter = native(says("one"), (CompactionBegun(), StreamCut("cut")))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert len(bench.of(CompactionStarted)) == len(bench.of(CompactionFailed)) == 1
    assert any(isinstance(e.payload, history.CompactionFailed) for e in bench.store.load_events("chat-1"))
    assert session.state is State.IDLE


async def test_a_pause_after_the_compaction_is_continued(tmp_path):
    """R-536: pause_after_compaction; the pass is billed, and no empty message is stored."""
    spent = Usage(input_tokens=90_000, output_tokens=50)
    paused: Reply = (CompactionDone(BLOCK), Finished("compacted", (), None, "", (spent,)))
    adapter = native(says("one"), paused, says("two"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    assert [m.text for m in session.log.view.messages] == ["", "question 2", "two"]
    [reported] = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, UsageReported)]
    assert reported.other_passes == (spent,)


async def test_compact_uses_the_provider_if_it_can(tmp_path):
    """R-540: the user's instructions are passed on; the chat continues if configured, as after our own (R-528)."""
    adapter = native(says("one"), says("went on"), compactions=[CompactionDone(BLOCK, USAGE)])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("keep names", go_on=True)
    await bench.idle(session)
    [(request, instructions)] = adapter.compacted
    assert instructions == "keep names"
    assert [m.text for m in request.messages[1:]] == ["question 1", "one"]
    assert [m.role for m in session.log.view.messages] == ["assistant", "user", "assistant"]
    assert session.log.view.messages[-1].text == "went on"
    assert bench.of(Compacted)[0].trigger == "manual"
    assert session.log.view.messages[0].compaction.on_demand


async def test_an_endpoint_that_ignores_the_threshold_is_not_relied_on(tmp_path):
    """R-534: a gateway may drop unknown parameters; the client's compaction takes over, and the user is notified."""
    full = Usage(input_tokens=90_000, output_tokens=5)
    adapter = native(says("one " * 500), says("two", full), says("three", full), says("SUMMARY"), says("four"))
    small = {"context_management": {"compaction": {"min_token_savings": 0}}}
    bench = Bench(tmp_path, adapter, settings=small)
    session = await bench.open()
    await talk(bench, session, 4)
    assert [request.purpose for request in adapter.requests] == ["chat", "chat", "chat", "summary", "chat"]
    assert session.log.view.messages[-1].text == "four"
    assert any("opts.compaction = false" in notice.text for notice in bench.of(Notice))


async def test_the_cost_of_a_compaction_is_logged(tmp_path):
    """The costs of a compaction on demand and of our own summariser are never hidden."""
    adapter = native(says("one"), compactions=[CompactionDone(BLOCK, USAGE)])
    own = ScriptedAdapter("own", [says("one " * 200), says("SUMMARY", USAGE)])
    for scripted in (adapter, own):
        bench = Bench(tmp_path, scripted, settings={"on_compact": "stop"})
        session = await bench.open()
        await talk(bench, session, 1)
        session.compact("")
        await bench.idle(session)
        [reported] = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, UsageReported)]
        assert (reported.other_passes, reported.cost_usd) == ((USAGE,), 400 / 1e6)
        assert reported.message_id == bench.of(Compacted)[0].compaction_id


async def test_after_a_compaction_on_demand_the_next_one_is_requested_too(tmp_path):
    """R-534, R-540: Anthropic does not compact automatically after a requested block; the chat must not fill up."""
    large = Usage(input_tokens=90_000, output_tokens=5)
    adapter = native(says("one"), says("two", large), says("three"), compactions=[CompactionDone(BLOCK)] * 2)
    bench = Bench(tmp_path, adapter, settings={"on_compact": "stop"})
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    await talk(bench, session, 2, first=2)
    session.continue_reply(session.snapshot)
    await bench.idle(session)
    assert [event.trigger for event in bench.of(Compacted)] == ["manual", "proactive"]
    assert [m.text for m in session.log.view.messages] == ["", "question 3", "three"]


async def test_preview_and_inspector_mark_the_providers_compaction(tmp_path):
    """R-546: nothing is sent, nothing changes."""
    adapter = native(says("one"), compacts_and_says("two"), compactions=[CompactionDone(BLOCK)])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    before = session.log.view
    text = preview(session.control, session.log)["text"]
    assert "compacts on its own above 85,000 tokens" in text
    assert "compacted by the provider" in text
    assert "- compact_summary" in text
    assert not adapter.compacted
    assert session.log.view is before
    rows = inspect(session.control, session.log)["rows"]
    assert (rows[2]["state"], rows[2]["preview"]) == ("summary", "S")


async def test_a_failed_compaction_on_demand_changes_nothing(tmp_path):
    """R-530."""
    adapter = native(says("one"), compactions=[Overloaded("the provider is overloaded")] * 2)
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    before = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    assert session.log.view.messages == before
    [failed] = bench.of(CompactionFailed)
    assert "overloaded" in failed.reason
    assert len(bench.of(CompactionStarted)) == 1


async def test_if_the_provider_turns_out_unable_the_summary_is_ours(tmp_path):
    """R-540: gateways compact only during a request."""
    replies = [says("one " * 3_000), says("OUR SUMMARY"), says("went on")]
    adapter = native(*replies, compactions=[RequestRejected("answered instead of compacting")])
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 1)
    session.compact("")
    await bench.idle(session)
    assert "answered instead" in bench.of(CompactionFailed)[0].reason
    assert bench.of(Compacted)[0].summary.startswith("OUR SUMMARY\n\n- Word for word in the log: recall r")
    assert adapter.requests[1].purpose == "summary"


async def test_another_provider_gets_the_full_history(tmp_path):
    """R-542: switching loses nothing, at once and after a restart."""
    adapter, other = native(says("one"), compacts_and_says("two")), ScriptedAdapter("other", [says("three")])
    bench = Bench(tmp_path, adapter, other)
    session = await bench.open()
    await talk(bench, session, 2)
    await session.use_model("other", "")
    await talk(bench, session, 1, first=3)
    wanted = ["question 1", "one", "question 2", "two", "question 3"]
    assert [m.text for m in other.requests[0].messages[1:]] == wanted
    assert stored_view(bench).messages == session.log.view.messages
    assert len(bench.of(Compacted)) == 1


async def test_nested_blocks_are_all_undone(tmp_path):
    """R-542: a block that replaced an earlier block is undone together with it."""
    adapter = native(says("one"), compacts_and_says("two"), compacts_and_says("three"))
    bench = Bench(tmp_path, adapter, ScriptedAdapter("other", []))
    session = await bench.open()
    await talk(bench, session, 3)
    await session.use_model("other", "")
    texts = [m.text for m in session.log.view.messages]
    assert texts == ["question 1", "one", "question 2", "two", "question 3", "three"]


async def test_a_providers_compaction_can_be_undone_like_any_other_change(tmp_path):
    """R-545: the log keeps the originals."""
    bench = Bench(tmp_path, native(says("one"), compacts_and_says("two")))
    session = await bench.open()
    await talk(bench, session, 2)
    [change] = [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, ViewChanged)]
    await session.log.undo([change.change_id])
    assert [m.text for m in session.log.view.messages] == ["question 1", "one", "question 2", "two"]
    assert project(bench.store.load_events("chat-1")).messages == session.log.view.messages


async def test_a_resumed_chat_shows_the_card_and_continues_from_the_block(tmp_path):
    """Lessons 35, 36: the view equals the one before the restart."""
    adapter = native(says("one"), compacts_and_says("two"), says("three"))
    bench = Bench(tmp_path, adapter)
    session = await bench.open()
    await talk(bench, session, 2)
    resumed = await bench.resume()
    assert resumed is not None
    [restored] = bench.of(Restored)
    assert [e.kind for e in restored.entries] == ["user", "reply", "compacted", "user", "reply"]
    assert resumed.log.view.messages == session.log.view.messages
