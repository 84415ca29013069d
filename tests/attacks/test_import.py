"""The `import` of foreign sessions with values of any JSON type: the result is one error sentence, never a crash."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

from codecompanion.cli.commands.import_ import READERS
from codecompanion.cli.json_lines import json_line
from codecompanion.errors import InputError
from codecompanion.model.transcript_format import read_objects
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount

SAVED = {"save_id": "1", "title": "x", "messages": [
    {"role": "user", "content": "a", "opts": {"tag": "file", "visible": True, "pinned": True},
     "context": {"path": "a.py"}, "_meta": {"cycle": 1}, "cycle": 2},
    {"role": "llm", "content": "b", "reasoning": {"content": "w"},
     "tools": {"calls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]}},
    {"role": "tool", "tools": {"call_id": "c"}, "content": "r"},
    {"role": "llm", "content": "done", "tool_calls": [{"id": "d", "function": {"name": "n", "arguments": {}}}]},
    {"role": "tool", "tool_call_id": "d", "content": "r"}]}  # fmt: skip
OURS = [
    {"role": "user", "content": [{"type": "text", "text": "a"},
                                 {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
     "meta": {"ts": 1.5, "tag": "file", "path": "a", "cycle": 1, "pinned": True, "usage": {"input_tokens": 3}}},
    {"role": "assistant", "content": "b", "reasoning_content": "x", "meta": {"ts": 2, "usage": {"output_tokens": 3}},
     "tool_calls": [{"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c", "content": "r", "meta": {"is_error": True}}]  # fmt: skip
OPENAI = {
    "request": {"model": "m", "messages": [
        {"role": "developer", "content": "d"}, *OURS,
        {"role": "assistant", "content": None, "function_call": {"name": "l", "arguments": "{}"}},
        {"role": "function", "name": "l", "content": "n"}]},
    "response": {"choices": [{"message": {"role": "assistant", "content": "No."}}],
                 "usage": {"prompt_tokens": 10, "completion_tokens": 1,
                           "prompt_tokens_details": {"cached_tokens": 8}}}}  # fmt: skip
ANTHROPIC = {
    "request": {"system": [{"type": "text", "text": "s"}], "messages": [
        {"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "text", "text": "x"}, {"type": "document", "source": {"type": "text", "data": "x"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "h", "signature": "s"},
                                          {"type": "tool_use", "id": "t", "name": "look", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": True,
                                      "content": [{"type": "text", "text": "no"}]}]}]},
    "response": {"role": "assistant", "content": [{"type": "text", "text": "Y"}],
                 "usage": {"input_tokens": 9, "output_tokens": 2}}}  # fmt: skip
HISTORY = [{"role": "user", "content": "d", "is_demo": True}, {"role": "user", "content": "fix"},
           {"role": "assistant", "content": "L", "thought": "L", "action": "ls"},
           {"role": "user", "content": "a.py", "message_type": "observation"}]  # fmt: skip
STEPS = [{"action": "ls", "thought": "L", "observation": "a", "response": "x"}]


def entry(uuid: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a line of a Claude Code session."""
    message = {"role": role, "content": content, "id": f"i{uuid}", "usage": {"cache_read_input_tokens": 2}}
    return {"type": role, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "message": message,
            "timestamp": "2026-01-01T00:00:00Z", **more}  # fmt: skip


CLAUDE_CODE = [
    {"type": "summary", "summary": "x", "leafUuid": "u0"}, entry("1", None, "user", "ask"),
    entry("2", "1", "assistant", [{"type": "tool_use", "id": "t", "name": "R", "input": {}}]),
    entry("3", "2", "user", [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]),
    {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None, "logicalParentUuid": "3"},
    entry("4", "b", "user", "so far", isCompactSummary=True, isMeta=False)]  # fmt: skip
FILES: list[tuple[str, Any, bool]] = [
    ("codecompanion", SAVED, False), ("codecompanion", OURS, True), ("codecompanion", OURS, False),
    ("openai", OPENAI, False), ("openai", OURS, True), ("anthropic", ANTHROPIC, False),
    ("claude-code", CLAUDE_CODE, True), ("swe-agent", {"history": HISTORY}, False),
    ("swe-agent", {"trajectory": STEPS}, False)]  # fmt: skip
"""(program, one of its files, whether the file has one JSON value per line)."""
ODD: list[Any] = [None, True, False, 0, -1, 7, 2**70, 1.5, 1e308, "", "x", "\ud800", "\0", [], [[]], [None], ["a"],
                  {}, {"a": []}, {"": {}}, [{}]]  # fmt: skip


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value within a JSON value."""
    yield above
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*above, key))


def exchanged(value: Any, place: tuple[Any, ...], odd: Any) -> Any:
    """Return the value with the value at that path replaced."""
    if not place:
        return odd
    value = inner = copy.deepcopy(value)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = odd
    return value


def outcome(origin: str, raw: bytes, skipped: list[str] | None) -> str:
    """Return the failure of an import: "" if it succeeded, or reported the file in one sentence."""
    try:
        messages = READERS[origin](raw, "f", skipped)
        read_objects(messages, "f")
        for message in messages:
            json_line(message)
    except InputError as error:
        return "" if str(error).startswith("f") and "\n" not in str(error) else f"names no file: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_any_value_of_any_type_is_read_or_named(tally: Tally) -> None:
    attacks = [
        (origin, exchanged(value, place, odd), is_lines)
        for origin, value, is_lines in FILES
        for place in places(value)
        for odd in ODD
    ]
    chosen = random.Random(20).sample(attacks, min(amount(2_000, full=len(attacks)), len(attacks)))
    held, wrong = 0, []
    for origin, value, is_lines in chosen:
        is_cut = is_lines and isinstance(value, list)
        raw = ("\n".join(map(json.dumps, value)) if is_cut else json.dumps(value)).encode()
        problems = [problem for skipped in (None, []) if (problem := outcome(origin, raw, skipped))]
        held += not problems
        wrong += [(origin, raw[:200], problem) for problem in problems]
    tally("import: any JSON type anywhere × programs", tried=len(chosen), held=held)
    assert not wrong, wrong[:3]


def test_a_tag_that_is_not_text_is_reported_and_the_message_kept() -> None:
    """Such a tag once crashed the import: "unhashable type: 'list'"."""
    raw = json.dumps({"messages": [{"role": "user", "content": "hello", "opts": {"tag": []}}]}).encode()
    skipped: list[str] = []
    assert READERS["codecompanion"](raw, "f", skipped) == [{"role": "user", "content": "hello"}]
    assert skipped == ["f:1: messages[0]: tag: expected a string, found a list"]


def test_an_image_with_an_unknown_detail_does_not_block_the_chat() -> None:
    """Otherwise the gate would reject every later request."""
    for detail in ("ultra", 5, {}, None, "low"):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": detail}}
        (message,) = read_objects([{"role": "user", "content": [image]}], "x").messages
        assert message.images[0].detail == ("low" if detail == "low" else "")
