"""Shaped requests and the durable summary in the real session: R-301…R-304, R-310, R-321, R-326…R-338, R-346…R-354."""

from __future__ import annotations

import subprocess

import pytest

from codecompanion.context.artifact.artifact import read_consolidated
from codecompanion.context.shaping.prompt_shape import TERSE
from codecompanion.context.shaping.request_parts import text_bytes, turn_of
from codecompanion.errors import ConfigError, ContextOverflow, StoreUnavailable
from codecompanion.model import history
from codecompanion.model.history import ChangeUndone, PolicyEvent, RequestSent, ViewChanged
from codecompanion.model.messages import SUMMARY_TAG, Usage
from codecompanion.model.view import project
from codecompanion.session.compaction.summary_sources import full_history
from codecompanion.tools.files.open_files import NoEditor
from codecompanion.wire.events import (
    Compacted,
    CompactionFailed,
    CompactionStarted,
    Meter,
    Notice,
    SubmitFailed,
    TurnFinished,
)
from codecompanion.wire.events import PolicyEvent as Told
from codecompanion.wire.requests import Diagnostic, Snapshot, Submit
from tests.unit.session.fakes import ALL_TOOLS, Bench, ScriptedAdapter, calls, says, submit

KODACODE = {"policy": "kodacode"}


def grep(number):
    """Return the arguments of a search; identical calls in a row would end the turn."""
    return f'{{"query": "needle", "max_results": {100 + number}}}'


def talker(words=400, count=None):
    """Return a model that talks, and reports usage only if asked to."""
    return ScriptedAdapter("s", lambda request: says("word " * words, count(request) if count else None))


def logged(bench, kind=PolicyEvent):
    return [e.payload for e in bench.store.load_events("chat-1") if isinstance(e.payload, kind)]


def named(bench, name):
    return [event for event in logged(bench) if event.name == name]


def assert_paired(bench):
    """Assert that every compaction, even one that could not begin, has one start and one end, logged and reported."""
    ends = ("session_history_continuation_updated", "context_compaction_failed")
    for events in (logged(bench), bench.of(Told)):
        about = [(e.compaction_id, e.name) for e in events if e.name in ("context_compaction_started", *ends)]
        started, ended = about[::2], about[1::2]
        assert [name for _, name in started] == ["context_compaction_started"] * len(started)
        assert all(name in ends for _, name in ended)
        ids = [compaction_id for compaction_id, _ in started]
        assert ids == [compaction_id for compaction_id, _ in ended]
        assert len({*ids, ""}) == len(ids) + 1


async def talk(bench, session, number, first=1, text="question"):
    for i in range(first, first + number):
        session.submit(submit(f"{text} {i}", i))
        await bench.idle(session)


def written(request):
    return [message.text for message in request.messages]


# ---- the request and its meter


async def searching(tmp_path, steps=3, **settings):
    """Run a turn that searches `steps` times with large results; return the bench, the session and the adapter."""
    (tmp_path / "a.txt").write_text("needle in a haystack of words\n" * 60)
    script = [calls((f"call-{i}", "grep_search", grep(i))) for i in range(steps)] + [says("found it")]
    adapter = ScriptedAdapter("s", script)
    bench = Bench(tmp_path, adapter, settings={**KODACODE, **settings})
    session = await bench.open()
    session.submit(submit("look for the needle"))
    await bench.idle(session)
    assert bench.bugs == []
    return bench, session, adapter


async def test_older_results_of_a_turn_are_placeholders_only_in_the_request(tmp_path):
    """R-301, R-338, R-339, R-343: the log stays complete, pruned results stay pruned."""
    bench, session, adapter = await searching(tmp_path)
    last = [m for m in adapter.requests[-1].messages if m.role == "tool"]
    assert [m.text.startswith("[older retained output from grep_search ") for m in last] == [True, True, False]
    assert "call-0 pruned for prompt budget]" in last[0].text
    before = [m for m in adapter.requests[-2].messages if m.role == "tool"]
    assert before[0] is last[0]
    assert all("needle" in m.text for m in session.log.view.messages if m.role == "tool")
    assert project(bench.store.load_events("chat-1")).messages == session.log.view.messages
    assert logged(bench, ViewChanged) == []
    assert logged(bench, RequestSent)[-1].shaping["results"] > 100


