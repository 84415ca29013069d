"""S10: a summary is carried over or rebuilt, and a model may improve it: R-313, R-319, R-321, R-322, R-324…R-326."""

from __future__ import annotations

import json

import msgspec
import pytest

from codecompanion.context.artifact.artifact import EARLIER, read_consolidated
from codecompanion.context.artifact.summarize_artifact import artifact_from_text, summarize_artifact
from codecompanion.context.strategy_parameters import SummarizeArtifact
from codecompanion.context.work import Skipped, SummaryReply, SummaryRequest, Work
from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.placeholders import QUOTES_HEADING
from tests.unit.context.builders import assistant, chat, env, tool, turns, user

ASKS = SummarizeArtifact(overlay="always")
SAID = {
    "session_objective": "Ship the parser",
    "constraints": ["Be nice to the user", "keep Python 3.11"],
    "settled_decisions": [{"decision": "use msgspec", "rationale": "speed", "status": "active",
                           "source_turn_id": "turn-1"}],
    "completed_episodes": [{"episode_id": "x", "summary": "The parser was written by hand.",
                            "touched_paths": ["invented.py"], "source_turn_ids": ["turn-1"]}],
    "workspace_facts": [{"path": "invented.py", "fact": "does not exist", "source_turn_id": "turn-1"},
                        {"path": "a.py", "fact": "holds the grammar", "source_turn_id": "turn-1"}],
}  # fmt: skip


def work_of(messages, kept=0):
    """Return the work after S6: all but the newest `kept` messages are summarised."""
    cut = len(messages) - kept
    return Work(before=messages, messages=messages[cut:], removed=messages[:cut])


def run(work, params=None, reply=None, **changes):
    """Run S10; return the outcome and its requests."""
    steps = summarize_artifact(work, params or SummarizeArtifact(), env(work.before, 32_000, **changes))
    asked: list[SummaryRequest] = []
    try:
        request = next(steps)
        while True:
            asked.append(request)
            request = steps.send(reply or SummaryReply(error="nobody is there"))
    except StopIteration as stop:
        return stop.value, asked


def summary_of(result, cycle=3):
    return Message(id="s", role="assistant", content=result.summary, tag=SUMMARY_TAG, cycle=cycle)


def named(artifact):
    return [episode["source_turn_ids"] for episode in artifact["completed_episodes"]]


def test_without_a_model_the_runtime_summary_is_used():
    """R-321, R-322: without a utility adapter, no call is made, and the summary is complete nevertheless."""
    result, asked = run(work_of(chat(*turns(3))))
    assert asked == []
    assert result.summary.startswith("Compaction Summary:\n\n## Goal\n- question 0")
    assert result.details.summary_source == "runtime"
    assert result.details.frontier_turn_id == "turn-3"
    assert result.details.consolidated_turn_count == result.details.newly_consolidated_turn_count == 3


def test_a_utility_model_is_asked_only_if_configured():
    """R-322: with `overlay = "configured"`; the output budget is 2000 tokens."""
    work = work_of(chat(*turns(3)))
    assert run(work, has_utility=False)[1] == []
    (request,) = run(work, has_utility=True)[1]
    assert request.max_output_tokens == 2000
    assert run(work, SummarizeArtifact(overlay="never"), has_utility=True)[1] == []


def test_the_models_text_is_merged_over_the_observed_facts():
    """R-322: valid JSON is merged over the runtime artifact; paths, evidence and failures stay as observed."""
    messages = chat(
        user("write a.py"), assistant("", ("c1", "read_file")), tool("c1", "no such file", is_error=True),
        assistant("done"), user("rules", "rules"),
    )  # fmt: skip
    text = "Here it is:\n```json\n" + json.dumps(SAID) + "\n```"
    result, _ = run(work_of(messages), ASKS, SummaryReply(text=text), prompt_text="- Be nice to the user.\n- Answer.")
    artifact = result.artifact
    assert result.details.summary_source == "utility"
    assert artifact["session_objective"] == "Ship the parser"
    (episode,) = artifact["completed_episodes"]
    assert episode["summary"] == "The parser was written by hand."
    assert episode["touched_paths"] == ("a.py",)
    assert any(not item["succeeded"] for item in episode["verification"])
    assert artifact["constraints"] == ("keep Python 3.11",), "a constraint that repeats the prompt is dropped"
    assert [fact["path"] for fact in artifact["workspace_facts"]] == ["a.py"], "invented paths are dropped"
    assert "use msgspec (because speed)" in result.summary


