"""Budgets: the next turn is refused before anything is sent, and the message returns to the input (R-358)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.model.history import UsageReported
from codecompanion.model.messages import Usage
from codecompanion.session.actions.cost_reports import Reports
from codecompanion.session.actions.forking import fork
from codecompanion.session.actions.spending import Spending
from codecompanion.store.log.totals import Spent
from codecompanion.wire.events import MessageSent, Notice, SubmitFailed, TurnFinished
from codecompanion.wire.requests import ForkChat, ShowCost, Snapshot
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

MILLION = Usage(input_tokens=1_000_000, output_tokens=1)
"""The bench's price is one dollar per million tokens of a prompt."""
HALF = Usage(input_tokens=500_000, output_tokens=1)


def bench_with(tmp_path, store=None, **budgets):
    return Bench(tmp_path, ScriptedAdapter("s", lambda request: says("hello", MILLION)), settings=budgets, store=store)


async def ask(bench, session, number):
    session.submit(submit(f"question {number}", number))
    await bench.idle(session)


async def test_the_turn_that_reaches_the_budget_completes_and_the_next_is_refused(tmp_path):
    """R-358: the hard budget blocks the next turn, before any provider call and before the log."""
    bench = bench_with(tmp_path, budget=2)
    session = await bench.open()
    for number in (1, 2):
        await ask(bench, session, number)
    assert [event.reason for event in bench.of(TurnFinished)] == ["done", "done"]
    seq = session.log.view.last_seq
    await ask(bench, session, 3)
    assert len(bench.adapter.requests) == 2
    assert session.log.view.last_seq == seq
    ended = bench.of(TurnFinished)[-1]
    assert ended.reason == "limit"
    assert ended.error == (
        "The budget of this chat is used up: $2.00 of $2.00. Nothing was sent; raise"
        " interactions.chat.opts.budget to continue."
    )
    assert [event.text for event in bench.of(SubmitFailed)] == ["question 3"]
    assert len(bench.of(MessageSent)) == 2


async def test_the_total_budget_counts_all_chats_of_the_store_also_after_a_restart(tmp_path):
    """R-358."""
    first = bench_with(tmp_path, total_budget=1)
    await ask(first, await first.open("chat-1"), 1)
    again = bench_with(tmp_path, first.store, total_budget=1)
    session = await again.open("chat-2")
    await ask(again, session, 1)
    assert again.adapter.requests == []
    assert "The budget of all chats is used up: $1.00 of $1.00." in again.of(TurnFinished)[-1].error
    unlimited = bench_with(tmp_path, first.store)
    await ask(unlimited, await unlimited.open("chat-3"), 1)
    assert len(unlimited.adapter.requests) == 1


async def test_a_warning_appears_once_when_its_share_is_reached(tmp_path):
    """R-358: budget_warn is a share of the budget."""
    bench = bench_with(tmp_path, budget=4, budget_warn=0.5)
    session = await bench.open()
    for number, expected in ((1, 0), (2, 1), (3, 1)):
        await ask(bench, session, number)
        warnings = [event.text for event in bench.of(Notice) if event.level == "WARN"]
        assert len(warnings) == expected, number
    assert warnings == ["50 % of the budget of this chat is used: $2.00 of $4.00 (interactions.chat.opts.budget)."]


async def test_an_answer_is_not_discarded_for_one_over_the_budget(tmp_path):
    """R-358: regenerating and continuing are turns, too."""
    bench = bench_with(tmp_path, budget=1)
    session = await bench.open()
    await ask(bench, session, 1)
    before = session.log.view
    with pytest.raises(InputError, match="The budget of this chat is used up"):
        await session.regenerate(Snapshot())
    session.continue_reply(Snapshot())
    await bench.idle(session)
    assert session.log.view == before
    assert bench.of(TurnFinished)[-1].reason == "limit"
    assert len(bench.adapter.requests) == 1


