"""The source of completions: a fill-in-the-middle endpoint, or a chat model if configured (R-261)."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Protocol

from codecompanion import prompts
from codecompanion.adapters.base import Adapter, AdapterSettings, ChatRequest, Finished, TextDelta
from codecompanion.adapters.completion.client import CompletionClient, settings_of
from codecompanion.adapters.completion.endpoints import CodeReply, CodeRequest, endpoint_named
from codecompanion.adapters.registry import AdapterRegistry
from codecompanion.errors import ConfigError, NetworkFailed
from codecompanion.formats.regex import regex
from codecompanion.model.messages import Message
from codecompanion.settings_sections import CompletionSettings

CURSOR = "<cursor/>"
MAX_CHAT_CHARS = 1 << 16
_PLACEHOLDER = regex(r"\$\{(\w+)\}")


class CompletionSource(Protocol):
    """The interface of a completion source.

    For `reads_tokens` etc., see `CompletionEndpoint`; `address` is for display.
    """

    reads_tokens: bool
    takes_suffix: bool
    takes_extra: bool
    is_chat: bool
    address: str

    async def ask(self, request: CodeRequest, path: str, timeout_s: float) -> CodeReply:
        """Return the code for a request; raises `AdapterError`."""
        ...

    async def aclose(self) -> None:
        """Close the connections that the source owns."""
        ...


def make_source(settings: CompletionSettings, adapters: AdapterRegistry, chat_adapter: str) -> CompletionSource:
    """Return the configured source; no connection is opened yet.

    Raises:
        ConfigError: the adapter does not exist.
    """
    if settings.endpoint == "chat":
        return ChatSource(adapters.get(settings.adapter or chat_adapter))
    endpoint = endpoint_named(settings.endpoint)
    base: AdapterSettings | None = adapters.settings(settings.adapter) if settings.adapter else None
    if base is None and not settings.url and endpoint.adapter in adapters.names():
        base = adapters.settings(endpoint.adapter)
    if base is not None and base.kind == "offline":
        raise ConfigError("completion.adapter", f"{base.name!r} has no server", "an adapter with an address")
    connection = settings_of(endpoint, base, base_url=settings.url, key=settings.api_key)
    return EndpointSource(CompletionClient(endpoint, connection, adapters.read_key))


class EndpointSource:
    """A source that asks a fill-in-the-middle endpoint."""

    is_chat = False

    def __init__(self, client: CompletionClient) -> None:
        self._client = client
        self.reads_tokens = client.endpoint.reads_tokens
        self.takes_suffix = client.endpoint.takes_suffix
        self.takes_extra = client.endpoint.takes_extra
        self.address = client.address

    async def ask(self, request: CodeRequest, path: str, timeout_s: float) -> CodeReply:
        """Send the request to the endpoint; return its reply."""
        return await self._client.ask(request, timeout_s)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class ChatSource:
    """A source that asks a chat model, which receives the file with a marker at the cursor."""

    is_chat = True
    reads_tokens = takes_extra = False
    takes_suffix = True

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.address = f"adapter {adapter.name}"

    async def ask(self, request: CodeRequest, path: str, timeout_s: float) -> CodeReply:
        """Ask the chat model for the code at the cursor."""
        adapter = self._adapter
        values = {"path": path, "mark": CURSOR}
        order = _PLACEHOLDER.sub(lambda name: values.get(name[1], name[0]), prompts.load("complete_code"))
        file = f"{request.prompt}{CURSOR}{request.suffix}"
        asked = ChatRequest(
            messages=(Message(id="order", role="system", content=order), Message(id="file", role="user", content=file)),
            model=request.model,
            max_output_tokens=request.max_tokens,
            purpose="summary",
        )
        texts, size = list[str](), 0
        try:
            async with asyncio.timeout(timeout_s):
                async with aclosing(adapter.stream(asked)) as events:
                    async for event in events:
                        match event:
                            case TextDelta(text=text):
                                texts.append(text)
                                size += len(text)
                            case Finished(stop=stop):
                                return CodeReply("".join(texts), stop == "length")
                        if size > MAX_CHAT_CHARS:
                            break
        except TimeoutError:
            raise NetworkFailed(f"completion: {adapter.name} did not answer within {timeout_s:g} s.") from None
        return CodeReply("".join(texts), is_cut=True)

    async def aclose(self) -> None:
        """Do nothing, because the adapter belongs to the chats."""
