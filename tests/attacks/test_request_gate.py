"""Broken request bodies in every wire format: the gate rejects them before sending, and accepts every valid one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from codecompanion.adapters import joined_pieces
from codecompanion.adapters.anthropic_messages import conversation
from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.adapters.request_gate import Purpose
from codecompanion.adapters.wire_format import HttpCall, WireFormat
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import Message
from tests.adapters import test_anthropic_mutations as anthropic
from tests.adapters import test_chat_mutations as chat
from tests.adapters import test_responses_mutations as responses
from tests.adapters.conftest import collect
from tests.attacks.conftest import Tally
from tests.attacks.sizes import FULL
from tests.providers.anthropic.refusals import Refused
from tests.providers.anthropic.rules.request import check_request
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.server import ChatServer

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire" / "recorded.jsonl"
WIRES: dict[str, type[OpenAIChat] | type[OpenAIResponses] | type[AnthropicMessages]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": AnthropicMessages,
}
LEDGER_ONLY = "without its required following item"
"""Part of a refusal that needs the provider's ledger: only it knows which item followed a reasoning item."""
MEMORY_ONLY = "blocks in the latest assistant message cannot be modified"
"""Part of a refusal that needs the provider's memory: only it knows which adjacent messages were one reply."""
ONCE_RECORDED = "content': empty string"
"""Part of a refusal by the fake for an empty text from the model, which the real endpoint was recorded accepting."""


def wire_of(
    family: str, kind: Literal["openai", "openai_compatible"] = "openai", url: str = "http://x.test", **parameters: Any
) -> WireFormat:
    settings = AdapterSettings(name="t", kind=kind, base_url=url, model="m", parameters=parameters)
    return WIRES[family](settings, lambda _: b"")


def chat_bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the mutants that the fake provider rejects."""
    for messages in chat.BASES.values():
        for name, mutant in chat.mutants(chat.rendered(messages)):
            if chat.refusal(mutant) is not None:
                yield name, mutant


def responses_bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    for messages in responses.BASES.values():
        body = responses.rendered(messages)
        ledger = responses.ledger_of(body)
        for name, mutant in responses.mutants(body):
            why = responses.refusal_of(mutant, ledger)
            if why is not None and LEDGER_ONLY not in why and ONCE_RECORDED not in why:
                yield name, mutant


async def messages_bodies() -> list[tuple[str, dict[str, Any]]]:
    """Return the mutants; encrypted provider blocks are left out, because they are returned unchanged."""
    found: list[tuple[str, dict[str, Any]]] = []
    for thinking in (None, {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}):
        for demand in (False, True) if FULL else (True,):
            server, bodies = await anthropic.record(thinking=thinking, demand=demand)
            for body in bodies:
                for name, mutant in anthropic.mutate(body):
                    why = "" if is_of_provider(name, body, mutant) else why_refused(server, mutant)
                    if why and MEMORY_ONLY not in why:
                        found.append((name, mutant))
    return found


def why_refused(server: AnthropicServer, body: dict[str, Any]) -> str:
    """Return why the fake would reject the body, or "" if it accepts it."""
    try:
        check_request(server._rules, server._memory, body, anthropic.BETAS)
    except Refused as refused:
        return refused.refusal.message
    return ""


def is_of_provider(name: str, body: dict[str, Any], mutant: dict[str, Any]) -> bool:
    """Return whether only the provider can judge a mutation: in its own blocks or a kind of block it may introduce."""
    if name.startswith("unknown kind"):
        number, _, _ = name.removeprefix("unknown kind ").partition(".")
        return bool(body["messages"][int(number)]["role"] == "assistant")
    try:
        return anthropic.sealed_of(mutant) != anthropic.sealed_of(body)
    except (KeyError, TypeError):
        return False


async def test_a_body_that_a_provider_would_reject_is_never_sent(tally: Tally) -> None:
    """The fake providers are the judges, without rules that only they can check."""
    missed: list[str] = []
    for family, bodies in (
        ("chat", list(chat_bodies())),
        ("responses", list(responses_bodies())),
        ("messages", await messages_bodies()),
    ):
        gate = wire_of(family).gate()
        passed = [name for name, body in bodies if not gate.find_problem((json.dumps(body).encode(),), "reply")]
        tally("requests: mutated bodies × formats", tried=len(bodies), held=len(bodies) - len(passed))
        missed += [f"{family}: {name}" for name in passed]
        assert len(bodies) > 800
    assert not missed, missed[:20]


@pytest.mark.skipif(not RECORDED.is_file(), reason=f"{RECORDED} is not on this machine")
def test_no_recorded_request_is_refused() -> None:
    """This includes requests to compatible endpoints, with their own arguments and tools."""
    judged = 0
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        body = entry["request"]
        if entry["family"] not in WIRES or entry["status"] != 200 or not isinstance(body, dict):
            continue
        kind: Literal["openai", "openai_compatible"] = (
            "openai" if entry["host"] == "api.openai.com" else "openai_compatible"
        )
        last = entry["path"].rpartition("/")[2]
        purposes: dict[str, Purpose] = {"compact": "compaction", "input_tokens": "count", "count_tokens": "count"}
        own = dict.fromkeys(body.keys() - {"model", "messages", "input", "tools"}, 1)
        gate = wire_of(entry["family"], kind, **own).gate()
        assert gate.find_problem((json.dumps(body).encode(),), purposes.get(last, "reply")) == "", entry["source"]
        judged += 1
    assert judged > 200


class Broken(OpenAIChat):
    """A format that renders a call without its result."""

    def render(self, request: ChatRequest) -> HttpCall:
        """Return a body that every endpoint rejects."""
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        body = {
            "model": "m",
            "messages": [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "user", "content": "And now?"},
            ],
        }
        return HttpCall("/chat/completions", (json.dumps(body).encode(),))


async def test_a_refused_body_never_reaches_the_network() -> None:
    """The error is one sentence that names the message and the call."""
    async with ChatServer() as server:
        settings = AdapterSettings(name="t", kind="openai", base_url=server.url, model="m")
        adapter = HttpAdapter(settings, Broken(settings, lambda _: b""), read_key=lambda _: "k")
        outcome = await collect(adapter, ChatRequest(messages=(Message(id="u", role="user", content="hi"),), model="m"))
        await adapter.aclose()
        assert server.requests == []
    assert isinstance(outcome.error, RequestRejected)
    said = "messages[1] comes before the result of 'c' (user: “And now?”)"
    assert str(outcome.error) == f"t: not sent; the provider would refuse it: {said}. The chat is unchanged."


ARGUMENTS: dict[str, list[tuple[str, Any]]] = {
    "chat": [
        *(("temperature", 3), ("temperature", "1"), ("top_p", -1), ("n", 0), ("n", 1.5), ("seed", "a"), ("user", 5)),
        *(("stop", list("abcde")), ("stop", 5), ("tool_choice", "sometimes"), ("tool_choice", "auto"), ("store", 1)),
        *(("tool_choice", {"type": "function", "function": {"name": "x"}}), ("response_format", {"type": "yaml"})),
        *(("metadata", []), ("top_logprobs", 99), ("stream", "true")),
    ],
    "responses": [
        *(("temperature", 3), ("top_p", 2), ("tool_choice", "sometimes"), ("tool_choice", 5), ("background", "x")),
        *(("tool_choice", {"type": "function", "name": "x"}), ("previous_response_id", 5), ("truncation", "some")),
        *(("text", {"format": {"type": "yaml"}}), ("text", {"verbosity": "loud"}), ("text", []), ("store", "no")),
    ],
    "messages": [
        *(("stream", "yes"), ("stop_sequences", [" "]), ("metadata", {"mail": "x"}), ("tool_choice", "auto")),
        *(("max_tokens", 0), ("max_tokens", None), ("service", 1)),
    ],
}


def test_arguments_out_of_the_providers_tables_are_refused(tally: Tally) -> None:
    """The limits come from the API references; arguments set by the user are not checked."""
    problems, tried = [], 0
    for family, arguments in ARGUMENTS.items():
        wire = wire_of(family)
        body = json.loads(
            wire.render(ChatRequest(messages=(Message(id="1", role="user", content="hi"),), model="m")).body
        )
        assert wire.gate().find_problem((json.dumps(body).encode(),), "reply") == ""
        for name, value in arguments:
            tried += 1
            if not wire.gate().find_problem((json.dumps({**body, name: value}).encode(),), "reply"):
                problems.append(f"{family}: {name} = {value!r} passes")
    tally("gate: arguments", tried=tried, held=tried - len(problems))
    assert not problems


def test_arguments_of_the_users_own_pass() -> None:
    """Arguments configured for a compatible endpoint are sent, whatever they are."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], "top_k": 5, "min_p": "x"})
    gate = wire_of("chat", "openai_compatible", top_k=5, min_p="x").gate()
    assert gate.find_problem((body.encode(),), "reply") == ""
    refused = wire_of("chat", "openai_compatible", top_k=5).gate()
    assert refused.find_problem((body.encode(),), "reply") == "unknown argument 'min_p'"


