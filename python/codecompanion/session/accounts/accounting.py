"""Logs a chat's provider requests: their retries, their end, and their token counts by part (R-356…R-360).

`reports` builds `/cost` and `/trace` from these entries; no other data is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import msgspec

from codecompanion.adapters.base import ChatRequest, RetryScheduled
from codecompanion.context.shaping.request_parts import request_mix
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError, StoreError
from codecompanion.model.fold import Fold
from codecompanion.model.history import RequestEnded, RequestSent, Retry
from codecompanion.model.messages import Message, ToolSpec
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.waiting import to_the_end

_log = logging.getLogger(__name__)


class RequestRecord:
    """A running provider request, whose log entries are linked by `id`."""

    def __init__(self, id: str, log: ChatLog, clock: Callable[[], float]) -> None:
        self.id, self._log, self._clock = id, log, clock
        self._began_at = clock()
        self._retries: list[Retry] = []

    def take_retry(self, event: RetryScheduled) -> None:
        """Record a failed attempt, unless the request is only waiting for a server to start."""
        if not event.waiting:
            self._retries.append(Retry(event.reason, event.wait_ms))

    def ended(self, result: str, error: str = "") -> RequestEnded:
        """Return the log entry for the end of the request; `result` is the stop reason, `failed` or `stopped`."""
        return RequestEnded(
            request_id=self.id,
            result=result,
            duration_ms=max(0, round((self._clock() - self._began_at) * 1000)),
            error=error,
            retries=tuple(self._retries),
        )

    async def begin_summary(
        self, adapter: str, request: ChatRequest, asked: str, estimated_tokens: int, put_blob: Callable[[bytes], str]
    ) -> None:
        """Log a summary request with its text and a description of its purpose (R-328)."""
        text = request.messages[-1].text.encode("utf-8", "surrogatepass")
        try:
            prompt = await asyncio.to_thread(put_blob, text)
        except StoreError as error:
            prompt = ""
            _log.warning("the text of a request for a summary could not be stored: %s", error)
        sent = RequestSent(
            turn_id="",
            adapter=adapter,
            model=request.model,
            messages=len(request.messages),
            estimated_tokens=estimated_tokens,
            purpose="summary",
            asked=asked,
            request_id=self.id,
            prompt=prompt,
            max_output_tokens=request.max_output_tokens,
            in_place=bool(request.chat_id),  # a transcript has no chat id
        )
        await self._log.write(sent)

    async def fail(self, error: BaseException) -> None:
        """Log that the request got no reply; a storage failure does not replace the original error."""
        stopped = isinstance(error, asyncio.CancelledError)
        # Only our own errors are known to contain no API key (lesson 44).
        reason = "" if stopped else str(error) if isinstance(error, CodeCompanionError) else type(error).__name__
        try:
            await to_the_end(self._log.write(self.ended("stopped" if stopped else "failed", reason)))
        except StoreError as problem:
            _log.warning("the end of a request could not be logged: %s", problem)


class RequestParts:
    """Counts the tokens of requests by part; parts shared with the previous request are not counted again."""

    def __init__(self, counter: MessageCounter) -> None:
        self._counter = counter
        self._system: tuple[Message | None, int] = (None, 0)
        self._tools: tuple[Sequence[ToolSpec] | None, int] = (None, 0)
        self._mix = Fold[Message, dict[str, int]]({}, self._add)

    def described(self, request: ChatRequest, sent: RequestSent) -> RequestSent:
        """Return the entry with the request's token counts by part (R-357)."""
        return msgspec.structs.replace(sent, mix=self.mix(request))

    def mix(self, request: ChatRequest) -> dict[str, int]:
        """Return the token counts of the request by part; parts of the previous request are not counted again."""
        if request.tools is not self._tools[0]:
            self._tools = request.tools, self._counter.tools(request.tools)
        return {**self._mix.of(request.messages), "tools": self._tools[1]}

    def _add(self, mix: dict[str, int], messages: tuple[Message, ...]) -> dict[str, int]:
        return {part: tokens + mix.get(part, 0) for part, tokens in request_mix(messages, 0, self._count).items()}

    def _count(self, message: Message) -> int:
        if message.role != "system":
            return self._counter.message(message)
        if message is not self._system[0]:
            self._system = message, self._counter.message(message)
        return self._system[1]