async def test_nothing_is_sent_twice(tmp_path):
    """R-346: history and the current turn do not overlap."""
    _, _, adapter = await searching(tmp_path)
    for request in adapter.requests:
        ids = [message.id for message in request.messages]
        assert len(ids) == len(set(ids))


async def test_the_meter_shows_the_request_and_triggers_see_the_stored_size(tmp_path):
    """R-302, R-304: ctx may be lower than the stored history."""
    bench, session, _ = await searching(tmp_path, steps=4)
    meter = bench.of(Meter)[-1]
    assert meter.tokens == session.control.shaper.current().measure.tokens
    raw = session.control.measured().tokens
    assert meter.tokens < raw - 500
    (trigger,) = {at for at in session.control.thresholds() if at}
    assert trigger - raw == meter.compact_at - meter.tokens, "the mark is where the meter stands when it fires"


async def test_the_meter_is_exact_after_a_shaped_request(tmp_path):
    """R-302, R-505: the meter continues from the provider's count of the shaped request."""
    (tmp_path / "a.txt").write_text("needle in a haystack of words\n" * 60)
    sent = []

    def reply(request):
        sent.append(request)
        prompt = 1000 + sum(len(m.text) for m in request.messages) // 3
        usage = Usage(input_tokens=prompt, output_tokens=10)
        if len(sent) < 5:
            return calls((f"call-{len(sent)}", "grep_search", grep(len(sent))), usage=usage)
        return says("done", usage)

    bench = Bench(tmp_path, ScriptedAdapter("s", reply), settings=KODACODE)
    session = await bench.open()
    session.submit(submit("look"))
    await bench.idle(session)
    prompt = 1000 + sum(len(m.text) for m in sent[-1].messages) // 3
    meter = bench.of(Meter)[-1]
    assert len(sent) == 5
    assert (meter.tokens, meter.exact) == (prompt + 10, True)
    raw = 1000 + sum(len(m.text) for m in (session.control.system_message, *session.log.view.messages)) // 3
    assert abs(session.control.measured().tokens - raw) <= 0.1 * raw


async def test_another_policy_sends_the_view_unshaped(tmp_path):
    """K14: no trace of shaping in other policies."""
    _, session, adapter = await searching(tmp_path, policy="codecompanion")
    assert list(adapter.requests[-1].messages[1:]) == list(session.log.view.messages[:-1])
    assert session.control.shaper.current().is_plain


# ---- the durable summary


async def compacting(tmp_path, turns=14, **settings):
    adapter = talker()
    bench = Bench(tmp_path, adapter, window=6_000, settings={**KODACODE, **settings}, tools=ALL_TOOLS)
    session = await bench.open()
    await talk(bench, session, turns)
    assert bench.bugs == []
    return bench, session, adapter


async def test_the_history_is_summarised_without_a_model_and_carried_over(tmp_path):
    """R-313, R-321, R-323: no utility adapter, no model call; the summary is first, in the assistant's role."""
    bench, session, adapter = await compacting(tmp_path)
    done = bench.of(Compacted)
    assert len(done) >= 2
    assert all(request.purpose == "chat" for request in adapter.requests)
    summaries = [m for m in session.log.view.messages if m.tag == SUMMARY_TAG]
    assert len(summaries) == 1
    assert session.log.view.messages[0] is summaries[0]
    assert summaries[0].role == "assistant"
    artifact = read_consolidated(logged(bench, ViewChanged)[-1].report.artifact)
    assert artifact is not None
    covered = [episode.source_turn_ids[0] for episode in artifact.artifact.completed_episodes]
    assert covered == [f"turn-{i}" for i in range(1, len(covered) + 1)]
    assert artifact.consolidated_turn_count == len(covered)


