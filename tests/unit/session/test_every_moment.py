"""Interruptions at any point: R-530, R-543, R-544; lessons 16, 28, 36, 41."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.model.invariants import violations
from codecompanion.session.state import State
from codecompanion.wire.events import CompactionFailed
from tests.amounts import amount
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit
from tests.unit.session.moments import MAX_STEPS, STORIES, Stage, check_log

pytestmark = pytest.mark.slow("a stop or a fault at every step of a story")
STRIDE = amount(10, 3, 1)
"""Steps of the loop from one stop to the next; a story has 50 to 200, and most do nothing that can be seen."""


@pytest.mark.parametrize("name", STORIES)
async def test_a_story_completes(tmp_path, monkeypatch, name):
    stage = Stage(STORIES[name], tmp_path, monkeypatch)
    session = await stage.begin()
    stage.story.act(session)
    await stage.ends()
    stage.check()


@pytest.mark.parametrize("name", STORIES)
async def test_a_stop_at_any_step_leaves_a_consistent_chat(tmp_path, monkeypatch, name):
    """R-544, lesson 41: the reported state matches the log, and the chat continues."""
    for steps in range(0, MAX_STEPS, STRIDE):
        stage = Stage(STORIES[name], tmp_path, monkeypatch)
        session = await stage.begin()
        stage.story.act(session)
        for _ in range(steps):
            await asyncio.sleep(0)
        over = session.task is None
        session.cancel()
        await stage.ends()
        stage.check()
        assert all(event.cancelled for event in stage.bench.of(CompactionFailed) if "stopped" in event.reason)
        await _still_usable(stage)
        if over:
            return
    raise AssertionError("the story does not end")


@pytest.mark.parametrize("name", STORIES)
async def test_a_disk_full_at_any_write_leaves_a_consistent_chat(tmp_path, monkeypatch, name):
    """R-530: nothing is shown that could not be stored, and each compaction ends once."""
    number = 0
    while True:
        stage = Stage(STORIES[name], tmp_path, monkeypatch)
        session = await stage.begin()
        stage.full_from = number
        stage.story.act(session)
        await stage.ends()
        stage.check(wrote=False)
        if len(stage.writes) < number:
            return
        stage.full_from = -1
        await _still_usable(stage)
        number += 1


@pytest.mark.parametrize("name", STORIES)
async def test_a_kill_after_any_write_leaves_a_usable_chat(tmp_path, monkeypatch, name):
    """Lessons 35, 36: reopened, the chat is either before a change or after it."""
    whole = Stage(STORIES[name], tmp_path, monkeypatch)
    session = await whole.begin()
    known = [event.payload for event in whole.bench.store.load_events("chat-1")]
    whole.story.act(session)
    await whole.ends()
    for number in range(len(whole.writes) + 1):
        bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("THE END")))
        bench.store.append("chat-1", known).result()
        for batch in whole.writes[:number]:
            bench.store.append("chat-1", batch).result()
        bench.store.release("chat-1").result()
        resumed = await bench.resume()
        assert resumed is not None
        check_log(bench.store)
        resumed.submit(submit("and now?", 99))
        await asyncio.wait_for(bench.idle(resumed), PATIENCE_S)
        assert resumed.log.view.messages[-1].text == "THE END"
        assert any(message.text == "and now?" for message in resumed.log.view.messages)


async def _still_usable(stage: Stage) -> None:
    stage.story.is_over = True
    stage.session.submit(submit("and now?", 99))
    await stage.ends()
    view = stage.session.log.view
    assert stage.session.state is State.IDLE
    assert view.messages[-1].text == "THE END"
    assert violations(view.messages) == []
    stage.bench.events = [e for e in stage.bench.events if getattr(e, "submit_id", 0) != 99]
