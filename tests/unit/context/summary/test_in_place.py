"""A summary is requested in the chat itself if that is cheaper (ours; off under `strict`)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.strategy_parameters import SummarizeOne
from codecompanion.context.summary.summarize_one import summarize_one
from codecompanion.context.work import CacheState, Continuation, SummaryReply, Work
from tests.unit.context.builders import assistant, chat, env, user

WARM = CacheState(warm_tokens=40_000)
PARAMS = SummarizeOne(schema="brief", max_tokens=2_000, in_place=True)
WRITTEN = "The user wants the parser in parser.py to read tabs; parse_line was changed and its test passes. " * 5


def work_of(words: int = 12_000) -> Work:
    """Return the work of a stage that summarises all but the newest three messages, the last of them unanswered."""
    made = chat(
        user("the parser in parser.py"), assistant("parse_line " * (words // 3)), user("tabs"), assistant("done"),
        user("and now?"),
    )  # fmt: skip
    removed = made[:2]
    entries = tuple(f'<message role="{message.role}">{message.text}</message>' for message in removed)
    return Work(before=made, messages=made[2:4], pending=made[4:], removed=removed, transcript=entries)


def asked(work: Work, replies, params=PARAMS, **facts):
    """Return the requests, and their outcome."""
    facts = {"cache": WARM, "continuation": lambda: Continuation(42_000, 2_000), **facts}
    steps, requests = summarize_one(work, params, env(work.before, facts.pop("window", 64_000), **facts)), []
    given = iter(replies)
    try:
        request = next(steps)
        while True:
            requests.append(request)
            request = steps.send(next(given))
    except StopIteration as stop:
        return requests, stop.value


def test_a_chat_with_a_warm_cache_is_asked_in_place():
    (request,), outcome = asked(work_of(), [SummaryReply(text=WRITTEN)])
    assert request.in_place
    assert "<conversation>" not in request.prompt
    assert "The newest messages of the chat (2)" in request.prompt  # not the one that waits for an answer
    assert outcome.summary == WRITTEN.strip()
    assert outcome.details.in_place


@pytest.mark.parametrize(
    ("facts", "params"),
    [
        pytest.param({}, SummarizeOne(schema="brief", max_tokens=2_000), id="the policy does not say so"),
        pytest.param({"continuation": None}, PARAMS, id="another model writes"),
        pytest.param({"cache": CacheState()}, PARAMS, id="nothing is cached any more"),
        pytest.param({"cache": CacheState(0, 1.0, 1.0, 0.0)}, PARAMS, id="this provider caches nothing"),
        pytest.param({"window": 43_200}, PARAMS, id="the window has no room for half of the summary"),
        pytest.param({"continuation": lambda: Continuation(62_000, 60_000)}, PARAMS, id="most of it is new"),
    ],
)
def test_otherwise_a_transcript_is_sent(facts, params):
    (request,), outcome = asked(work_of(), [SummaryReply(text=WRITTEN)], params, **facts)
    assert not request.in_place
    assert "<conversation>" in request.prompt
    assert outcome.details.in_place is None


def test_a_short_transcript_is_cheaper():
    (request,), _ = asked(work_of(words=600), [SummaryReply(text=WRITTEN)])
    assert not request.in_place


def test_the_reply_is_limited_by_the_rest_of_the_window():
    (request,), _ = asked(work_of(), [SummaryReply(text=WRITTEN)], window=44_000)
    assert PARAMS.max_tokens / 2 <= request.max_output_tokens == request.room_tokens < PARAMS.max_tokens


@pytest.mark.parametrize(
    "reply",
    [
        SummaryReply(text="I will read parser.py first.", called_tools=True),
        SummaryReply(text="ok"),
        SummaryReply(text="The user wants", stop="length"),
        SummaryReply(error="the prompt is too long", refused=True),
    ],
)
def test_an_unusable_reply_is_followed_by_a_transcript(reply):
    (first, second), outcome = asked(work_of(), [reply, SummaryReply(text=WRITTEN)])
    assert (first.in_place, second.in_place) == (True, False)
    assert "<conversation>" in second.prompt
    assert outcome.details.in_place is False


def test_an_unreachable_model_is_not_asked_again():
    requests, outcome = asked(work_of(), [SummaryReply(error="no connection")])
    assert len(requests) == 1
    assert outcome.reason == "no connection"


@pytest.mark.parametrize("name", [name for name in policy_names() if not load_policy(name).ours])
def test_strict_sends_the_transcript(name):
    steps = [s.params for stage in load_policy(f"{name} strict").stages for tier in stage.tiers for s in tier.steps]
    assert not any(params.in_place for params in steps if isinstance(params, SummarizeOne))


OWN = CacheState(warm_tokens=6_000, read_price=0.0, write_price=1.0, lifetime_s=float("inf"))


def test_a_short_summary_is_enough_where_the_cache_costs_nothing():
    (request,), _ = asked(
        work_of(4_000), [SummaryReply(text=WRITTEN)], cache=OWN, window=8_192,
        continuation=lambda: Continuation(7_300, 200),
    )  # fmt: skip
    assert request.in_place
    assert request.unread_tokens == 200 + request.prompt_tokens - 7_300
    assert request.max_output_tokens == request.room_tokens < 1_000
    assert f"{round(0.7 * request.room_tokens, -1):.0f} words" in request.prompt


def test_a_model_that_takes_too_long_is_not_asked():
    requests, outcome = asked(
        work_of(), [], msgspec.structs.replace(PARAMS, max_wait_s=30), writer_seconds=lambda read, written: 82.0
    )
    assert requests == []
    assert outcome.details.written_by == "code"
    assert outcome.details.failure == "a summary by the model would take about 82 s"
