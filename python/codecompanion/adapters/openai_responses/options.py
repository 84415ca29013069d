"""The user's options for a Responses endpoint, and facts about models derived from their names."""

from __future__ import annotations

from typing import Literal

import msgspec

from codecompanion.formats.regex import regex

MIN_OUTPUT_TOKENS = 16
"""The minimum `max_output_tokens` that the endpoint accepts."""
MIN_THRESHOLD = 50_000
"""The smallest `compact_threshold` (R-539, `providers.md`)."""
RESERVED = frozenset(
    [
        *("model", "input", "instructions", "tools", "store", "context_management", "truncation"),
        *("previous_response_id", "conversation", "background", "prompt"),
    ]
)
"""Keys of the body that the request itself sets or that have their own option."""
# Models without reasoning, which refuse all parameters for it. All later families reason.
_PLAIN_MODEL = regex(r"(?:^|[/:])(?:gpt-3|gpt-4|chatgpt-4|davinci|babbage)")


class ResponsesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The known keys of `AdapterSettings.options`.

    compaction: if True, the provider compacts (R-534); if False, the client does. image_input, document_input: if
    False, send a note instead. prompt_cache_key: send the chat's key for the provider's cache. reasoning_summary: the
    type of summary to request if `parameters.reasoning` has none; "none" requests no summary. send_reasoning: send
    encrypted reasoning back with its items.
    """

    compaction: bool = True
    image_input: bool = True
    document_input: bool = True
    prompt_cache_key: bool = True
    reasoning_summary: Literal["auto", "concise", "detailed", "none"] = "auto"
    send_reasoning: bool = True


def may_reason(model: str) -> bool:
    """Return whether reasoning may be requested from the model, judging by its name."""
    return _PLAIN_MODEL.search(model) is None