async def test_every_compaction_has_one_start_and_one_end(tmp_path):
    """R-325, R-327, R-331, R-332: started and updated share one id, logged and reported."""
    bench, _, _ = await compacting(tmp_path)
    started, updated = named(bench, "context_compaction_started"), named(bench, "session_history_continuation_updated")
    assert (
        [e.compaction_id for e in started]
        == [e.compaction_id for e in updated]
        == [e.compaction_id for e in bench.of(Compacted)]
    )
    assert [e.name for e in bench.of(Told) if e.name.startswith("context_compaction")] == [e.name for e in started]
    first = updated[0].fields
    assert first["update_reason"] in ("semantic_closure", "token_pressure")
    assert first["frontier_turn_id"] == f"turn-{first['consolidated_turn_count']}"
    assert first["activity_text"] == f"History summary updated: {first['newly_consolidated_turn_count']} turns"
    assert first["rendered_summary"].startswith("Compaction Summary:")
    assert first["input_budget"]["trigger_tokens"] == 4800
    assert first["input_budget"]["target_tokens"] == 3600
    assert first["input_budget"]["consolidated_request_tokens"] < first["input_budget"]["estimated_request_tokens"]
    assert first["attribution"]["summary_source"] == "runtime"
    assert (first["attribution"]["model"], first["attribution"]["input_limit_source"]) == ("no model", "adapter")
    assert set(first["attribution"]) == {
        "model", "input_limit_source", "measurement_source", "summary_source", "algorithm", "duration_ms",
    }  # fmt: skip
    assert {"session_objective", "constraints", "open_threads", "page_in_hints"} <= set(first["artifact"])
    assert started[0].fields["scope"] == "history"
    assert_paired(bench)


async def test_the_provider_counts_at_most_once_per_request_and_only_near_the_target(tmp_path):
    """R-312: no count far below the target; never more than one per request."""
    adapter = ScriptedAdapter("s", lambda request: says("word " * 400), counts=[3_500] * 100)
    bench = Bench(tmp_path, adapter, window=6_000, settings=KODACODE, tools=ALL_TOOLS)
    session = await bench.open()
    await talk(bench, session, 2)
    assert adapter.counted == []
    for number in range(3, 13):
        before = len(adapter.counted)
        await talk(bench, session, 1, first=number)
        assert len(adapter.counted) - before <= 1
    assert adapter.counted
    assert len(adapter.requests) == 12


async def test_an_unfinished_compaction_gets_its_end_on_load(tmp_path):
    """R-327, R-332: after a crash there is exactly one end, with the reason `interrupted`; the user sees it."""
    bench, session, adapter = await compacting(tmp_path, turns=2)
    began = history.CompactionStarted(
        compaction_id="lost",
        trigger="proactive",
        summariser="m",
        tokens_before=9,
        failed_event="context_compaction_failed",
    )
    await session.log.write(began, PolicyEvent(name="context_compaction_started", compaction_id="lost"))
    again = Bench(tmp_path, adapter, window=6_000, settings=KODACODE, store=bench.store, tools=ALL_TOOLS)
    assert await again.resume() is not None
    ends = [e for e in named(again, "context_compaction_failed") if e.compaction_id == "lost"]
    assert [e.fields["reason"] for e in ends] == ["interrupted"]
    assert said(again) == [f"{FAILED}: it was interrupted. Nothing was changed."]
    third = Bench(tmp_path, adapter, window=6_000, settings=KODACODE, store=bench.store, tools=ALL_TOOLS)
    assert await third.resume() is not None
    assert said(third) == [], "said once"


