"""A chat with the fake Messages server, driven through the adapter as the session does it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings, ChatRequest, CompactionDone, Finished
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.context.server_side import replace_by_block
from codecompanion.model.messages import CompactionPart, Message, ToolSpec
from codecompanion.session.chat.streamed_reply import ReplySoFar
from tests.adapters.conftest import Outcome, collect
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.server import AnthropicServer

KEY = "sk-test"
NOW = ToolSpec("now", "Tell the time.", {"type": "object", "properties": {}})
SYSTEM = Message(id="system", role="system", content="You help with code. " * 300)


class ClaudeChat:
    """The view of one chat, the adapter, and the requests received by the server."""

    def __init__(self, adapter: HttpAdapter, server: AnthropicServer, **fields: Any) -> None:
        self.adapter, self.server = adapter, server
        self.view: list[Message] = [SYSTEM]
        self.fields = {"model": SONNET.id, "tools": (NOW,), "chat_id": "chat", "max_output_tokens": 4096, **fields}
        self._numbers = count(1)

    def add(self, role: Any, content: Any, **fields: Any) -> Message:
        """Append a message to the view."""
        self.view.append(Message(id=f"m{next(self._numbers)}", role=role, content=content, cycle=1, **fields))
        return self.view[-1]

    def request(self, **fields: Any) -> ChatRequest:
        """Return the next request."""
        return ChatRequest(**{**self.fields, "messages": tuple(self.view), **fields})

    async def ask(self, text: str = "", **fields: Any) -> Outcome:
        """Send one request, with a new user message if `text` is given, and add the reply to the view."""
        if text:
            self.add("user", text)
        outcome = await collect(self.adapter, self.request(**fields))
        reply = ReplySoFar()
        for event in outcome.events:
            match event.__class__.__name__:
                case "TextDelta":
                    reply.add_text(event.text)  # type: ignore[union-attr]
                case "ReasoningDelta":
                    reply.add_reasoning(event.text, event.field)  # type: ignore[union-attr]
                case "ReasoningDone":
                    reply.end_reasoning(event)  # type: ignore[arg-type]
                case "ToolCallStarted":
                    reply.start_call()
            if isinstance(event, CompactionDone) and event.part is not None:
                self.compact(event.part)
            if isinstance(event, Finished):
                reply.finished = event
        calls = reply.finished.tool_calls if reply.finished else ()
        if reply.content() or calls:
            self.add("assistant", reply.content(), tool_calls=calls)
        for call in calls:
            self.add("tool", f"noon ({call.id})", tool_call_id=call.id)
        return outcome

    def compact(self, part: CompactionPart) -> None:
        """Replace messages with a compaction, as the session does."""
        block = Message(id=f"c{next(self._numbers)}", role="assistant", cycle=1)
        self.view = list(replace_by_block(tuple(self.view), part, lambda _: 1, block).messages)

    @property
    def last_body(self) -> dict[str, Any]:
        """Return the body of the newest request."""
        body: dict[str, Any] = self.server.requests[-1].json
        return body

    @property
    def last_kinds(self) -> list[tuple[str, list[str]]]:
        """Return the role and block types of each message in the newest request."""
        return [(m["role"], [block["type"] for block in m["content"]]) for m in self.last_body["messages"]]


@asynccontextmanager
async def chat_with(
    server: AnthropicServer,
    options: MessagesOptions | None = None,
    fields: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[ClaudeChat]:
    """Run a chat with a server; `fields` are the fields of its requests, `settings` those of the adapter."""

    async def no_sleep(_: float) -> None:
        return None

    entry = AdapterSettings(
        **{"name": "claude", "kind": "anthropic", "base_url": server.url, "key": "K", "model": SONNET.id, **settings}
    )
    numbers = count()
    wire = AnthropicMessages(entry, lambda _: b"", options, lambda: f"new_{next(numbers)}")
    adapter = HttpAdapter(entry, wire, read_key=lambda _: KEY, sleep=no_sleep, random=lambda: 0.5)
    try:
        yield ClaudeChat(adapter, server, **(fields or {}))
    finally:
        await adapter.aclose()
