"""The content of a reply, as read by the official SDK of its wire format and by our decoder, in a common form.

The SDK gets the bytes as it would get them from a server, through its own client and its own stream accumulator.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import httpx2

from codecompanion.adapters.anthropic_messages.decode import MessagesDecoder
from codecompanion.adapters.base import Finished, StreamEvent, TextDelta
from codecompanion.adapters.errors.error_map import Endpoint
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.adapters.openai_responses.decode import ResponsesDecoder
from codecompanion.adapters.reply_decoder import ReplyDecoder

Family = Literal["chat", "responses", "messages"]
_ASKED: Any = [{"role": "user", "content": "Hi"}]
_ENDPOINT = Endpoint(name="test", base_url="https://api.test/v1")
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content_filter": "filtered",
    "refusal": "filtered",
    "pause_turn": "paused",
    "model_context_window_exceeded": "window",
    "compaction": "compacted",
}


@dataclass(frozen=True)
class Reply:
    """A recorded reply. `sent`: the bytes as they were sent, if the recording differs (otherwise b"")."""

    name: str
    family: Family
    body: bytes
    streams: bool
    sent: bytes = b""


@dataclass(frozen=True)
class Reading:
    """The content of a reply. `calls` are names and decoded arguments; `usage` is input and output tokens."""

    text: str
    calls: tuple[tuple[str, str], ...]
    stop: str
    usage: tuple[int, int] | None


def read_with_sdk(reply: Reply) -> Reading:
    """Return the reading of the official SDK; its exceptions are passed on."""
    kind = "text/event-stream" if reply.streams else "application/json"

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": kind}, content=reply.sent or reply.body)

    with httpx2.Client(transport=httpx2.MockTransport(answer)) as http:
        return _SDKS[reply.family](http, reply.streams)


def read_with_ours(reply: Reply) -> Reading:
    """Return the reading of our decoder; raise the error that the user would see."""
    decoder = _decoder(reply.family)
    if reply.streams:
        events: list[StreamEvent] = [*decoder.feed(reply.body)]
        events += decoder.finish() if decoder.problem is None else []
    else:
        events = decoder.read_json(reply.body)
    if decoder.problem is not None:
        raise decoder.problem
    last = events[-1]
    assert isinstance(last, Finished)
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    calls = tuple((call.name, _arguments(call.arguments)) for call in last.tool_calls)
    usage = (last.usage.prompt_tokens, last.usage.output_tokens) if last.usage else None
    return Reading(text, calls, last.stop, usage)


def _decoder(family: Family) -> ReplyDecoder:
    numbers = count()
    match family:
        case "chat":
            return ChatDecoder(_ENDPOINT, lambda: f"new_{next(numbers)}")
        case "responses":
            return ResponsesDecoder(_ENDPOINT, "openai_responses@api.test")
        case "messages":
            return MessagesDecoder(_ENDPOINT, "anthropic@api.test", lambda: f"new_{next(numbers)}")


def _chat(http: httpx2.Client, streams: bool) -> Reading:
    from openai import OpenAI
    from openai.lib.streaming.chat import ChatCompletionStreamState

    client = OpenAI(api_key="k", base_url="https://api.test/v1", http_client=http, max_retries=0)
    if streams:
        state: Any = ChatCompletionStreamState()
        for chunk in client.chat.completions.create(model="m", messages=_ASKED, stream=True):
            state.handle_chunk(chunk)
        completion: Any = state.current_completion_snapshot
    else:
        completion = client.chat.completions.create(model="m", messages=_ASKED)
    said = [choice.message for choice in completion.choices]  # Copilot's has text in one, calls in another
    calls = [(call.function.name, call.function.arguments) for message in said for call in message.tool_calls or ()]
    text = "".join(message.content or message.refusal or "" for message in said)
    usage = completion.usage
    tokens = usage and (usage.prompt_tokens, usage.completion_tokens)
    return _reading(text, calls, completion.choices[-1].finish_reason, tokens)


def _responses(http: httpx2.Client, streams: bool) -> Reading:
    from openai import OpenAI

    client = OpenAI(api_key="k", base_url="https://api.test/v1", http_client=http, max_retries=0)
    if streams:
        ends = ("response.completed", "response.incomplete")
        events: Any = client.responses.create(model="m", input="Hi", stream=True)
        [response] = [event.response for event in events if event.type in ends]
    else:
        response = client.responses.create(model="m", input="Hi")
    assert response.status in ("completed", "incomplete"), response.status
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    cut = response.incomplete_details.reason if response.incomplete_details else None
    usage = response.usage
    return _reading(response.output_text, calls, cut or "stop", usage and (usage.input_tokens, usage.output_tokens))


def _messages(http: httpx2.Client, streams: bool) -> Reading:
    from anthropic import Anthropic

    client = Anthropic(api_key="k", base_url="https://api.test", http_client=http, max_retries=0)
    asked: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 64, "messages": _ASKED}
    if streams:
        with client.beta.messages.stream(**asked) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.beta.messages.create(**asked)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    usage = message.usage
    read = usage.input_tokens + (usage.cache_read_input_tokens or 0) + (usage.cache_creation_input_tokens or 0)
    return _reading(text, calls, message.stop_reason, (read, usage.output_tokens))


_SDKS: dict[Family, Callable[[httpx2.Client, bool], Reading]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
}


def _reading(text: str, calls: list[tuple[str, str]], stop: str | None, usage: Any) -> Reading:
    named = _STOPS.get(stop or "", stop or "")
    return Reading(
        text,
        tuple((name, _arguments(arguments)) for name, arguments in calls),
        "tool_calls" if calls and named == "stop" else named,
        usage or None,
    )


def _arguments(text: str) -> str:
    """Return the arguments with their JSON in canonical form."""
    return json.dumps(json.loads(text or "{}"), sort_keys=True)
