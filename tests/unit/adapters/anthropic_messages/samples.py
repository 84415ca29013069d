"""Messages and requests that the tests of the Messages wire format share."""

from __future__ import annotations

from typing import Any

import msgspec

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.model.messages import CompactionPart, Message, ReasoningPart, TextPart, ToolCall, ToolSpec

MODEL = "claude-opus-4-6"
ORIGIN = "anthropic@api.anthropic.com"
READ = ToolSpec("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
PDF = b"%PDF-1.7 text"
UNSIGNED = {"type": "compaction", "content": "what was said", "encrypted_content": "encrypted"}
SIGNED = {"type": "compaction", "content": "what was said", "signature": "sig"}


def wire(options: MessagesOptions | None = None, **settings: Any) -> AnthropicMessages:
    """Return a wire format whose blobs are PDFs if the hash begins with `pdf`, and PNGs otherwise."""
    entry = AdapterSettings(
        **{"name": "t", "kind": "anthropic", "base_url": "https://api.anthropic.com", "model": MODEL, **settings}
    )
    return AnthropicMessages(entry, lambda sha256: PDF if sha256.startswith("pdf") else PNG, options)


def request(*messages: Message, **fields: Any) -> ChatRequest:
    """Return a chat request."""
    return ChatRequest(**{"messages": messages, "model": MODEL, "tools": (READ,), "chat_id": "chat", **fields})


def body(format_: AnthropicMessages, wanted: ChatRequest) -> dict[str, Any]:
    """Return the decoded body of a request."""
    decoded: dict[str, Any] = msgspec.json.decode(format_.render(wanted).body)
    return decoded


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    """Return the messages of a request as the API sees them, without cache breakpoints."""
    options = MessagesOptions(cache=False)
    rendered: list[dict[str, Any]] = body(wire(options), request(*messages, **fields))["messages"]
    return rendered


def user(number: int, text: str = "hi", **fields: Any) -> Message:
    """Return a user message."""
    return Message(id=f"u{number}", role="user", content=text, **fields)


def assistant(number: int, *parts: Any, calls: tuple[str, ...] = ()) -> Message:
    """Return a reply; strings among the parts are text, and `calls` are the ids of calls of `read`."""
    content = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    made = tuple(ToolCall(call, "read", f'{{"path":"{number}"}}') for call in calls)
    return Message(id=f"a{number}", role="assistant", content=content, tool_calls=made)


def result(number: int, call: str, text: str = "contents") -> Message:
    """Return a tool result."""
    return Message(id=f"r{number}", role="tool", content=text, tool_call_id=call)


def thinking(text: str = "hm", origin: str = ORIGIN, **block: Any) -> ReasoningPart:
    """Return encrypted reasoning."""
    sealed = {"type": "thinking", "thinking": text, "signature": f"signed {text}", **block}
    return ReasoningPart(text, "thinking", origin, msgspec.json.encode(sealed).decode())


def compaction(block: dict[str, Any] = UNSIGNED, origin: str = ORIGIN, number: int = 0) -> Message:
    """Return a message with a provider's compaction."""
    part = CompactionPart(origin, msgspec.json.encode([block]).decode(), str(block["content"]))
    return Message(id=f"c{number}", role="assistant", content=(part,), tag="compact_summary")
