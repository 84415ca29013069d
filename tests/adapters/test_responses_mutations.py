"""Our check, with the fake provider as judge: refusals are caught, and our rendered requests pass both."""

from __future__ import annotations

import pytest
from hypothesis import given

from codecompanion.adapters.openai_responses.gate import check_body
from codecompanion.model.messages import Message
from tests.adapters.responses_mutations import Body, ledger_of, mutants, refusal_of
from tests.providers.loopback.wire_schemas import schema_problems
from tests.unit.adapters.openai_responses.conversations import (
    agent_loop,
    body_of,
    chats,
    compaction,
    reasoning,
    reply,
    request,
    result,
    user,
    wire,
)

BLOBS = {"i": b"\x89PNG\r\n\x1a\n" + bytes(30), "d": b"%PDF-1.4 /Type /Page"}
CAUGHT_AT_LEAST = 0.97


def rendered(messages: list[Message]) -> Body:
    return body_of(request(*messages, compact_at=60_000, max_output_tokens=100), wire(read_blob=BLOBS.__getitem__))


def plain_loop() -> list[Message]:
    """Return a chat without encrypted parts, as a chat from another provider is rendered."""
    messages = [user(1)]
    for number in range(3):
        ids = (f"toolu_{number}", "same")
        messages += [reply(number, "I look", calls=ids), *(result(call_id) for call_id in ids), user(number + 2)]
    return messages


BASES = {
    "loop": agent_loop(),
    "compacted": [*agent_loop()[:2], compaction("q", kept=("hello", "again")), *agent_loop()[2:]],
    "plain": plain_loop(),
    "short": [user(1), reply(1, reasoning("a"), "answer"), user(2)],
}


@pytest.mark.parametrize("base", BASES)
def test_a_valid_body_is_accepted_by_all_checks(base: str) -> None:
    """Otherwise the counts below would mean nothing."""
    body = rendered(BASES[base])
    assert refusal_of(body, ledger_of(body)) is None
    assert check_body(body) == []


@given(chats())
def test_every_generated_view_is_accepted(messages: list[Message]) -> None:
    """The judge and the SDK's types accept it (apart from ids of messages kept by a compaction, unknown to the SDK)."""
    body = rendered(messages)
    assert refusal_of(body, ledger_of(body)) is None
    items = [{k: v for k, v in item.items() if k != "id" or item["type"] != "message"} for item in body["input"]]
    assert schema_problems("openai.responses", {**body, "input": items}) == []


def test_bodies_the_provider_refuses_are_caught() -> None:
    """At least 97 % are caught; only the provider can know the rest: which item followed its own reasoning item."""
    missed: list[str] = []
    refused = 0
    for base, messages in BASES.items():
        body = rendered(messages)
        ledger = ledger_of(body)
        for name, mutant in mutants(body):
            why = refusal_of(mutant, ledger)
            if why is not None:
                refused += 1
                if not check_body(mutant):
                    missed.append(f"{base}: {name}: {why}")
    assert refused > 1500
    assert len(missed) <= (1 - CAUGHT_AT_LEAST) * refused, "\n".join(missed)
    reasons = ("without its required following item", "content': empty string")
    assert [line for line in missed if not any(reason in line for reason in reasons)] == []


def test_a_misplaced_compaction_is_caught() -> None:
    """The provider accepts older items before a compaction, but we never send them."""
    body = rendered([user(1), compaction("a"), user(2)])
    block = body["input"][0]
    following = [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]
    following += [{"type": "function_call_output", "call_id": "c", "output": "o"}, block]
    problems = check_body({**body, "input": following})
    assert problems == ["input[2] is a compaction that follows items it replaces"]
    second = [*body["input"], {**block, "id": "cmp_other", "encrypted_content": "other"}]
    assert check_body({**body, "input": second}) == ["input[2] is a second compaction"]
