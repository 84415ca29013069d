"""Recorded Responses requests: no false alarm, even when we render the same conversations; mutations are caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_responses.gate import Endpoint, check_body
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.model.messages import Message, Part, ReasoningPart, TextPart, ToolCall, ToolSpec
from tests.adapters.responses_mutations import ledger_of, mutants, refusal_of
from tests.providers.loopback.wire_schemas import schema_problems

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire"
pytestmark = pytest.mark.skipif(not WIRE.is_dir(), reason=f"the recorded traffic in {WIRE} is not on this machine")
ORIGIN = "openai_responses@api.openai.com"


def load() -> list[dict[str, Any]]:
    path = WIRE / "recorded.jsonl"
    lines = path.read_text(encoding="utf-8").split("\n") if path.is_file() else []
    entries = [json.loads(line) for line in lines if line]
    return [e for e in entries if e["family"] == "responses" and isinstance(e["request"], dict)]


RECORDED = load()
VALID = [entry for entry in RECORDED if entry["status"] == 200]
LISTED = [entry for entry in VALID if isinstance(entry["request"].get("input"), list) and entry["request"]["input"]]
TYPES = (None, "message", "reasoning", "function_call", "function_call_output")
OURS = [entry for entry in LISTED if all(item.get("type") in TYPES for item in entry["request"]["input"])]


def name_of(entry: dict[str, Any]) -> str:
    return f"{Path(entry['source']).stem}-{entry['i']}"


def endpoint_of(entry: dict[str, Any]) -> Endpoint:
    last = entry["path"].rpartition("/")[2]
    return "compact" if last == "compact" else "count" if last == "input_tokens" else "responses"


def test_the_recordings_are_really_checked() -> None:
    """A selection that finds nothing would make the tests below empty."""
    assert len(VALID) >= 75
    assert len(OURS) >= 50


@pytest.mark.parametrize("entry", VALID, ids=name_of)
def test_a_recorded_request_that_was_accepted_has_no_problem(entry: dict[str, Any]) -> None:
    """A false alarm would repair, or refuse, a valid request."""
    assert check_body(entry["request"], endpoint_of(entry)) == []


@pytest.mark.parametrize("entry", OURS, ids=name_of)
def test_our_rendering_of_a_recorded_conversation_is_valid(entry: dict[str, Any]) -> None:
    """Our check, the SDK's types and the fake provider accept it; it contains all texts, calls and seals."""
    messages, tools = read_messages(entry["request"])
    settings = AdapterSettings(name="t", kind="openai_responses", base_url="https://api.openai.com/v1")
    wire = OpenAIResponses(settings, lambda _: b"")
    body = json.loads(wire.render(ChatRequest(messages=messages, tools=tools, model="gpt-5", chat_id="c")).body)
    assert check_body(body) == []
    assert schema_problems("openai.responses", body) == []
    assert refusal_of(body, ledger_of(body)) is None
    sent = json.dumps(body["input"])
    for message in messages:
        for call in message.tool_calls:
            assert json.dumps(call.id) in sent
        for text in texts_of(message):
            assert json.dumps(text)[1:-1] in sent


def test_mutants_of_recorded_requests_are_caught() -> None:
    """The check catches them as it does for our own bodies (`tests/adapters/test_responses_mutations.py`)."""
    missed: list[str] = []
    refused = 0
    for entry in OURS:
        body = entry["request"]
        ledger = ledger_of(body)
        if endpoint_of(entry) != "responses" or refusal_of(body, ledger) is not None:
            continue
        for name, mutant in mutants(body):
            why = refusal_of(mutant, ledger)
            if why is not None:
                refused += 1
                if not check_body(mutant):
                    missed.append(f"{name_of(entry)}: {name}: {why}")
    assert refused > 5000
    assert len(missed) <= 0.03 * refused, "\n".join(missed)


def read_messages(request: dict[str, Any]) -> tuple[list[Message], list[ToolSpec]]:
    """Return the conversation in a request as our messages, as in the session."""
    messages: list[Message] = []
    if request.get("instructions"):
        messages.append(Message(id="s", role="system", content=request["instructions"]))
    parts: list[Part] = []
    calls: list[ToolCall] = []

    def close() -> None:
        if parts or calls:
            messages.append(
                Message(id=f"a{len(messages)}", role="assistant", content=tuple(parts), tool_calls=tuple(calls))
            )
            parts.clear()
            calls.clear()

    for number, item in enumerate(request["input"]):
        match item.get("type", "message"):
            case "reasoning":
                encrypted = json.dumps(item) if item.get("encrypted_content") else ""
                parts.append(ReasoningPart("", origin=ORIGIN if encrypted else "", encrypted=encrypted))
            case "function_call":
                calls.append(ToolCall(item["call_id"], item["name"], item["arguments"]))
            case "function_call_output":
                close()
                text = item["output"] if isinstance(item["output"], str) else "file"
                messages.append(Message(id=f"t{number}", role="tool", content=text, tool_call_id=item["call_id"]))
            case _ if item["role"] == "assistant":
                parts.append(TextPart(text_of(item["content"]), item.get("phase") or ""))
            case _:
                close()
                role = "user" if item["role"] == "user" else "system"
                messages.append(Message(id=f"u{number}", role=role, content=text_of(item["content"])))  # type: ignore[arg-type]
    close()
    tools = [
        ToolSpec(tool["name"], tool.get("description") or "", tool["parameters"])
        for tool in request.get("tools") or ()
        if tool["type"] == "function"
    ]
    return messages, tools


def texts_of(message: Message) -> list[str]:
    """Return the texts of a message that are sent as items."""
    if message.role == "system":
        return []
    if isinstance(message.content, str):
        return [message.content]
    return [part.text for part in message.content if isinstance(part, TextPart)]


def text_of(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text") or "[file]" for part in content)
