"""The two figures in a provider's sentence about a request that is too long: what was sent, and what fits (R-535).

Each pattern is a sentence seen from OpenAI, Anthropic, Gemini, Mistral, xAI, vLLM, llama.cpp, OpenRouter or Copilot. A
sentence without figures gives zeros; they are used to say more and to cut more precisely, never needed.
"""

from __future__ import annotations

import re

_NUMBER = r"(\d[\d,]*)"
_LIMITS = (
    rf"(?:maximum|max)(?:imum)? (?:context length|prompt length|context window|number of tokens allowed)"
    rf"(?: is| of)?[ (]+{_NUMBER}",
    rf"context (?:size|window|length) (?:is |of )?\(?{_NUMBER} tokens",
    rf"> {_NUMBER}",
    rf"{_NUMBER} (?:token )?(?:maximum|limit)",
    rf"exceeds the (?:limit|maximum) of {_NUMBER}",
)
_PROMPTS = (
    rf"resulted in {_NUMBER} tokens",
    rf"you requested (?:about )?{_NUMBER} tokens",
    rf"(?:request|prompt) (?:has|contains) {_NUMBER} (?:input )?tokens",
    rf"(?:prompt is too long|token count|request)(?: of)?:? \(?{_NUMBER}",
    rf"(?:token count of|prompt contains) {_NUMBER}",
    rf"{_NUMBER} \+ \d[\d,]* >",
)


def read_overflow(sentence: str) -> tuple[int, int]:
    """Return (prompt tokens, limit in tokens) as the sentence tells them, 0 for what it does not tell."""
    return _first(_PROMPTS, sentence), _first(_LIMITS, sentence)


def _first(patterns: tuple[str, ...], sentence: str) -> int:
    for pattern in patterns:
        found = re.search(pattern, sentence, re.IGNORECASE)
        if found:
            return int(found[1].replace(",", ""))
    return 0
