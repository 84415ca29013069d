"""One compaction stops asking once it is clear that the summariser fails (R-120, R-526, R-529, R-532; lesson 18)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.context.summary.summary_run import Question, ask_all, summary_prompt
from codecompanion.context.summary.writers import PAUSED
from codecompanion.context.summary_text.sections import load_schema
from codecompanion.context.work import Failed, SummaryReply, SummaryRequest
from tests.summaries import nine_sections
from tests.unit.context.builders import user
from tests.unit.context.test_scripted_summarisers import prepared_under, told

GOOD = SummaryReply(text=nine_sections("The user wishes that load_0 is changed."))
JUNK, DOWN = SummaryReply(text="ok"), SummaryReply(error="the provider is down")
MAX = {"failing": 1, "slow": 1, "tool call": 1, "ok": 2, "empty": 2, "off topic": 2, "error object": 2}
"""The most calls by script: a failed call is the last; a malformed summary is requested once more (R-526)."""


def questions(number: int) -> list[Question]:
    """Return the requests for that many parts of one history."""
    subject, prompt = (user("please change load_0"),), summary_prompt("cc_9", "")
    requests = [
        SummaryRequest(prompt=f"part {n}", subject=subject, max_output_tokens=500, part=n, parts=number)
        for n in range(1, number + 1)
    ]
    return [Question(request, load_schema("cc_9"), prompt, 500) for request in requests]


def asked_for(number: int, replies: dict[int, list[SummaryReply]], *, is_proven: bool):
    """Request that many parts, up to four in parallel; return the outcome and the order of the requests."""
    rounds: list[list[int]] = []
    left = {part: list(replies.get(part, [])) for part in range(1, number + 1)}
    steps = ask_all(questions(number), is_proven=is_proven)
    try:
        request = next(steps)
        while True:
            parts = [request.part, *(other.part for other in request.beside[:3])]
            rounds.append(parts)
            first, *others = [left[part].pop(0) if left[part] else GOOD for part in parts]
            request = steps.send(msgspec.structs.replace(first, beside=tuple(others)))
    except StopIteration as stop:
        return stop.value, rounds


@pytest.mark.parametrize(
    ("replies", "is_proven", "rounds", "fails"),
    [
        ({}, True, [[1, 2, 3, 4], [5, 6]], False),
        ({}, False, [[1], [2, 3, 4, 5], [6]], False),
        ({1: [DOWN]}, False, [[1]], True),
        ({1: [JUNK, JUNK]}, False, [[1], [1]], True),
        ({1: [JUNK]}, False, [[1], [1], [2, 3, 4, 5], [6]], False),
        ({part: [JUNK, JUNK] for part in range(1, 7)}, True, [[1, 2, 3, 4], [1]], True),
        ({5: [DOWN]}, True, [[1, 2, 3, 4], [5, 6]], True),
    ],
)
def test_parts_are_requested_in_parallel_only_without_doubt(replies, is_proven, rounds, fails):
    """R-120, R-526: the first part shows whether the model writes summaries; one request settles a doubt."""
    answers, asked = asked_for(6, replies, is_proven=is_proven)
    assert asked == rounds
    assert (isinstance(answers, Failed) and answers.by_writer) == fails


@pytest.mark.parametrize("manual", [False, True])
@pytest.mark.parametrize("has_utility", [False, True])
@pytest.mark.parametrize("script", MAX)
@pytest.mark.parametrize("name", policy_names())
def test_a_failing_summariser_is_asked_only_until_that_is_certain(name, script, has_utility, manual):
    """R-526, R-529: it is asked neither for other parts, nor again as the chat's own model.

    The next tier asks again if the replies were not summaries (R-120), but not if the call failed.
    """
    env = {"has_utility": has_utility, "summariser_window": 3000, "writer_is_proven": False}
    prepared, asked = prepared_under(name, script, manual=manual, **env)
    compacting = [ask for ask in asked if ask.stage.event == "context_compacted"]
    tiers = 2 if name == "codebuddy" and script not in ("failing", "slow") else 1
    assert len([ask for ask in compacting if not ask.use_chat_adapter]) <= tiers * MAX[script]
    assert len([ask for ask in compacting if ask.use_chat_adapter]) <= (MAX[script] if has_utility else 0)
    for report in prepared.reports:
        if report.asked and report.event == "context_compacted":
            assert told(report), report


@pytest.mark.parametrize("manual", [False, True])
@pytest.mark.parametrize("name", policy_names())
def test_a_paused_summariser_is_not_asked_and_summaries_are_written_without_it(name, manual):
    """R-532: "Summaries are written without a model for now" applies to every path through every stage."""
    prepared, asked = prepared_under(name, "perfect", asks_models=False, has_utility=True, manual=manual)
    assert asked == []
    compacted = [report for report in prepared.reports if report.event == "context_compacted"]
    if name == "codecompanion":
        assert {report.detail for report in compacted} == ({PAUSED} if manual else set())
    else:
        assert [report for report in compacted if report.work is not None and not report.asked]


def test_a_failed_flush_ends_the_calls_for_this_request_and_the_card_gives_the_reason():
    """R-446, lesson 18: the memory is written first; if that call fails the handoff is written without a model."""
    prepared, asked = prepared_under("cowork", "failing")
    assert [ask.stage.event for ask in asked] == ["memory_flushed"]
    (compacted,) = [report for report in prepared.reports if report.event == "context_compacted" and report.work]
    assert (compacted.asked, compacted.not_asked) == (False, "the provider is down")
    assert told(compacted) == "The summary was written without a model: the provider is down."