async def test_calls_without_a_price_never_exhaust_a_budget(tmp_path):
    """R-359: a call without a known price does not exhaust the budget; one message and the warning mention it."""
    usage, known = [MILLION], []
    adapter = ScriptedAdapter("s", lambda request: says("hello", usage[-1]))
    bench = Bench(tmp_path, adapter, settings={"budget": 1, "budget_warn": 0.5})
    session = await bench.open()
    bench.services.price = lambda adapter, model, passes: 0.6 if passes[0] in known else None
    await ask(bench, session, 1)
    await ask(bench, session, 2)
    known.append(HALF)
    usage.append(HALF)
    await ask(bench, session, 3)
    assert [event.reason for event in bench.of(TurnFinished)] == ["done", "done", "done"]
    unknown, warning = [event.text for event in bench.of(Notice) if event.level == "WARN"]
    assert unknown == (
        "Price unknown: the budget of this chat ($1.00, interactions.chat.opts.budget) cannot count all"
        " requests of this chat. `/cost` names the option that sets the price."
    )
    assert warning.endswith("2 requests without a known price are not counted.")
    known.append(MILLION)
    assert session.spending.budgets()[0].spent_usd == pytest.approx(0.6), "a price set later does not use it up"


async def test_a_price_that_is_set_later_also_counts_for_earlier_requests(tmp_path):
    """R-359: in `/cost`, but not in budgets; the copied requests of a branch are counted once."""
    bench = bench_with(tmp_path)
    session = await bench.open()
    bench.services.price = lambda adapter, model, passes: None
    await ask(bench, session, 1)
    await fork(bench.services, ForkChat(chat="chat-1", fork="branch", at="", title="", draft=""))
    spending = Spending(bench.services, "chat-1")
    assert {budget.unpriced for budget in (*spending.budgets(), spending.of_all_chats())} == {1}
    bench.services.price = lambda adapter, model, passes: 0.5
    total = spending.of_all_chats()
    assert (total.spent_usd, total.unpriced) == (0.5, 0)
    assert {(budget.spent_usd, budget.unpriced) for budget in spending.budgets()} == {(0, 1)}, "as when it was sent"
    text = Reports().show_cost(bench.services, ShowCost(chat="chat-1"))["text"]
    assert text.startswith("# Cost of this chat: $0.50\n")


async def test_a_total_budget_also_reports_that_it_cannot_count_a_chat(tmp_path):
    """R-359."""
    bench = bench_with(tmp_path, total_budget=5)
    session = await bench.open()
    bench.services.price = lambda adapter, model, passes: None
    await ask(bench, session, 1)
    (unknown,) = [event.text for event in bench.of(Notice) if event.level == "WARN"]
    assert unknown.startswith("Price unknown: the budget of all chats ($5.00, interactions.chat.opts.total_budget)")


async def test_without_a_budget_the_store_is_not_queried(tmp_path, monkeypatch):
    bench = bench_with(tmp_path)
    session = await bench.open()
    monkeypatch.setattr(type(bench.store), "spent", lambda *_: pytest.fail("the store was asked"))
    await ask(bench, session, 1)
    assert bench.of(TurnFinished)[-1].reason == "done"


async def test_a_subscription_continues_when_the_budget_is_used_up(tmp_path):
    """Calls of a subscription cost no dollars and are stored as such; those of an API key are refused as usual."""
    bench = bench_with(tmp_path, total_budget=1)
    session = await bench.open("chat-1")
    await ask(bench, session, 1)
    plan = bench_with(tmp_path, bench.store, total_budget=1)
    entry = plan.services.adapters.settings("s")
    plan.services.adapters.add(plan.adapter, msgspec.structs.replace(entry, included=True))
    other = await plan.open("chat-2")
    for number in (2, 3):
        await ask(plan, other, number)
    assert [event.reason for event in plan.of(TurnFinished)] == ["done", "done"]
    assert plan.store.spent().usd == 1
    assert plan.store.spent("chat-2") == Spent(0.0, 0)
    assert all(report.included for report in reports(other))
    await ask(bench, session, 4)
    assert bench.of(TurnFinished)[-1].reason == "limit"


def reports(session):
    """Return the reports about calls."""
    events = session.services.store.load_events(session.chat_id)
    return [event.payload for event in events if isinstance(event.payload, UsageReported)]
