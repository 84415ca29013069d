"""`/trace [turn]` as the user reads it (R-357)."""

from __future__ import annotations

import re

import pytest

from codecompanion.context.named_events import Occasion, fields_of
from codecompanion.errors import InputError
from codecompanion.formats.cutting import cells
from codecompanion.model.history import (
    CompactionFailed,
    MessageAdded,
    PolicyEvent,
    RequestSent,
    ServerEdited,
    TurnEnded,
    TurnStarted,
    UsageReported,
    ViewChanged,
)
from codecompanion.model.messages import GO_ON_TAG, Message, Usage
from codecompanion.reports.markdown import Page
from codecompanion.reports.trace import find_turn, trace_report

from .logs import LogWriter, read_log, worked_chat


def written(log: LogWriter, number: int | None = None, width: int = 80) -> str:
    record = read_log(log.events)
    return trace_report(record, find_turn(record, number), Page(width=width))


def section(text: str, title: str) -> str:
    """Return the lines below a heading of level two."""
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_without_a_number_the_newest_turn_is_shown() -> None:
    """R-357: the default is the latest turn."""
    assert written(worked_chat()).startswith("# Turn 3 of 3: And now the docs")


def test_a_turn_without_its_own_question_gives_its_reason() -> None:
    """`/continue`, and continuing after `/compact`, do not repeat the previous question."""
    log = LogWriter()
    log.begin("what is in a.txt?")
    log.add(TurnEnded(turn_id="t1", reason="done"))
    log.add(MessageAdded(message=Message(id="go", role="user", content="go on", tag=GO_ON_TAG)))
    log.add(TurnStarted(turn_id="t2", cycle=1), TurnEnded(turn_id="t2", reason="done"))
    assert written(log, 1).startswith("# Turn 1 of 2: what is in a.txt?")
    assert written(log, 2).startswith("# Turn 2 of 2: (continued)")
    log.add(ViewChanged(change_id="c", kind="compacted"), TurnStarted(turn_id="t3", cycle=2))
    assert written(log).startswith("# Turn 3 of 3: (continued after a compaction)")
    log.add(TurnEnded(turn_id="t3", reason="done"))
    log.begin("and b.txt?")
    assert written(log).startswith("# Turn 4 of 4: and b.txt?")


@pytest.mark.parametrize("number", [4, 0, -1, 99])
def test_a_number_out_of_range_is_an_error_that_names_the_range(number: int) -> None:
    """R-357."""
    with pytest.raises(InputError, match=rf"There is no turn {number}: the turns are 1 to 3\."):
        find_turn(read_log(worked_chat().events), number)


def test_a_single_turn_and_no_turn_have_their_own_errors() -> None:
    log = LogWriter()
    with pytest.raises(InputError, match="No turn yet"):
        find_turn(read_log(log.events), 1)
    log.begin("q")
    with pytest.raises(InputError, match="There is no turn 2: there is only turn 1"):
        find_turn(read_log(log.events), 2)


def test_every_call_has_its_attempts_time_tokens_price_and_result() -> None:
    """R-357: `step.attempt | model | ms | in | out | $`, and the result."""
    calls = section(written(worked_chat(), 2), "Requests")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in calls.splitlines() if "claude" in line]
    assert rows[0] == ["1.2", "claude", "1.5 s", "30.0k", "27 %", "2.0k", "$0.0984", "stop"]
    assert rows[1][0] == "2.1"
    assert rows[1][-1] == "summary"
    assert rows[2][-3:] == ["100", "$0.0060", "stop"]


def test_the_mix_names_the_largest_part_of_the_request() -> None:
    """R-357: the request mix has prompt, conversation and tool surface, with the dominant driver and savings mix."""
    summary = section(written(worked_chat(), 2), "Summary")
    assert "instructions 10 %, conversation 70 %, tool schemas 20 %; driven by the conversation" in summary
    assert "- ~58.0k tokens left out: history 58.0k, prompt 0, tool catalogue 0" in summary


