"""Sends requests for a reply: retries temporary errors, waits while a server starts, and reads the reply.

Retries are visible and can be cancelled at once (`errors/retry.py`). `reply_stream.py` turns the body of a reply into
events; `server_wait.py` decides how long to wait for a server that is not ready.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from codecompanion import errors
from codecompanion.adapters.base import ChatRequest, Finished, OnWait, RetryScheduled, StreamEvent
from codecompanion.adapters.errors.error_map import Endpoint, error_of_reply
from codecompanion.adapters.http.connection import MAX_LESSONS, Connection
from codecompanion.adapters.http.endpoint_models import EndpointModels
from codecompanion.adapters.http.reply_stream import final_cut, read_reply
from codecompanion.adapters.transport.time_limits import max_keep_alive_s, max_silence_s
from codecompanion.adapters.wire_format import HttpCall

if TYPE_CHECKING:
    from codecompanion.adapters.http.reply_timer import ReplyTimer
    from codecompanion.adapters.http.server_wait import ServerWait

_log = logging.getLogger(__name__)


class ReplyRequests:
    """Sends requests for a reply to one endpoint."""

    def __init__(self, connection: Connection, models: EndpointModels) -> None:
        self._connection, self._models = connection, models
        self._wire, self._clock = connection.wire, connection.clock

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        """Send the request and yield its events; the last one is `Finished`. Raises `AdapterError`."""
        deadline = self._deadline()
        attempt, lessons = 1, 0
        server: ServerWait | None = None
        if not request.model:
            server = self._server_wait()
            async with aclosing(self._until_listed(server, deadline)) as looks:
                async for look in looks:
                    yield look
            request = msgspec.structs.replace(request, model=self._models.default)
        call = await self._connection.judged(self._wire.render(request), "reply")
        reading: asyncio.Task[None] | None = None
        while True:
            yielded = False
            try:
                async with aclosing(self._attempt(request, call, deadline)) as events:
                    async for event in events:
                        if not yielded:
                            self._models.server.reply_began(request.model)
                        reading = reading or self._models.read_beside_reply()
                        if reading is not None and isinstance(event, Finished):
                            await asyncio.wait([reading])  # the reply's price depends on which server answered
                        yielded = True
                        yield event
                return
            except errors.AdapterError as caught:
                error = caught
            self._models.server.note_failure(error)
            if not yielded and request.tools and self._models.server.learn_toolless(error, request.model):
                _log.info("sent again without tools: %s", error)
                request = msgspec.structs.replace(request, tools=())
                call = await self._connection.judged(self._wire.render(request), "reply")
                continue
            if not yielded and lessons < MAX_LESSONS and self._wire.learn_refusal(error, request):
                _log.info("sent again without the features that the model lacks: %s", error)
                call, lessons = await self._connection.judged(self._wire.render(request), "reply"), lessons + 1
                continue
            if isinstance(error, errors.AuthenticationFailed):
                # The next request reads the key again: the user may have corrected it.
                self._connection.forget_credentials()
            server = server or self._server_wait()
            if not yielded and server.is_worth_waiting(error):
                yield self._wait_for(server, error, attempt, deadline)
                await self._connection.sleep(server.look_every_s)
                # The server may have been restarted with other options.
                await self._models.server.refresh_if_stale(request.model)
                call = await self._connection.judged(self._wire.render(request), "reply")
                continue
            wait = None if yielded or server.has_ended else self._connection.pause_after(error, attempt)
            if wait is None:
                raise error
            _log.info("attempt %d failed, next in %.1f s: %s", attempt, wait, error)
            yield RetryScheduled(str(error), attempt, round(wait * 1000), error.brief)
            await self._connection.sleep(wait)
            attempt += 1

    async def find_model(self, on_wait: OnWait) -> str:
        """Return the model of requests that name none, after waiting for the server. Raises `AdapterError`."""
        async with aclosing(self._until_listed(self._server_wait(), self._deadline())) as looks:
            async for look in looks:
                on_wait(look)
        return self._models.default

    async def _until_listed(self, server: ServerWait, deadline: float) -> AsyncGenerator[RetryScheduled, None]:
        """Wait until the endpoint lists a model; yield an event before each pause. Raises `AdapterError`."""
        while True:
            try:
                await self._models.first()
                return
            except errors.AdapterError as caught:
                error = caught
            yield self._wait_for(server, error, 1, deadline)
            await self._connection.sleep(server.look_every_s)

    def _deadline(self) -> float:
        limit = self._connection.settings.timeout_s
        return self._clock() + limit if limit else math.inf

    def _wait_for(
        self, server: ServerWait, error: errors.AdapterError, attempt: int, deadline: float
    ) -> RetryScheduled:
        """Return the event to show while the request waits for the server; raise the error if waiting is pointless."""
        look = server.next_look(error, attempt, deadline - self._clock())
        if look is None:
            raise error
        return look

    async def _attempt(
        self, request: ChatRequest, call: HttpCall, deadline: float
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send the request once and yield its events."""
        connection = self._connection
        silence_s = max_silence_s(connection.settings, call.size_bytes)
        endpoint = msgspec.structs.replace(await connection.endpoint(request.model), silence_s=silence_s)
        timer = self._reply_timer(request) if self._models.is_own else None
        response = await connection.send(call, endpoint, stream=True)
        if self._models.is_own:
            self._models.server.read_prompt(request.chat_id or request.purpose, request.model)
        endpoint = connection.with_secrets(endpoint)
        decoder = self._wire.decoder(endpoint)
        error: errors.AdapterError | None = None
        try:
            judge = self._patience(endpoint, deadline)
            async with aclosing(read_reply(response, decoder, endpoint, judge)) as events:
                async for event in events:
                    if timer is not None:
                        if decoder.seen_output:
                            timer.see_output()
                        if isinstance(event, Finished):
                            timings = decoder.timings or timer.timings(event.usage)
                            self._models.server.learn_speed(timings, request.model)
                    yield event
        except errors.AdapterError:
            raise
        except Exception as caught:
            _log.info("the stream of %s ended with %s", endpoint.name, type(caught).__name__)
            error = error_of_reply(caught, endpoint, seen_output=decoder.seen_output)
        finally:
            await response.aclose()
        if error is not None:
            raise error

    def _patience(self, endpoint: Endpoint, deadline: float) -> Callable[[int], None]:
        """Return a function that raises `StreamCut` if a reply takes too long or does not grow for too long."""
        limit = max_keep_alive_s(self._connection.settings) or math.inf
        grown, since = -1, math.inf

        def judge(kept_chars: int) -> None:
            nonlocal grown, since
            now = self._clock()
            if kept_chars > grown:
                grown, since = kept_chars, now
            if now > deadline:
                raise errors.StreamCut(endpoint.say("the reply took longer than the time limit."))
            if now - since > limit:
                said = f"the provider sent only keep-alives for {limit:g} s {endpoint.remedies.after_silence}"
                raise final_cut(endpoint.say(said))

        return judge

    def _reply_timer(self, request: ChatRequest) -> ReplyTimer:
        from codecompanion.adapters.http.reply_timer import ReplyTimer  # not needed at startup

        return ReplyTimer(request, self._models.server.facts(request.model), self._clock)

    def _server_wait(self) -> ServerWait:
        from codecompanion.adapters.http.server_wait import ServerWait  # not needed at startup

        return ServerWait(self._connection.settings)