async def test_a_utility_model_may_improve_the_summary_or_fail(tmp_path):
    """R-321, R-322: a failing utility model leaves the runtime summary and the compaction succeeds."""
    utility = ScriptedAdapter("utility", lambda request: says("no JSON"))
    bench = Bench(
        tmp_path, talker(), utility, window=6_000,
        settings={**KODACODE, "context_management": {"compaction": {"adapter": "utility"}}}, tools=ALL_TOOLS,
    )  # fmt: skip
    session = await bench.open()
    await talk(bench, session, 10)
    assert utility.requests
    assert bench.of(Compacted)
    assert bench.of(CompactionFailed) == []
    fields = named(bench, "session_history_continuation_updated")[0].fields
    assert fields["attribution"]["summary_source"] == "runtime"


async def test_a_manual_compaction_rebuilds_the_summary_from_the_whole_log(tmp_path):
    """R-326: all turns but the last two are summarised; with nothing to do, that is reported and no event is logged."""
    adapter = talker()
    bench = Bench(tmp_path, adapter, settings=KODACODE)
    session = await bench.open()
    session.compact("")
    await bench.idle(session)
    assert any("nothing to summarise" in e.text for e in bench.of(Notice))
    assert logged(bench) == []
    await talk(bench, session, 5)
    session.compact("")
    await bench.idle(session)
    assert [m.cycle for m in session.log.view.messages if m.role == "user"] == [4, 5]
    await talk(bench, session, 3, first=6)
    session.compact("")
    await bench.idle(session)
    updates = [e.fields for e in named(bench, "session_history_continuation_updated")]
    assert [u["update_reason"] for u in updates] == ["manual_request"] * 2
    assert [(u["newly_consolidated_turn_count"], u["consolidated_turn_count"]) for u in updates] == [(3, 3), (6, 6)]


async def test_an_undone_summary_is_not_carried_over(tmp_path):
    """R-324: the turns are back in the view; the next summary is written from the log."""
    bench, session, _ = await compacting(tmp_path, turns=9)
    change = logged(bench, ViewChanged)[-1]
    await session.log.undo([change.change_id], by_user=True)
    assert logged(bench, ChangeUndone)
    session.compact("")
    await bench.idle(session)
    artifact = read_consolidated(logged(bench, ViewChanged)[-1].report.artifact)
    assert artifact is not None
    assert artifact.frontier_turn_id == f"turn-{artifact.consolidated_turn_count}"


async def test_a_long_first_turn_causes_no_plan_and_no_error(tmp_path):
    """R-310, R-332, R-334: no turn is finished or planned; the pressure is logged once, and the request is sent."""
    (tmp_path / "a.txt").write_text("words and words\n" * 190)
    script = [calls((f"c{i}", "read_file", '{"path": "a.txt"}')) for i in range(4)] + [says("done")]
    bench = Bench(
        tmp_path, ScriptedAdapter("s", script), window=6_500, settings={"policy": "kodacode strict"}, tools=ALL_TOOLS
    )
    session = await bench.open()
    session.submit(submit("read it again and again"))
    await bench.idle(session)
    assert bench.bugs == []
    assert bench.of(CompactionStarted) == []
    assert not any("is paused" in e.text for e in bench.of(Notice))
    pressed = named(bench, "context_compaction_failed")
    assert [e.fields["reason"] for e in pressed][:1] == ["input_limit_pressure"]
    assert_paired(bench)


async def test_a_request_that_cannot_fit_is_not_sent(tmp_path):
    """R-311, R-332, R-335: there is one clear sentence and one event, and the next message works."""
    adapter = talker(20)
    bench = Bench(tmp_path, adapter, window=4_000, settings=KODACODE, tools=ALL_TOOLS)
    session = await bench.open()
    session.submit(submit("word " * 6_000))
    await bench.idle(session)
    assert adapter.requests == []
    (ended,) = bench.of(TurnFinished)
    assert ended.reason == "limit"
    assert ended.error.startswith("Not sent: ")
    assert "3,800 fit; your message takes" in ended.error
    (failed,) = named(bench, "context_compaction_failed")
    assert failed.fields["reason"] == "input_limit_unreachable"
    assert_paired(bench)
    assert failed.fields["estimated_request_tokens"] > failed.fields["input_limit_tokens"] == 4000
    session.submit(submit("something short", 2))
    await bench.idle(session)
    assert len(adapter.requests) == 1
    assert bench.of(TurnFinished)[-1].reason == "done"


