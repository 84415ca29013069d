"""Measures the timings of a reply, for servers that do not report them (`speed.py`)."""

from __future__ import annotations

from collections.abc import Callable

from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.server_facts import ServerFacts
from codecompanion.adapters.speed import Timings
from codecompanion.model.messages import Usage


class ReplyTimer:
    """Times one reply; create it when the request is sent. `facts` show if the server must load the model first."""

    def __init__(self, request: ChatRequest, facts: ServerFacts, clock: Callable[[], float]) -> None:
        self._clock, self._began_at, self._first_at = clock, clock(), 0.0
        self._is_loaded = facts.window > 0 and not facts.state
        self._is_first = all(message.role != "assistant" for message in request.messages)

    def see_output(self) -> None:
        """Record that the first part of the reply has arrived."""
        self._first_at = self._first_at or self._clock()

    def timings(self, usage: Usage | None) -> Timings:
        """Return the timings of the complete reply.

        The number of tokens read is known if the server reported cache hits, or if the prompt is the chat's first.
        """
        if usage is None or not self._first_at:
            return Timings()
        knows_read = self._is_loaded and (self._is_first or usage.cache_read_tokens > 0)
        return Timings(
            read_tokens=usage.input_tokens + usage.cache_write_tokens if knows_read else 0,
            read_s=self._first_at - self._began_at,
            written_tokens=usage.output_tokens - 1,  # the first token belongs to the reading time
            written_s=self._clock() - self._first_at,
        )
