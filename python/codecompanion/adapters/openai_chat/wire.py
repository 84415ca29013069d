"""Chat Completions as a wire format: OpenAI, and every endpoint that speaks the same (`spec/providers.md`)."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.error_map import Endpoint
from codecompanion.adapters.model_list import read_model_names
from codecompanion.adapters.openai_chat.decode import ChatDecoder
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.adapters.wire import HttpCall, WireFormat

PATH = "/chat/completions"


def new_call_id() -> str:
    """Return an id for a tool call that came without one."""
    return f"call_{secrets.token_hex(12)}"


class OpenAIChat(WireFormat):
    """Chat Completions; it has neither compaction nor a count endpoint."""

    origin_name = "openai_chat"

    def __init__(
        self,
        settings: AdapterSettings,
        read_blob: BlobReader,
        options: RenderOptions | None = None,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._path = settings.chat_path or PATH
        self._renderer = ChatRenderer(settings, options or RenderOptions(), read_blob)
        self._new_id = new_id

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return HttpCall(self._path, self._renderer.render(request))

    def decoder(self, endpoint: Endpoint) -> ChatDecoder:
        """Return a fresh decoder for one reply."""
        return ChatDecoder(endpoint, self._new_id)

    def read_models(self, body: bytes) -> list[str]:
        """Return the model names in a listing."""
        return read_model_names(body)