async def test_a_providers_refusal_has_the_same_reason(tmp_path):
    """R-332, R-335: the provider refuses the request as too long, and nothing more can be removed."""
    adapter = ScriptedAdapter("s", lambda request: (ContextOverflow("prompt is too long"),))
    bench = Bench(tmp_path, adapter, settings=KODACODE)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert named(bench, "context_compaction_failed")[-1].fields["reason"] == "input_limit_unreachable"
    assert_paired(bench)


async def test_requests_per_turn_are_limited(tmp_path):
    """R-336: `max_provider_requests_per_turn` ends an endless turn, under this policy, too."""
    (tmp_path / "a.txt").write_text("x")
    many = iter(range(100))
    adapter = ScriptedAdapter(
        "s",
        lambda request: calls((f"c{(n := next(many))}", "read_file", f'{{"path": "a.txt", "start_line": {n + 1}}}')),
    )
    bench = Bench(tmp_path, adapter, settings={**KODACODE, "max_provider_requests_per_turn": 5})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    assert len(adapter.requests) == 5
    assert bench.of(TurnFinished)[0].reason == "limit"


@pytest.mark.parametrize(("allowed", "requests"), [(0, 1), (1, 2), (2, 3)])
async def test_a_reply_cut_off_is_continued_as_often_as_allowed(tmp_path, allowed, requests):
    """R-337: only if the provider stopped because of its output limit."""
    from codecompanion.adapters.base import Finished, TextDelta

    adapter = ScriptedAdapter("s", lambda request: (TextDelta("half"), Finished("length", (), None)))
    bench = Bench(tmp_path, adapter, settings={**KODACODE, "max_output_continuations": allowed})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    assert len(adapter.requests) == requests


# ---- when it fails

FAILED = "History summary update failed"


def said(bench):
    """Return the messages shown in the chat buffer, in order."""
    shown = {Notice: "text", CompactionFailed: "reason", TurnFinished: "error"}
    told = [getattr(event, shown[type(event)]) for event in bench.events if type(event) in shown]
    return [text for text in told if text]


@pytest.mark.parametrize("refused", [history.CompactionStarted, ViewChanged])
async def test_a_summary_that_cannot_be_stored_is_reported_in_the_documents_words(tmp_path, monkeypatch, refused):
    """R-321, R-327: the runtime could not finish; there is no new summary, and the history is unchanged."""
    bench, session, _ = await compacting(tmp_path, turns=3)
    assert bench.of(Compacted) == []
    before, write = session.log.view.messages, session.log.write

    async def full_disk(*payloads):
        if any(isinstance(payload, refused) for payload in payloads):
            raise StoreUnavailable("the disk is full")
        return await write(*payloads)

    monkeypatch.setattr(session.log, "write", full_disk)
    session.compact("")
    await bench.idle(session)
    assert f"{FAILED}: the disk is full. Nothing was changed." in said(bench)
    assert session.log.view.messages == before
    assert bench.of(Compacted) == []


async def test_a_request_too_large_after_its_compaction_is_reported_in_the_documents_words(tmp_path):
    """R-327, R-335: the event is logged; the next sentence names the largest part and a remedy."""
    bench = Bench(tmp_path, talker(20), window=4_000, settings=KODACODE, tools=ALL_TOOLS)
    session = await bench.open()
    session.submit(submit("word " * 6_000))
    await bench.idle(session)
    assert len(named(bench, "context_compaction_failed")) == 1
    first, then = said(bench)
    assert first == f"{FAILED}: the request still does not fit."
    assert then.startswith("Not sent: ")
    told = [type(event) for event in bench.events if type(event) in (Notice, SubmitFailed, TurnFinished)]
    assert told == [Notice, SubmitFailed, TurnFinished], "the same sentence twice in a row is shown once"


