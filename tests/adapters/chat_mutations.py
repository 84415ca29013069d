"""Broken Chat Completions bodies made from valid ones: pairs of a name and a changed copy."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Body = dict[str, Any]
Mutant = tuple[str, Body]
WRONG = (None, 7, [], {}, "")


def mutants(body: Body) -> Iterator[Mutant]:
    """Yield broken (and occasionally harmless) copies of the body."""
    yield from _moved(body)
    for number, message in enumerate(body["messages"]):
        for name, changed in _changed_messages(message):
            messages = copy.deepcopy(body["messages"])
            messages[number] = changed
            yield f"messages[{number}]: {name}", {**body, "messages": messages}
    yield from _changed_arguments(body)
    for number, tool in enumerate(body.get("tools") or ()):
        for name, changed in _changed_tools(tool):
            tools = [*body["tools"][:number], changed, *body["tools"][number + 1 :]]
            yield f"tools[{number}]: {name}", {**body, "tools": tools}
        yield f"tools[{number}] twice", {**body, "tools": [*body["tools"], tool]}


def _moved(body: Body) -> Iterator[Mutant]:
    count = len(body["messages"])
    for k in range(count):
        for name, order in (
            ("dropped", [*range(k), *range(k + 1, count)]),
            ("doubled", [*range(k + 1), *range(k, count)]),
            ("moved to the front", [k, *range(k), *range(k + 1, count)]),
            ("moved to the end", [*range(k), *range(k + 1, count), k]),
            ("swapped with the next", [*range(k), *([k + 1] if k + 1 < count else []), k, *range(k + 2, count)]),
        ):
            yield f"messages[{k}] {name}", {**body, "messages": [copy.deepcopy(body["messages"][i]) for i in order]}
    orphan = {"role": "tool", "tool_call_id": "call_orphan", "content": "out"}
    call = {"id": "call_open", "type": "function", "function": {"name": "grep", "arguments": "{}"}}
    unanswered = {"role": "assistant", "content": None, "tool_calls": [call]}
    silent = {"role": "assistant", "content": None}
    for name, message in (("orphan", orphan), ("unanswered", unanswered), ("silent", silent)):
        for place in (0, count // 2, count):
            messages = copy.deepcopy(body["messages"])
            messages.insert(place, copy.deepcopy(message))
            yield f"{name} at {place}", {**body, "messages": messages}


def _changed_messages(message: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _changed_keys(message)
    for key in ("tokens", "tag", "meta", "cycle", "_kept", "tool_call"):
        yield f"with the key {key}", {**message, key: "x"}
    yield "role", {**message, "role": "function_result"}
    yield "no object", "text"
    if "tool_call_id" in message:
        yield "other call", {**message, "tool_call_id": "call_other"}
    for number, call in enumerate(message.get("tool_calls") or ()):
        calls = message["tool_calls"]
        changes = [*_changed_keys(call), ("key", {**call, "tokens": 1}), ("other id", {**call, "id": "call_other"})]
        for key in call["function"]:
            without = {k: v for k, v in call["function"].items() if k != key}
            changes.append((f"function without {key}", {**call, "function": without}))
            changes += [
                (f"function {key} = {w!r}", {**call, "function": {**call["function"], key: w}}) for w in WRONG[:-1]
            ]
        changes += [("name", {**call, "function": {**call["function"], "name": n}}) for n in ("", "a.b", "x" * 65)]
        for name, changed in changes:
            yield f"call {number} {name}", {**message, "tool_calls": [*calls[:number], changed, *calls[number + 1 :]]}
        yield f"call {number} twice", {**message, "tool_calls": [*calls, call]}
    if isinstance(message.get("content"), list):
        for number, part in enumerate(message["content"]):
            for name, changed in _changed_parts(part):
                parts = [*message["content"][:number], changed, *message["content"][number + 1 :]]
                yield f"part {number} {name}", {**message, "content": parts}


def _changed_parts(part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _changed_keys(part)
    yield "key", {**part, "tokens": 1}
    yield "type", {**part, "type": "input_text"}
    inner = part.get(part["type"])
    if isinstance(inner, dict):
        for name, changed in _changed_keys(inner):
            yield f"inner {name}", {**part, part["type"]: changed}
        for wrong in ("a.png", "data:text/plain,aa"):
            yield f"inner {wrong}", {**part, part["type"]: {**inner, "url" if "url" in inner else "file_data": wrong}}


def _changed_tools(tool: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from _changed_keys(tool)
    function = tool["function"]
    for key in ("name", "parameters"):
        yield f"without {key}", {**tool, "function": {k: v for k, v in function.items() if k != key}}
    for name in ("", "a.b", "x" * 65, 7):
        yield f"name {name!r}", {**tool, "function": {**function, "name": name}}
    yield "key", {**tool, "function": {**function, "tokens": 1}}
    yield "schema", {**tool, "function": {**function, "parameters": {"type": "array", "items": {}}}}
    yield "flat", {"type": "function", **function}


def _changed_arguments(body: Body) -> Iterator[Mutant]:
    changes: dict[str, tuple[Any, ...]] = {
        "model": (None, 7, ""),
        "messages": (None, [], "", {}),
        "stream": ("yes", 1),
        "stream_options": ("usage", []),
        "max_completion_tokens": (0, -1, "many"),
        "max_tokens": (5,),
        "parallel_tool_calls": ("yes", 1),
        "tools": ([], {}, ["read"]),
    }
    for key, values in changes.items():
        for value in values:
            yield f"{key} = {value!r}", {**body, key: value}
    for key in ("input", "tokens", "chat_id", "compact_at", "instructions"):
        yield f"with the argument {key}", {**body, key: 1}
    yield "stream_options without stream", {**body, "stream": False}
    yield (
        "parallel calls without tools",
        {k: v for k, v in body.items() if k != "tools"} | {"parallel_tool_calls": True},
    )


def _changed_keys(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in value:
        yield f"without {key}", {name: inner for name, inner in value.items() if name != key}
        for wrong in WRONG:
            yield f"{key} = {wrong!r}", {**value, key: wrong}
