"""Extracts two figures from a provider's error for a request that is too long: its size, and the limit (R-535).

Each pattern matches the wording of some server (`tests/unit/adapters/overflow_wordings.jsonl`); the first match is
used, so narrow patterns come first. An answer without figures yields zeros; the figures improve messages and
truncation, but are never required.
"""

from __future__ import annotations

import re

from codecompanion.formats.regex import regex

_NUMBER = r"(\d[\d,]{0,14})"
_LIMITS = (
    rf"only supports? up to {_NUMBER}",
    rf"(?:maximum supported sequence length is just|window holds only) {_NUMBER}",
    rf"= {_NUMBER} tokens",
    rf"\blimit:? {_NUMBER}, requested",
    rf"while limit is {_NUMBER}",
    rf"current batch size: {_NUMBER}",
    rf"cannot truncate to {_NUMBER}",
    rf"max_prompt_tokens \({_NUMBER}\)",
    rf"max(?:imum)? (?:context length|prompt length|context window|number of tokens allowed|model length"
    rf"|allowed (?:input )?length)(?: is| of)?[ (]+{_NUMBER}",
    rf"context (?:size|window|length)(?: is| of|:)?(?: only)?[ (]+{_NUMBER}",
    rf"(?:token limit|max size): {_NUMBER}",
    rf"max length:? ?{_NUMBER}",
    rf"input length should be \[\d+, {_NUMBER}\]",
    rf"(?:max_seq_len|n_ctx)[: (]+{_NUMBER}",
    rf"(?:>|must be <=|must have less than) {_NUMBER}",
    rf"{_NUMBER} (?:token )?(?:maximum|limit)",
    rf"cannot exceed {_NUMBER}",
    rf"max(?:imum)? (?!input characters)[^.\d]{{0,30}}\bis {_NUMBER}",
    rf"exceeds? (?:(?! by )[^.\d]){{0,40}}?[ (](?!2013\)){_NUMBER}",  # 2013: a MiniMax error code
)
_PROMPTS = (
    rf"(?:token count is|request needed) {_NUMBER}",
    rf"prompt is {_NUMBER} tokens long",
    rf"total of (?:at least )?{_NUMBER} tokens",
    rf"current length is {_NUMBER}",
    rf"\binput \({_NUMBER} tokens\)",
    rf"truncate to \d+, required {_NUMBER}",
    rf"number of input tokens \({_NUMBER}\)",
    rf"{_NUMBER} input tokens",
    rf"\brequested: {_NUMBER}",
    rf"limit \d[\d,]*, requested {_NUMBER}",
    rf"resulted in {_NUMBER} tokens",
    rf"you requested (?:about )?{_NUMBER} tokens",
    rf"prompt contains {_NUMBER}",
    rf"(?:request|prompt) (?:has|contains|is) {_NUMBER} (?:input )?tokens",
    rf"(?:prompt (?:is )?too long|token count|request)(?: of)?:? \(?{_NUMBER}",
    rf"{_NUMBER} \+ \d[\d,]* >",
    rf"[ (]{_NUMBER} tokens\) (?:is longer|exceeds)",
    rf"length(?: of prompt_tokens)?(?: of)?[ (]+{_NUMBER}\)?(?: is longer| is too long| exceeds| must be| \+)",
    rf"tokens \({_NUMBER}\) exceed",
    rf"length {_NUMBER}\)? (?:is|exceeds)",
    rf"total length {_NUMBER}",
    rf"n_keep[: (]+{_NUMBER}",
    rf"the first {_NUMBER} tokens",
    rf"has {_NUMBER} tokens",
    rf"given: {_NUMBER}",
    rf"received {_NUMBER}",
    rf"\({_NUMBER} > \d",
)


# Other units: messages, characters of the body, the rest of a prompt.
_NO_TOKENS = regex(r"but got \d+ items|string value length|maxLength|exceeds dimension size", re.IGNORECASE)


def read_overflow(sentence: str, body: object = None) -> tuple[int, int]:
    """Return (prompt tokens, limit in tokens) from an error, with 0 for missing figures.

    llama.cpp sends both in separate fields.
    """
    if _NO_TOKENS.search(sentence):
        return 0, 0
    inner = body.get("error", body) if isinstance(body, dict) else {}
    if not isinstance(inner, dict):
        inner = {}
    return (
        _count(inner.get("n_prompt_tokens")) or _first(_PROMPTS, sentence),
        _count(inner.get("n_ctx")) or _first(_LIMITS, sentence),
    )


def _first(patterns: tuple[str, ...], sentence: str) -> int:
    for pattern in patterns:
        found = re.search(pattern, sentence, re.IGNORECASE)
        if found:
            return int(found[1].replace(",", "")[:12])
    return 0


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12 else 0
