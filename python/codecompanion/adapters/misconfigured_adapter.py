"""Replaces an adapter whose entry in the configuration cannot be used, so that no request is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NoReturn

from codecompanion.adapters.base import Adapter, AdapterSettings, ChatRequest, CompactionDone, OnWait, StreamEvent
from codecompanion.errors import ConfigError, NotConfigured


class UnusableAdapter(Adapter):
    """Refuses every request with the entry's error, so that a chat can open and the user can choose another adapter."""

    origin = ""
    returns_readable_reasoning = False
    cache_lifetime_s = 0.0

    def __init__(self, settings: AdapterSettings, problem: ConfigError) -> None:
        self.name = settings.name
        self.formatted_name = settings.formatted_name or settings.name
        self.default_model = settings.model
        self._problem = problem

    def render(self, request: ChatRequest) -> bytes:
        """Refuse, because the wire format is unknown."""
        self._refuse()

    def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Refuse."""
        self._refuse()

    async def compact(self, request: ChatRequest, instructions: str, on_wait: OnWait | None = None) -> CompactionDone:
        """Refuse."""
        self._refuse()

    async def list_models(self) -> list[str]:
        """Refuse, so that the caller reports why the adapter offers no models."""
        self._refuse()

    async def require_key(self) -> None:
        """Refuse."""
        self._refuse()

    async def warm_up(self) -> None:
        """Refuse."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NotConfigured(
            f"{self.name} cannot be used: {self._problem.key} is invalid. Correct it,"
            " or choose another adapter with ga."
        )
