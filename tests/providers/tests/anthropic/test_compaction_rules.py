"""The fake Messages server accepts compaction blocks and edits only as the provider does."""

from __future__ import annotations

import pytest

from tests.providers.anthropic.models import HAIKU
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.anthropic.signing import threshold_block
from tests.providers.tests.anthropic.bodies import (
    CALL,
    CLEAR,
    COMPACT,
    DEMAND,
    EDITING,
    ENABLED,
    RESULT,
    SIGNED,
    SUMMARY,
    THRESHOLD,
    TOOL,
    Body,
    assistant,
    body,
    check_pair,
    demand,
    edits,
    refusal_of,
    text,
    user,
)

CLEAR_THINKING = {"type": "clear_thinking_20251015"}


@pytest.mark.parametrize(
    ("words", "bad", "good", "betas"),
    [
        ("context_management: Extra inputs", body(**edits(CLEAR)), body(), ()),
        ("Input tag 'compact_20260112'", body(**edits(COMPACT)), body(**edits(CLEAR)), (EDITING,)),
        (
            "trigger.value must be at least 50000",
            body(**edits({**COMPACT, "trigger": {"type": "input_tokens", "value": 49_999}})),
            body(**edits(COMPACT)),
            (EDITING, THRESHOLD),
        ),
        ("does not support the", body(model=HAIKU.id, **edits(COMPACT)), body(model=HAIKU.id), (THRESHOLD,)),
        (
            "must be the first strategy",
            body(thinking=ENABLED, **edits(CLEAR, CLEAR_THINKING)),
            body(thinking=ENABLED, **edits(CLEAR_THINKING, CLEAR)),
            (EDITING,),
        ),
        (
            "requires `thinking` to be enabled",
            body(**edits(CLEAR_THINKING)),
            body(thinking=ENABLED, **edits(CLEAR_THINKING)),
            (EDITING,),
        ),
        (
            "keep.thinking_turns.value: Input should be greater",
            body(thinking=ENABLED, **edits({**CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": 0}})),
            body(thinking=ENABLED, **edits({**CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": 1}})),
            (EDITING,),
        ),
        ("can be used once", body(**edits(CLEAR, CLEAR)), body(**edits(CLEAR, COMPACT)), (THRESHOLD,)),
        # Asking for a compaction.
        ("requires anthropic-beta: compact-2026-09-04", demand(), body(), (THRESHOLD,)),
        ("cannot be combined with `compaction`", demand(**edits(CLEAR)), demand(), (DEMAND, EDITING)),
        ("stop_sequences: cannot", demand(stop_sequences=["x"]), demand(), (DEMAND,)),
        (
            "output_config.format: cannot",
            demand(output_config={"format": {"type": "json_schema", "schema": {}}}),
            demand(output_config={"effort": "low"}),
            (DEMAND,),
        ),
        (
            "tool_choice: type `any` or `tool`",
            demand(tools=[TOOL], tool_choice={"type": "any"}),
            demand(tools=[TOOL], tool_choice={"type": "auto"}),
            (DEMAND,),
        ),
        (
            "at most 16384 characters",
            body(compaction={"type": "summarize", "instructions": "x" * 16_385}),
            body(compaction={"type": "summarize", "instructions": "x" * 16_384}),
            (DEMAND,),
        ),
        ("does not support compaction", demand(model=HAIKU.id), demand(), (DEMAND,)),
        # The conversation may end with the assistant when it is only to be summarised.
        (
            "does not support assistant message prefill",
            body(user(), assistant(text())),
            demand(user(), assistant(text("So "))),
            (DEMAND,),
        ),
        # Sending blocks back.
        ("Input tag 'compaction'", body(assistant(SIGNED), user()), body(user()), ()),
        (
            "at least 1 character",
            body(assistant({**SIGNED, "content": ""}), user()),
            body(assistant(SIGNED), user()),
            (DEMAND,),
        ),
        ("requires its `signature`", body(assistant(SUMMARY), user()), body(assistant(SIGNED), user()), (DEMAND,)),
        (
            "`signature` requires anthropic-beta",
            body(assistant(SIGNED), user()),
            body(assistant({"type": "compaction", "content": None}), user()),
            (THRESHOLD,),
        ),
        (
            "require a `compact_20260112` strategy",
            body(assistant(SUMMARY), user()),
            body(assistant(SUMMARY), user(), **edits(COMPACT)),
            (THRESHOLD,),
        ),
        (
            "cannot run on a request that carries a signed",
            body(assistant(SIGNED), user(), **edits(COMPACT)),
            body(assistant(SIGNED), user(), **edits(CLEAR)),
            (THRESHOLD, DEMAND),
        ),
        # Failed blocks are no-ops in any place.
        (
            "requires its `signature`",
            body(user(), assistant({"type": "compaction", "content": "s"}, text()), user()),
            body(user(), assistant({"type": "compaction", "content": None}, text()), user()),
            (DEMAND,),
        ),
    ],
)
def test_a_breach_is_refused_and_its_neighbour_is_not(
    words: str, bad: Body, good: Body, betas: tuple[str, ...]
) -> None:
    """The cases cover `context_management`, `compaction` and returned blocks."""
    check_pair(bad, words, good, betas=betas)


@pytest.mark.parametrize(
    ("code", "bad", "good"),
    [
        ("compaction_block_ambiguous", body(assistant(SIGNED, SIGNED), user()), body(assistant(SIGNED), user())),
        ("compaction_block_misplaced", body(user(), assistant(SIGNED), user()), body(user(SIGNED, text()))),
        (
            "compaction_block_misplaced",
            body(assistant(text(), SIGNED), user()),
            body(assistant(SIGNED, text()), user()),
        ),
        ("compaction_content_mismatch", body(user({**SIGNED, "content": "else"}, text())), body(user(SIGNED, text()))),
        (
            "compaction_signature_invalid",
            body(user({**SIGNED, "signature": "EuYB"}, text())),
            body(user(SIGNED, text())),
        ),
        (
            "compaction_tool_changes_mismatch",
            body(user({**SIGNED, "tool_changes": []}, text())),
            body(user(SIGNED, text())),
        ),
        (
            "compaction_incomplete_turn",
            demand(user(), assistant(CALL, text()), tools=[TOOL]),
            demand(user(), assistant(CALL), user(RESULT), tools=[TOOL]),
        ),
        ("compaction_nothing_to_summarize", {**demand(), "messages": []}, demand()),
    ],
)
def test_a_breach_has_its_own_code(code: str, bad: Body, good: Body) -> None:
    """The SDK maps each code to an exception class."""
    refusal = refusal_of(bad, DEMAND)
    assert refusal is not None
    assert (refusal.status, refusal.code) == (400, code)
    assert refusal_of(good, DEMAND) is None


def test_a_threshold_block_must_be_sent_back_unchanged() -> None:
    """It must keep its `encrypted_content`; if the server sends none (as recorded), none is required."""
    bare = threshold_block("what was said", encrypted=False)
    for block, encrypted, refused in (
        (SUMMARY, True, False),
        ({**SUMMARY, "content": "else"}, True, True),
        ({**SUMMARY, "encrypted_content": "AAAA"}, True, True),
        (bare, True, True),
        (bare, False, False),
    ):
        request = body(user(), assistant(block, text()), user(), **edits(COMPACT))
        refusal = refusal_of(request, THRESHOLD, server=AnthropicServer(encrypted=encrypted))
        assert (refusal is not None) is refused
        if refusal:
            assert refusal.code == "compaction_content_mismatch"
    refusal = refusal_of(body(user(SUMMARY, text()), **edits(COMPACT)), THRESHOLD)
    assert refusal is not None
    assert refusal.code == "compaction_block_misplaced"
