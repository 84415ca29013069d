"""Adds the reasoning to send back to the rendered message.

There are two kinds. **Readable** reasoning is sent back only if the entry enables it (`RenderOptions.send_reasoning`):
most endpoints ignore it, some refuse it, and DeepSeek and Moonshot refuse requests without it once tools were called
(https://api-docs.deepseek.com/guides/thinking_mode). **Encrypted** reasoning (`reasoning_details`) is sent back only to
the endpoint that created it (R-542). Both are sent only in messages of a tool turn, but in every later request: a
message must not change once it has been sent, or the provider's prompt cache is lost (lesson 22).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from codecompanion.adapters.openai_chat.decode import MISTRAL_THINKING, REASONING_FIELDS
from codecompanion.adapters.openai_chat.reasoning_details import wire_fields
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.model.messages import Message, ReasoningPart

SendReasoning = bool | Literal["tool_turns"]
REQUIRED_FIELD = "reasoning_content"


def add_reasoning(
    fields: dict[str, Any],
    message: Message,
    *,
    readable: bool,
    field: str,
    encrypted_origin: str,
    required: bool,
) -> None:
    """Add the message's reasoning to the fields of the rendered message.

    `field` "" means the field that contained it; `encrypted_origin` "" means that nothing encrypted is sent.
    `required`: a message that calls tools gets the field even if it is empty (because another model wrote its
    reasoning).
    """
    parts = [] if isinstance(message.content, str) else [p for p in message.content if isinstance(p, ReasoningPart)]
    own = [part.encrypted for part in parts if part.encrypted and encrypted_origin and part.origin == encrypted_origin]
    if own:
        fields |= wire_fields([entry for encrypted in own for entry in _entries(encrypted)])
    elif readable:
        for part in parts:
            if not part.origin and part.text:
                _add_readable(fields, part, field or _own_field(part))
    if required and message.tool_calls:
        fields.setdefault(REQUIRED_FIELD, "")


def _own_field(part: ReasoningPart) -> str:
    """Return the field that contained the reasoning, or the usual field if the reasoning was a part of `content`."""
    return REQUIRED_FIELD if part.field == MISTRAL_THINKING else part.field


def _entries(encrypted: str) -> list[msgspec.Raw]:
    """Return the entries as received, or [] if the stored data is damaged."""
    try:
        return typed.read_json(encrypted, type=list[msgspec.Raw])
    except NOT_READABLE:
        return []


def _add_readable(fields: dict[str, Any], part: ReasoningPart, field: str) -> None:
    if field in REASONING_FIELDS:
        fields[field] = fields.get(field, "") + part.text
    elif field == MISTRAL_THINKING:
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
        text = fields["content"]
        others = text if isinstance(text, list) else [{"type": "text", "text": text}] if text else []
        fields["content"] = [thinking, *others]