@pytest.mark.parametrize(
    "reply",
    [
        SummaryReply(error="timeout"),
        SummaryReply(text=""),
        SummaryReply(text="I cannot do that."),
        SummaryReply(text='{"session_objective": 3}'),
        SummaryReply(text='{"open_threads": [{"item": "x", "status": "whatever"}]}'),
        SummaryReply(text='{"settled_decisions": [{"decision": "x", "source_turn_id": "turn-99"}]}'),
        SummaryReply(text="{}"),
        SummaryReply(text='{"session_objective": "cut', stop="length"),
        SummaryReply(text="{}", called_tools=True),
        SummaryReply(text="[" * 100_000 + "{" + "]" * 100_000 + "}"),
    ],
)
def test_a_bad_reply_of_the_model_leaves_the_runtime_summary(reply):
    """R-321, R-322: error, timeout, wrong shape, unknown turn ids: the summary is written anyway, with a note."""
    work = work_of(chat(*turns(3)))
    plain, _ = run(work, SummarizeArtifact(overlay="never"))
    result, asked = run(work, ASKS, reply)
    assert len(asked) == 1
    assert result.summary == plain.summary
    assert result.artifact == plain.artifact
    assert result.details.summary_source == "runtime"
    assert result.details.summary_detail


def test_the_next_summary_extends_the_old_artifact_with_new_turns_only():
    """R-313, R-319: the newly consolidated turns are added to the old artifact without reading the old turns again."""
    messages = chat(*turns(5))
    first, _ = run(work_of(messages[:12]))
    stored = json.loads(json.dumps(first.artifact))
    view = (summary_of(first), *messages[12:])
    second, _ = run(work_of(view), artifact=stored)
    assert named(second.artifact) == [(f"turn-{i}",) for i in range(1, 6)]
    assert second.details.newly_consolidated_turn_count == 2
    assert second.details.consolidated_turn_count == 5
    assert second.details.frontier_turn_id == "turn-5"
    assert second.details.update_reason == "token_pressure"
    whole, _ = run(work_of(messages))
    assert second.artifact == msgspec.to_builtins(whole.artifact)


def test_quoted_sentences_of_a_summary_without_its_artifact_are_parsed():
    """R-314, R-324: constraints and warnings keep their kind; their turn is in another log."""
    said = "I decided to use SQLite. Do not run the migration twice."
    messages = chat(user("Don't touch the lexer."), assistant(said), *turns(2))
    result, _ = run(work_of(messages), SummarizeArtifact(sentences=True))
    assert '- turn-1: "I decided to use SQLite."' in result.summary
    again = artifact_from_text(result.summary)
    assert again.constraints == ("Don't touch the lexer.",)
    assert '"Do not run the migration twice."' in [fact.fact for fact in again.workspace_facts]


def test_a_frontier_that_does_not_match_the_turns_covers_nothing():
    """R-324: the covered prefix is empty, and the summary is rebuilt from the log."""
    messages = chat(*turns(5))
    first, _ = run(work_of(messages[:12]))
    wrong = {**first.artifact, "frontier_turn_id": "turn-2"}
    view = (summary_of(first), *messages[12:])
    rebuilt, _ = run(work_of(view), artifact=wrong, history=lambda: messages)
    assert rebuilt.details.update_reason == "rebuild"
    assert rebuilt.details.newly_consolidated_turn_count == 5
    assert named(rebuilt.artifact) == [(f"turn-{i}",) for i in range(1, 6)]
    fits, _ = run(work_of(view), artifact=first.artifact, history=lambda: messages)
    assert fits.details.newly_consolidated_turn_count == 2


def test_a_summary_whose_turns_are_restored_covers_nothing():
    """R-324: without a log the turns in the view decide."""
    messages = chat(*turns(3))
    first, _ = run(work_of(messages))
    again, _ = run(work_of((summary_of(first), *messages)), artifact=first.artifact)
    assert again.details.newly_consolidated_turn_count == 3
    assert again.details.update_reason == "rebuild"


def test_a_restored_chat_carries_its_summary_over():
    """R-325, R-326: no log contains the turns of that summary, so even a manual rebuild carries it over."""
    messages = chat(*turns(5))
    first, _ = run(work_of(messages[:12]))
    restored = Message(id="s", role="assistant", content=first.summary, tag=SUMMARY_TAG, cycle=3)
    log = (restored, *messages[12:])
    result, _ = run(work_of(log), history=lambda: log)
    assert result.details.update_reason == "checkpoint_restore"
    done = {line.replace("- ", "earlier: ", 1) for line in first.summary.splitlines() if line.startswith("- turn-")}
    assert len(done) == 3
    assert done <= {fact["fact"] for fact in result.artifact["workspace_facts"]}
    assert "- earlier: turn-1: question 0" in result.summary
    assert named(result.artifact)[-2:] == [("turn-4",), ("turn-5",)]
    manual, _ = run(work_of(log), history=lambda: log, manual=True)
    assert manual.details.update_reason == "manual_request"
    assert manual.summary == result.summary
    more = chat(*turns(6))[20:]
    view = (summary_of(result, 5), *more)
    later, _ = run(work_of(view), artifact=result.artifact, history=lambda: (*log, *more))
    assert later.details.newly_consolidated_turn_count == 1
    assert done <= {fact["fact"] for fact in later.artifact["workspace_facts"]}