async def test_a_providers_refusal_is_reported_the_same_way_and_mere_pressure_is_not(tmp_path):
    """R-334, R-335: a request that is sent is not a failure for the user."""
    adapter = ScriptedAdapter("s", lambda request: (ContextOverflow("prompt is too long"),))
    bench = Bench(tmp_path, adapter, settings=KODACODE)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    assert f"{FAILED}: the request still does not fit." in said(bench)
    (tmp_path / "pressed").mkdir()
    pressed = Bench(tmp_path / "pressed", talker(20), window=6_000, settings=KODACODE, tools=ALL_TOOLS)
    session = await pressed.open()
    await talk(pressed, session, 1, text="word " * 3_300)
    assert named(pressed, "context_compaction_failed")[0].fields["reason"] == "input_limit_pressure"
    assert not [text for text in said(pressed) if FAILED in text]


# ---- what is said of the requests


async def test_the_assembled_request_is_logged_once_per_turn(tmp_path):
    """R-328, R-329: the event has the layers and fragments in bytes."""
    bench, _, adapter = await searching(tmp_path)
    (event,) = named(bench, "prompt_compiled")
    fields = event.fields
    assert fields["shape"] == "full"
    assert {layer["name"] for layer in fields["layers"]} == {"instructions", "tools", "summary", "history", "turn"}
    assert fields["base_instructions"] == len(adapter.requests[0].messages[0].text.encode())
    assert fields["cacheable_prefix"] + fields["dynamic_suffix"] == sum(f["bytes"] for f in fields["fragments"])
    assert [e.name for e in bench.of(Told)] == ["prompt_compiled", "context_pruned"]
    (turn,) = [fragment for fragment in fields["fragments"] if fragment["layer"] == "turn"]
    assert turn["label"] == "turn-1"


async def test_the_chart_shows_the_configured_trigger(tmp_path):
    """R-307, R-356: requests are logged with the limits that apply to the measured size, the history before shaping."""
    bench, session, _ = await searching(tmp_path)
    assert session.control.shaper.current().raw.tokens > session.control.shaper.current().measure.tokens
    limits = logged(bench, RequestSent)[-1].limits
    assert limits["compaction"] == int(limits["window"] * 0.8)


async def test_omitted_turns_are_logged(tmp_path):
    """R-328, R-330: they are relative to the whole log, each turn is named once, and no figure is negative."""
    bench, _, _ = await compacting(tmp_path)
    pruned = [event.fields for event in named(bench, "context_pruned")]
    last, ids = pruned[-1], [turn for fields in pruned for turn in fields["turn_ids"]]
    assert last["omitted_prior_turns"] == len(ids) > 0
    assert ids == [f"turn-{i}" for i in range(1, len(ids) + 1)]
    history = full_history(bench.store.load_events("chat-1"))
    assert last["omitted_input_bytes"] == sum(text_bytes(m) for m in history if turn_of(m) in ids)
    assert last["omitted_prior_turns"] + last["prior_turns"] == 13
    assert all(value >= 0 for value in last.values() if isinstance(value, int))


async def compacted_within_a_turn(tmp_path, *steps, window=6_000):
    """Run two turns, then one with the replies `steps`, which is compacted between two of its requests."""
    (tmp_path / "a.txt").write_text("words and words\n" * 190)
    adapter = ScriptedAdapter("s", [says("word " * 800), says("word " * 800), *steps, says("done")])
    bench = Bench(tmp_path, adapter, window=window, settings=KODACODE, tools=ALL_TOOLS)
    session = await bench.open()
    await talk(bench, session, 2)
    assert bench.of(Compacted) == []
    session.submit(submit("read it", 3))
    await bench.idle(session)
    assert bench.bugs == []
    assert bench.of(TurnFinished)[-1].reason == "done"
    assert len(bench.of(Compacted)) == 1
    return bench, adapter


