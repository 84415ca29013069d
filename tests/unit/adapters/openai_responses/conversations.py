"""Views to render, written and generated, with encrypted reasoning, call marks, files and compactions."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.model.messages import (
    CallMark,
    CompactionPart,
    DocumentPart,
    ImagePart,
    Message,
    Part,
    ReasoningPart,
    TextPart,
    ToolCall,
    ToolSpec,
)

BASE_URL = "https://api.openai.com/v1"
ORIGIN = "openai_responses@api.openai.com"
READ = ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}})


def wire(
    options: ResponsesOptions | None = None, read_blob: BlobReader = lambda _: b"%PDF", **entry: Any
) -> OpenAIResponses:
    """Return the wire format of an entry for OpenAI itself."""
    settings = AdapterSettings(**{"name": "t", "kind": "openai_responses", "base_url": BASE_URL, **entry})
    return OpenAIResponses(settings, read_blob, options)


def request(*messages: Message, **more: Any) -> ChatRequest:
    """Return a chat request with these messages."""
    return ChatRequest(**{"messages": messages, "model": "gpt-5", "tools": (READ,), "chat_id": "c1", **more})


def body_of(asked: ChatRequest, made: OpenAIResponses | None = None) -> dict[str, Any]:
    """Return the decoded body."""
    body: dict[str, Any] = json.loads((made or wire()).render(asked).body)
    return body


def items_of(*messages: Message, made: OpenAIResponses | None = None, **more: Any) -> list[dict[str, Any]]:
    """Return the items rendered from the messages."""
    items: list[dict[str, Any]] = body_of(request(*messages, **more), made)["input"]
    return items


def system(text: str = "be good", number: int = 0) -> Message:
    """Return a system message."""
    return Message(id=f"s{number}", role="system", content=text)


def user(number: int, text: str = "hi", **more: Any) -> Message:
    """Return a user message."""
    return Message(id=f"u{number}", role="user", content=text, **more)


def result(call_id: str, text: str = "out") -> Message:
    """Return the result of a call."""
    return Message(id=f"r-{call_id}", role="tool", content=text, tool_call_id=call_id)


def reasoning(name: str, origin: str = ORIGIN) -> ReasoningPart:
    """Return an encrypted block."""
    item = {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": f"sealed-{name}"}
    return ReasoningPart("thought", origin=origin, encrypted=json.dumps(item))


def reply(number: int, *parts: Part | str, calls: tuple[str, ...] = (), **more: Any) -> Message:
    """Return a reply whose calls are placed at its call marks."""
    content = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    made = tuple(ToolCall(call_id, "read_file", '{"path": "a"}') for call_id in calls)
    return Message(id=f"a{number}", role="assistant", content=content, tool_calls=made, **more)


def compaction(name: str, *, kept: tuple[str, ...] = (), origin: str = ORIGIN, text: str = "") -> Message:
    """Return the message that replaces the messages compacted by the provider."""
    items: list[dict[str, Any]] = [
        {
            "type": "message",
            "id": f"msg_{name}{k}",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": words}],
        }
        for k, words in enumerate(kept)
    ]
    items.append({"type": "compaction", "id": f"cmp_{name}", "encrypted_content": f"packed-{name}"})
    part = CompactionPart(origin, json.dumps(items), text=text)
    return Message(id=f"k{name}", role="assistant", content=(part,), tag="compact_summary")


def agent_loop() -> list[Message]:
    """Return a chat with interleaved reasoning and calls, files, and everything else that can be rendered."""
    return [
        system(),
        Message(id="rules", role="user", content="rules: be brief", tag="rules"),
        Message(
            id="u1",
            role="user",
            content=(TextPart("look"), ImagePart(sha256="i"), DocumentPart(sha256="d", path="doc/a.pdf")),
        ),
        reply(1, reasoning("a"), CallMark(0), reasoning("b"), CallMark(1), calls=("call_1", "call_2")),
        result("call_1"),
        result("call_2"),
        reply(2, reasoning("c"), TextPart("I see.", "commentary"), calls=("call_3",)),
        result("call_3", ""),
        reply(3, reasoning("d"), TextPart("Done.", "final_answer")),
        system("later", 1),
        user(2, "thanks"),
    ]


_words = st.sampled_from(["hello", "ok ☃", "x" * 40])


@st.composite
def chats(draw: st.DrawFn) -> list[Message]:
    """Draw a valid view: turns with loops, optionally a compaction first, optionally odd ids."""
    messages: list[Message] = [system(draw(_words))] if draw(st.booleans()) else []
    if draw(st.booleans()):
        messages.append(Message(id="rules", role="user", content="rules", tag="rules"))
    if draw(st.booleans()):
        messages.append(compaction("z", kept=tuple(draw(st.lists(_words, max_size=2)))))
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        number += 1
        messages.append(user(number, draw(_words)))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            count = draw(st.integers(1, 3))
            long = draw(st.booleans())
            ids = tuple(f"call_{number}_{k}" + "x" * (70 if long else 0) for k in range(count))
            parts: list[Part] = []
            for k in range(count):
                if draw(st.booleans()):
                    parts.append(reasoning(f"{number}{k}"))
                if draw(st.booleans()):
                    parts.append(TextPart(draw(_words), draw(st.sampled_from(["", "commentary"]))))
                parts.append(CallMark(k))
            messages.append(reply(number, *parts, calls=ids))
            messages += [result(call_id, draw(st.sampled_from(["", "out"]))) for call_id in ids]
        number += 1
        if draw(st.booleans()):
            messages.append(reply(number, reasoning(f"e{number}"), draw(_words)))
    if messages[-1].role == "assistant":
        messages.append(user(number + 1))
    return messages
