"""Adapts the Responses format to the subset that a ChatGPT plan accepts, and reads the plan's list of models.

Following OpenAI's page of limitations, `store` is false and `stream` is true, the input is the whole history without
system items, fields in `NOT_TAKEN` are omitted, and the tools are in an `additional_tools` item at the front of the
input. Only `/models` and `/responses` may be called, so the provider cannot count tokens or compact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codecompanion.adapters.base import AdapterSettings, BlobReader, ChatRequest
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.adapters.openai_responses.options import ResponsesOptions
from codecompanion.adapters.openai_responses.render import ResponsesRenderer, render_tool
from codecompanion.adapters.openai_responses.wire import OpenAIResponses
from codecompanion.adapters.own_options import options_of, refuse_reserved
from codecompanion.adapters.wire_format import HttpCall
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import ConfigError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE

NOT_TAKEN = frozenset(
    [
        *("background", "conversation", "max_output_tokens", "max_tool_calls", "metadata", "moderation", "multi_agent"),
        *("previous_response_id", "prompt", "prompt_cache_retention", "safety_identifier", "temperature"),
        *("top_logprobs", "top_p", "truncation", "user"),
    ]
)
_OWN = frozenset(["model", "input", "instructions", "tools", "store", "stream", "context_management"])


class PlanOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The known keys of `AdapterSettings.options`, as in `ResponsesOptions`. issuer: see `provider.provider_of`."""

    issuer: str = ""
    image_input: bool = True
    document_input: bool = True
    prompt_cache_key: bool = True
    reasoning_summary: Literal["auto", "concise", "detailed", "none"] = "auto"
    send_reasoning: bool = True


class PlanRenderer(ResponsesRenderer):
    """Renders requests without fields that a plan does not accept."""

    def head(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body without its items. The reply limit of a summary is not sent."""
        head = super().head(request)
        return {name: value for name, value in head.items() if name not in NOT_TAKEN and name != "tools"}

    def first_item(self, request: ChatRequest) -> bytes:
        """Return the request's tools as an item, or b"" if there are none."""
        tools = [render_tool(tool) for tool in request.tools]
        return encode({"type": "additional_tools", "role": "developer", "tools": tools}) if tools else b""


class PlanResponses(OpenAIResponses):
    """The Responses format of a plan, whose encrypted content cannot be used by an account with an API key."""

    origin_name = "chatgpt_plan"
    renderer = PlanRenderer

    def __init__(self, settings: AdapterSettings, read_blob: BlobReader, options: PlanOptions) -> None:
        shared = {name: value for name, value in msgspec.structs.asdict(options).items() if name != "issuer"}
        super().__init__(settings, read_blob, typed.convert({**shared, "compaction": False}, ResponsesOptions))
        self.windows: dict[str, ModelLimits] = {}

    def render_count(self, request: ChatRequest) -> HttpCall | None:
        """Return None: a plan cannot count tokens."""
        return None

    def read_models(self, body: bytes) -> list[str]:
        """Return the models that users can choose, in OpenAI's order, and remember their windows."""
        models = _listed(body)
        if models:
            self.windows = {name: limits for name, limits, _ in models if limits.context_window}
        return [name for name, _, is_shown in models if is_shown]

    def limits(self, model: str) -> ModelLimits | None:
        """Return the model's limits from the model list."""
        return self.windows.get(model)


def _listed(body: bytes) -> list[tuple[str, ModelLimits, bool]]:
    """Return (slug, limits, whether to list it) for each model in the response, or [] if it is invalid."""
    try:
        answer = msgspec.json.decode(body)
    except NOT_READABLE:
        return []
    listed = answer.get("models") if isinstance(answer, Mapping) else None
    found = []
    for model in listed if isinstance(listed, list) else ():
        slug = model.get("slug") if isinstance(model, Mapping) else None
        if isinstance(slug, str) and slug:
            window = model.get("context_window")
            is_count = isinstance(window, int) and not isinstance(window, bool) and window > 0
            limits = ModelLimits(window if is_count else 0)
            found.append((slug, limits, model.get("visibility") == "list"))
    return found


def check_entry(settings: AdapterSettings) -> PlanOptions:
    """Return the options of an entry.

    Raises:
        ConfigError: the entry sets a field that a plan does not accept, or that the request itself sets.
    """
    path = f"adapters.http.{settings.name}"
    for name in sorted(settings.parameters):
        if name in NOT_TAKEN:
            raise ConfigError(f"{path}.parameters.{name}", "OpenAI does not accept it for a ChatGPT plan")
    refuse_reserved(settings, _OWN)
    if settings.max_output_tokens:
        raise ConfigError(f"{path}.schema.max_tokens", "OpenAI does not accept a reply limit for a ChatGPT plan")
    return options_of(settings, PlanOptions)