def events_behind(bench, request):
    """Return the R-328 events logged after the n-th request of the last turn, `request`, and before the next one."""
    payloads = [e.payload for e in bench.store.load_events("chat-1")]
    sent = [place for place, payload in enumerate(payloads) if isinstance(payload, RequestSent)][2:]
    later = payloads[sent[request - 1] : sent[request]]
    names = ("prompt_compiled", "context_pruned")
    return [event for event in later if isinstance(event, PolicyEvent) and event.name in names]


async def test_a_compaction_between_two_tool_rounds_logs_the_resulting_request(tmp_path):
    """R-328: turns dropped after the summary are reported immediately, not a turn later."""
    reads = [calls((f"c{i}", "read_file", '{"path": "a.txt"}')) for i in range(2)]
    bench, adapter = await compacted_within_a_turn(tmp_path, *reads)
    sizes = [len(events_behind(bench, n)) for n in range(1, len(adapter.requests) - 2)]
    assert sorted(sizes) == [0] * (len(sizes) - 1) + [2], "one pair, for the request after the compaction"
    compiled, pruned = events_behind(bench, sizes.index(2) + 1)
    assert (compiled.name, pruned.name) == ("prompt_compiled", "context_pruned")
    assert pruned.fields["turn_ids"] == ["turn-1", "turn-2"]
    assert pruned.fields["omitted_prior_turns"] == 2
    summary = next(layer for layer in compiled.fields["layers"] if layer["name"] == "summary")
    assert summary["status"] == "included"
    told = [e.name for e in bench.of(Told) if e.name in ("prompt_compiled", "context_pruned")]
    assert told == ["prompt_compiled", "context_pruned"] * 4


async def test_a_compaction_after_a_refusal_logs_the_second_request(tmp_path):
    """R-328, R-335: the request sent the second time is different."""
    refused = (ContextOverflow("prompt is too long"),)
    bench, adapter = await compacted_within_a_turn(tmp_path, refused, window=100_000)
    assert len(adapter.requests) == 4
    compiled, pruned = events_behind(bench, 1)
    assert pruned.fields["omitted_prior_turns"] == 2
    assert compiled.fields["cacheable_prefix"] > 0


# ---- style of replies


@pytest.mark.parametrize(
    ("settings", "terse"),
    [
        ({"policy": "kodacode"}, True),
        ({"policy": "kodacode", "response_style": "default"}, False),
        ({"policy": "kodacode", "response_style": "terse"}, True),
        ({}, False),
        ({"response_style": "terse"}, True),
    ],
)
async def test_the_reply_style_changes_the_system_prompt(tmp_path, settings, terse):
    """R-347, R-348, R-349, K16: terse by default only under this policy; nothing else changes."""
    adapter = ScriptedAdapter("s", [says("hello")])
    bench = Bench(tmp_path, adapter, settings=settings)
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    system = adapter.requests[0].messages[0].text
    assert system.endswith(TERSE.full) == terse
    assert (TERSE.full in system) == terse
    assert adapter.requests[0].tools == session.control.specs


@pytest.mark.parametrize(
    ("chat", "key"),
    [
        ({"response_style": "short"}, r"interactions\.chat\.opts\.response_style"),
        (
            {"context_packet": {"enabled_sections": ["gut"]}},
            r"interactions\.chat\.opts\.context_packet\.enabled_sections",
        ),
    ],
)
def test_wrong_values_are_refused_at_startup(tmp_path, chat, key):
    """R-347, R-350: the error names the key."""
    with pytest.raises(ConfigError, match=key):
        Bench(tmp_path, talker(), settings=chat)


# ---- the packet


