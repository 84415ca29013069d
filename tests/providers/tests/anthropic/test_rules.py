"""The fake Messages server refuses the messages that the provider refuses, and accepts similar valid ones."""

from __future__ import annotations

import pytest

from tests.providers.anthropic.models import HAIKU, SONNET
from tests.providers.tests.anthropic.bodies import (
    CALL,
    ENABLED,
    MARK,
    REDACTED,
    RESULT,
    THINKING,
    TOOL,
    Body,
    assistant,
    body,
    calling,
    check_pair,
    image,
    text,
    user,
)

CASES: list[tuple[str, Body, Body]] = [
    ("foo: Extra inputs are not permitted", body(foo=1), body()),
    ("temperature: Extra inputs", body(temperature=1), body()),
    ("text.cycle: Extra inputs are not permitted", body(user(text(cycle=1))), body(user(text()))),
    ("max_tokens: Field required", {"model": SONNET.id, "messages": [user()]}, body()),
    ("max_tokens: 64001 > 64000", body(max_tokens=64001), body(max_tokens=64000)),
    ("greater than or equal to 0", body(max_tokens=-1), body(max_tokens=1)),
    ("at least one message", {**body(), "messages": []}, body()),
    ("must have non-empty content", body(user(), assistant(), user()), body(user(), assistant(text()), user())),
    ("must have non-empty content", body({"role": "user", "content": ""}), body({"role": "user", "content": "x"})),
    ("must be non-empty", body(user(text(""))), body(user(text("x")))),
    ("must contain non-whitespace", body(user(text(" \n"))), body(user(text(" x\n")))),
    ("must contain non-whitespace", body({"role": "user", "content": " "}), body({"role": "user", "content": " x"})),
    ("must be non-empty", calling({**CALL}, tools=[TOOL], system=[text("")]), calling(CALL, system=[text("s")])),
    ("system: text content", body(system=[text("")]), body(system="")),
    ("can only be in `assistant`", body(user(CALL), tools=[TOOL]), calling(CALL)),
    ("can only be in `user`", body(user(), assistant(image()), user()), body(user(image()))),
    # A leading system message, and one on a model that has none.
    ("role 'system' is not supported", body(user(), {"role": "system", "content": "s"}), body(user())),
    # The last message.
    ("does not support assistant message prefill", body(user(), assistant(text("So"))), body(user(), user())),
    (
        "cannot end with trailing whitespace",
        body(user(), assistant(text("So ")), model=HAIKU.id),
        body(user(), assistant(text("So")), model=HAIKU.id),
    ),
    # Calls and results.
    (
        "without `tool_result` blocks immediately after: a",
        body(user(), assistant(CALL), user(), tools=[TOOL]),
        calling(CALL),
    ),
    ("immediately after: a", body(user(), assistant(CALL), tools=[TOOL]), calling(CALL)),
    (
        "immediately after: b",
        calling(CALL, {**CALL, "id": "b"}),
        body(
            user(),
            assistant(CALL, {**CALL, "id": "b"}),
            user(RESULT),
            user({**RESULT, "tool_use_id": "b"}),
            tools=[TOOL],
        ),
    ),
    (
        "immediately after: a",
        body(user(), assistant(CALL), user(text(), RESULT), tools=[TOOL]),
        body(user(), assistant(CALL), user(RESULT, text()), tools=[TOOL]),
    ),
    (
        "unexpected `tool_use_id` found in `tool_result` blocks: a",
        body(user(RESULT), tools=[TOOL]),
        calling(CALL),
    ),
    (
        "unexpected `tool_use_id`",
        body(user(), assistant(CALL), user(RESULT), assistant(text()), user(RESULT), tools=[TOOL]),
        body(user(), assistant(CALL), user(RESULT), assistant(text()), user(), tools=[TOOL]),
    ),
    (
        "must have a single result",
        body(user(), assistant(CALL), user(RESULT, RESULT), tools=[TOOL]),
        body(user(), assistant(text("1")), assistant(CALL), user(RESULT), tools=[TOOL]),
    ),
    (
        "`tool_use` ids must be unique",
        body(user(), assistant(CALL), user(RESULT), assistant(CALL), user(RESULT), tools=[TOOL]),
        calling(CALL),
    ),
    (
        "tool_use.id: String should match pattern",
        body(user(), assistant({**CALL, "id": "a.b"}), user({**RESULT, "tool_use_id": "a.b"}), tools=[TOOL]),
        body(user(), assistant({**CALL, "id": "a-b"}), user({**RESULT, "tool_use_id": "a-b"}), tools=[TOOL]),
    ),
    (
        "tool_result.tool_use_id: String should match pattern",
        body(user(), assistant(CALL), user({**RESULT, "tool_use_id": "a.b"}), tools=[TOOL]),
        calling(CALL),
    ),
    ("tool_use.name: String should match", calling({**CALL, "name": "a b"}), calling({**CALL, "name": "gone"})),
    ("must define tools", {k: v for k, v in calling(CALL).items() if k != "tools"}, calling(CALL)),
    (
        "must be non-empty",
        calling(CALL) | {"messages": [user(), assistant(CALL), user({**RESULT, "content": [text("")]})]},
        calling(CALL),
    ),
    # Tools.
    ("tools.0.custom.name: String should match", body(tools=[{**TOOL, "name": "a.b"}]), body(tools=[TOOL])),
    ("input_schema.type: Input should be 'object'", body(tools=[{**TOOL, "input_schema": {}}]), body(tools=[TOOL])),
    (
        "does not support oneOf",
        body(tools=[{**TOOL, "input_schema": {"type": "object", "oneOf": []}}]),
        body(tools=[{**TOOL, "input_schema": {"type": "object", "properties": {"x": {"oneOf": []}}}}]),
    ),
    ("names must be unique", body(tools=[TOOL, TOOL]), body(tools=[TOOL, {**TOOL, "name": "then"}])),
    (
        "only be specified while providing tools",
        body(tool_choice={"type": "auto"}),
        body(tools=[TOOL], tool_choice={"type": "auto"}),
    ),
    (
        "Tool 'then' not found",
        body(tools=[TOOL], tool_choice={"type": "tool", "name": "then"}),
        body(tools=[TOOL], tool_choice={"type": "tool", "name": "now"}),
    ),
    # Cache breakpoints.
    ("Found 5", body(user(*[text(**MARK)] * 5)), body(user(*[text(**MARK)] * 4))),
    (
        "A maximum of 4 blocks with cache_control",
        body(user(text(**MARK)), tools=[{**TOOL, **MARK}], system=[text(**MARK), text(**MARK)], **MARK),
        body(user(text(**MARK)), tools=[{**TOOL, **MARK}], system=[text(**MARK)], **MARK),
    ),
    ("cannot be set for empty text", body(user(text(), text("", **MARK))), body(user(text(), text("x", **MARK)))),
    ("cannot be set for empty text", body(system=[text("", **MARK)]), body(system=[text("x", **MARK)])),
    (
        "must not come after a ttl='5m'",
        body(user(text(cache_control={"type": "ephemeral", "ttl": "1h"})), system=[text(**MARK)]),
        body(user(text(**MARK)), system=[text(cache_control={"type": "ephemeral", "ttl": "1h"})]),
    ),
    ("thinking.cache_control: Extra inputs", calling({**THINKING, **MARK}, CALL), calling(THINKING, {**CALL, **MARK})),
    # Thinking.
    ("greater than or equal to 1024", body(thinking={**ENABLED, "budget_tokens": 1023}), body(thinking=ENABLED)),
    (
        "must be greater than `thinking.budget_tokens`",
        body(thinking=ENABLED, max_tokens=1024),
        body(thinking=ENABLED, max_tokens=1025),
    ),
    (
        "Thinking may not be enabled when tool_choice forces",
        body(thinking=ENABLED, tools=[TOOL], tool_choice={"type": "any"}),
        body(thinking=ENABLED, tools=[TOOL], tool_choice={"type": "auto"}),
    ),
    (
        '"thinking.type.adaptive" is not supported',
        body(model=HAIKU.id, thinking={"type": "adaptive"}),
        body(thinking={"type": "adaptive"}),
    ),
    (
        '"thinking.type.enabled" is not supported',
        body(model="claude-opus-5-5", thinking=ENABLED),
        body(model="claude-opus-5-5", thinking={"type": "adaptive"}),
    ),
    (
        "block_binding: Extra inputs are not permitted",
        body(thinking={"type": "adaptive", "block_binding": {}}),
        body(thinking={"type": "adaptive"}),
    ),
    (
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        calling({**THINKING, "thinking": "let me se"}, CALL),
        calling(THINKING, CALL),
    ),
    ("Invalid `signature`", calling({**THINKING, "signature": "EtQC"}, CALL), calling(THINKING, CALL)),
    (
        "Invalid `signature`",
        calling({**THINKING, "signature": THINKING["signature"][:-8] + "AAAAAAA="}, CALL),
        calling(THINKING, CALL),
    ),
    ("Invalid `data` in `redacted_thinking`", calling({**REDACTED, "data": "AAAA"}, CALL), calling(REDACTED, CALL)),
    ("but found `text`", calling(text(), CALL, thinking=ENABLED), calling(THINKING, text(), CALL, thinking=ENABLED)),
    ("but found `tool_use`", calling(CALL, thinking=ENABLED), calling(CALL, thinking={"type": "adaptive"})),
    (
        "messages.1.content.0.type: Expected `thinking`",
        body(
            *[user(), assistant(CALL), user(RESULT), assistant(THINKING, {**CALL, "id": "b"})],
            user({**RESULT, "tool_use_id": "b"}),
            tools=[TOOL],
            thinking=ENABLED,
        ),
        body(
            *[user(), assistant(THINKING, CALL), user(RESULT), assistant({**CALL, "id": "b"})],
            user({**RESULT, "tool_use_id": "b"}),
            tools=[TOOL],
            thinking=ENABLED,
        ),
    ),
    (
        "but found `tool_use`",
        calling(CALL, thinking=ENABLED),
        body(user(), assistant(CALL), user(RESULT), assistant(text()), user(), tools=[TOOL], thinking=ENABLED),
    ),
    # Images.
    ("Too much media: 0 document pages + 101 images > 100", body(user(*[image()] * 101)), body(user(*[image()] * 100))),
    ("image exceeds 5 MB maximum", body(user(image(padding=4 << 20))), body(user(image(padding=3 << 20)))),
    ("max allowed size: 8000 pixels", body(user(image(8001))), body(user(image(8000)))),
    ("many-image requests: 2000 pixels", body(user(*[image(2001)] * 21)), body(user(*[image(2001)] * 20))),
    ("many-image requests", body(user(*[image(2001)] * 21)), body(user(*[image(2000)] * 21))),
    ("does not match the provided media type", body(user(image(kind="image/gif"))), body(user(image()))),
    (
        "max allowed size",
        calling(CALL) | {"messages": [user(), assistant(CALL), user({**RESULT, "content": [image(9000)]})]},
        calling(CALL),
    ),
]


@pytest.mark.parametrize(("words", "bad", "good"), CASES, ids=[f"{k}-{case[0][:40]}" for k, case in enumerate(CASES)])
def test_a_breach_is_refused_and_its_neighbour_is_not(words: str, bad: Body, good: Body) -> None:
    """Refusals have the provider's wording, status and type."""
    check_pair(bad, words, good)
