"""A chat over the `openai_responses` wire format, with only the session's views, replies and blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codecompanion.adapters.base import (
    AdapterSettings,
    ChatRequest,
    CompactionDone,
    ReasoningDelta,
    ReasoningDone,
    TextDelta,
    ToolCallStarted,
)
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.context.server_side import replace_by_block
from codecompanion.model.messages import CompactionPart, Message, ToolSpec
from codecompanion.session.chat.streamed_reply import ReplySoFar
from tests.adapters.conftest import KEY, Outcome, collect

TOOLS = (
    ToolSpec("read_file", "Reads.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("grep", "Searches.", {"type": "object", "properties": {"query": {"type": "string"}}}),
)
RULES = Message(id="rules", role="user", content="Rules: always be brief.", tag="rules")
MakeResponses = Callable[..., HttpAdapter]


def open_adapter(url: str, *, key: str = KEY, options: ResponsesOptions | None = None, **entry: Any) -> HttpAdapter:
    """Return an adapter whose waits take no time."""
    settings = AdapterSettings(
        **{
            "name": "test",
            "kind": "openai_responses",
            "base_url": url,
            "key": "TEST_KEY",
            "model": "test-model",
            **entry,
        }
    )

    async def no_sleep(_: float) -> None:
        return None

    blobs = {"i": b"\x89PNG\r\n\x1a\n" + bytes(30), "d": b"%PDF-1.4 /Type /Page"}
    wire = OpenAIResponses(settings, blobs.__getitem__, options)
    return HttpAdapter(settings, wire, read_key=lambda _: key, sleep=no_sleep, random=lambda: 0.5)


class Chat:
    """The view of one chat; `say` sends a message, `answer_calls` sends the results of the last reply's calls."""

    def __init__(self, adapter: HttpAdapter, *first: Message) -> None:
        self.adapter = adapter
        self.messages: list[Message] = list(first)
        self.blocks: list[CompactionPart] = []
        self._number = 0

    async def say(self, words: str, **fields: Any) -> Outcome:
        """Send the user's message."""
        self.messages.append(Message(id=self._new_id("u"), role="user", content=words))
        return await self.send(**fields)

    async def answer_calls(self, words: str = "42", **fields: Any) -> Outcome:
        """Send the results of the last reply's calls."""
        for call in self.messages[-1].tool_calls:
            said = f"{words} of {call.id}"
            self.messages.append(Message(id=self._new_id("r"), role="tool", content=said, tool_call_id=call.id))
        return await self.send(**fields)

    def request(self, **fields: Any) -> ChatRequest:
        """Return a request for the current view."""
        return ChatRequest(
            **{"messages": list(self.messages), "model": "test-model", "chat_id": "c", "tools": TOOLS, **fields}
        )

    async def send(self, **fields: Any) -> Outcome:
        """Send the view and add the reply to it, preceded by its compaction if there is one."""
        outcome = await collect(self.adapter, self.request(**fields))
        reply = ReplySoFar()
        for event in outcome.events:
            match event:
                case TextDelta(text=text, phase=phase):
                    reply.add_text(text, phase)
                case ReasoningDelta(text=text, field=field):
                    reply.add_reasoning(text, field)
                case ReasoningDone():
                    reply.end_reasoning(event)
                case ToolCallStarted():
                    reply.start_call()
                case CompactionDone(part=part) if part is not None:
                    self.compact(part)
        if outcome.error is None:
            reply.finished = outcome.finished
            calls = outcome.finished.tool_calls
            made = Message(id=self._new_id("a"), role="assistant", content=reply.content(), tool_calls=calls)
            self.messages.append(made)
        return outcome

    def compact(self, part: CompactionPart) -> None:
        """Replace messages with the compaction block."""
        self.blocks.append(part)
        block = Message(id=self._new_id("k"), role="assistant")
        self.messages = list(replace_by_block(self.messages, part, lambda _: 1, block).messages)

    def _new_id(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"
