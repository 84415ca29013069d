"""`/policy … strict` and back during a tool loop, with a pin and after compactions, under every policy."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.strict import SUFFIX
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.invariants import violations
from codecompanion.session.actions.choose_policy import choose_policy
from codecompanion.session.chat.inspection import inspect
from codecompanion.session.session import Session
from codecompanion.wire.events import Compacted, Meter, PolicyChanged, TurnFinished
from codecompanion.wire.requests import Pin, UndoChange
from tests.unit.session.fakes import Reply, submit
from tests.unit.session.test_long_loops import REQUEST, WINDOW, Worker, bench_of

STEPS, EVERY = 40, 3
PIN = "Never sink a ship."


class Toggling(Worker):
    """Chooses the other form of the policy during every third request."""

    def __init__(self, name: str) -> None:
        super().__init__(STEPS, 80)
        self.forms = (name + SUFFIX, name)
        self.turns, self.running = count(), set[asyncio.Task[None]]()
        self.session: Session | None = None

    def __call__(self, request: ChatRequest) -> Reply:
        turn = next(self.turns)
        if self.session is not None and turn % EVERY == 0:
            form = self.forms[turn // EVERY % 2]
            self.running.add(asyncio.get_running_loop().create_task(choose_policy(self.session, form)))
        return super().__call__(request)


@pytest.mark.parametrize("name", [one for one in policy_names() if not load_policy(one).ours])
async def test_every_request_stays_valid_and_the_display_correct(tmp_path, name):
    worker = Toggling(name)
    bench, adapter = bench_of(tmp_path, name, worker)
    session = worker.session = await bench.open()
    await session.edits.carry_out(Pin(chat="chat-1", text=PIN))
    session.submit(submit(REQUEST))
    await bench.idle(session)
    await asyncio.gather(*worker.running)
    worker.session = None
    session.compact("")
    await bench.idle(session)
    await choose_policy(session, name + SUFFIX)
    await session.edits.carry_out(UndoChange(chat="chat-1"))
    await choose_policy(session, name)
    session.submit(submit("Count them again.", 2))
    await bench.idle(session)
    assert bench.bugs == []
    assert [one.reason for one in bench.of(TurnFinished)] == ["done"] * 2
    assert {one.policy for one in bench.of(PolicyChanged)} == set(worker.forms)
    assert len(bench.of(Compacted)) >= 2
    counter = MessageCounter()
    for request in [one for one in adapter.requests if one.purpose == "chat"]:
        assert violations(request.messages) == []
        assert counter.count_messages(request.messages) + counter.tools(request.tools) <= WINDOW
        assert any(PIN in message.text for message in request.messages)
    shown = inspect(session.control, session.log)
    assert shown["total"] == sum(row["tokens"] for row in shown["rows"]) == bench.of(Meter)[-1].tokens
    assert session.control.policy.name == name
