"""The configuration of a chat with a peer: the three wire formats, each directly and through the gateway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import Nvim
from real_chat import RealChat, start_chat


@dataclass(frozen=True)
class Wire:
    """A wire format: the adapter that speaks it, and the gateway's model for it."""

    adapter: str
    gateway_model: str


CHAT = Wire("openai_compatible", "chat")
RESPONSES = Wire("openai_responses", "chat")
MESSAGES = Wire("anthropic", "messages")
WIRES = (CHAT, RESPONSES, MESSAGES)


@dataclass(frozen=True)
class Endpoint:
    """A URL with a wire format."""

    url: str
    wire: Wire
    model: str

    def start_chat(
        self,
        nvim_factory: Callable[..., Nvim],
        root: Path,
        *,
        adapter: dict[str, Any] | None = None,
        **more: Any,
    ) -> RealChat:
        """Start a Neovim whose chat uses this endpoint; `adapter` overrides fields of its entry."""
        entry = {"extends": self.wire.adapter, "schema": {"model": {"default": self.model}}} | (adapter or {})
        options = {"adapters": {"http": {"loop": entry}}} | more.pop("options", {})
        return start_chat(nvim_factory, root, self, options=options, **more)
