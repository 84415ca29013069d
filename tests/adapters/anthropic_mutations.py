"""Broken Messages bodies, each with one change that a rendering bug or an edit of the view could cause."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]
Change = Callable[[Body], None]


def mutate(body: Body) -> Iterator[tuple[str, Body]]:
    """Yield (name, body) for every way to break the body, which itself is not changed."""
    for name, change in _changes(body):
        broken = copy.deepcopy(body)
        change(broken)
        if broken != body:
            yield name, broken


def _changes(body: Body) -> Iterator[tuple[str, Change]]:
    yield from _on_top(body)
    messages = body["messages"]
    for number in range(len(messages)):
        yield from _of_message(number, len(messages))
        for index, block in enumerate(messages[number]["content"]):
            for name, change in _of_block(block):
                yield f"{name} {number}.{index}", _at(number, index, change)
            yield from _of_place(number, index, len(messages[number]["content"]), len(messages))


def _on_top(body: Body) -> Iterator[tuple[str, Change]]:
    wrong: dict[str, tuple[Any, ...]] = {
        "max_tokens": (-1, "many", None),
        "messages": ([],),
        "model": (7,),
        "cycle": (3,),
        "tool_choice": ({"type": "tool", "name": "missing"},),
        "thinking": (
            {"type": "enabled", "budget_tokens": 100},
            {"type": "enabled", "budget_tokens": 10_000_000},
            {"type": "sometimes"},
        ),
        "context_management": (
            {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 49_999}}]},
            {"edits": [{"type": "compact_20990101"}]},
            {"edits": [{"type": "compact_20260112"}, {"type": "compact_20260112"}]},
            {"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]},
        ),
    }
    for key, values in wrong.items():
        for number, value in enumerate(values):
            yield f"{key} {number}", _put(key, value)
    for key in ("max_tokens", "messages"):
        yield f"no {key}", lambda broken, key=key: broken.pop(key)
    yield "all marked", _mark_everything
    for name, value in (("name", "bad name!"), ("input_schema", {"type": "string"}), ("pinned", True)):
        if body.get("tools"):
            yield f"tool {name}", lambda broken, name=name, value=value: broken["tools"][0].update({name: value})
    if body.get("tools"):
        yield "tool twice", lambda broken: broken["tools"].append(broken["tools"][0])
        yield "no tools", lambda broken: broken.pop("tools")
    if body.get("system"):
        yield "empty system", lambda broken: broken["system"][0].update(text="")
        yield "system key", lambda broken: broken["system"][0].update(tag="rules")
    if "context_management" in body:
        yield "both compactions", _put("compaction", {"type": "summarize"})


def _of_message(number: int, count: int) -> Iterator[tuple[str, Change]]:
    yield f"drop message {number}", lambda broken: broken["messages"].pop(number)
    yield f"message twice {number}", lambda broken: broken["messages"].insert(number, broken["messages"][number])
    yield f"no content {number}", lambda broken: broken["messages"][number].update(content=[])
    yield f"message key {number}", lambda broken: broken["messages"][number].update(cycle=1)
    yield f"no role {number}", lambda broken: broken["messages"][number].pop("role")
    for role in ("user", "assistant", "tool"):
        yield f"role {role} {number}", lambda broken, role=role: broken["messages"][number].update(role=role)
    if number + 1 < count:
        yield f"swap messages {number}", lambda broken: _swap(broken["messages"], number)


def _of_place(number: int, index: int, blocks: int, messages: int) -> Iterator[tuple[str, Change]]:
    def content(broken: Body, at: int = number) -> list[Any]:
        found: list[Any] = broken["messages"][at]["content"]
        return found

    yield f"drop block {number}.{index}", lambda broken: content(broken).pop(index)
    yield f"block twice {number}.{index}", lambda broken: content(broken).insert(index, content(broken)[index])
    if index + 1 < blocks:
        yield f"swap blocks {number}.{index}", lambda broken: _swap(content(broken), index)
        yield f"to the end {number}.{index}", lambda broken: content(broken).append(content(broken).pop(index))
    if number + 1 < messages:
        yield (
            f"to the next message {number}.{index}",
            lambda broken: content(broken, number + 1).insert(0, content(broken).pop(index)),
        )


def _of_block(block: Body) -> Iterator[tuple[str, Change]]:
    yield "block key", lambda broken: broken.update(tokens=5)
    yield "unknown kind", lambda broken: broken.update(type="reasoning")
    wrong: dict[str, dict[str, tuple[Any, ...]]] = {
        "text": {"text": ("", " \n", 3)},
        "thinking": {"thinking": ("edited",), "signature": ("", "forged")},
        "redacted_thinking": {"data": ("forged",)},
        "tool_use": {"id": ("another", "bad id!", ""), "name": ("bad name!", ""), "input": ("{}", [])},
        "tool_result": {"tool_use_id": ("another", "bad id!"), "is_error": ("yes",), "content": ({}, 7)},
        "compaction": {"content": ("", "edited"), "encrypted_content": ("forged",), "signature": ("forged",)},
        "image": {"source": ({"type": "base64", "media_type": "image/tiff", "data": "AAAA"}, {"type": "base64"})},
    }
    for key, values in wrong.get(block["type"], {}).items():
        for number, value in enumerate(values):
            yield f"{block['type']} {key} {number}", _put(key, value)
    for key in wrong.get(block["type"], {}):
        if key in block and key not in ("is_error", "content"):
            yield f"{block['type']} without {key}", lambda broken, key=key: broken.pop(key)


def _mark_everything(broken: Body) -> None:
    for message in broken["messages"]:
        for block in message["content"]:
            if block["type"] not in ("thinking", "redacted_thinking"):
                block["cache_control"] = {"type": "ephemeral"}


def _put(key: str, value: Any) -> Change:
    return lambda broken: broken.update({key: value})


def _at(number: int, index: int, change: Change) -> Change:
    return lambda broken: change(broken["messages"][number]["content"][index])


def _swap(items: list[Any], index: int) -> None:
    items[index], items[index + 1] = items[index + 1], items[index]
