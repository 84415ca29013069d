"""Facts learned from an endpoint's error messages, and messages that teach nothing."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.adapters.openai_chat.refusals import NOTHING_LEARNED, Learned, learn

MISTRAL = (
    '{"detail": [{"type": "extra_forbidden", "loc": ["body", "%s"], "msg": "Extra inputs are not permitted",'
    ' "input": 32000}]}'
)


@pytest.mark.parametrize(
    ("said", "limit_field", "learned"),
    [
        ("Unrecognized request argument supplied: stream_options", "", Learned(stream_options=False)),
        (MISTRAL % "stream_options", "", Learned(stream_options=False)),
        ("Unknown parameter: 'parallel_tool_calls'.", "", Learned(parallel_tool_calls=False)),
        (
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            "max_tokens",
            Learned(limit_field="max_completion_tokens"),
        ),
        (MISTRAL % "max_completion_tokens", "max_completion_tokens", Learned(limit_field="max_tokens")),
        (
            'The "reasoning_content" in the thinking mode must be passed back to the API.',
            "",
            Learned(reasoning="required"),
        ),
        (
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            "",
            Learned(reasoning="required"),
        ),
        ("property 'messages.1.assistant.reasoning' is unsupported", "", Learned(reasoning="refused")),
        (
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work.",
            "",
            Learned(sign_calls=True),
        ),
        (
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got"
            " a string with length 43 instead.",
            "",
            Learned(call_ids="short"),
        ),
        (
            "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
            "",
            Learned(call_ids="letters"),
        ),
        ("Unexpected role 'user' after role 'tool'", "", Learned(reply_to_tools=True)),
        (
            "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
            "",
            Learned(alternate=True),
        ),
        ("deepseek-reasoner does not support successive user or assistant messages", "", Learned(alternate=True)),
    ],
)
def test_a_refusal_teaches_which_field_to_drop_or_add(said: str, limit_field: str, learned: Learned) -> None:
    """Each message is a real one; a repetition teaches nothing more."""
    assert learn(NOTHING_LEARNED, said, limit_field=limit_field) == learned
    again = learn(learned, said, limit_field="" if learned.limit_field is None else limit_field)
    if learned.limit_field is None:
        assert again is None


def test_an_endpoint_that_accepts_neither_name_gets_no_limit() -> None:
    """The other name is tried first."""
    swapped = Learned(limit_field="max_tokens")
    assert learn(swapped, "Unknown parameter: 'max_tokens'.", limit_field="max_tokens") == Learned(limit_field="")
    assert learn(Learned(limit_field=""), "Unknown parameter: 'max_tokens'.", limit_field="") is None


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens.",
        "Invalid schema for function 'x': schema must be a JSON Schema of type 'object'.",
        "Unknown parameter: 'temperatur'.",
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        "reasoning_effort is not supported by this model",
    ],
)
def test_a_different_refusal_teaches_nothing(said: str) -> None:
    """The user must read it: sending again would only fail again."""
    assert learn(NOTHING_LEARNED, said, limit_field="max_tokens") is None


def test_earlier_facts_are_kept() -> None:
    """An endpoint may lack several features."""
    first = learn(NOTHING_LEARNED, "unknown field stream_options", limit_field="")
    assert first is not None
    second = learn(first, "unknown field parallel_tool_calls", limit_field="")
    assert second == msgspec.structs.replace(first, parallel_tool_calls=False)
