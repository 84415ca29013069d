"""`reports.replay`: walking a recorded session request by request (design.md, Command line)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.policy import load_policy
from codecompanion.context.policy_options import with_options
from codecompanion.context.policy_table import policy_from_table
from codecompanion.messages import Message, ToolCall
from codecompanion.reports.replay import Figures, read_recording, walk
from codecompanion.tokens import MessageCounter


def session(reads: int, *, lines: int = 40) -> list[Message]:
    """Return a session that reads files one after the other and edits the first one at its end."""
    messages = [Message(id="u", role="user", content="Look at the files, then change f0.", cycle=1)]

    def call(number: int, name: str, **arguments: str) -> None:
        calls = (ToolCall(f"c{number}", name, json.dumps(arguments)),)
        messages.append(Message(id=f"a{number}", role="assistant", tool_calls=calls, cycle=1))

    for number in range(reads):
        call(number, "read_file", path=f"f{number}.py")
        body = "\n".join(f"value_{number}_{line} = {line}" for line in range(lines))
        messages.append(Message(id=f"t{number}", role="tool", tool_call_id=f"c{number}", content=body, cycle=1))
    call(reads, "edit", path="f0.py", old_text="value_0_3 = 3\nvalue_0_4 = 4", new_text="value_0_3 = 4")
    return messages


def sliding(keep: int) -> object:
    stage = {
        "id": "editing", "event": "context_edited", "trigger": {"at": 2, "measure": "chat", "basis": "window"},
        "step": [{"use": "clear_tool_results", "older_than": {"unit": "messages", "count": keep}}],
    }  # fmt: skip
    return policy_from_table({"name": "x", "description": "", "default_window": 1000, "stage": [stage]}, "x")


CHARS4 = MessageCounter.chars4()


def test_every_reply_is_one_request_and_each_is_paid() -> None:
    recording = read_recording(session(3), CHARS4)
    figures = walk(recording, None, 1000, "5m")
    sizes = [message.tokens for message in recording.messages]
    prompts = [sum(sizes[:place]) for place, message in enumerate(recording.messages) if message.role == "assistant"]
    assert figures.requests == len(prompts) == 4
    assert (figures.prompt_tokens, figures.peak) == (sum(prompts), max(prompts))
    read = sum(prompts[:-1])
    assert figures.cost == pytest.approx(0.1 * read + 1.25 * (sum(prompts) - read))
    assert (figures.edits, figures.compactions, figures.faults, figures.text_edits) == (0, 0, 0, 1)
    assert walk(recording, None, 1000, "none").cost == sum(prompts)


def test_sliding_edits_send_less_cost_more_and_lose_what_is_needed() -> None:
    """Lessons 22 and 24: the reason this command exists."""
    recording = read_recording(session(12), CHARS4)
    plain, slid = walk(recording, None, 10**6, "5m"), walk(recording, sliding(4), 10**6, "5m")  # type: ignore[arg-type]
    assert slid.prompt_tokens < plain.prompt_tokens
    assert slid.cost > plain.cost
    assert (plain.faults, slid.faults) == (0, 1)
    assert slid.edits > 5


def test_what_was_cleared_stays_cleared() -> None:
    recording = read_recording(session(8), CHARS4)
    slid = walk(recording, sliding(4), 10**6, "5m")  # type: ignore[arg-type]
    # Each result is cleared once: as many edits as results that got old before the last request.
    assert slid.edits == 6


def test_a_window_that_is_too_small_is_told() -> None:
    recording = read_recording(session(6), CHARS4)
    figures = walk(recording, None, 500, "5m")
    assert 0 < figures.overflows < figures.requests


def test_a_compaction_costs_what_its_summariser_reads() -> None:
    recording = read_recording(session(12), CHARS4)
    options = {"editing.trigger": False, "compaction.min_token_savings": 0}
    figures = walk(recording, with_options(load_policy("codecompanion"), options, "x"), 1500, "none")
    assert figures.compactions > 0
    assert figures.summary_tokens > 0
    assert figures.cost == pytest.approx(figures.prompt_tokens + figures.summary_tokens)


def test_an_open_call_and_a_missing_result_do_not_stop_the_walk() -> None:
    messages = session(3)
    del messages[2]
    figures = walk(read_recording(messages, CHARS4), load_policy("codecompanion"), 1000, "5m")
    assert figures.requests == 4


def test_figures_add_up_and_keep_the_larger_peak() -> None:
    one, two = Figures(requests=1, peak=5, cost=1.5), Figures(requests=2, peak=3, cost=2.0, faults=1)
    assert one + two == Figures(requests=3, peak=5, cost=3.5, faults=1)


def test_the_same_recording_gives_the_same_figures() -> None:
    recording = read_recording(session(12), CHARS4)
    assert walk(recording, load_policy("adaptive"), 1500, "5m") == walk(recording, load_policy("adaptive"), 1500, "5m")
