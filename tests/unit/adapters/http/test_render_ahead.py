"""A request rendered in advance is also validated, so sending it only costs the new messages."""

from __future__ import annotations

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.model.messages import Message


def test_a_request_rendered_in_advance_is_validated() -> None:
    settings = AdapterSettings(name="t", kind="openai", base_url="http://x.test", model="m")
    wire = OpenAIChat(settings, lambda _: b"")
    adapter = HttpAdapter(settings, wire, read_key=lambda _: "k")
    messages = [Message(id=f"m{k}", role="assistant" if k % 2 else "user", content=f"{k} words") for k in range(100)]
    request = ChatRequest(messages=tuple(messages), model="m", chat_id="c")
    body = adapter.render(request)
    more = Message(id="m100", role="user", content="more")
    chunks = wire.render(ChatRequest(messages=(*messages, more), model="m", chat_id="c")).chunks
    assert b"".join(chunks).startswith(body.removesuffix(b"]}"))
    assert adapter._connection.gate.unknown_bytes(chunks, "reply") < len(body) / 5
