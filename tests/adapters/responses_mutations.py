"""Broken request bodies made from valid ones, and a judge that knows the valid ones.

A mutation is a name and a changed copy. Only visible properties of the body are mutated: a seal with a changed letter,
or an id that the provider never issued, looks like any other.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.providers.openai.refusal import Refused
from tests.providers.responses.ledger import Issued, Ledger
from tests.providers.responses.rules import Endpoint, Rules, accept

Body = dict[str, Any]
Mutant = tuple[str, Body]
RULES = Rules(window=0)
_LONG = "x" * 65


def ledger_of(body: Body) -> Ledger:
    """Return the ledger of a provider that issued everything in the body."""
    ledger = Ledger()
    items = body["input"] if isinstance(body["input"], list) else []
    own = [item.get("id") or f"made_{number}" for number, item in enumerate(items)]
    for number, item in enumerate(items):
        follower = own[number + 1] if item.get("type") == "reasoning" and number + 1 < len(items) else None
        made = {"type": "message", **item}
        ledger.issued[own[number]] = Issued(made, str(body.get("model")), 0, follower)
        if item.get("encrypted_content"):
            ledger._sealed[item["encrypted_content"]] = own[number]
    return ledger


def refusal_of(body: Body, ledger: Ledger, endpoint: Endpoint = "responses") -> str | None:
    """Return the provider's reason for refusing the body, or None if it accepts the body."""
    try:
        accept(endpoint, body, RULES, ledger)
    except Refused as refused:
        return refused.refusal.message
    except (TypeError, KeyError, AttributeError) as error:
        # The judge reads ids of users' messages without looking at their types; a provider would answer 400.
        return f"it cannot be read: {error!r}"
    return None


def mutants(body: Body) -> Iterator[Mutant]:
    """Yield broken (and occasionally harmless) copies of the body."""
    yield from _moved(body)
    for number, item in enumerate(body["input"]):
        for name, changed in _changed_items(item):
            mutant = copy.deepcopy(body)
            mutant["input"][number] = changed
            yield f"input[{number}]: {name}", mutant
    yield from _changed_heads(body)
    yield from _changed_tools(body)