def test_a_manual_summary_is_rebuilt_from_turn_1():
    """R-326: `/compact` rebuilds instead of extending the old artifact."""
    messages = chat(*turns(5))
    first, _ = run(work_of(messages[:12]))
    lost = {**first.artifact, "completed_episodes": ()}
    view = (summary_of(first), *messages[12:])
    rebuilt, _ = run(work_of(view, kept=4), artifact=lost, history=lambda: messages, manual=True)
    assert rebuilt.details.update_reason == "manual_request"
    assert named(rebuilt.artifact) == [(f"turn-{i}",) for i in range(1, 5)]
    assert rebuilt.details.consolidated_turn_count == 4


def test_with_nothing_new_there_is_no_summary():
    """R-310, R-326: if no turn follows the consolidated prefix, there is nothing to summarise."""
    first, _ = run(work_of(chat(*turns(2))))
    outcome, asked = run(work_of((summary_of(first),)), ASKS, artifact=first.artifact)
    assert isinstance(outcome, Skipped)
    assert asked == []


def test_another_policys_summary_is_carried_over_by_its_lines():
    """R-319, R-324: a summary without an artifact is not discarded."""
    foreign = Message(id="f", role="user", content="1. **Request**\n- fix bug 7\n\nNever push.", tag=SUMMARY_TAG)
    result, _ = run(work_of((foreign, *chat(*turns(1)))))
    assert "fix bug 7" in result.summary
    assert "Never push." in result.summary
    own = artifact_from_text(run(work_of(chat(*turns(1))))[0].summary)
    assert own.session_objective == "question 0"


def test_rules_and_warnings_of_a_summary_without_an_artifact_keep_their_kind():
    """R-314, R-324: a chat restored from a checkpoint keeps all of them, however many."""
    rules = [f"Never touch part {n}." for n in range(20)]
    said = [user(f"{rule} Please look at {n}.py") for n, rule in enumerate(rules)]
    warned = [assistant(f"Warning: part {n} is frozen") for n in range(20)]
    own, _ = run(work_of(chat(*[m for pair in zip(said, warned, strict=True) for m in pair])))
    assert list(own.artifact["constraints"]) == rules
    restored = artifact_from_text(own.summary)
    assert list(restored.constraints) == rules
    warnings = [fact.fact for fact in restored.workspace_facts if not fact.fact.startswith(EARLIER)]
    assert warnings == [f"part {n} is frozen" for n in range(20)]
    again, _ = run(work_of((summary_of(own, 20), *chat(*turns(1)))))
    assert all(f"- {rule}" in again.summary for rule in rules)
    assert again.artifact["session_objective"] == own.artifact["session_objective"]


def test_the_users_rules_are_read_from_another_policys_quotes():
    """R-319, R-431: the user's words are in that summary, copied by code."""
    text = "1. **Request**\n- all is well\n\n" + QUOTES_HEADING + "\n> Build a parser.\n\n> Never push to main."
    foreign = Message(id="f", role="user", content=text, tag=SUMMARY_TAG)
    result, _ = run(work_of((foreign, *chat(*turns(1)))))
    assert result.artifact["constraints"] == ("Never push to main.",)
    assert result.artifact["session_objective"] == "Build a parser."


def test_the_users_words_are_kept_over_a_models_paraphrase():
    """R-322, lesson 11: a paraphrase does not count as newer than the user's own constraint."""
    messages = chat(user("Never push to main! Use tabs."), assistant("done"))
    said = {"constraints": ["never push to **main**", "Be quick"], "session_objective": "Work on it"}
    result, _ = run(work_of(messages), ASKS, SummaryReply(text=json.dumps(said)))
    assert result.artifact["constraints"] == ("Be quick", "Never push to main!", "Use tabs.")
    assert result.artifact["session_objective"] == "Work on it"


def test_the_model_is_not_asked_for_a_summary_that_would_be_discarded():
    """R-309, R-312: a candidate that cannot reach the target costs no call."""
    params = SummarizeArtifact(overlay="always", overlay_in_target=True)
    work = work_of(chat(*turns(5, 4000)), kept=8)
    assert run(work, params, target=500)[1] == []
    assert len(run(work, params, target=20_000)[1]) == 1


@pytest.mark.sweep
def test_the_request_for_the_model_fits_its_window():
    """Lesson 1: for any history, the prompt stays within the summariser's window."""
    work = work_of(chat(*turns(40, 8000)))
    for window in (20_000, 40_000):
        ((request,), environment) = (run(work, ASKS, summariser_window=window)[1], env(work.before, 32_000))
        assert environment.count_text(request.prompt) + 2000 <= window
        assert "turn-40" in request.prompt
    assert run(work, ASKS, summariser_window=3_000)[1] == []


def test_an_artifact_survives_storage():
    """R-315, R-360: an artifact logged as JSON is read back equal; anything else counts as missing."""
    result, _ = run(work_of(chat(*turns(3))))
    stored = json.loads(json.dumps(result.artifact))
    consolidated = read_consolidated(stored)
    assert consolidated is not None
    assert json.loads(json.dumps(consolidated.as_table())) == stored
    assert read_consolidated({"constraints": 3}) is None
    assert read_consolidated(None) is None
