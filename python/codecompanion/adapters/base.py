"""What the session asks of every adapter, and what an adapter streams back.

An adapter renders (pure) and streams (effect). It never sees the log, the policy or the editor. It raises only
`errors.AdapterError`; `asyncio.CancelledError` ends the HTTP request at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Literal, Protocol

import msgspec

from codecompanion.messages import Message, ToolCall, ToolSpec, Usage

StopReason = Literal["stop", "tool_calls", "length", "filtered"]


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One provider request. `messages` are the view, system prompt first.

    `max_output_tokens` 0 = the provider's default. `subject` holds the messages a summary is about, so that the
    offline adapter can summarise without a model; it is never sent.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    model: str
    max_output_tokens: int = 0
    purpose: Literal["chat", "summary"] = "chat"
    subject: Sequence[Message] = ()
    chat_id: str = ""


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of the reply's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """A piece of the model's reasoning; `field` is the wire field it came in."""

    text: str
    field: str = "reasoning_content"


class ToolCallStarted(msgspec.Struct, frozen=True):
    """The model began a tool call (arguments still arriving): for the status line only."""

    name: str


class RetryScheduled(msgspec.Struct, frozen=True):
    """An attempt failed; the next starts in `wait_ms`. Only sent before anything else of this request."""

    reason: str
    attempt: int
    wait_ms: int


class Finished(msgspec.Struct, frozen=True):
    """The end marker arrived: the reply is complete (lesson 39). Always the last event, exactly once.

    `tool_calls` are complete, in the order of the reply, with ids that are never empty nor repeated in the reply.
    `usage` is None when the endpoint did not report it.
    """

    stop: StopReason
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str = ""


StreamEvent = TextDelta | ReasoningDelta | ToolCallStarted | RetryScheduled | Finished


class Adapter(Protocol):
    """A provider endpoint with its key and defaults, made once by the registry."""

    name: str
    formatted_name: str
    default_model: str
    compacts_natively: bool

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent; pure but for a cache of rendered messages."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`.

        Raises:
            AdapterError: with what arrived before already yielded.
        """
        ...

    async def list_models(self) -> list[str]:
        """Return the model names the endpoint offers, [] when it has no such list."""
        ...

    async def warm_up(self) -> None:
        """Import the SDK and open what can be opened, off the path of the first request."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class AdapterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `adapters.http`, after `extends` has been resolved (see the help file, section adapters).

    `key` is where the key is found: `ENV_NAME`, `cmd:…`, `file:…`, or "" for endpoints without one; `secret` is the
    key itself when the configuration gave a function. Neither `repr` nor logs may show `secret`.
    """

    name: str
    kind: Literal["openai", "openai_compatible", "offline"]
    formatted_name: str = ""
    base_url: str = ""
    chat_path: str = "/chat/completions"
    models_path: str = "/models"
    key: str = ""
    model: str = ""
    models: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    parameters: dict[str, Any] = {}
    context_window: int = 0
    max_output_tokens: int = 0
    max_tokens_field: str = "max_completion_tokens"
    include_usage: bool = True
    parallel_tool_calls: bool | None = None
    timeout_s: float = 600.0
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 120.0
    max_retries: int = 3
    proxy: str = ""
    options: dict[str, Any] = {}


SecretReader = Callable[[AdapterSettings], str]
BlobReader = Callable[[str], bytes]
