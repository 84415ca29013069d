"""`context --policy kodacode` prints the request as it would be sent (R-338, R-339; K14)."""

from __future__ import annotations

import json
import subprocess
import sys


def context(messages, *arguments):
    text = "\n".join(json.dumps(message) for message in messages)
    command = [sys.executable, "-m", "codecompanion", "context", "--count", "chars4", *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def search(call_id, text):
    call = {"id": call_id, "type": "function", "function": {"name": "search", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


CHAT = [{"role": "user", "content": "look"}, *search("call-abc", "x" * 900), *search("call-def", "y" * 900)]


def test_older_results_of_the_running_turn_are_placeholders():
    """R-339: the placeholder is the document's; the results of the newest step are kept."""
    answer = context(CHAT, "--policy", "kodacode")
    assert answer["actions"] == ["shaped"]
    assert answer["messages"][2]["content"] == (
        "[older retained output from search turn-1 call-abc pruned for prompt budget]"
    )
    assert answer["messages"][4] == CHAT[4]
    (event,) = answer["events"]
    assert (event["type"], event["pruned"]) == ("request_shaped", 1)
    assert event["tokens_before"] - event["tokens_after"] == 225 - 19


def test_a_summary_without_a_model_has_a_start_and_an_end():
    """R-327, R-332: there is exactly one of each, in this order, as in a chat's log."""
    turn = [{"role": "user", "content": "q" * 400}, {"role": "assistant", "content": "a" * 400}]
    answer = context(turn * 20, "--policy", "kodacode", "--window", "4500")
    assert answer["actions"] == ["compacted"]
    named = [event for event in answer["events"] if "scope" in event or "artifact" in event]
    assert [event["type"] for event in named] == [
        "context_compaction_started", "session_history_continuation_updated",
    ]  # fmt: skip
    assert named[0]["estimated_request_tokens"] == answer["before"]["tokens"] > named[0]["trigger_tokens"]


def test_other_policies_print_their_input():
    """K14: only policies that ask for it shape the request."""
    answer = context(CHAT)
    assert (answer["actions"], answer["messages"]) == ([], CHAT)