def repository(folder):
    for command in (["init", "-q", "-b", "topic"], ["add", "."]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)


def packets(request):
    return [message for message in request.messages if message.tag == "context_packet"]


async def with_packet(tmp_path, *texts, sections=("repo", "git"), window=100_000, replies=None, editor=None):
    (tmp_path / "a.txt").write_text("x")
    repository(tmp_path)
    adapter = ScriptedAdapter("s", replies or (lambda request: says("ok")))
    settings = {**KODACODE, "context_packet": {"enabled_sections": list(sections)}}
    bench = Bench(tmp_path, adapter, settings=settings, window=window, tools=ALL_TOOLS)
    bench.services.editor = editor or NoEditor()
    session = await bench.open()
    for number, text in enumerate(texts, 1):
        session.submit(Submit(chat="chat-1", submit_id=number, text=text, snapshot=Snapshot()))
        await bench.idle(session)
    assert bench.bugs == []
    return bench, session, adapter


async def test_the_packet_is_sent_with_the_first_turn_and_is_not_stored(tmp_path):
    """R-350…R-353: it comes before the user's words and stays in place in later requests; nothing is repeated."""
    script = [calls(("c1", "read_file", '{"path": "a.txt"}')), says("ok"), says("again"), says("asked")]
    bench, _, adapter = await with_packet(tmp_path, "hello", "and now?", "what is the git status?", replies=script)
    first, continuation, second, third = adapter.requests
    (packet,) = packets(first)
    assert f"name: {tmp_path.name}\ngit: detected" in packet.text
    assert "branch: topic\nchanged_files: 1" in packet.text
    assert first.messages[1] is packet
    assert first.messages[2].text == "hello"
    assert packets(continuation) == [packet]
    assert packets(second) == [packet]
    assert [p.cycle for p in packets(third)] == [1, 3]
    assert "name:" not in packets(third)[1].text
    assert not any(m.tag == "context_packet" for m in project(bench.store.load_events("chat-1")).messages)
    assert logged(bench, RequestSent)[0].shaping == {"packet": packet.tokens}


async def test_summarised_sections_are_sent_again(tmp_path):
    """R-353: "since it was last sent" means text that the model can still see."""
    words = [f"{text} " * 300 for text in ("one", "two", "three", "four")]
    bench, session, adapter = await with_packet(tmp_path, *words, sections=("repo",))
    assert [p.cycle for p in packets(adapter.requests[-1])] == [1]
    session.compact("")
    await bench.idle(session)
    session.submit(submit("five", 5))
    await bench.idle(session)
    assert [p.cycle for p in packets(adapter.requests[-1])] == [5]


async def test_under_pressure_the_packet_is_omitted_and_recorded(tmp_path):
    """R-354: its tokens are in the log for /cost."""
    bench, _, adapter = await with_packet(tmp_path, "word " * 2_500, window=5_150)
    assert packets(adapter.requests[0]) == []
    assert logged(bench, RequestSent)[0].shaping["packet_omitted"] > 20


async def test_diagnostics_come_from_the_editor(tmp_path):
    """R-351: a few of the editor's diagnostics, if the message is about them."""
    found = Diagnostic(path=str(tmp_path / "a.txt"), line=3, severity="ERROR", message="undefined name")

    class Says(NoEditor):
        async def diagnostics(self):
            return (found,)

    _, _, adapter = await with_packet(tmp_path, "fix the errors", sections=("diagnostics",), editor=Says())
    (packet,) = packets(adapter.requests[0])
    assert "- a.txt:3 ERROR: undefined name" in packet.text


async def test_without_sections_git_is_not_called(tmp_path, monkeypatch):
    """R-350: disabled by default."""
    monkeypatch.setattr("codecompanion.workspace.git.read_status", lambda root: pytest.fail("asked"))
    _, _, adapter = await with_packet(tmp_path, "hello", sections=())
    assert packets(adapter.requests[0]) == []
