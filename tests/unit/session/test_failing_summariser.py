"""A failing summariser costs one request per compaction, and none while it is paused (R-526, R-532; lesson 18)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.errors import ContextOverflow, NetworkFailed
from codecompanion.wire.events import Compacted, CompactionFailed, Notice
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

WINDOW, LOOP = 8_000, 6
RESTS = "Summaries are written without a model for now"


def agent(**replies):
    """Return an adapter that reads five files per question, and answers summary requests as given."""
    numbers = iter(range(1, 10_000))

    def reply(request):
        if request.purpose == "summary":
            return replies["summary"]
        number = next(numbers)
        if number % LOOP:
            return calls((f"c{number}", "read_file", json.dumps({"path": f"f{number % 9}.py"})), text="I look.")
        return says("answer " * 300)

    return ScriptedAdapter("s", reply)


def asked(adapter) -> int:
    return sum(request.purpose == "summary" for request in adapter.requests)


@pytest.mark.slow("every policy with every bad summary")
@pytest.mark.parametrize(("summary", "most"), [((NetworkFailed("The provider is down."),), 1), (says("ok"), 2)])
@pytest.mark.parametrize("policy", policy_names())
async def test_a_compaction_asks_once_or_once_more_with_the_reason(tmp_path, policy, summary, most):
    """R-526: this applies to all parts, paths and retries of a policy, with 7 messages in a window of 8,000 tokens.

    CodeBuddy's tier 3 asks again when tier 2 got no summary (R-115, R-120).
    """
    most *= 2 if policy == "codebuddy" and most > 1 else 1
    for number in range(9):
        (tmp_path / f"f{number}.py").write_text(f"# file {number}\n" + "value = compute(1, 2)\n" * 90)
    adapter = agent(summary=summary)
    bench = Bench(tmp_path, adapter, window=WINDOW, settings={"policy": policy}, tools={"default_tools": ("full",)})
    session = await bench.open()
    for number in range(1, 8):
        before = asked(adapter)
        tries = len(bench.of(Compacted)) + len(bench.of(CompactionFailed))
        session.submit(submit(f"question {number}: please look at f{number}.py. " + "detail " * 120, number))
        await bench.idle(session)
        tries = len(bench.of(Compacted)) + len(bench.of(CompactionFailed)) - tries
        assert asked(adapter) - before <= most * tries
    if policy != "kodacode":
        assert 0 < asked(adapter) <= most * 7, "more often than once a message"
    assert not bench.bugs


@pytest.mark.parametrize("policy", ["codecompanion", "cowork"])
async def test_the_pause_applies_to_refused_requests_and_a_manual_compaction_asks(tmp_path, policy):
    """R-532, R-535: once the pause is reported, no summariser is asked for any reason except the user's request."""
    refuses: list[bool] = []

    def reply(request):
        if request.purpose == "summary":
            return (NetworkFailed("The provider is down."),)
        too_long = (ContextOverflow("s: the request is too long for the model."),)
        return too_long if refuses and refuses.pop() else says("words and more words " * 300)

    adapter = ScriptedAdapter("s", reply)
    bench = Bench(tmp_path, adapter, settings={"policy": policy})
    session = await bench.open()
    seen = []
    for number in range(1, 6):
        refuses.append(number > 1)
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
        told = [notice.text for notice in bench.of(Notice) if notice.text.startswith(RESTS)]
        seen.append((len(bench.of(Compacted)), asked(adapter), len(told)))
    assert seen == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 1), (4, 3, 1)]
    session.compact("")
    await bench.idle(session)
    assert asked(adapter) == 4
    assert not bench.bugs
