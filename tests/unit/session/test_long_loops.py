"""A turn of many tool calls in a live chat, under every policy (R-408, R-510, R-524): summarised before truncated."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.artifact.artifact import read_consolidated
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import PolicyEvent, ViewChanged
from codecompanion.model.invariants import violations
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.wire.events import Compacted, TurnFinished
from tests.summaries import nine_sections
from tests.unit.session.compaction.test_effects import checkpoints, kept, remembered
from tests.unit.session.fakes import ALL_TOOLS, Bench, Reply, ScriptedAdapter, calls, says, submit

WINDOW, STEPS = 8_000, 100
REQUEST = "Count the ships in harbour.txt. Never change the file."
SAID = "The ships of harbour.txt are counted; the file is never changed. "
ENDLESS = {"max_provider_requests_per_turn": -1}


class Worker:
    """A model that reads another part of the file at each step, with long or short replies, and writes summaries."""

    def __init__(self, steps: int, words: int = 0) -> None:
        self.steps, self.words, self._numbers = steps, words, count(1)

    def __call__(self, request: ChatRequest) -> Reply:
        if request.purpose != "chat":
            schema = "cw_9" if "Work Completed" in request.messages[-1].text else "cc_9"
            return says(nine_sections(SAID, schema) if "sections" in request.messages[-1].text else 4 * SAID)
        number = next(self._numbers)
        if number % self.steps == 0:
            return says("All are counted.")
        start = 1 + 7 * number
        read = json.dumps({"path": "harbour.txt", "start_line": start, "end_line": start + number * 37 % 60})
        return calls((f"c{number}", "read_file", read), text=f"Part {number} says: " + "word " * self.words)


def bench_of(tmp_path: Path, policy: str, worker: Worker) -> tuple[Bench, ScriptedAdapter]:
    (tmp_path / "harbour.txt").write_text("".join(f"ship {n} lies at dock {n % 7}\n" for n in range(3_000)))
    adapter = ScriptedAdapter("s", worker)
    return kept(tmp_path, adapter, window=WINDOW, settings={"policy": policy, **ENDLESS}, tools=ALL_TOOLS), adapter


def changes(bench: Bench) -> list[ViewChanged]:
    return [one.payload for one in bench.store.load_events("chat-1") if isinstance(one.payload, ViewChanged)]


def named(bench: Bench, name: str) -> list[PolicyEvent]:
    found = [one.payload for one in bench.store.load_events("chat-1")]
    return [one for one in found if isinstance(one, PolicyEvent) and one.name == name]


@pytest.mark.parametrize("words", [0, 80])
@pytest.mark.parametrize("name", policy_names())
async def test_the_policys_own_stages_keep_a_loop_in_its_window(tmp_path, name, words):
    bench, adapter = bench_of(tmp_path, name, Worker(STEPS, words))
    session = await bench.open()
    session.submit(submit(REQUEST))
    await bench.idle(session)
    assert bench.bugs == []
    assert [one.reason for one in bench.of(TurnFinished)] == ["done"]
    own = {stage.id for stage in load_policy(name).stages}
    assert {one.report.stage for one in changes(bench)} <= own
    counter = MessageCounter()
    asked = [one for one in adapter.requests if one.purpose == "chat"]
    assert len(asked) == STEPS
    for request in asked:
        assert violations(request.messages) == []
        assert counter.count_messages(request.messages) + counter.tools(request.tools) <= WINDOW
        assert REQUEST in [message.text for message in request.messages]
    if words:
        assert len(bench.of(Compacted)) >= 3


async def test_cowork_hands_off_during_a_loop(tmp_path):
    """R-408, R-411, R-416, R-443, R-447, R-453: it has checkpoint, pinned block, memory, event; newest rounds stay."""
    bench, adapter = bench_of(tmp_path, "cowork", Worker(STEPS))
    session = await bench.open()
    session.submit(submit(REQUEST))
    await bench.idle(session)
    handoffs = [one for one in changes(bench) if one.kind == "compacted"]
    assert len(handoffs) >= 3
    assert [one.replaced for one in changes(bench) if one.kind == "edited"] == []
    assert [one.trigger for one in bench.of(Compacted)] == ["proactive"] * len(handoffs)
    assert len(named(bench, "context_summarized")) == len(handoffs)
    of_compactions = [one for one in named(bench, "memory_flushed") if one.fields["kind"] == "compaction"]
    assert len(of_compactions) == len(handoffs)
    assert remembered(bench) != []
    assert "pre_compaction" in {one.checkpoint_kind for one in checkpoints(bench)}
    for request in [one for one in adapter.requests if one.purpose == "chat"]:
        summaries = [message for message in request.messages if message.tag == SUMMARY_TAG]
        assert all(one.pinned and one.text.startswith("<cowork_compaction_summary>") for one in summaries)
        assert len(summaries) <= 1
        assert request.messages[-1].role in ("tool", "user")
    sent = next(one.messages for one in adapter.requests if any(m.tag == SUMMARY_TAG for m in one.messages))
    assert sum(message.role == "tool" for message in sent) >= 2


async def test_kodacode_summarises_the_running_turn_and_then_the_finished_one(tmp_path):
    """R-313, R-319, R-324: one summary that covers the turn once, during and after it."""
    bench, _ = bench_of(tmp_path, "kodacode", Worker(STEPS))
    session = await bench.open()
    session.submit(submit(REQUEST))
    await bench.idle(session)
    of_loop = [one.report for one in changes(bench)]
    assert {one.stage for one in of_loop} == {"running_turn"}
    for report in of_loop:
        artifact = read_consolidated(report.artifact)
        assert artifact is not None
        assert (artifact.frontier_turn_id, artifact.consolidated_turn_count) == ("turn-1", 1)
        assert [one.episode_id for one in artifact.artifact.completed_episodes] == ["episode-turn-1"]
        assert [one.item for one in artifact.artifact.open_threads if "stopped" in one.item] == []
        assert artifact.artifact.completed_episodes[0].touched_paths == ("harbour.txt",)
        assert artifact.artifact.constraints == ("Never change the file.",)
    session.submit(submit("Count them again.", 2))
    await bench.idle(session)
    assert await session.control.compact("")
    newest = changes(bench)[-1].report
    artifact = read_consolidated(newest.artifact)
    assert artifact is not None
    assert (artifact.frontier_turn_id, artifact.consolidated_turn_count) == ("turn-2", 2)
    assert [one.episode_id for one in artifact.artifact.completed_episodes] == ["episode-turn-1", "episode-turn-2"]
    assert "[99 tool calls succeeded, 0 failed]" in artifact.artifact.completed_episodes[0].summary
    assert bench.bugs == []
