"""Patterns for each type of provider error: codes, and messages for errors whose code is missing or too general.

Based on API references, recorded errors and reports by users of other clients. `error_map.py` decides the consequences;
requests that are too long have their own module (`overflow_words.py`).
"""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

# About content that the provider signed or encrypted, or its required order (Responses).
_ENCRYPTED_CODES = frozenset(
    [
        "invalid_encrypted_content",
        *("compaction_signature_invalid", "compaction_content_mismatch", "compaction_tool_changes_mismatch"),
        *("compaction_block_ambiguous", "compaction_block_misplaced", "compaction_too_many_tool_references"),
    ]
)
_ENCRYPTED = regex(
    r"encrypted content .{0,80}could not be (?:verified|decrypted|parsed)"
    r"|without its required (?:following|'reasoning') item"
    r"|item with id 'rs_"
    # Anthropic, about thinking and compaction blocks.
    r"|invalid `?(?:signature|data)`? in `?(?:redacted_)?thinking`? block"
    r"|thinking`? blocks? .{0,80}cannot be modified"
    r"|expected `?thinking`? or `?redacted_thinking`?, but found"
    r"|`?compaction`? blocks? .{0,80}(?:must be sent back|requires? (?:its|a) )",
    re.IGNORECASE,
)
FILTER = regex(
    r"content[ _](?:filter|policy|management policy)|flagged|safety system|moderation|bio_policy|policy_violation"
    r"|unsafe or sensitive content",
    re.IGNORECASE,
)
# llama.cpp, koboldcpp and TGI while they start; a model that failed to load never becomes ready.
_LOADING = regex(r"\bloading (?:the )?model\b|\bmodel\b.{0,80}\bis (?:still |currently )?loading\b", re.IGNORECASE)
_NOT_LOADED = regex(
    r"error|fail|exception|abort|crash|could ?n[o']t|can ?not|can't|unable|out of memory|not enough", re.IGNORECASE
)
NO_CREDIT = regex(r"insufficient[_ ](?:quota|balance|credit)|exceeded your current quota|billing", re.IGNORECASE)
NO_MODEL = regex(
    r"model[_ ](?:is[_ ])?not[_ ](?:found|exist|supported|loaded)|no such model|no model .{0,60}loaded"
    r"|model .{0,120}(?:not exist|not found|unknown|not available|not loaded)"
    r"|the (?:requested )?model [`'\"]?[^\s`'\"]+[`'\"]? is not supported|not supported model|unsupported[_ ]model"
    r"|invalid[_ ]model|unknown[_ ]model|not a valid model|no endpoints found for|could not find model"
    r"|模型不存在|^\S* ?model: \S+$",
    re.IGNORECASE,
)
OVERLOAD_NAMES = frozenset(
    [
        *("server_error", "internal_server_error", "overloaded_error", "service_unavailable", "timeout"),
        *("server_is_overloaded", "slow_down", "vector_store_timeout"),
        *("api_error", "timeout_error", "compaction_unavailable"),
        # Bedrock, within a reply.
        *(
            "internalServerException",
            "modelStreamErrorException",
            "modelTimeoutException",
            "serviceUnavailableException",
        ),
    ]
)
RATE_NAMES = frozenset(["rate_limit_exceeded", "rate_limit_error", "too_many_requests", "throttlingException"])
_WAIT = regex(r"try again in (\d+(?:\.\d+)?) ?(ms|s)\b", re.IGNORECASE)
KEY_NAMES = frozenset(["invalid_api_key", "authentication_error", "invalid_authentication", "unauthorized"])


def is_encrypted(code: str, quote: str) -> bool:
    """Return whether the endpoint refused an encrypted part of the history."""
    return code in _ENCRYPTED_CODES or _ENCRYPTED.search(quote) is not None


def is_loading(quote: str) -> bool:
    """Return whether a server reports that it is loading its model, without having failed."""
    return _LOADING.search(quote) is not None and _NOT_LOADED.search(quote) is None


def read_wait(quote: str) -> float | None:
    """Return the delay in seconds that the provider requests before a retry, or None."""
    found = _WAIT.search(quote)
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)
