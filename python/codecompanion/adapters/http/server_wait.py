"""How long one request waits for a server on this machine that is not ready: it starts, or loads its model.

Nothing of the request was sent, or the server said that it did nothing with it, so waiting costs nothing. A server that
says it is loading is waited for as long as it says so; one that does not listen yet for a minute, because it may not be
running at all. The user sees what is waited for and can stop it.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.time_limits import is_loopback, place_of
from codecompanion.errors import AdapterError, NetworkFailed, ServerLoading

START_LIMIT_S = 60.0
"""For a server that does not listen: `ollama serve` and `llama-server` listen within seconds, vLLM after a minute."""


class ServerWait:
    """What one request has waited for so far."""

    look_every_s = 1.0

    def __init__(self, settings: AdapterSettings) -> None:
        self._name = settings.formatted_name or settings.name
        self._where = urlsplit(settings.base_url).netloc.rpartition("@")[2]
        self._may_load = place_of(settings.base_url) != "public"
        self._may_start = settings.local_server and is_loopback(settings.base_url) and settings.max_retries > 0
        self._refused_s = 0.0

    @property
    def has_ended(self) -> bool:
        """Return whether the server was waited for as long as makes sense."""
        return self._refused_s >= START_LIMIT_S

    def reason(self, error: AdapterError) -> str:
        """Return what is waited for because of this error, for the status line; "" = nothing."""
        if isinstance(error, ServerLoading) and self._may_load:
            return f"{self._name} is loading the model"
        is_away = isinstance(error, NetworkFailed) and error.nobody_listens
        if is_away and self._may_start and not self.has_ended:
            self._refused_s += self.look_every_s
            return f"no server at {self._where} yet"
        return ""