def test_parts_omitted_by_shaping_are_in_the_savings_mix() -> None:
    """R-357: the savings mix has prompt, history and tool catalogue."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(10_000), shaping={"results": 500, "tools": 100, "packet_omitted": 40, "prompt": 60})
    summary = section(written(log), "Summary")
    assert "- ~700 tokens left out: history 500, prompt 100, tool catalogue 100" in summary


def test_retries_and_errors_are_distinct_from_results() -> None:
    """R-357: retries and errors have their own section."""
    assert "- 1.1: rate limited; waited 500 ms" in section(written(worked_chat(), 2), "Retries and errors")
    assert "- 1.1: The endpoint refused the key." in section(written(worked_chat(), 3), "Retries and errors")


def test_tools_have_status_time_and_size() -> None:
    """R-357: tool activity is a table; a vertical bar in a title does not break it."""
    tools = section(written(worked_chat(), 1), "Tools")
    assert "| read_file   | ok     | 30 ms |     40 | read_file a.py" in tools
    assert "main ¦ in src" in tools


def test_the_history_shows_the_changes_and_the_summary_in_its_own_fold() -> None:
    """R-357: the compaction of the history is shown with its summary.

    The summary's headings do not become the report's.
    """
    history = section(written(worked_chat(), 2), "Context and history")
    assert "- 5 tool results cleared, 60.0k → 30.0k tokens" in history
    assert "- compacted 12 messages, 34.0k → 6.0k tokens (proactive, by claude-haiku, 4.2 s)" in history
    assert "### Summary" in history
    assert "> ## Done" in history


def test_named_events_and_failures_of_the_policy_are_listed() -> None:
    """R-328, R-357: the form is `history | reason | detail | a/b`."""
    log = LogWriter()
    log.begin("q")
    occasion = Occasion(window=900, tokens=950, reason="input_limit_unreachable", detail="too large")
    log.add(
        CompactionFailed(compaction_id="c", reason="the model did not answer"),
        PolicyEvent(name="context_compaction_failed", fields=fields_of("context_compaction_failed", occasion)),
        PolicyEvent(name="context_window_status", fields={"warningLevel": "critical", "usageTokens": 1_950}),
    )
    history = section(written(log), "Context and history")
    assert "- history | failed | the model did not answer" in history
    assert "- history | input_limit_unreachable | too large | 950/900" in history
    assert "- `context_window_status` warningLevel critical, usageTokens 1,950" in history


def test_turns_left_out_after_the_summary_are_named() -> None:
    """R-330: each turn logs its omitted turns once; a later turn also names those of the turns before it."""
    log = LogWriter()
    pruned = [
        {"prior_turns": 2, "raw_prior_turns": 2, "omitted_prior_turns": 0, "turn_ids": []},
        {"prior_turns": 3, "raw_prior_turns": 1, "omitted_prior_turns": 2, "turn_ids": ["turn-1", "turn-2"]},
        {"prior_turns": 1, "raw_prior_turns": 1, "omitted_prior_turns": 5, "turn_ids": ["turn-3", "turn-4", "turn-5"]},
        {"prior_turns": 1, "raw_prior_turns": 1, "omitted_prior_turns": 3, "turn_ids": []},
    ]
    said = [
        "2 earlier turns sent",
        "3 earlier turns sent (1 unchanged, 2 with placeholders), 2 left out after the summary: turn-1, turn-2",
        "1 earlier turn sent, 5 left out after the summary: turn-1 to turn-5",
        "1 earlier turn sent, 3 left out after the summary",  # a compaction was undone
    ]
    for fields in pruned:
        log.begin("q")
        log.add(PolicyEvent(name="context_pruned", fields=fields))
        log.end()
    for number, line in enumerate(said, 1):
        assert f"- `context_pruned` {line}\n" in section(written(log, number), "Context and history") + "\n"


def test_the_fields_of_an_event_are_dropped_whole() -> None:
    """No number is cut, and the least important fields are dropped first."""
    log = LogWriter()
    log.begin("q")
    sizes = {f"size_{number}": 1_234_567 for number in range(20)}
    log.add(PolicyEvent(name="context_window_status", fields={"version": 2, **sizes, "schema": "one"}))
    (line,) = [one for one in section(written(log), "Context and history").splitlines() if "context_window" in one]
    assert line.startswith("- `context_window_status` size_0 1,234,567, size_1 1,234,567")
    assert re.fullmatch(r"- `context_window_status`( size_\d+ 1,234,567,)+ …", line)


def test_events_between_turns_are_shown_with_the_previous_turn() -> None:
    """R-357: a `/compact`, or a message that could not be sent, is not part of any turn."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(100))
    log.end()
    log.call(Usage(700), purpose="summary", asked="summary, part 1 of 2")
    log.change("compacted", 900, 100, summary="# Goal", messages=2)
    occasion = Occasion(window=900, tokens=950, reason="input_limit_unreachable", detail="too large")
    log.add(PolicyEvent(name="context_compaction_failed", fields=fields_of("context_compaction_failed", occasion)))
    log.begin("next")
    after = section(written(log, 1), "After the turn")
    assert "- compacted 2 messages, 900 → 100 tokens" in after
    assert "- history | input_limit_unreachable | too large | 950/900" in after
    assert [cell.strip() for cell in after.split("| 1.1 ")[1].split("|")][-2:-1] == ["summary, part 1 of 2"]
    assert "> # Goal" in after
    assert "After the turn" not in written(log, 2)
    assert "Nothing was changed." in section(written(log, 1), "Context and history")


