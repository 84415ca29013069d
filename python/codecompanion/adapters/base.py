"""The interface between the session and every adapter, and the events in an adapter's stream.

An adapter renders (pure) and streams (effect). It never sees the log, the policy or the editor. It raises only
`errors.AdapterError`; `asyncio.CancelledError` ends the HTTP request at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from codecompanion.adapters.server_facts import NO_FACTS, ServerFacts
from codecompanion.adapters.speed import NO_SPEED, Speed
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import RequestRejected
from codecompanion.model.messages import CompactionPart, Message, ToolCall, ToolSpec, Usage

if TYPE_CHECKING:
    from codecompanion.adapters.prompt_slots import Loss

StopReason = Literal["stop", "tool_calls", "length", "filtered", "paused", "compacted", "window"]
"""`paused`: the provider expects the same request again with the reply at its end (Anthropic `pause_turn`).
`compacted`: the provider stopped after its compaction. `window`: the reply filled the context window.
"""
CloudClient = Literal["", "bedrock", "bedrock_mantle", "vertex", "azure"]
AdapterKind = Literal["openai", "openai_compatible", "openai_responses", "anthropic", "copilot", "chatgpt", "offline"]


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One provider request. `messages` are the view, system prompt first.

    `max_output_tokens` 0 means the provider's default. `compact_at` is the size in tokens at which the provider
    compacts automatically; 0 means never. If `send_encrypted` is false, the request omits content that the provider
    signed or encrypted and now refuses. `subject` contains the messages that a summary covers, so that the offline
    adapter can summarise without a model; it is never sent.
    """

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    model: str
    max_output_tokens: int = 0
    purpose: Literal["chat", "summary"] = "chat"
    subject: Sequence[Message] = ()
    chat_id: str = ""
    compact_at: int = 0
    send_encrypted: bool = True


class TextDelta(msgspec.Struct, frozen=True):
    """A chunk of the reply's text; `phase` as in `TextPart`."""

    text: str
    phase: str = ""


class ReasoningDelta(msgspec.Struct, frozen=True):
    """A chunk of the model's reasoning; `field` is the wire field that contained it."""

    text: str
    field: str = "reasoning_content"


class ReasoningDone(msgspec.Struct, frozen=True):
    """The reasoning block whose deltas (if any) just arrived is complete; `encrypted` as in `ReasoningPart`."""

    origin: str
    encrypted: str


class CompactionBegun(msgspec.Struct, frozen=True):
    """The provider began to compact the history on its side."""


class CompactionDone(msgspec.Struct, frozen=True):
    """The provider's compaction is complete and replaces everything before it in requests; `part` is None if it failed.

    `usage` is the cost of the pass if the provider reported it separately from the reply.
    """

    part: CompactionPart | None
    usage: Usage | None = None


class ServerEdit(msgspec.Struct, frozen=True):
    """Content that the provider itself removed from this request (Anthropic `applied_edits`)."""

    kind: str
    cleared_tokens: int = 0
    cleared_items: int = 0


class ToolCallStarted(msgspec.Struct, frozen=True):
    """The model began a tool call whose arguments are still arriving; used for the status line and its position."""

    name: str


class PromptRead(msgspec.Struct, frozen=True):
    """The number of prompt tokens that a local server has read so far, of those that are not in its cache.

    Sent only before the reply begins; llama.cpp first reports 0, and then the end of each batch of 2,048 tokens.
    """

    tokens: int
    total: int


class RetryScheduled(msgspec.Struct, frozen=True):
    """An attempt failed; the next starts in `wait_ms`. Only sent before all other events of this request.

    `brief` is the reason in two or three words. `waiting` names the local server that is starting or loading, or is ""
    if an attempt failed. While it is set, nothing has been sent yet, and the event is repeated with every check.
    """

    reason: str
    attempt: int
    wait_ms: int
    brief: str = ""
    waiting: str = ""


class Finished(msgspec.Struct, frozen=True):
    """The end marker arrived: the reply is complete (lesson 39). Always the last event, exactly once.

    `tool_calls` are complete, in reply order, and have non-empty ids that are unique in the reply. `usage` is None if
    the endpoint did not report it; it covers the pass that wrote the reply, so its prompt is the size of the context
    (R-538). `other_passes` are billed too: the provider's own compaction. `read_tokens` is the number of prompt tokens
    that were not in the cache, or None if the endpoint does not report it.
    """

    stop: StopReason
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str = ""
    other_passes: tuple[Usage, ...] = ()
    server_edits: tuple[ServerEdit, ...] = ()
    read_tokens: int | None = None


OnWait = Callable[[RetryScheduled], None]
"""A callback for each check of a local server that is starting or loading, called before the wait for the next check.
"""
StreamEvent = (
    TextDelta
    | ReasoningDelta
    | ReasoningDone
    | ToolCallStarted
    | CompactionBegun
    | CompactionDone
    | PromptRead
    | RetryScheduled
    | Finished
)


