"""Requests whose answer comes at once: the provider's count of a prompt, and its compaction on demand.

Passing trouble is tried again like that of a reply, and a refusal teaches as much; a count costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from codecompanion import errors
from codecompanion.adapters.base import ChatRequest, CompactionDone
from codecompanion.adapters.errors.error_map import Endpoint, error_from_exception
from codecompanion.adapters.http.connection import MAX_LESSONS, Connection, with_few_values
from codecompanion.adapters.wire_format import HttpCall
from codecompanion.formats.bounded import LimitHit


async def compact(connection: Connection, request: ChatRequest, instructions: str) -> CompactionDone:
    """Let the provider compact the messages of the request now, and return what it made of them (R-540).

    Raises:
        AdapterError: it did not; nothing was changed.
    """
    wire, endpoint = connection.wire, await connection.endpoint(request.model)
    body = await _ask(
        connection, "compaction", request, endpoint, lambda: wire.render_compaction(request, instructions)
    )
    if body is None:
        raise errors.RequestRejected(f"{endpoint.name}: {request.model} does not compact on demand.")
    return wire.read_compaction(body, endpoint)


async def count_tokens(connection: Connection, request: ChatRequest) -> int:
    """Return the provider's own count of the request's prompt.

    Raises:
        AdapterError: it could not be asked.
    """
    wire, endpoint = connection.wire, await connection.endpoint(request.model)
    body = await _ask(connection, "count", request, endpoint, lambda: wire.render_count(request))
    if body is None:
        raise errors.RequestRejected(f"{endpoint.name}: the endpoint has no way to count {request.model}.")
    count = wire.read_count(body)
    if count is None:
        raise errors.MalformedReply(endpoint.say("the answer to a count holds no count."))
    return count


async def _ask(
    connection: Connection,
    what: Literal["compaction", "count"],
    request: ChatRequest,
    endpoint: Endpoint,
    render: Callable[[], HttpCall | None],
) -> bytes | None:
    """Send a request whose answer comes at once, None when there is no such request."""
    wire = connection.wire
    call = await connection.judged(render(), what)
    attempt, lessons = 1, 0
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
        wait = connection.pause_after(error, attempt, is_free=what == "count")
        if wait is None:
            wire.learn_missing(what, error, endpoint.model)
            raise error
        await connection.sleep(wait)
        attempt += 1
    return None
