"""Answers of LiteLLM's proxy 1.106 that differ from Anthropic's (seen on the wire, `tests/peers/litellm_proxy.py`)."""

from __future__ import annotations

import json

import pytest

from codecompanion.adapters.anthropic_messages.usage import read_server_edits
from codecompanion.adapters.base import ServerEdit
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.errors import RequestRejected
from tests.unit.adapters.anthropic_messages.samples import request, wire

TOOLS = {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 4_100, "cleared_tool_uses": 3}
THINKING = {"type": "clear_thinking_20251015", "cleared_input_tokens": 900, "cleared_thinking_turns": 2}
COMPACTED = {"type": "compact_20260112", "summary_input_tokens": 61_000, "summary_output_tokens": 40}
NOT_COMPACTED = {"type": "compact_20260112", "error": "summary_extraction_failed"}


@pytest.mark.parametrize(
    ("applied", "edits"),
    [
        ([TOOLS, THINKING], [(TOOLS["type"], 4_100, 3), (THINKING["type"], 900, 2)]),
        ([COMPACTED, TOOLS], [(TOOLS["type"], 4_100, 3)]),
        ([NOT_COMPACTED], []),
        ([TOOLS | {"cleared_input_tokens": 0, "cleared_tool_uses": 0}], []),
        ([], []),
        ("none", []),
    ],
)
def test_only_cleared_results_are_reported(applied, edits):
    """R-541."""
    assert read_server_edits({"applied_edits": applied}) == tuple(ServerEdit(*edit) for edit in edits)


def whole(*content):
    """Return a reply that is not streamed."""
    usage = {"input_tokens": 9, "output_tokens": 3}
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": "messages", "stop_sequence": None}
    return json.dumps({**fields, "content": content, "stop_reason": "end_turn", "usage": usage}).encode()


def test_an_answer_instead_of_a_compaction_stops_further_requests():
    """R-540: the gateway ignores the key `compaction`."""
    gateway, endpoint = wire(), Endpoint(name="LiteLLM", model=request().model)
    assert gateway.render_compaction(request(), "") is not None
    with pytest.raises(RequestRejected, match="LiteLLM: claude-opus-4-6 answered instead of compacting"):
        gateway.read_compaction(whole({"type": "text", "text": "Hello again."}), endpoint)
    assert gateway.render_compaction(request(), "") is None


def test_a_failed_summary_may_be_requested_again():
    """On failure, Anthropic answers without any content."""
    gateway, endpoint = wire(), Endpoint(name="Anthropic", model=request().model)
    assert gateway.read_compaction(whole(), endpoint).part is None
    assert gateway.render_compaction(request(), "") is not None