class Adapter(Protocol):
    """A provider endpoint with its key and defaults, created once by the registry.

    The default implementations are those of an adapter without a provider; subclasses override the ones they support.
    """

    name: str
    formatted_name: str
    default_model: str
    origin: str
    returns_readable_reasoning: bool
    """Whether reasoning that is neither signed nor encrypted is sent back, and is therefore part of the next prompt."""
    cache_lifetime_s: float
    """Seconds for which the provider caches an unused prompt prefix; 0 means no cache."""

    def compacts_natively(self, model: str) -> bool:
        """Return whether the provider compacts automatically during a request with `compact_at` (R-534)."""
        return False

    def compacts_on_demand(self, model: str) -> bool:
        """Return whether `compact` is supported (R-540)."""
        return False

    def counts_tokens(self, model: str) -> bool:
        """Return whether `count_tokens` is supported."""
        return False

    def limits(self, model: str) -> ModelLimits | None:
        """Return the limits that the endpoint reports for the model, or None if it has reported none."""
        return None

    def facts(self, model: str) -> ServerFacts:
        """Return the facts that a server on the user's machine or network reported about the model and its settings."""
        return NO_FACTS

    def speed(self, model: str) -> Speed:
        """Return the recent speed of a local server with this model."""
        return NO_SPEED

    def prompt_loss(self, model: str, chat_id: str) -> Loss:
        """Return why a local server's cache no longer contains a chat's prompt, or "" if it may still contain it."""
        return ""

    def learn_kept_prompt(self, model: str) -> None:
        """Record that the model's server kept a prompt even after other requests had used all of its slots."""
        return

    async def know_server(self, model: str) -> None:
        """Query a local server about its model if the last report may be out of date; wait only briefly."""
        return

    async def find_model(self, on_wait: OnWait) -> str:
        """Return the model of requests that name none; wait for a local server that is starting or loading.

        Raises:
            AdapterError: no model is configured, and the endpoint lists none.
        """
        return self.default_model

    def forget_tool_refusal(self, model: str) -> None:
        """Send tools to the model again although a local server refused them: the server may have been restarted."""
        return

    def runs_model_itself(self, model: str) -> bool | None:
        """Return whether the endpoint runs the model itself rather than forwarding requests, or None if unknown."""
        return None

    def render(self, request: ChatRequest) -> bytes:
        """Return the request body as sent; pure, apart from a cache of rendered and validated parts."""
        ...

    def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`.

        Raises:
            AdapterError: after yielding the events that arrived before it.
        """
        ...

    async def compact(self, request: ChatRequest, instructions: str, on_wait: OnWait | None = None) -> CompactionDone:
        """Make the provider compact the messages of the request now (R-540).

        With `on_wait`, wait for a local server that is starting or loading.

        Raises:
            AdapterError: the compaction failed; nothing was changed.
        """
        raise RequestRejected(f"{self.name}: this adapter does not compact on demand.")

    async def count_tokens(self, request: ChatRequest, on_wait: OnWait | None = None) -> int:
        """Return the provider's own count of the request's prompt.

        With `on_wait`, wait for a local server that is starting or loading.

        Raises:
            AdapterError: the count is unavailable.
        """
        raise RequestRejected(f"{self.name}: this adapter does not count tokens.")

    async def list_models(self) -> list[str]:
        """Return the model names the endpoint offers, or [] if it has no list of models."""
        ...

    async def require_key(self) -> None:
        """Read the key or login for requests, if one is needed.

        Raises:
            AdapterError: the key or login is missing, so every request would fail before it is sent.
        """
        return

    async def warm_up(self) -> None:
        """Import the transport and open connections ahead of the first request."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        return


class TokenPrices(msgspec.Struct, frozen=True, kw_only=True):
    """The user's prices for an adapter's models, in US dollars per million tokens; None means the price of `input`."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float | None = None
    cache_write: float | None = None

    def usd(self, usage: Usage) -> float:
        """Return the price of a call in US dollars."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        parts = (
            (usage.input_tokens, self.input),
            (usage.cache_read_tokens, read),
            (usage.cache_write_tokens, write),
            (usage.output_tokens, self.output),
        )
        return sum(tokens * price for tokens, price in parts) / 1_000_000


class AdapterSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `adapters.http`, after `extends` has been resolved (see the help file, section adapters).

    `address_key` is the configuration key of the user's URL, relative to the entry.

    `key` says where the key is: `ENV_NAME`, `cmd:…`, `file:…`, or "" for endpoints without a key. `key_header` is the
    header for the bare key; "" means the wire format's own header (`Authorization: Bearer …` or `x-api-key`).
    `limits_path` is the path at which a server reports the context windows of its models; it is queried in the
    background, or not at all if it is "". `included`: a subscription pays for the requests, so they cost no money.
    `local_server`: the entry is for a server that runs models itself (Ollama, llama.cpp, vLLM, LM Studio), or such a
    server was recognised at its URL: requests to this machine cost no money. `start_command` starts it in a shell.
    `transport` selects how requests are sent: over httpx2, or through the official `sdk` of the wire format. With the
    latter, `client` is the cloud whose client signs them ("" means the provider's own API); `region`, `project_id` and
    `aws_profile` are its arguments. `timeout_s` 0 means no limit while the reply is arriving; `idle_timeout_s` 0 means
    that the limit on silence depends on the endpoint's location (`time_limits.py`). `price` replaces list prices.
    """

    name: str
    kind: AdapterKind
    formatted_name: str = ""
    base_url: str = ""
    address_key: str = "url"
    chat_path: str = ""
    models_path: str = ""
    limits_path: str = ""
    key: str = ""
    key_header: str = ""
    model: str = ""
    models: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    parameters: dict[str, Any] = {}
    context_window: int = 0
    max_output_tokens: int = 0
    max_tokens_field: str = "max_completion_tokens"
    include_usage: bool = True
    parallel_tool_calls: bool | None = None
    timeout_s: float = 0.0
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 0.0
    max_retries: int = 3
    included: bool = False
    local_server: bool = False
    start_command: str = ""
    proxy: str = ""
    transport: Literal["httpx2", "sdk"] = "httpx2"
    client: CloudClient = ""
    region: str = ""
    project_id: str = ""
    aws_profile: str = ""
    price: TokenPrices | None = None
    options: dict[str, Any] = {}


SecretReader = Callable[[AdapterSettings], str]
BlobReader = Callable[[str], bytes]
