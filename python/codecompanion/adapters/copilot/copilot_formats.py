"""Copilot's variants of the three wire formats, with its headers and the model facts in its list.

`X-Initiator` shows what caused the request: `user` for the user's own message, `agent` for the requests that follow
from it (tool results, summaries). Copilot counts only the first kind. An image needs an additional header.
"""

from __future__ import annotations

import msgspec

from codecompanion.adapters.anthropic_messages.options import MessagesOptions
from codecompanion.adapters.anthropic_messages.wire import AnthropicMessages
from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.copilot.offers import Offers
from codecompanion.adapters.openai_chat.render import RenderOptions
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.adapters.wire_format import KEY_TEMPLATE, HttpCall
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.model.messages import ImagePart, Message


def call_headers(request: ChatRequest) -> dict[str, str]:
    """Return the headers that depend on the request."""
    last = request.messages[-1] if request.messages else None
    asks = last is not None and last.role == "user" and request.purpose == "chat"
    headers = {"x-initiator": "user" if asks else "agent"}
    if any(map(_has_image, request.messages)):
        headers["copilot-vision-request"] = "true"
    return headers


def _has_image(message: Message) -> bool:
    return not isinstance(message.content, str) and any(isinstance(part, ImagePart) for part in message.content)


def _with_headers(call: HttpCall, request: ChatRequest) -> HttpCall:
    return msgspec.structs.replace(call, headers={**call.headers, **call_headers(request)})


class CopilotChat(OpenAIChat):
    """Chat Completions; this format lists the models of all three."""

    def __init__(self, settings: AdapterSettings, read_blob: BlobReader, offers: Offers, *, images: bool) -> None:
        options = RenderOptions(one_system_message=True, image_input=images)
        super().__init__(settings, read_blob, options)
        self._offers = offers

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return _with_headers(super().render(request), request)

    def read_models(self, body: bytes) -> list[str]:
        """Return the names of models that can be chosen, and remember the facts about them."""
        return self._offers.take(body)

    def limits(self, model: str) -> ModelLimits | None:
        """Return the model's limits from the model list."""
        offer = self._offers.by_name.get(model)
        return offer.limits if offer is not None and offer.limits.context_window else None


class CopilotResponses(OpenAIResponses):
    """Responses, without compaction by the provider: Copilot documents none."""

    def __init__(self, settings: AdapterSettings, read_blob: BlobReader, *, images: bool) -> None:
        options = ResponsesOptions(compaction=False, prompt_cache_key=False, image_input=images, document_input=False)
        super().__init__(settings, read_blob, options)

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return _with_headers(super().render(request), request)


class CopilotMessages(AnthropicMessages):
    """The Messages API, with Copilot's token instead of a key."""

    key_header = "Authorization"
    key_value = f"Bearer {KEY_TEMPLATE}"

    def __init__(self, settings: AdapterSettings, read_blob: BlobReader, *, images: bool) -> None:
        options = MessagesOptions(compaction=False, image_input=images, document_input=False)
        super().__init__(settings, read_blob, options)

    def render(self, request: ChatRequest) -> HttpCall:
        """Return the request as sent."""
        return _with_headers(super().render(request), request)
