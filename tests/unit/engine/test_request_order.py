"""The order in which two requests begin (`engine.request_order`), if one arrives as the other's gate opens."""

from __future__ import annotations

import asyncio

import pytest

from codecompanion.engine.request_order import RequestOrder
from codecompanion.wire import requests
from codecompanion.wire.requests import Attach, Cancel, OpenChat, Request, SaveDraft, Snapshot, Submit

HELLO = requests.Hello(settings={}, data_dir="", cache_dir="", log_path="", nvim="")


def submit(number: int) -> Submit:
    return Submit(chat="c", submit_id=number, text="", snapshot=Snapshot())


async def begun(gate_of: Request, earlier: Request, later: Request) -> list[str]:
    """Return the order of two requests; the second arrives in the very step that opens the gate."""
    order, happened = RequestOrder(), []
    order.is_done(HELLO, await order.turn_of(HELLO))
    gate = await order.turn_of(gate_of)

    async def begin(name: str, request: Request) -> None:
        await order.turn_of(request)
        happened.append(name)

    first = asyncio.create_task(begin("earlier", earlier))
    for _ in range(3):
        await asyncio.sleep(0)
    assert happened == []
    asyncio.get_running_loop().call_soon(order.is_done, gate_of, gate)
    await asyncio.gather(first, asyncio.create_task(begin("later", later)))
    return happened


OPEN = OpenChat(chat="c", snapshot=Snapshot())
ATTACH = Attach(chat="c", kind="file", path="a.py")
DRAFT = SaveDraft(chat="c", text="")


@pytest.mark.parametrize(
    ("gate_of", "earlier", "later"),
    [
        (OPEN, DRAFT, SaveDraft(chat="c", text="newer")),
        (OPEN, DRAFT, submit(1)),
        (OPEN, submit(1), submit(2)),
        (ATTACH, submit(1), submit(2)),
        (ATTACH, submit(1), Cancel(chat="c")),
    ],
    ids=["two drafts", "a draft, then the message", "two messages", "two held messages", "a held message is stopped"],
)
def test_a_request_at_an_open_gate_does_not_overtake_a_waiting_one(
    gate_of: Request, earlier: Request, later: Request
) -> None:
    """An older draft used to be stored over a newer one, and reappeared although it had been sent."""
    assert asyncio.run(begun(gate_of, earlier, later)) == ["earlier", "later"]


def test_a_blocked_message_blocks_nothing_else() -> None:
    assert asyncio.run(begun(ATTACH, submit(1), DRAFT)) == ["later", "earlier"]


def test_a_cancelled_request_lets_the_next_begin() -> None:
    async def give_up() -> None:
        order = RequestOrder()
        first = asyncio.create_task(order.turn_of(DRAFT))
        second = asyncio.create_task(order.turn_of(DRAFT))
        await asyncio.sleep(0)
        first.cancel()
        order.is_done(HELLO, await order.turn_of(HELLO))
        await asyncio.wait_for(second, 10)

    asyncio.run(give_up())
