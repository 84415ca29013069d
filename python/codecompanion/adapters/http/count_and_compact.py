"""Sends requests without a streamed reply: the provider's token count, and compaction on demand.

Temporary errors are retried as for a reply, and wire formats learn from refusals; a count costs nothing. With
`on_wait`, these requests wait for a local server that is starting or loading, as chat messages do (`server_wait.py`).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Literal

from codecompanion import errors
from codecompanion.adapters.base import ChatRequest, CompactionDone, OnWait
from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception
from codecompanion.adapters.http.connection import MAX_LESSONS, Connection, with_few_values
from codecompanion.adapters.http.server_wait import ServerWait
from codecompanion.adapters.wire_format import HttpCall
from codecompanion.formats.bounded import LimitHit


async def compact(
    connection: Connection, request: ChatRequest, instructions: str, on_wait: OnWait | None
) -> CompactionDone:
    """Make the provider compact the messages of the request now; return its result (R-540).

    Raises:
        AdapterError: the compaction failed; nothing was changed.
    """
    wire, endpoint = connection.wire, await connection.endpoint(request.model)
    body = await _ask(
        connection, "compaction", request, endpoint, lambda: wire.render_compaction(request, instructions), on_wait
    )
    if body is None:
        raise errors.RequestRejected(f"{endpoint.name}: {request.model} does not compact on demand.")
    return wire.read_compaction(body, endpoint)


async def count_tokens(connection: Connection, request: ChatRequest, on_wait: OnWait | None) -> int:
    """Return the provider's own count of the request's prompt.

    Raises:
        AdapterError: the count is unavailable.
    """
    wire, endpoint = connection.wire, await connection.endpoint(request.model)
    body = await _ask(connection, "count", request, endpoint, lambda: wire.render_count(request), on_wait)
    if body is None:
        raise errors.RequestRejected(f"{endpoint.name}: the endpoint cannot count tokens for {request.model}.")
    count = wire.read_count(body)
    if count is None:
        raise errors.MalformedReply(endpoint.say("the answer contains no token count."))
    return count


async def first_model(connection: Connection, first: Callable[[], Awaitable[str]], on_wait: OnWait | None) -> str:
    """Return the model that `first` finds in the endpoint's list; with `on_wait`, wait until the server lists it.

    Raises:
        AdapterError: the endpoint lists no model, or the wait was too long.
    """
    server, limit = ServerWait(connection.settings), connection.settings.timeout_s
    deadline = connection.clock() + limit if limit else math.inf
    while True:
        try:
            return await first()
        except errors.AdapterError as error:
            look = server.next_look(error, 1, deadline - connection.clock())
            if on_wait is None or look is None:
                raise
            on_wait(look)
        await connection.sleep(server.look_every_s)


async def _ask(
    connection: Connection,
    what: Literal["compaction", "count"],
    request: ChatRequest,
    endpoint: Endpoint,
    render: Callable[[], HttpCall | None],
    on_wait: OnWait | None,
) -> bytes | None:
    """Send a count or compaction request and return its response body, or None if `render` returns None."""
    wire = connection.wire
    call = await connection.judged(render(), what)
    attempt, lessons = 1, 0
    server = ServerWait(connection.settings)
    limit = connection.settings.timeout_s
    deadline = connection.clock() + limit if limit else math.inf
    while call is not None:
        try:
            response = await connection.send(call, endpoint, stream=False)
            return with_few_values(response.content)
        except errors.AdapterError as caught:
            error = caught
        except LimitHit as hit:
            error = error_from_exception(hit, endpoint)
        if lessons < MAX_LESSONS and wire.learn_refusal(error, request):
            call, lessons = await connection.judged(render(), what), lessons + 1
            continue
        if on_wait is not None and server.is_worth_waiting(error):
            look = server.next_look(error, attempt, deadline - connection.clock())
            if look is None:
                raise error
            on_wait(look)
            await connection.sleep(server.look_every_s)
            continue
        wait = None if server.has_ended else connection.pause_after(error, attempt, is_free=what == "count")
        if wait is None:
            wire.learn_missing(what, error, endpoint.model)
            raise error
        await connection.sleep(wait)
        attempt += 1
    return None
