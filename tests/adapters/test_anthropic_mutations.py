"""Tests that broken requests are caught before sending, measured against the refusals of the fake Messages API."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

from codecompanion.adapters.anthropic_messages.gate import check_body
from codecompanion.model.messages import ImagePart
from tests.adapters.anthropic_chat import chat_with
from tests.adapters.anthropic_mutations import mutate
from tests.providers.anthropic.answers import Call, Redacted, Reply, Text, Thinking, reply
from tests.providers.anthropic.refusals import Refused
from tests.providers.anthropic.rules.request import Memory, Rulebook, check_request
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.tests.anthropic.bodies import LONG, image

BETAS = frozenset({"compact-2026-01-12", "compact-2026-09-04", "context-management-2025-06-27"})
SEALED = ("thinking", "redacted_thinking", "compaction")


def sealed_of(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] in SEALED]


def is_refused(server: AnthropicServer, body: Any) -> bool:
    """Return whether the fake refuses the body by its rules and its record of its own replies."""
    try:
        check_request(server._rules, server._memory, body, BETAS)
    except Refused:
        return True
    return False


async def record(*, thinking: Any, demand: bool) -> tuple[AnthropicServer, list[dict[str, Any]]]:
    """Return a server and the requests of a chat with it: tools, images, thinking, compaction."""
    script = [
        Reply((Thinking("let me see"), Text("I look."), Call("now"), Call("now", '{"zone": "Łódź"}'))),
        Reply((Redacted(), Thinking("hm"), Text("Once more."), Call("now"))),
        reply("It is noon.", thinking="done"),
        reply(summary="all of it"),
        reply("fine", thinking="so"),
        Reply((Thinking("again"), Text("I look."), Call("now"))),
        reply("noon", thinking="yes"),
    ]
    if not thinking:
        script = [
            Reply(tuple(p for p in one.pieces if isinstance(p, Text | Call)), summary=one.summary) for one in script
        ]
    parameters = {"thinking": thinking} if thinking else {}
    at = {"compact_at": 50_000}
    async with AnthropicServer(script) as server, chat_with(server, parameters=parameters) as chat:
        picture = ImagePart(url=f"data:image/png;base64,{image()['source']['data']}")
        chat.add("user", (picture,))
        await chat.ask("What time is it?", **at)
        await chat.ask(**at)
        await chat.ask(**at)
        if demand:
            done = await chat.adapter.compact(chat.request(), "Keep names.")
            assert done.part is not None
            chat.compact(done.part)
        else:
            chat.add("user", "RULES", tag="rules")
            chat.add("assistant", "I see. " + LONG)
        await chat.ask("Go on.", **at)
        await chat.ask("And now?", **at)
        await chat.ask(**at)
        assert not server.refusals
        bodies = [copy.deepcopy(request.json) for request in server.requests]
    for body in bodies:
        for message in body["messages"]:
            for block in message["content"]:
                block.pop("cache_control", None)
    return server, bodies


async def test_broken_requests_are_caught() -> None:
    """The checks catch at least 97 % of the bodies the provider refuses, and none of the adapter's real requests."""
    missed: Counter[str] = Counter()
    caught = 0
    for thinking in (None, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}):
        for demand in (False, True):
            server, bodies = await record(thinking=thinking, demand=demand)
            for body in bodies:
                sealed = sealed_of(body)
                assert not is_refused(server, body)
                assert check_body(body, sealed) == []
                for name, broken in mutate(body):
                    if not is_refused(server, broken):
                        continue
                    if check_body(broken, sealed):
                        caught += 1
                    else:
                        missed[name.rstrip("0123456789. ")] += 1
    assert caught > 4000
    assert caught / (caught + missed.total()) >= 0.97, missed


def test_the_rules_know_more_than_the_schema() -> None:
    """The fake server's rules, used as the judge above, are separate from our own check."""
    body = {"model": "claude-sonnet-4-6", "max_tokens": 5, "messages": [{"role": "user", "content": " "}]}
    server = AnthropicServer()
    assert isinstance(server._rules, Rulebook)
    assert isinstance(server._memory, Memory)
    assert is_refused(server, body)
    assert check_body(body)
