"""Builds evidence packets: the exact text covered by a checkpoint (R-468, R-469), with its hash (R-470)."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Sequence

import msgspec

from codecompanion.model.checkpoint import EvidencePacket, Span
from codecompanion.model.messages import Message

MAX_EXCERPT_CHARS = 500
MAX_SPANS = 12
CAP_BYTES = 64 * 1024
_LOOKED_AT = 8
"""Length of the head read for an excerpt, as a multiple of the excerpt's length."""
_FIRST_TO_GO = ("tool_result", "attachment", "assistant_message", "user_message")


def is_meaningful(message: Message) -> bool:
    """Return whether the message is part of the exchange (R-465): from the user or the model, with text."""
    return message.role in ("user", "assistant") and bool(message.text.strip())


def newest_meaningful(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the last 12 meaningful messages, which a packet covers if nothing is removed (R-468)."""
    newest = itertools.islice(filter(is_meaningful, reversed(messages)), MAX_SPANS)
    return tuple(reversed(tuple(newest)))


def build_packet(
    messages: Sequence[Message],
    chat_id: str,
    now_ms: int,
    cap_bytes: int = CAP_BYTES,
    *,
    pause: Callable[[], None] = lambda: None,
) -> EvidencePacket:
    """Return the packet that covers **all** of these messages.

    Texts and excerpts together have at most `cap_bytes` (UTF-8). Tool results are truncated first, starting with the
    oldest, then attachments, model messages, and user messages. The hash covers the complete messages. If the excerpts
    alone exceed the cap, the text is dropped and each excerpt gets an equal share, beyond which no message is read.
    `pause` is called between messages.
    """
    digest, spans, room = hashlib.sha256(), list[Span](), cap_bytes
    share = cap_bytes // max(1, len(messages))
    for message in messages:
        span = _span(message, chat_id, MAX_EXCERPT_CHARS if room >= 0 else min(MAX_EXCERPT_CHARS, share))
        digest.update(_hashed(span, is_first=not spans))
        room -= _size(span.excerpt)
        spans.append(span if room >= 0 else _shorter(span, 0))
        pause()
    kept = _fitted(spans, cap_bytes) if room >= 0 else _excerpts(spans, share)
    return EvidencePacket(generated_at=now_ms, span_hash=digest.hexdigest(), span_count=len(spans), spans=kept)


def _hashed(span: Span, *, is_first: bool) -> bytes:
    """Return the part of a span in the hash: `objectId:timestamp:type:text`, joined by `|` (R-468, R-470)."""
    one = f"{'' if is_first else '|'}{span.object_id}:{span.timestamp}:{span.type}:{span.text}"
    return one.encode("utf-8", "surrogatepass")


def exact_text(message: Message) -> str:
    """Return the content of the message: its text, then its tool calls as JSON lines."""
    calls = [json.dumps({"tool_call": call.name, "arguments": call.arguments}) for call in message.tool_calls]
    return "\n".join([message.text, *calls] if message.text else calls)


def _span(message: Message, chat_id: str, excerpt_chars: int) -> Span:
    text = exact_text(message)
    return Span(
        object_id=message.id,
        task_id=chat_id,
        timestamp=round(message.ts * 1000),
        type=_type(message),
        excerpt=_excerpt(text, excerpt_chars),
        text=text,
        end=len(text),
    )


def _excerpt(text: str, chars: int) -> str:
    """Return the text truncated and on one line; only the head of long text is read, if that suffices."""
    head = " ".join(text[: _LOOKED_AT * chars].split())[:chars]
    is_enough = len(head) == chars or len(text) <= _LOOKED_AT * chars
    return head if is_enough else " ".join(text.split())[:chars]


def _type(message: Message) -> str:
    if message.role == "tool":
        return "tool_result"
    if message.role == "assistant":
        return "assistant_message"
    return "attachment" if message.role == "system" or message.tag else "user_message"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _fitted(whole: Sequence[Span], cap_bytes: int) -> tuple[Span, ...]:
    spans = list(whole)
    over = sum(_size(span.text) + _size(span.excerpt) for span in spans) - cap_bytes
    for kind in _FIRST_TO_GO:
        for index, span in enumerate(spans):
            if over <= 0:
                return tuple(spans)
            if span.type == kind and span.text:
                spans[index] = _shorter(span, _size(span.text) - over)
                over -= _size(span.text) - _size(spans[index].text)
    return tuple(spans)


def _excerpts(spans: Sequence[Span], share: int) -> tuple[Span, ...]:
    """Return the spans without text, each excerpt cut to its share."""
    return tuple(msgspec.structs.replace(_shorter(span, 0), excerpt=_head(span.excerpt, share)) for span in spans)


def _shorter(span: Span, keep_bytes: int) -> Span:
    if not span.text:
        return span
    text = _head(span.text, max(0, keep_bytes))
    return msgspec.structs.replace(span, text=text, end=len(text), truncated=True)


def _head(text: str, limit_bytes: int) -> str:
    """Return the longest head of the text within `limit_bytes` bytes, in whole characters."""
    head = text[:limit_bytes]
    while _size(head) > limit_bytes:
        head = head[: len(head) - max(1, (_size(head) - limit_bytes) // 4)]
    return head
