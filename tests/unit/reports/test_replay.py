"""`reports.replay`: walking a recorded session request by request (`:help codecompanion-cli`)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.policy.table import policy_from_table
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ToolCall, Usage, with_changes
from codecompanion.reports.cache_price import OUTPUT_PRICE
from codecompanion.reports.recorded_sizes import find_sizes
from codecompanion.reports.replay import Figures, read_recording, walk


def session(reads: int, *, lines: int = 40, tool: str = "read_file") -> list[Message]:
    """Return a session that reads files one after the other and finally edits the first one."""
    messages = [Message(id="u", role="user", content="Look at the files, then change f0.", cycle=1)]

    def call(number: int, name: str, **arguments: str) -> None:
        calls = (ToolCall(f"c{number}", name, json.dumps(arguments)),)
        messages.append(Message(id=f"a{number}", role="assistant", tool_calls=calls, cycle=1))

    for number in range(reads):
        call(number, tool, path=f"f{number}.py")
        body = "\n".join(f"value_{number}_{line} = {line}" for line in range(lines))
        messages.append(Message(id=f"t{number}", role="tool", tool_call_id=f"c{number}", content=body, cycle=1))
    call(reads, "edit", path="f0.py", old_text="value_0_3 = 3\nvalue_0_4 = 4", new_text="value_0_3 = 4")
    return messages


def sliding(keep: int) -> object:
    stage = {
        "id": "editing", "event": "context_edited", "trigger": {"always": True},
        "step": [{"use": "clear_tool_results", "older_than": {"unit": "messages", "count": keep}}],
    }  # fmt: skip
    return policy_from_table({"name": "x", "description": "", "default_window": 1000, "stage": [stage]}, "x")


CHARS4 = MessageCounter.chars4()


def test_every_reply_is_one_paid_request() -> None:
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


def test_sliding_edits_send_less_cost_more_and_lose_needed_text() -> None:
    """Lessons 22 and 24: the reason this command exists."""
    recording = read_recording(session(12), CHARS4)
    plain, slid = walk(recording, None, 10**6, "5m"), walk(recording, sliding(4), 10**6, "5m")  # type: ignore[arg-type]
    assert slid.prompt_tokens < plain.prompt_tokens
    assert slid.cost > plain.cost
    assert (plain.faults, slid.faults) == (0, 1)
    assert slid.edits > 5


@pytest.mark.parametrize(("tool", "compactions"), [("run_command", 0), ("read_file", 1)])
def test_a_running_turn_is_compacted_by_its_sent_size(tool: str, compactions: int) -> None:
    """R-310: as in a chat, KodaCode omits old command output during a turn, so no summary is due."""
    recording = read_recording(session(12, tool=tool), CHARS4)
    window = walk(recording, None, 10**6, "5m").peak
    assert walk(recording, load_policy("kodacode"), window, "5m").compactions == compactions


def test_cleared_results_stay_cleared() -> None:
    recording = read_recording(session(8), CHARS4)
    slid = walk(recording, sliding(4), 10**6, "5m")  # type: ignore[arg-type]
    # Each result is cleared once: as many edits as results that got old before the last request.
    assert slid.edits == 6


def test_a_window_that_is_too_small_is_reported() -> None:
    recording = read_recording(session(6), CHARS4)
    figures = walk(recording, None, 500, "5m")
    assert 0 < figures.overflows < figures.requests


def test_a_compaction_costs_its_summarisers_tokens() -> None:
    recording = read_recording(session(60)[:-1], CHARS4)
    options = {"editing.trigger": False, "compaction.min_token_savings": 0}
    figures = walk(recording, with_options(load_policy("codecompanion"), options, "x"), 7_000, "none")
    assert figures.compactions > 0
    assert figures.summary_tokens > 0
    assert figures.summary_output_tokens > 0
    summaries = figures.summary_tokens + OUTPUT_PRICE * figures.summary_output_tokens
    assert figures.cost == pytest.approx(figures.prompt_tokens + summaries)


def with_usage(messages: list[Message], fixed: int, ratio: float) -> list[Message]:
    """Return the messages with usage counted this way, including a system prompt and tools."""
    reported, size = [], 0
    for message in messages:
        prompt = Usage(input_tokens=fixed + round(ratio * size)) if message.role == "assistant" else None
        reported.append(with_changes(message, usage=prompt))
        size += CHARS4.message(message)
    return reported


def test_system_prompt_and_tools_are_part_of_every_request_if_usage_reveals_their_size() -> None:
    bare, full = read_recording(session(6), CHARS4), read_recording(with_usage(session(6), 900, 1.5), CHARS4)
    plain, counted = walk(bare, None, 10**6, "none"), walk(full, None, 10**6, "none")
    assert counted.prompt_tokens == pytest.approx(900 * 7 + 1.5 * plain.prompt_tokens, abs=7)
    # Written once, then read with each of the others.
    cached, without = walk(full, None, 10**6, "5m"), walk(bare, None, 10**6, "5m")
    assert cached.cost == pytest.approx(1.5 * without.cost + 900 * (1.25 + 6 * 0.1), abs=3)


def test_a_removal_during_the_recording_does_not_shrink_the_system_prompt() -> None:
    whole = with_usage(session(6), 900, 1.5)
    shrunk = [with_changes(m, usage=Usage(input_tokens=300)) if m.id in ("a5", "a6") else m for m in whole]
    assert find_sizes(read_recording(shrunk, CHARS4).messages) == find_sizes(read_recording(whole, CHARS4).messages)


def test_after_a_fault_the_text_is_read_again_and_kept() -> None:
    """One more request is counted, with the call and the result; later edits cause no second fault."""
    messages = session(12)
    again = json.dumps({"path": "f0.py", "old_text": "value_0_7 = 7\nvalue_0_8 = 8", "new_text": "x"})
    messages += [
        Message(id="t12", role="tool", tool_call_id="c12", content="ok", cycle=1),
        Message(id="a13", role="assistant", tool_calls=(ToolCall("c13", "edit", again),), cycle=1),
    ]
    recording = read_recording(messages, CHARS4)
    slid = walk(recording, sliding(4), 10**6, "none")  # type: ignore[arg-type]
    assert (slid.faults, slid.text_edits, slid.requests) == (1, 2, 14)
    call = next(message.tokens for message in recording.messages if message.id == "a0")
    assert slid.cost == pytest.approx(slid.prompt_tokens + OUTPUT_PRICE * call, abs=1)


def test_one_read_restores_the_text_for_two_edits_of_a_reply() -> None:
    messages = session(12)
    both = ToolCall("d", "edit", json.dumps({"path": "f0.py", "old_text": "value_0_9 = 9", "new_text": "x"}))
    one = walk(read_recording(messages, CHARS4), sliding(4), 10**6, "none")  # type: ignore[arg-type]
    messages[-1] = with_changes(messages[-1], tool_calls=(*messages[-1].tool_calls, both))
    two = walk(read_recording(messages, CHARS4), sliding(4), 10**6, "none")  # type: ignore[arg-type]
    assert (one.faults, two.faults) == (1, 2)
    assert one.prompt_tokens == two.prompt_tokens


def test_requests_over_the_window_without_management_are_not_compared() -> None:
    recording = read_recording(session(12), CHARS4)
    plain, slid = (walk(recording, policy, 1500, "none") for policy in (None, sliding(4)))  # type: ignore[arg-type]
    assert plain.compared_requests == slid.compared_requests == plain.requests - plain.overflows < plain.requests
    assert plain.compared_cost < plain.cost
    assert slid.compared_cost < slid.cost


def test_an_open_call_and_a_missing_result_do_not_stop_the_replay() -> None:
    messages = session(3)
    del messages[2]
    figures = walk(read_recording(messages, CHARS4), load_policy("codecompanion"), 1000, "5m")
    assert figures.requests == 4


def test_figures_add_up_with_the_larger_peak() -> None:
    one, two = Figures(requests=1, peak=5, cost=1.5), Figures(requests=2, peak=3, cost=2.0, faults=1)
    assert one + two == Figures(requests=3, peak=5, cost=3.5, faults=1)


def test_a_recording_always_yields_the_same_figures() -> None:
    recording = read_recording(session(12), CHARS4)
    assert walk(recording, load_policy("adaptive"), 1500, "5m") == walk(recording, load_policy("adaptive"), 1500, "5m")
