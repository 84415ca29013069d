"""The Responses fake takes what OpenAI took: every recorded request, but for those listed here with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.refusal import Refusal, Refused
from tests.adapters.responses_ledger import Ledger
from tests.adapters.responses_rules import Endpoint, Rules, accept

WIRE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire" / "recorded.jsonl"
pytestmark = pytest.mark.skipif(not WIRE.is_file(), reason=f"the recorded traffic {WIRE} is not on this machine")
ENDPOINTS: dict[str, Endpoint] = {
    "/v1/responses": "responses",
    "/v1/responses/compact": "responses/compact",
    "/v1/responses/input_tokens": "responses/input_tokens",
}
# Part of the source's name → part of the refusal.
STRICTER = {
    "test_background_mode": "'background' is not simulated",
    "test_openai_conversation_id_streaming": "'conversation' is not simulated",
    "test_openai_responses_model_retry": "empty string",
    "test_prompted_output": "empty string",
    "test_deepseek_responses": "",
}

# Compaction, "pro" reasoning and strict tools of gpt-4o bring some hundred tokens of the provider's own.
HIDDEN_PROMPTS = ("reasoning_mode_pro", "test_openai_responses_stream.yaml")


def conversations() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the recorded exchanges of each source, in order."""
    entries = [json.loads(line) for line in WIRE.read_text(encoding="utf-8").split("\n") if line]
    wanted = [entry for entry in entries if entry["path"] in ENDPOINTS and entry["status"] == 200]
    for source, group in groupby(wanted, key=lambda entry: str(entry["source"])):
        yield source, list(group)


def responses_of(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the finished response of an exchange and what its `done` events held."""
    if "event-stream" not in entry["content_type"]:
        answer = entry["response"]
        return [answer if isinstance(answer, dict) else json.loads(answer)]
    events = [json.loads(line[6:]) for line in entry["response"].split("\n") if line.startswith("data: {")]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return [{"output": done}, events[-1]["response"]]


def remember(ledger: Ledger, answers: Iterable[Mapping[str, Any]], items: tuple[Any, ...], model: str) -> None:
    """Enter what was recorded as if the ledger had given it out."""
    for answer in answers:
        output = answer.get("output") or []
        if all("id" in item for item in output):
            ledger.record(output, model, {})
        ledger._sealed |= {item["encrypted_content"]: item["id"] for item in output if item.get("encrypted_content")}
        if answer.get("object") == "response" and answer.get("store") is not False:
            ledger.stored[answer["id"]] = (*items, *output)


def test_what_was_accepted_is_accepted() -> None:
    """A fake that refuses more than its provider, without meaning to, would teach the adapter superstitions."""
    refusals: list[tuple[str, Refusal]] = []
    taken = 0
    for source, entries in conversations():
        ledger = Ledger()
        for entry in entries:
            model = entry["request"].get("model", "")
            rules = Rules(reasons=model.startswith(("gpt-5", "o")), several_compactions=True)
            try:
                items = accept(ENDPOINTS[entry["path"]], entry["request"], rules, ledger).items
                taken += 1
            except Refused as refused:
                items = ()
                refusals.append((source, refused.refusal))
            remember(ledger, responses_of(entry), items, model)
    unexplained = [
        (source, refusal.message)
        for source, refusal in refusals
        if not any(name in source and words in refusal.message for name, words in STRICTER.items())
    ]
    assert unexplained == []
    assert taken > 60


def test_the_count_is_near_the_reported_one() -> None:
    """Of first requests without attachments and built-in tools: within a fifth and three tokens."""
    far = []
    for source, entries in conversations():
        request, (*_, answer) = entries[0]["request"], responses_of(entries[0])
        plain = all(tool["type"] == "function" for tool in request.get("tools") or ())
        if not plain or "input_file" in json.dumps(request) or any(name in source for name in STRICTER):
            continue
        endpoint = ENDPOINTS[entries[0]["path"]]
        reported = (answer.get("usage") or answer)["input_tokens"]
        if endpoint == "responses/compact" or any(name in source for name in HIDDEN_PROMPTS):
            continue
        reasons = request["model"].startswith(("gpt-5", "o"))
        counted = len(accept(endpoint, request, Rules(reasons=reasons), Ledger()).prompt)
        if abs(counted - reported) > 3 + reported / 5:
            far.append((source, counted, reported))
    assert far == []
