"""Reads the models that Copilot offers an account: their endpoints and limits, and whether their terms are accepted.

The context window is `max_prompt_tokens`, not the larger figure beside it: Copilot refuses longer prompts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from codecompanion.counting.model_windows import ModelLimits
from codecompanion.formats.outside_text import NOT_READABLE

Served = Literal["chat", "responses", "messages"]
# If a model has several endpoints: Responses keeps the reasoning between calls; the Messages API is last, because one
# of the other two serves everything else.
_ENDPOINTS: tuple[tuple[str, Served], ...] = (
    ("/responses", "responses"),
    ("/chat/completions", "chat"),
    ("/v1/messages", "messages"),
)


class Offer(msgspec.Struct, frozen=True):
    """One model. `is_listed`: Copilot shows it in its own lists; `is_enabled`: its terms are accepted."""

    name: str
    served: Served = "chat"
    limits: ModelLimits = ModelLimits()
    is_listed: bool = True
    is_enabled: bool = True
    has_tools: bool = True
    has_vision: bool = True
    is_default: bool = False
    is_fallback: bool = False


class Offers:
    """The models in the last list, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, Offer] = {}

    def take(self, body: bytes) -> list[str]:
        """Read a list of models; return the names that can be chosen, sorted. An invalid list changes nothing."""
        found = read_offers(body)
        if found:
            self.by_name = {offer.name: offer for offer in found}
        return sorted(offer.name for offer in found if offer.is_listed and offer.is_enabled)

    def default(self) -> str:
        """Return Copilot's default model, else its fallback or any other that can be chosen, else ""."""
        can = [offer for offer in self.by_name.values() if offer.is_enabled and (offer.is_listed or offer.is_default)]
        order = sorted(can, key=lambda offer: (not offer.is_default, not offer.is_fallback))
        return order[0].name if order else ""


def read_offers(body: bytes) -> list[Offer]:
    """Return the chat models in a list, in its order, or [] if the list is invalid."""
    try:
        answer = msgspec.json.decode(body)
    except NOT_READABLE:
        return []
    listed = answer.get("data") if isinstance(answer, Mapping) else None
    models = [model for model in listed or () if isinstance(model, Mapping)] if isinstance(listed, list) else []
    return [offer for model in models if (offer := _offer(model)) is not None]


def _offer(model: Mapping[str, Any]) -> Offer | None:
    capabilities = _table(model, "capabilities")
    name = model.get("id")
    if not isinstance(name, str) or not name or capabilities.get("type", "chat") != "chat":
        return None
    limits, supports = _table(capabilities, "limits"), _table(capabilities, "supports")
    endpoints = model.get("supported_endpoints")
    paths = endpoints if isinstance(endpoints, list) and endpoints else ["/chat/completions"]
    window = _count(limits, "max_prompt_tokens") or _count(limits, "max_context_window_tokens")
    return Offer(
        name=name,
        served=next((served for path, served in _ENDPOINTS if path in paths), "chat"),
        limits=ModelLimits(window, _count(limits, "max_output_tokens")),
        is_listed=model.get("model_picker_enabled") is not False,
        is_enabled=_table(model, "policy").get("state", "enabled") == "enabled",
        has_tools=supports.get("tool_calls") is not False,
        has_vision=supports.get("vision") is not False if supports else True,
        is_default=model.get("is_chat_default") is True,
        is_fallback=model.get("is_chat_fallback") is True,
    )


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name)
    return value if isinstance(value, Mapping) else {}


def _count(table: Mapping[str, Any], name: str) -> int:
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
