"""The check of complete bodies: one rule at a time, and its keys compared with the SDK's types."""

from __future__ import annotations

import importlib
from typing import Any, get_type_hints

import pytest

from codecompanion.adapters.anthropic_messages import block_check, gate
from codecompanion.adapters.anthropic_messages.gate import check_body

Body = dict[str, Any]
CALL = {"type": "tool_use", "id": "c", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "out"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
SIGNED = {"type": "compaction", "content": "sum", "signature": "s"}
UNSIGNED = {"type": "compaction", "content": "sum"}
TOOL = {"name": "read", "input_schema": {"type": "object"}}
ENABLED = {"type": "enabled", "budget_tokens": 1024}


def text(words: str = "hi", **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> Body:
    return {"role": "user", "content": list(blocks) or [text()]}


def assistant(*blocks: Any) -> Body:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: Body, **fields: Any) -> Body:
    return {"model": "m", "max_tokens": 5000, "messages": list(messages) or [user()], "tools": [TOOL], **fields}


FINE = [
    body(),
    body(user(), assistant(text(), CALL), user(RESULT, text())),
    body(user(), assistant(THOUGHT, CALL), user(RESULT), thinking=ENABLED),
    body(assistant(UNSIGNED), user(), context_management={"edits": [{"type": "compact_20260112"}]}),
    body(assistant(UNSIGNED, text()), user()),
    body(assistant(SIGNED), assistant(text()), user()),
    body(user(), assistant(SIGNED | {"content": None}, text()), user()),
    body(user(), assistant(THOUGHT, UNSIGNED, text()), user()),
    body(user(), {"role": "system", "content": "Be short."}),
]


@pytest.mark.parametrize("fine", FINE)
def test_a_valid_body_has_no_problems(fine: Body) -> None:
    """The bodies have blocks in both valid positions, and texts as strings."""
    assert check_body(fine) == []


BROKEN = [
    (body(user(), assistant(CALL), user()), "the call c has no result in the next turn"),
    (body(user(), assistant(CALL), user(text(), RESULT)), "the call c has no result in the next turn"),
    (body(user(), assistant(CALL)), "the call c has no result"),
    (body(user(RESULT)), "the result of c does not follow its call"),
    (body(user(), assistant(CALL), user(RESULT, RESULT)), "the call c has two results"),
    (body(user(), assistant(CALL, CALL), user(RESULT)), "the id c occurs twice"),
    (body(assistant(text()), user()), "the first message is not from the user"),
    (body(user(), assistant(text())), "the last message is from the assistant"),
    (body(user(), assistant(text(), THOUGHT), user()), "a turn ends with thinking"),
    (body(user(), assistant(SIGNED), user()), "a signed compaction is not the first block"),
    (body(assistant(SIGNED, SIGNED), user()), "more than one compaction"),
    (body(user(), assistant(text(), UNSIGNED), user()), "is not the first block of its turn"),
    (body(user(text(" "))), "is empty or contains only whitespace"),
    (body(user(text(cycle=1))), "the unknown key 'cycle'"),
    (body(user(THOUGHT)), "is not allowed in a message with the role 'user'"),
    (body(user() | {"tag": "x"}), "the unknown key 'tag'"),
    (body(user(), assistant(CALL), user(RESULT), thinking=ENABLED), "does not begin with thinking"),
    (body(thinking={"type": "enabled", "budget_tokens": 5000}), "not below max_tokens"),
    (body(user(*[text(cache_control={"type": "ephemeral"})] * 5)), "more than 4 cache breakpoints"),
    (body(user(text(cache_control={"ttl": "5m"}), text(cache_control={"ttl": "1h"}))), "follows a 5m one"),
    (body(compaction={"type": "summarize"}, stop_sequences=["x"]), "cannot be combined"),
    (body(tools=[TOOL, TOOL]), "two tools have the same name"),
    (body(user(), assistant(CALL), user(RESULT), tools=[]), "there are tool calls but no tools"),
    (body(max_tokens=0), "max_tokens is not a positive integer"),
    (
        body(assistant(SIGNED), user(), context_management={"edits": [{"type": "compact_20260112"}]}),
        "cannot run after a signed compaction",
    ),
    (
        body(user(*[{"type": "image", "source": {"type": "url", "url": "u"}}] * 101)),
        "there are 101 images",
    ),
]


@pytest.mark.parametrize(("broken", "words"), BROKEN, ids=[words for _, words in BROKEN])
def test_each_problem_is_identified(broken: Body, words: str) -> None:
    """One sentence describes each problem."""
    problems = check_body(broken)
    assert any(words in problem for problem in problems), problems


def test_blocks_made_by_the_provider_must_be_sent_back_unchanged() -> None:
    """With the expected blocks given, edited, lost and reordered blocks are found."""
    first, second = THOUGHT, THOUGHT | {"thinking": "two"}
    good = body(user(), assistant(first, text(), second, CALL), user(RESULT))
    assert check_body(good, [first, second]) == []
    for sealed in ([second, first], [first], [first, second | {"signature": "t"}], []):
        assert check_body(good, sealed) == ["a thinking or compaction block was changed"]


def sdk_keys(module: str, name: str) -> set[str]:
    return set(get_type_hints(getattr(importlib.import_module(f"anthropic.types.beta{module}"), name)))


@pytest.mark.sweep
def test_the_keys_of_a_body_equal_the_sdks() -> None:
    """A new SDK with new keys fails here instead of causing false alarms."""
    keys = sdk_keys(".message_create_params", "MessageCreateParamsStreaming")
    assert keys - {"betas", "user_profile_id", "workspace_id"} == gate._KEYS


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("text", "BetaTextBlockParam"),
        ("image", "BetaImageBlockParam"),
        ("document", "BetaRequestDocumentBlockParam"),
        ("thinking", "BetaThinkingBlockParam"),
        ("redacted_thinking", "BetaRedactedThinkingBlockParam"),
        ("tool_use", "BetaToolUseBlockParam"),
        ("tool_result", "BetaToolResultBlockParam"),
        ("compaction", "BetaCompactionBlockParam"),
    ],
)
def test_the_keys_of_a_block_equal_the_sdks(kind: str, name: str) -> None:
    """This is checked for every block type."""
    assert sdk_keys("", name) == block_check._KEYS[kind]
