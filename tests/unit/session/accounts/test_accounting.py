"""The log entries of a chat's provider requests (R-356, R-357, R-360)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from codecompanion.adapters.base import Finished, RetryScheduled, TextDelta
from codecompanion.errors import NetworkFailed
from codecompanion.model.history import Prices, RequestEnded, RequestSent, Retry, UsageReported
from codecompanion.model.messages import Usage
from codecompanion.session.state import State
from tests.unit.reports.logs import read_log
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

USAGE = Usage(input_tokens=100, cache_read_tokens=900, output_tokens=50)


def logged(bench, kind):
    return [event.payload for event in bench.store.load_events("chat-1") if isinstance(event.payload, kind)]


async def test_a_request_is_logged_with_its_parts_retries_end_and_price(tmp_path):
    """R-357: request mix, route attempts and result; the price is the one valid on the day of the request (R-359)."""
    reply = (RetryScheduled("rate limited", 1, 500), *says("hello", USAGE))
    bench = Bench(tmp_path, ScriptedAdapter("s", [reply]))
    bench.services.price = lambda adapter, model, passes: sum(
        (u.input_tokens + 0.1 * u.cache_read_tokens + 5 * u.output_tokens) / 1e6 for u in passes
    )
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    (sent,), (ended,), (reported,) = (logged(bench, kind) for kind in (RequestSent, RequestEnded, UsageReported))
    assert set(sent.mix) == {"prompt", "conversation", "tools"}
    assert min(sent.mix.values()) > 0
    assert ended.request_id == sent.request_id == reported.request_id != ""
    assert (ended.result, ended.retries) == ("stop", (Retry("rate limited", 500),))
    assert reported.cost_usd == 440 / 1e6
    assert reported.prices == Prices(input=1, output=5, cache_read=0.1, cache_write=0)


LOOPBACK, NETWORK, PUBLIC = "http://localhost:11434", "http://box.lan:8080", "https://vllm.example.com"


@pytest.mark.parametrize(
    ("address", "model", "is_entry_of_server", "told", "local"),
    [
        (LOOPBACK, "qwen3:14b", True, None, True),
        (LOOPBACK, "gpt-oss:120b-cloud", True, None, False),  # Ollama passes it on to its own service
        (LOOPBACK, "kimi-k2.5:cloud", True, True, False),
        (LOOPBACK, "qwen3:14b", True, False, False),  # a gateway at the entry of a server
        (LOOPBACK, "qwen3:14b", False, None, False),  # a gateway, as far as anybody knows
        (LOOPBACK, "qwen3:14b", False, True, True),  # the model list says who it is
        (NETWORK, "qwen3:14b", True, None, True),
        (NETWORK, "qwen3:14b", True, False, False),
        (NETWORK, "qwen3:14b", False, True, False),
        (PUBLIC, "qwen3:14b", True, True, False),
    ],
)
async def test_only_a_known_server_of_the_users_own_costs_no_money(
    tmp_path, address, model, is_entry_of_server, told, local
):
    """R-359: a gateway (LiteLLM) may pass on to a provider that bills. A known price always counts."""
    bench = Bench(tmp_path, ScriptedAdapter("model", lambda request: says("answer")))
    entry = bench.services.adapters.settings("model")
    entry = msgspec.structs.replace(entry, base_url=address, local_server=is_entry_of_server)
    bench.services.adapters.add(bench.adapter, entry)
    bench.adapter.runs_model_itself = lambda name: told
    report = UsageReported(message_id="m", adapter="model", model=model, usage=Usage(10, 5), estimated_prompt_tokens=10)
    bench.services.price = lambda adapter, model, passes: None
    priced = bench.services.priced(report)
    assert (priced.cost_usd, priced.local, priced.included) == ((0.0, True, True) if local else (None, False, False))
    bench.services.price = lambda adapter, model, passes: 0.5
    assert bench.services.priced(report).local is False


async def test_a_request_without_a_known_price_has_none(tmp_path):
    """R-359: the price is never $0."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("hello", USAGE)]))
    bench.services.price = lambda adapter, model, passes: None
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    (reported,) = logged(bench, UsageReported)
    assert (reported.cost_usd, reported.prices) == (None, None)


async def test_a_summary_request_is_logged_like_any_other(tmp_path):
    """R-357: it has its model, duration and end; the first attempt failed, and its retry was reported."""
    summary = "1. **Primary Request and Intent**\nRead.\n9. **Optional Next Step**\nGo on."
    replies = [
        says("long " * 400, USAGE),
        (RetryScheduled("overloaded", 1, 10), *says(summary, Usage(700, 30))),
        says("on", USAGE),
    ]
    bench = Bench(tmp_path, ScriptedAdapter("s", replies))
    session = await bench.open()
    session.submit(submit("hi"))
    await bench.idle(session)
    session.compact("", go_on=True)
    await bench.idle(session)
    sent, ended = logged(bench, RequestSent)[1], logged(bench, RequestEnded)[1]
    assert (sent.purpose, sent.model) == ("summary", "scripted-1")
    assert sent.estimated_tokens > 0
    assert (ended.request_id, ended.result, ended.retries) == (sent.request_id, "stop", (Retry("overloaded", 10),))
    reported = logged(bench, UsageReported)[1]
    assert (reported.request_id, reported.other_passes) == (sent.request_id, (Usage(700, 30),))
    record = read_log(bench.store.load_events("chat-1"))
    assert [call.purpose for call in record.calls] == ["chat", "summary", "chat"]
    assert all(call.ended is not None for call in record.calls)


async def test_a_failed_or_stopped_request_is_logged_as_such(tmp_path):
    """R-357: every request that began has an end in the log."""
    waits = asyncio.Event()
    replies = [(NetworkFailed("no network"),), (TextDelta("begin"), waits, Finished("stop"))]
    bench = Bench(tmp_path, ScriptedAdapter("s", replies))
    session = await bench.open()
    session.submit(submit("one"))
    await bench.idle(session)
    session.submit(submit("two", 2))
    await bench.until(lambda: session.state is State.STREAMING and bool(logged(bench, RequestSent)[1:]))
    session.cancel()
    await bench.idle(session)
    failed, stopped = logged(bench, RequestEnded)
    assert (failed.result, failed.error) == ("failed", "no network")
    assert stopped.result == "stopped"
    assert [sent.request_id for sent in logged(bench, RequestSent)] == [failed.request_id, stopped.request_id]
