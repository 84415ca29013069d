"""Decides how long a request waits for a local server that is not ready, because it is starting or loading its model.

No part of the request was sent, or the server reported that it did not process the request, so waiting costs nothing. A
request waits as long as a server on this machine reports that it is loading, and a few minutes for a server elsewhere.
It waits a minute for a server that is not listening, which may not be running at all. The user sees the reason for the
wait, and can stop it or disable waiting (`max_retries` 0).
"""

from __future__ import annotations

import math
from urllib.parse import urlsplit

from codecompanion.adapters.base import AdapterSettings, RetryScheduled
from codecompanion.adapters.errors.retry import MAX_RETRY_AFTER_S
from codecompanion.adapters.transport.time_limits import is_loopback, place_of
from codecompanion.errors import AdapterError, NetworkFailed, ServerLoading

START_LIMIT_S = 60.0
"""Seconds to wait for a server that is not listening: `ollama serve` and `llama-server` need seconds, vLLM a minute."""
LOAD_LIMIT_S = 300.0
"""Seconds to wait for a server elsewhere that is loading its model: large weights take minutes to read."""


class ServerWait:
    """Tracks the wait of one request. `look_every_s` is the delay before the next check, as requested by the server."""

    look_every_s = 1.0

    def __init__(self, settings: AdapterSettings) -> None:
        self._name = settings.formatted_name or settings.name
        self._where = urlsplit(settings.base_url).netloc.rpartition("@")[2]
        is_near, may_wait = is_loopback(settings.base_url), settings.max_retries > 0
        self._may_load = may_wait and place_of(settings.base_url) != "public"
        self._may_start = may_wait and settings.local_server and is_near
        self._remedy = f", start it with: {settings.start_command}" if settings.start_command else ""
        self._load_limit_s = math.inf if is_near else LOAD_LIMIT_S
        self._refused_s = self._loading_s = 0.0

    @property
    def has_ended(self) -> bool:
        """Return whether the maximum wait has passed."""
        return self._refused_s >= START_LIMIT_S or self._loading_s >= self._load_limit_s

    def is_worth_waiting(self, error: AdapterError) -> bool:
        """Return whether the server may be ready soon: it is loading, or is not listening yet."""
        if isinstance(error, ServerLoading):
            wished = error.retry_after_s or 0.0
            return self._may_load and self._loading_s < self._load_limit_s and wished <= MAX_RETRY_AFTER_S
        is_away = isinstance(error, NetworkFailed) and error.nobody_listens
        return is_away and self._may_start and self._refused_s < START_LIMIT_S

    def next_look(self, error: AdapterError, attempt: int, left_s: float) -> RetryScheduled | None:
        """Return the event to show until the next check, or None if `left_s` is too short or waiting is pointless."""
        waiting = self.reason(error)
        if not waiting or self.look_every_s > left_s:
            return None
        return RetryScheduled(str(error), attempt, round(self.look_every_s * 1000), error.brief, waiting)

    def reason(self, error: AdapterError) -> str:
        """Return the reason for waiting, for the status line, or "" if the request should not wait."""
        if not self.is_worth_waiting(error):
            return ""
        if isinstance(error, ServerLoading):
            self.look_every_s = max(1.0, error.retry_after_s or 0.0)
            self._loading_s += self.look_every_s
            return f"{self._name} is loading the model"
        self.look_every_s = 1.0
        self._refused_s += self.look_every_s
        return f"no server at {self._where} yet{self._remedy}"