@pytest.mark.parametrize("chunk_bytes", [1 << 20, 300, 1])
@pytest.mark.parametrize("family", WIRES)
def test_a_continued_chat_is_judged_like_a_new_one(
    family: str, chunk_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The validated prefix is kept; a mutant after it, and one in it, are still rejected."""
    monkeypatch.setattr(joined_pieces, "CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(conversation, "CHUNK_BYTES", chunk_bytes)
    wire = wire_of(family)
    gate = wire.gate()
    messages = [Message(id=f"m{k}", role="assistant" if k % 2 else "user", content=f"{k}") for k in range(41)]
    for count in (21, 25, 41):
        body = wire.render(ChatRequest(messages=tuple(messages[:count]), model="m", chat_id="c", max_output_tokens=9))
        assert gate.find_problem(body.chunks, "reply") == ""
        assert len(gate._kept) == 1
        assert gate._kept[0][1].count == count - 8
        assert gate.unknown_bytes(body.chunks, "reply") < len(body.body) / 2
        assert gate.find_problem(body.chunks, "reply") == ""  # and once more with all of it known
        longer_reply = ChatRequest(messages=tuple(messages[:count]), model="m", chat_id="c", max_output_tokens=40)
        other = wire.render(longer_reply).chunks
        assert other[0] != body.chunks[0]
        assert (gate.unknown_bytes(other, "reply") < len(body.body) / 2) == (len(other) > 1)
        if len(other) > 1:
            assert gate.find_problem(other, "reply") == ""
            assert gate.find_problem((other[0].replace(b'"m"', b"5", 1), *other[1:]), "reply") != ""
        for place in (2, count - 3):
            text = b'"%d"' % place
            assert text in body.body
            for wrong in (b'""', b'"\\ud800"'):
                changed = tuple(chunk.replace(text, wrong, 1) for chunk in body.chunks)
                assert changed != body.chunks
                assert gate.find_problem(changed, "reply") != ""
                assert gate.find_problem((b"".join(changed),), "reply") != ""