def _moved(body: Body) -> Iterator[Mutant]:
    count = len(body["input"])
    for k in range(count):
        for name, order in (
            ("dropped", [*range(k), *range(k + 1, count)]),
            ("doubled", [*range(k + 1), *range(k, count)]),
            ("repeated at the end", [*range(count), k]),
            ("moved to the front", [k, *range(k), *range(k + 1, count)]),
            ("moved to the end", [*range(k), *range(k + 1, count), k]),
            ("swapped with the next", [*range(k), *([k + 1] if k + 1 < count else []), k, *range(k + 2, count)]),
        ):
            yield f"input[{k}] {name}", {**body, "input": [copy.deepcopy(body["input"][i]) for i in order]}
    orphan = {"type": "function_call_output", "call_id": "call_orphan", "output": "out"}
    unanswered = {"type": "function_call", "call_id": "call_open", "name": "grep", "arguments": "{}"}
    lone = {"type": "reasoning", "id": "rs_lone", "summary": []}
    strange = {"type": "something", "id": "x"}
    for name, item in (("orphan", orphan), ("unanswered", unanswered), ("lone reasoning", lone), ("strange", strange)):
        for place in (0, count // 2, count):
            items = copy.deepcopy(body["input"])
            items.insert(place, dict(item))
            yield f"{name} at {place}", {**body, "input": items}


def _changed_items(item: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in item:
        yield f"without {key}", {name: value for name, value in item.items() if name != key}
        for wrong in (None, 7, [], {}, ""):
            yield f"{key} = {wrong!r}", {**item, key: wrong}
    for key in ("tokens", "tag", "meta", "cycle", "tool_calls", "_kept"):
        yield f"with the key {key}", {**item, key: "x"}
    for key in ("call_id", "id", "name"):
        if key in item:
            for wrong in (_LONG, "with space", "ünï", f"{item[key]}_", "call_other"):
                # An id of an encrypted item that only differs is the provider's secret.
                if key != "id" or wrong in (_LONG, "with space", "ünï", "call_other"):
                    yield f"{key} = {wrong!r}", {**item, key: wrong}
    if "role" in item:
        yield "role tool", {**item, "role": "tool"}
        yield "phase", {**item, "phase": "loud"}
        yield "status", {**item, "status": "done"}
    yield "type", {**item, "type": "text"}
    yield "no object", "text"
    for key in ("content", "output", "summary"):
        if isinstance(item.get(key), list):
            yield from _changed_parts(item, key)


def _changed_parts(item: dict[str, Any], key: str) -> Iterator[tuple[str, Any]]:
    for number, part in enumerate(item[key]):
        changes: list[tuple[str, Any]] = [("with the key tokens", {**part, "tokens": 1}), ("no object", "text")]
        changes += [(f"without {name}", {n: v for n, v in part.items() if n != name}) for name in part]
        changes += [(f"{name} = {wrong!r}", {**part, name: wrong}) for name in part for wrong in ("", 7, [])]
        changes += [("type", {**part, "type": "text"}), ("type image_url", {**part, "type": "image_url"})]
        if "image_url" in part:
            changes += [
                (f"image {wrong[:12]}", {**part, "image_url": wrong})
                for wrong in ("a.png", "data:image/tiff;base64,aa", "data:image/png,aa", "data:text/plain;base64,aa")
            ]
        if "file_data" in part:
            changes.append(("two sources", {**part, "file_url": "https://x.test/a.pdf"}))
        for name, changed in changes:
            parts = [*item[key][:number], changed, *item[key][number + 1 :]]
            yield f"{key}[{number}] {name}", {**item, key: parts}


def _changed_heads(body: Body) -> Iterator[Mutant]:
    entry = {"type": "compaction", "compact_threshold": 60_000}
    changes: dict[str, tuple[Any, ...]] = {
        "model": (None, 7),
        "input": (None, [], "", 7, {}),
        "instructions": (7, []),
        "stream": ("yes",),
        "store": ("no", 0),
        "include": ("reasoning", ["everything"], [7]),
        "truncation": ("off", 7),
        "max_output_tokens": (3, 0, -1, "many"),
        "prompt_cache_key": ("k" * 65, 7),
        "context_management": (
            *([entry, entry], [{**entry, "type": "x"}], [{"type": "compaction"}], entry),
            *([{**entry, "compact_threshold": wrong}] for wrong in (10, "60k")),
            [{**entry, "trigger": 1}],
        ),
        "parallel_tool_calls": ("yes", 1),
        "reasoning": ("high", {"sumary": "auto"}, {"summary": "long"}),
        "tools": ({}, ["read"]),
    }
    for key, values in changes.items():
        for value in values:
            yield f"{key} = {value!r}"[:80], {**body, key: value}
    for key in ("messages", "tokens", "chat_id", "max_tokens", "compact_at"):
        yield f"with the key {key}", {**body, key: 1}


def _changed_tools(body: Body) -> Iterator[Mutant]:
    for number, tool in enumerate(body.get("tools") or ()):
        changes = [(f"without {key}", {k: v for k, v in tool.items() if k != key}) for key in tool]
        changes += [(f"name {wrong!r}", {**tool, "name": wrong}) for wrong in ("", "a.b", _LONG, 7)]
        changes += [("nested", {"type": "function", "function": tool}), ("key", {**tool, "tokens": 1})]
        changes += [("schema", {**tool, "parameters": {"type": "array"}}), ("strict", {**tool, "strict": "no"})]
        for name, changed in changes:
            yield (
                f"tools[{number}] {name}",
                {**body, "tools": [*body["tools"][:number], changed, *body["tools"][number + 1 :]]},
            )
        yield f"tools[{number}] twice", {**body, "tools": [*body["tools"], tool]}
