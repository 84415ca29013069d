"""`reasoning_details` joined from stream chunks; the shapes are those of recorded OpenRouter replies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from codecompanion.adapters.base import Finished, ReasoningDelta, ReasoningDone
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.decode import DETAILS_FIELD, ChatDecoder
from codecompanion.adapters.openai_chat.reasoning_details import ReasoningDetails
from codecompanion.adapters.reply_events import ReplyEvents

ORIGIN = "openai_chat@openrouter.ai"
FORMAT = {"format": "openai-responses-v1", "index": 0}
CLAUDE = {"format": "anthropic-claude-v1", "index": 0}


def summary(text: str) -> dict[str, Any]:
    return {"type": "reasoning.summary", "summary": text, **FORMAT}


ENCRYPTED = {"type": "reasoning.encrypted", "data": "gAAAAABp", "id": "rs_1", **FORMAT}


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        ([[summary("**Exec")], [summary("uting**")], [ENCRYPTED]], [summary("**Executing**"), ENCRYPTED]),
        (
            [
                [{"type": "reasoning.text", "text": "I must ", **CLAUDE}],
                [{"type": "reasoning.text", "text": "look.", **CLAUDE}],
                [{"type": "reasoning.text", "signature": "c2ln", **CLAUDE}],
            ],
            [{"type": "reasoning.text", "text": "I must look.", "signature": "c2ln", **CLAUDE}],
        ),
        # Encrypted entries arrive whole; a shared index does not join them.
        ([[ENCRYPTED], [{**ENCRYPTED, "data": "other"}]], [ENCRYPTED, {**ENCRYPTED, "data": "other"}]),
        ([[summary("a"), {**summary("b"), "index": 1}], [summary("c")]], [summary("ac"), {**summary("b"), "index": 1}]),
        ([None, "x", [], [None]], []),
    ],
)
def test_pieces_of_one_entry_are_joined_and_others_stay_separate(pieces: list[Any], whole: list[Any]) -> None:
    """Chunks are joined by type and index, in the order in which the entries began."""
    details = ReasoningDetails(ReplyEvents())
    for piece in pieces:
        details.add(piece)
    assert msgspec.json.decode(details.as_json() or "[]") == whole


def decode(*deltas: dict[str, Any], finish: str = "stop") -> list[Any]:
    decoder = ChatDecoder(Endpoint(name="t"), lambda: "new", ORIGIN)
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    return [*decoder.feed(body), *decoder.finish()]


def test_a_reply_with_details_ends_with_the_encrypted_block() -> None:
    """Reasoning that arrives in two fields is shown once; the complete details are kept for their endpoint."""
    events = decode(
        {"reasoning": "**Hm", "reasoning_details": [summary("**Hm")]},
        {"reasoning": "**", "reasoning_details": [summary("**")]},
        {"content": "Yes.", "reasoning_details": [ENCRYPTED]},
    )
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "**Hm**"
    assert {event.field for event in events if isinstance(event, ReasoningDelta)} == {DETAILS_FIELD}
    sealed = events[-2]
    assert isinstance(sealed, ReasoningDone)
    assert sealed.origin == ORIGIN
    assert msgspec.json.decode(sealed.encrypted) == [summary("**Hm**"), ENCRYPTED]
    assert isinstance(events[-1], Finished)


def test_details_without_a_readable_field_are_shown_too() -> None:
    """Some models send only the `reasoning_details` array."""
    events = decode({"reasoning": None, "reasoning_details": [summary("Thinking")]}, {"content": "x"})
    assert [event.text for event in events if isinstance(event, ReasoningDelta)] == ["Thinking"]


def test_a_refused_reply_keeps_no_details() -> None:
    """They could not be used to continue."""
    events = decode({"content": "no", "reasoning_details": [ENCRYPTED]}, finish="content_filter")
    assert not [event for event in events if isinstance(event, ReasoningDone)]
