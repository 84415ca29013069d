"""The check that the chat templates of Mistral's models make before the first token, in vLLM, llama.cpp and Ollama.

As in `chat_template.jinja` of Devstral Small 2 and Ministral 3: after an optional system message, user messages and
assistant messages without tool calls must alternate, beginning with a user message. A template cannot refuse a request;
it raises an error, which llama.cpp turns into a 500 and vLLM into a 400.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.providers.openai.refusal import Refusal

WORDS = (
    "After the optional system message, conversation roles must alternate user and assistant roles except for tool "
    "calls and results."
)
NO_SYSTEM = "Only user, assistant and tool roles are supported, got system."


def breaks_alternation(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the error that the template raises, or "" if it accepts the messages."""
    rest = messages[1:] if messages and messages[0]["role"] in ("system", "developer") else messages
    if any(message["role"] in ("system", "developer") for message in rest):
        return NO_SYSTEM
    turns = [m["role"] for m in rest if m["role"] == "user" or (m["role"] == "assistant" and not m.get("tool_calls"))]
    by_turns = all((role == "user") == (place % 2 == 0) for place, role in enumerate(turns))
    return "" if by_turns else WORDS


def refusal_of_template(messages: Sequence[Mapping[str, Any]], status: int) -> Refusal | None:
    """Return the refusal of a server with such a template (llama.cpp with `status` 500, vLLM with 400), or None."""
    words = breaks_alternation(messages)
    if not words:
        return None
    if status == 400:
        return Refusal(400, words, "BadRequestError")
    return Refusal(
        status, f"\n------------\nWhile executing CallExpression at line 189\nError: Jinja Exception: {words}"
    )
