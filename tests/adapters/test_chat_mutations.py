"""Our check of Chat Completions bodies, with the fake provider as judge: its refusals are caught."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.openai_chat.gate import check_body
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.model.messages import Message, ToolCall
from tests.adapters.chat_mutations import Body, mutants
from tests.providers.chat.rules import refusal_of
from tests.unit.adapters.openai_responses.conversations import agent_loop, chats, reply, request, result, user

CAUGHT_AT_LEAST = 0.97


def rendered(messages: list[Message], **fields: Any) -> Body:
    settings = AdapterSettings(name="t", kind="openai")
    renderer = ChatRenderer(settings, RenderOptions(document_input=True), lambda _: b"%PDF-1.4")
    body: Body = json.loads(b"".join(renderer.render(request(*messages, max_output_tokens=50, **fields))))
    return body


def refusal(body: Body) -> str | None:
    try:
        found = refusal_of(body, models=(), window=0)
    except (TypeError, KeyError, AttributeError) as error:
        # The judge expects some types that a provider would answer 400 to.
        return f"it cannot be read: {error!r}"
    return found.message if found else None


BASES = {
    "files": agent_loop(),
    "parallel": [
        *(user(1), reply(1, "I look", calls=("a", "b")), result("b"), result("a")),
        *(reply(2, "done"), user(2), reply(3, calls=("a",)), result("a"), user(3)),
    ],
}


@pytest.mark.parametrize("base", BASES)
def test_a_valid_body_is_accepted_by_all_checks(base: str) -> None:
    """Otherwise the counts below would mean nothing."""
    body = rendered(BASES[base])
    assert refusal(body) is None
    assert check_body(body) == []


@given(chats())
def test_every_generated_view_is_accepted(messages: list[Message]) -> None:
    """Views with another provider's encrypted reasoning and compaction, or with overlong ids, are accepted too."""
    body = rendered(messages)
    assert refusal(body) is None
    assert check_body(body) == []


def test_bodies_the_provider_refuses_are_caught() -> None:
    """Our checks catch at least 97 % of them."""
    missed: list[str] = []
    refused = 0
    for base, messages in BASES.items():
        for name, mutant in mutants(rendered(messages)):
            why = refusal(mutant)
            if why is not None:
                refused += 1
                if not check_body(mutant):
                    missed.append(f"{base}: {name}: {why}")
    assert refused > 700
    assert len(missed) <= (1 - CAUGHT_AT_LEAST) * refused, "\n".join(missed)


def test_a_history_of_another_system_is_adapted() -> None:
    """Names with dots and ids that are too long are rewritten; calls and results stay together."""
    long = "toolu_" + "x" * 80
    calling = Message(id="a", role="assistant", tool_calls=(ToolCall(long, "mcp.read file"),))
    body = rendered([user(1), calling, result(long), user(2)])
    assert check_body(body) == []
    call = body["messages"][1]["tool_calls"][0]
    assert call["function"]["name"] == "mcp_read_file"
    assert call["id"] == body["messages"][2]["tool_call_id"]
    assert len(call["id"]) == 40


def test_a_compatible_endpoint_keeps_its_long_ids() -> None:
    """Ids of 46 characters, as written by vLLM, and ids in which LiteLLM stores signatures are kept."""
    long = "chatcmpl-tool-" + "0" * 32
    renderer = ChatRenderer(AdapterSettings(name="t", kind="openai_compatible"), RenderOptions(), lambda _: b"")
    body = json.loads(b"".join(renderer.render(request(user(1), reply(1, calls=(long,)), result(long), user(2)))))
    assert body["messages"][1]["tool_calls"][0]["id"] == long
