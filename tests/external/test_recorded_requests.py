"""Tests that our validators find no problem in recorded requests that Anthropic and OpenAI's Responses accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.providers.loopback.wire_schemas import Kind, schema_problems

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "data" / "wire" / "recorded.jsonl"
pytestmark = pytest.mark.skipif(not RECORDED.is_file(), reason=f"{RECORDED} is not on this machine")
KINDS: dict[str, Kind] = {"messages": "anthropic.messages", "responses": "openai.responses"}


def load() -> list[dict[str, Any]]:
    lines = RECORDED.read_text(encoding="utf-8").split("\n") if RECORDED.is_file() else []
    entries = [json.loads(line) for line in lines if line]
    return [entry for entry in entries if entry["family"] in KINDS and entry["request"] and entry["status"] == 200]


@pytest.mark.parametrize("entry", load(), ids=lambda entry: f"{Path(entry['source']).stem}-{entry['i']}")
def test_an_accepted_request_has_no_problems(entry: dict[str, Any]) -> None:
    """Chat Completions is excluded: its recordings are from compatible endpoints with additional keys."""
    request = json.loads(entry["request"]) if isinstance(entry["request"], str) else entry["request"]
    assert schema_problems(KINDS[entry["family"]], request) == []
