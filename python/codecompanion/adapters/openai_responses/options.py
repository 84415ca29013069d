"""What a user may set for an endpoint that speaks Responses, and what is known of models by their names."""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

MIN_OUTPUT_TOKENS = 16
"""The smallest `max_output_tokens` the endpoint takes."""
MIN_THRESHOLD = 50_000
"""The smallest `compact_threshold` (R-539, `providers.md`)."""
RESERVED = frozenset(
    [
        *("model", "input", "instructions", "tools", "store", "context_management", "truncation"),
        *("previous_response_id", "conversation", "background", "prompt"),
    ]
)
"""Keys of the body that the request itself sets, or that have an option of their own."""
# Models that do not reason refuse everything about reasoning. All later families reason.
_PLAIN_MODEL = regex(r"(?:^|[/:])(?:gpt-3|gpt-4|chatgpt-4|davinci|babbage)")


class ResponsesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The known keys of `AdapterSettings.options`.

    compaction: let the provider compact (R-534); off, the client's compaction does it. image_input, document_input:
    False = send a note instead. prompt_cache_key: name the chat to the provider's cache. reasoning_summary: the kind of
    summary asked for when `parameters.reasoning` says none; "none" = do not ask. send_reasoning: give encrypted
    reasoning back with the items it belongs to.
    """

    compaction: bool = True
    image_input: bool = True
    document_input: bool = True
    prompt_cache_key: bool = True
    reasoning_summary: Literal["auto", "concise", "detailed", "none"] = "auto"
    send_reasoning: bool = True


def may_reason(model: str) -> bool:
    """Return whether the model may be asked for reasoning; one that does not by its name is never asked."""
    return _PLAIN_MODEL.search(model) is None
