"""The fake Messages server compacts and edits like the provider, and reports it as recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.anthropic.answers import Reply, failure, reply
from tests.providers.anthropic.prompt import prompt_of
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.anthropic.signing import threshold_block
from tests.providers.tests.anthropic.bodies import (
    CALL,
    CLEAR,
    COMPACT,
    DEMAND,
    EDITING,
    ENABLED,
    LONG,
    RESULT,
    SUMMARY,
    THINKING,
    THRESHOLD,
    TOOL,
    Body,
    ask,
    assistant,
    body,
    calling,
    demand,
    edits,
    refusal_of,
    text,
    user,
)


def test_several_threshold_blocks_may_be_sent_back_and_the_last_one_counts() -> None:
    """Blocks before the last one are neither counted nor paired."""
    conversation = [
        user(text(LONG)),
        assistant(SUMMARY, text("old")),
        user(text(LONG)),
        assistant(SUMMARY, text("so")),
        user(),
    ]
    _, counted = ask(body(*conversation, **edits(COMPACT)), THRESHOLD)
    assert counted["usage"]["input_tokens"] < 100
    assert counted["usage"]["iterations"] == [_message_pass(counted)]
    cut = body(user(), assistant(CALL), assistant(SUMMARY), user(RESULT), tools=[TOOL], **edits(COMPACT))
    refusal = refusal_of(cut, THRESHOLD)
    assert refusal is not None
    assert "unexpected `tool_use_id`" in refusal.message


def _message_pass(message: Body) -> Body:
    return next(entry for entry in message["usage"]["iterations"] if entry["type"] == "message")


def test_a_prompt_over_the_threshold_is_summarised_before_the_reply() -> None:
    """The top level reports the reply alone; the summarising pass is a separate iteration."""
    server = AnthropicServer([reply("Hello", summary="The sum of it.")])
    request = body(user(text(LONG)), user(text("Go on")), **edits(COMPACT))
    _, message = ask(request, THRESHOLD, server=server)
    assert [block["type"] for block in message["content"]] == ["compaction", "text"]
    assert message["content"][0] == threshold_block("The sum of it.", encrypted=True)
    first, second = message["usage"]["iterations"]
    assert (first["type"], first["input_tokens"]) == ("compaction", prompt_of(request).tokens)
    assert (second["type"], second["input_tokens"]) == ("message", message["usage"]["input_tokens"])
    assert second["input_tokens"] < 20
    assert message["context_management"] == {"applied_edits": []}
    _, below = ask(body(user(), **edits(COMPACT)), THRESHOLD, server=server)
    assert [block["type"] for block in below["content"]] == ["text"]
    again = body(user(text(LONG)), {"role": "assistant", "content": message["content"]}, user(), **edits(COMPACT))
    assert refusal_of(again, THRESHOLD, server=server) is None


def test_it_pauses_after_the_compaction_if_asked() -> None:
    """The top level reports zero tokens; the conversation continues from the block, which may be the last message."""
    request = body(user(text(LONG)), **edits({**COMPACT, "pause_after_compaction": True}))
    _, message = ask(request, THRESHOLD)
    assert message["stop_reason"] == "compaction"
    assert [block["type"] for block in message["content"]] == ["compaction"]
    assert "55" in message["content"][0]["content"]
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (0, 0)
    assert [entry["type"] for entry in message["usage"]["iterations"]] == ["compaction"]
    paused = body(user(text(LONG)), {"role": "assistant", "content": message["content"]}, **edits(COMPACT))
    assert refusal_of(paused, THRESHOLD) is None


def test_a_failed_compaction_is_a_block_without_content_and_the_whole_prompt_is_answered() -> None:
    """Such a block is a no-op when it is sent back."""
    server = AnthropicServer([reply("Hello", compaction_fails=True)])
    request = body(user(text(LONG)), **edits(COMPACT))
    _, message = ask(request, THRESHOLD, server=server)
    assert message["content"] == [{"type": "compaction", "content": None}, text("Hello")]
    assert _message_pass(message)["input_tokens"] == prompt_of(request).tokens
    again = body(user(text(LONG)), {"role": "assistant", "content": message["content"]}, user(), **edits(COMPACT))
    _, counted = ask({k: v for k, v in again.items() if k != "max_tokens"}, THRESHOLD, path="/v1/messages/count_tokens")
    assert counted["input_tokens"] > 50_000


def test_on_demand_the_answer_is_one_signed_block_that_replaces_the_messages() -> None:
    """The answer has no other content; compacting again creates a newer block."""
    server = AnthropicServer([reply(summary="All of it.")])
    _, message = ask(demand(user(), assistant(text()), user()), DEMAND, server=server)
    assert (message["stop_reason"], message["usage"]["input_tokens"]) == ("compaction", 0)
    assert [entry["type"] for entry in message["usage"]["iterations"]] == ["compaction"]
    [block] = message["content"]
    assert (block["content"], set(block)) == ("All of it.", {"type", "content", "signature"})
    _, newer = ask(demand(assistant(block), user()), DEMAND, server=server)
    assert newer["content"][0]["signature"] != block["signature"]
    assert refusal_of(body(assistant(newer["content"][0]), assistant(text()), user()), DEMAND, server=server) is None


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "end_turn"])
def test_on_demand_without_a_summary_is_a_200_without_content(stop: str) -> None:
    """The call is still billed."""
    _, message = ask(demand(), DEMAND, server=AnthropicServer([Reply(stop=stop)]))
    assert (message["stop_reason"], message["content"]) == (stop, [])
    assert message["usage"]["iterations"][0]["input_tokens"] > 0


def test_an_unavailable_compaction_is_a_529_with_a_code() -> None:
    """A client can retry it."""
    server = AnthropicServer([failure(529, "Overloaded", code="compaction_unavailable")])
    status, error = ask(demand(), DEMAND, server=server)
    assert status == 529
    assert error["error"]["details"] == {"error_code": "compaction_unavailable"}


def test_old_tool_results_are_cleared_for_the_model_and_reported() -> None:
    """The request is unchanged; excluded results stay, and nothing is cleared if the amount is too small."""
    calls = [{**CALL, "id": name, "input": {"q": "y" * 360}} for name in "abc"]
    results = [{**RESULT, "tool_use_id": name, "content": "z" * 3600} for name in "abc"]
    turns = [one for pair in zip(map(assistant, calls), map(user, results), strict=True) for one in pair]
    request = body(user(), *turns, tools=[TOOL])
    whole = prompt_of(request).tokens

    def cleared(**edit: Any) -> Body | None:
        _, message = ask({**request, **edits({**CLEAR, **edit})}, EDITING)
        applied = message["context_management"]["applied_edits"]
        assert message["usage"]["input_tokens"] == whole - sum(one["cleared_input_tokens"] for one in applied)
        return applied[0] if applied else None

    both = cleared()
    assert both is not None
    assert (both["type"], both["cleared_tool_uses"]) == ("clear_tool_uses_20250919", 2)
    assert 1900 < both["cleared_input_tokens"] < 2000
    inputs = cleared(clear_tool_inputs=True)
    assert inputs is not None
    assert inputs["cleared_input_tokens"] > both["cleared_input_tokens"] + 190
    assert cleared(exclude_tools=["now"]) is None
    assert cleared(trigger={"type": "tool_uses", "value": 3}) is None
    assert cleared(trigger={"type": "input_tokens", "value": whole}) is None
    assert cleared(keep={"type": "tool_uses", "value": 3}) is None
    assert cleared(clear_at_least={"type": "input_tokens", "value": 2000}) is None


def test_old_thinking_is_cleared_for_the_model() -> None:
    """The newest turn keeps its thinking."""
    request = body(user(), assistant(THINKING, text()), user(), assistant(THINKING, text()), user(), thinking=ENABLED)
    _, message = ask({**request, **edits({"type": "clear_thinking_20251015"})}, EDITING)
    [applied] = message["context_management"]["applied_edits"]
    assert applied["cleared_thinking_turns"] == 1
    _, kept = ask({**request, **edits({"type": "clear_thinking_20251015", "keep": "all"})}, EDITING)
    assert kept["context_management"]["applied_edits"] == []
    assert kept["usage"]["input_tokens"] == message["usage"]["input_tokens"] + applied["cleared_input_tokens"]


def test_counting_reports_the_prompt_before_and_after_editing() -> None:
    """Compactions from earlier requests are applied, but no new compaction is performed."""
    path = "/v1/messages/count_tokens"
    request = calling(CALL, {**CALL, "id": "b"}, system="s") | {"max_tokens": 1}
    request["messages"][2]["content"] = [{**RESULT, "content": "z" * 360}, {**RESULT, "tool_use_id": "b"}]
    counted = {key: value for key, value in request.items() if key != "max_tokens"}
    _, plain = ask(counted, path=path)
    _, edited = ask({**counted, **edits(CLEAR)}, EDITING, path=path)
    assert plain == {"input_tokens": prompt_of(request).tokens}
    assert edited["context_management"] == {"original_input_tokens": plain["input_tokens"]}
    assert edited["input_tokens"] < plain["input_tokens"]
    again = {"model": request["model"], "messages": [user(text(LONG)), assistant(SUMMARY), user()]}
    _, compacted = ask({**again, **edits(COMPACT)}, THRESHOLD, path=path)
    assert compacted["input_tokens"] < 50
    assert compacted["context_management"]["original_input_tokens"] > 50_000
    _, demanded = ask({**counted, "compaction": {"type": "summarize"}}, DEMAND, path=path)
    assert demanded == plain


def test_the_prompt_must_fit_before_it_is_compacted() -> None:
    """Compaction makes room for the next request, not for this one."""
    request = body(user(text("x" * 800_000)), **edits(COMPACT))
    refusal = refusal_of(request, THRESHOLD)
    assert refusal is not None
    assert refusal.message.startswith("prompt is too long")
    assert json.dumps(refusal.body("r"))
