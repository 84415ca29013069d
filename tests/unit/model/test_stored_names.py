"""The log keeps its field names, whatever the code calls them: earlier databases have them (R-003, R-542)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.model.messages import CompactionPart, ReasoningPart, ToolCall


@pytest.mark.parametrize(
    "value",
    [
        ReasoningPart("", origin="a", encrypted="[1]"),
        CompactionPart(origin="a", encrypted="[1]"),
        ToolCall("c", "f", origin="a", encrypted="[1]"),
    ],
)
def test_encrypted_provider_state_is_stored_under_its_older_name(value: msgspec.Struct) -> None:
    stored = msgspec.json.decode(msgspec.json.encode(value))
    assert stored["opaque"] == "[1]"
    assert "encrypted" not in stored
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value