def test_no_entry_of_the_list_is_hidden_in_the_fold_of_a_summary() -> None:
    """A fold ends at the next heading only."""
    log = LogWriter()
    log.begin("q")
    log.change("compacted", 900, 100, summary="# Goal", messages=2)
    log.change("edited", 100, 90, cleared=1)
    log.add(PolicyEvent(name="context_window_status", fields={"tier": 1}))
    history = section(written(log), "Context and history")
    assert history.index("context_window_status") < history.index("### Summary")
    assert history.index("1 tool result cleared") < history.index("### Summary")


def test_a_compiled_prompt_is_shown_layer_by_layer() -> None:
    """R-329, R-357: prompt assembly is shown with its layers and fragments."""
    log = LogWriter()
    log.begin("q")
    sent = (
        Message(id="s", role="system", content="You help."),
        Message(id="u", role="user", content="q", turn_id="t1"),
    )
    log.add(PolicyEvent(name="prompt_compiled", fields=fields_of("prompt_compiled", Occasion(sent=sent, turn_id="t1"))))
    assembly = section(written(log), "Prompt assembly")
    assert "| instructions | session     |         1 |     9 | included |" in assembly
    assert "9 bytes are unchanged, 1 changed." in assembly
    assert "### Fragments" in assembly


def test_the_providers_omissions_are_reported() -> None:
    """R-541."""
    log = LogWriter()
    log.begin("q")
    log.add(
        RequestSent(turn_id="t1", adapter="a", model="m", messages=1, estimated_tokens=5, request_id="r"),
        UsageReported(
            message_id="m", adapter="a", model="m", usage=Usage(5), estimated_prompt_tokens=5, request_id="r",
            server_edits=(ServerEdited("clear_tool_uses_20250919", 5_000, 3),),
        ),
    )  # fmt: skip
    calls = section(written(log), "Requests")
    assert "- 1: the provider left out 3 items (5.0k tokens, clear_tool_uses_20250919)" in calls
    assert "Price unknown for 1 request (m). `/cost` shows how to set it." in calls
    assert "no end logged" not in calls
    assert "still running" in written(log)


def test_a_call_shows_its_end_or_that_it_is_running() -> None:
    """R-357: this includes summary requests; only the newest call of an unfinished turn can be running."""
    log = LogWriter()
    log.begin("q")
    log.call(purpose="summary", result="failed", error="too slow")
    log.call(purpose="summary", result="end_turn")
    for id in ("r1", "r2"):
        log.add(RequestSent(turn_id="t1", adapter="a", model="m", messages=1, estimated_tokens=5, request_id=id))
    rows = section(written(log), "Requests").splitlines()[3:7]
    assert [row.split("|")[-2].strip() for row in rows] == ["summary failed", "summary", "no end logged", "running"]
    log.end()
    assert "running" not in written(log)


def test_a_turn_without_a_call_is_complete() -> None:
    """A turn ended by a budget has only its reason."""
    log = LogWriter()
    log.add(TurnStarted(turn_id="t", cycle=1))
    log.end("limit", "The budget of this chat is used up.")
    text = written(log)
    assert "> The budget of this chat is used up." in text
    assert section(text, "Requests").strip() == "None."


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_table_is_wider_than_the_window(width: int, number: int) -> None:
    text = written(worked_chat(), number, width)
    tables = [cells(line) for line in text.splitlines() if line.startswith("|")]
    assert max(tables) <= max(width, 74)
    assert cells(text.splitlines()[0]) <= width
