"""Six kinds of broken requests, made from recorded first-party requests: our own check finds them.

These are truncated JSON arguments, a tool in another format's shape, a system role among the messages, a compaction
trigger that is not last, reasoning without its follower, and a dropped result. The recordings raise no alarm.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.anthropic_messages.gate import check_body as check_messages
from codecompanion.adapters.openai_chat.gate import check_body as check_chat
from codecompanion.adapters.openai_responses.gate import check_body as check_responses

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire" / "recorded.jsonl"
pytestmark = pytest.mark.skipif(not RECORDED.is_file(), reason=f"{RECORDED} is not on this machine")
HOSTS = {"chat": "api.openai.com", "responses": "api.openai.com", "messages": "api.anthropic.com"}
CHECKS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "chat": check_chat,
    "responses": check_responses,
    "messages": check_messages,
}
Body = dict[str, Any]
CUT = ('{"path": "a', '{"path": "a"', "{", '"a"', "[1", "")
TOOLS: dict[str, Body] = {
    "chat": {"type": "function", "function": {"name": "f", "description": "", "parameters": {"type": "object"}}},
    "responses": {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
    "messages": {"name": "f", "description": "d", "input_schema": {"type": "object"}},
}


def load() -> list[dict[str, Any]]:
    lines = RECORDED.read_text(encoding="utf-8").split("\n") if RECORDED.is_file() else []
    entries = [json.loads(line) for line in lines if line]
    return [
        entry
        for entry in entries
        if entry["status"] == 200
        and isinstance(entry["request"], dict)
        and HOSTS.get(entry["family"]) == entry["host"]
        and entry["path"].rpartition("/")[2] in ("completions", "responses", "messages")
    ]


VALID = load()


def broken(family: str, body: Body) -> Iterator[tuple[str, Body]]:
    """Yield the class and the body of each broken request."""
    makers = {"chat": _broken_chat, "responses": _broken_responses, "messages": _broken_messages}
    if body.get("previous_response_id") is None:
        for name, change in makers[family](body):
            mutant = copy.deepcopy(body)
            change(mutant)
            yield name, mutant
    for other, tool in TOOLS.items():
        if other != family:
            yield "tool shape", {**body, "tools": [*(body.get("tools") or ()), tool]}


Change = Callable[[Body], None]


def _broken_chat(body: Body) -> Iterator[tuple[str, Change]]:
    for at, message in enumerate(body["messages"]):
        for number in range(len(message.get("tool_calls") or ())):
            for cut in CUT:
                yield (
                    "arguments",
                    lambda b, at=at, n=number, c=cut: b["messages"][at]["tool_calls"][n]["function"].update(
                        arguments=c
                    ),
                )
        if message["role"] == "tool":
            yield "dropped result", lambda b, at=at: b["messages"].pop(at)


def _broken_responses(body: Body) -> Iterator[tuple[str, Change]]:
    items = body.get("input")
    if not isinstance(items, list) or not items:
        return
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            for cut in CUT:
                yield "arguments", lambda b, at=at, c=cut: b["input"][at].update(arguments=c)
        if kind.endswith("_call_output"):
            yield "dropped result", lambda b, at=at: b["input"].pop(at)
        if kind == "reasoning":
            behind = items[at + 1 : at + 2]
            if behind and behind[0].get("type", "message") != "reasoning":
                yield "orphaned reasoning", lambda b, at=at: b["input"].__delitem__(slice(at + 1, None))
                yield "orphaned reasoning", lambda b, at=at: b["input"].insert(at + 1, {"role": "user", "content": "x"})
                yield "orphaned reasoning", lambda b, at=at: b["input"].append(b["input"].pop(at))
        yield "trigger", lambda b, at=at: b["input"].insert(at, {"type": "compaction_trigger"})


def _broken_messages(body: Body) -> Iterator[tuple[str, Change]]:
    for at, message in enumerate(body["messages"]):
        # Between the user's words and the model's newer models take it.
        if not (at and message["role"] == "assistant" and body["messages"][at - 1]["role"] == "user"):
            yield "system role", lambda b, at=at: b["messages"].insert(at, {"role": "system", "content": "You help."})
        yield "system role", lambda b, at=at: b["messages"][at].update(role="developer")
        for number, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
            if block.get("type") == "tool_use":
                for cut in CUT:
                    yield "arguments", lambda b, at=at, n=number, c=cut: b["messages"][at]["content"][n].update(input=c)
            if block.get("type") == "tool_result":
                yield "dropped result", lambda b, at=at, n=number: _drop(b, at, n)


def _drop(body: Body, at: int, number: int) -> None:
    body["messages"][at]["content"].pop(number)
    if not body["messages"][at]["content"]:
        body["messages"].pop(at)


def test_accepted_requests_raise_no_alarm() -> None:
    """A false alarm would repair, or refuse, a valid request."""
    assert len(VALID) >= 150
    alarms = [(e["source"], problems) for e in VALID if (problems := CHECKS[e["family"]](e["request"]))]
    assert not alarms


def test_six_classes_of_broken_requests_are_found() -> None:
    """At least 97 of 100 are found, overall and in each class."""
    made, found, missed = Counter[str](), Counter[str](), list[str]()
    for entry in VALID:
        for name, mutant in broken(entry["family"], entry["request"]):
            key = f"{entry['family']} {name}"
            made[key] += 1
            if CHECKS[entry["family"]](mutant):
                found[key] += 1
            else:
                missed.append(f"{entry['source']}: {key}")
    shares = {key: f"{found[key]}/{made[key]}" for key in made}
    assert sum(made.values()) > 1_000
    assert sum(found.values()) >= 0.97 * sum(made.values()), (shares, missed[:20])
    assert all(found[key] >= 0.95 * made[key] for key in made), (shares, missed[:20])
