"""Request bodies are validated with the SDKs' own types, and an unknown key is found at any position."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.providers.loopback.wire_schemas import Kind, schema_problems

TEXT = {"type": "text", "text": "hi"}
USER = {"role": "user", "content": [TEXT]}
MESSAGES: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": [USER]}
ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
RESPONSES: dict[str, Any] = {"model": "m", "input": [ITEM]}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
CALL = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
EXTRA = "Extra inputs are not permitted"


def user(*blocks: Any) -> dict[str, Any]:
    return {**MESSAGES, "messages": [{"role": "user", "content": list(blocks)}]}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {**MESSAGES, "messages": [USER, {"role": "assistant", "content": list(blocks)}]}


PROPER: list[tuple[Kind, dict[str, Any]]] = [
    ("anthropic.messages", {**MESSAGES, "stream": True}),
    ("anthropic.messages", {**MESSAGES, "stream": False, "system": [{**TEXT, "cache_control": {"type": "ephemeral"}}]}),
    ("anthropic.messages", {**MESSAGES, "messages": [{"role": "user", "content": "hi"}], "system": "be brief"}),
    ("anthropic.messages", assistant({"type": "thinking", "thinking": "", "signature": "s"}, TEXT)),
    ("anthropic.messages", assistant({"type": "tool_use", "id": "a", "name": "n", "input": {"any": {"thing": 1}}})),
    ("anthropic.messages", assistant({"type": "compaction", "content": None, "encrypted_content": "e"})),
    ("anthropic.messages", user({"type": "tool_result", "tool_use_id": "a", "content": [TEXT], "is_error": True})),
    (
        "anthropic.messages",
        user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}),
    ),
    (
        "anthropic.messages",
        {
            **MESSAGES,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "tools": [{"name": "n", "input_schema": {"type": "object", "x-any": 1}}],
            "tool_choice": {"type": "auto"},
            "context_management": {
                "edits": [
                    {"type": "clear_tool_uses_20250919", "exclude_tools": ["n"], "clear_tool_inputs": ["n"]},
                    {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60000}},
                ]
            },
        },
    ),
    ("anthropic.messages", {**MESSAGES, "compaction": {"type": "summarize", "instructions": None}}),
    ("anthropic.count_tokens", {"model": "m", "messages": [USER], "context_management": {"edits": []}}),
    ("openai.responses", {**RESPONSES, "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}),
    (
        "openai.responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "noon"},
                {"type": "compaction", "encrypted_content": "e"},
                {"type": "compaction_trigger"},
            ],
            "context_management": [{"type": "compaction", "compact_threshold": 50000}],
        },
    ),
    ("openai.responses.compact", RESPONSES),
    ("openai.responses.input_tokens", {**RESPONSES, "instructions": "be brief"}),
    ("openai.chat", {**CHAT, "stream": True, "stream_options": {"include_usage": True}}),
    ("openai.chat", {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [CALL]}]}),
]


@pytest.mark.parametrize(("kind", "body"), PROPER)
def test_a_proper_body_has_no_problems(kind: Kind, body: dict[str, Any]) -> None:
    """Otherwise the problems below prove nothing."""
    assert schema_problems(kind, body) == []


def objects_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all objects in a body that are not free (a schema, the input of a call)."""
    if isinstance(value, list):
        return [found for k, item in enumerate(value) for found in objects_in(item, (*path, k))]
    if not isinstance(value, dict) or (path and path[-1] in ("input_schema", "input") and "role" not in value):
        return []
    return [path, *(found for key, item in value.items() for found in objects_in(item, (*path, key)))]


def with_key(value: Any, path: tuple[Any, ...]) -> Any:
    """Return a copy of the body with an unknown key in the object at `path`."""
    if not path:
        return {**value, "unheard_of": 1}
    if isinstance(value, list):
        return [with_key(item, path[1:]) if k == path[0] else item for k, item in enumerate(value)]
    return {**value, path[0]: with_key(value[path[0]], path[1:])}


@pytest.mark.parametrize(
    ("kind", "body", "path"), [(kind, body, path) for kind, body in PROPER for path in objects_in(body)]
)
def test_an_unknown_key_is_found_in_every_object(kind: Kind, body: dict[str, Any], path: tuple[Any, ...]) -> None:
    """The key is found at every level of each proper body above, and is the only problem reported."""
    problems = schema_problems(kind, with_key(body, path))
    assert len(problems) == 1, problems
    assert problems[0].endswith(f"unheard_of: {EXTRA}")


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        ("anthropic.messages", user({**TEXT, "foo": 1}), f"messages.0.content.0.text.foo: {EXTRA}"),
        (
            "anthropic.messages",
            assistant({"type": "compaction", "content": "s", "citations": None}),
            f"messages.1.content.0.compaction.citations: {EXTRA}",
        ),
        ("anthropic.messages", {"model": "m", "messages": [USER]}, "max_tokens: Field required"),
        ("anthropic.messages", {**MESSAGES, "max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
        ("anthropic.messages", {**MESSAGES, "betas": ["b"]}, f"betas: {EXTRA}"),
        ("anthropic.messages", {**MESSAGES, "tools": [{"name": "n"}]}, "tools.0.custom.input_schema: Field required"),
        ("anthropic.messages", user({"type": "text", "text": None}), "messages.0.content.0.text.text: Input should be"),
        (
            "anthropic.messages",
            {**MESSAGES, "messages": [{"role": "tool", "content": "x"}]},
            "messages.0: Input tag 'tool' found using 'role' does not match any of the expected tags: 'user'",
        ),
        ("anthropic.count_tokens", MESSAGES, f"max_tokens: {EXTRA}"),
        (
            "openai.responses",
            {"model": "m", "input": [{"type": "nonsense"}]},
            "input.0: Input tag 'nonsense' found using 'type' does not match any of the expected tags",
        ),
        (
            "openai.chat",
            {"model": "m", "messages": [{"role": "assistant", "content": "x", "reasoning_content": "y"}]},
            f"messages.0.reasoning_content: {EXTRA}",
        ),
    ],
)
def test_a_problem_is_named_in_the_providers_notation(kind: Kind, body: dict[str, Any], problem: str) -> None:
    """Each problem is one line with the path and the description."""
    problems = schema_problems(kind, body)
    assert len(problems) == 1, problems
    assert problems[0].startswith(problem)


def test_problems_are_limited_and_the_body_is_unchanged() -> None:
    """The first few problems are enough to read; validation converts nothing."""
    body = user(*({"type": "text"} for _ in range(9)))
    before = repr(body)
    assert len(schema_problems("anthropic.messages", body)) == 5
    assert len(schema_problems("anthropic.messages", body, limit=2)) == 2
    assert repr(body) == before


def test_a_body_that_is_not_an_object_is_a_problem() -> None:
    """This applies to a list, a string or any other JSON value."""
    assert schema_problems("openai.chat", []) == ["body: Input should be a valid dictionary"]  # type: ignore[arg-type]


def test_no_sdk_is_imported_before_it_is_needed() -> None:
    """Importing anthropic takes two seconds, so tests of one provider do not import another provider's SDK."""
    code = (
        "import sys; from tests.providers.loopback.wire_schemas import schema_problems\n"
        "assert not {'anthropic', 'openai'} & set(sys.modules)\n"
        "schema_problems('openai.chat', {}); assert 'openai' in sys.modules; assert 'anthropic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])
