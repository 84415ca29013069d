"""Decides when a request may begin: gates keep the order of arrival while earlier requests are still running.

No request begins before `hello` has been answered, no request about a chat before its earlier `open_chat`, `close_chat`
or `delete_session` is done, and no message before earlier attachments, detachments and choices are done. Other requests
may overtake a message that waits for these; apart from that, a chat's requests begin in order.
"""

from __future__ import annotations

import asyncio

from codecompanion.wire import requests

_CHANGES = (
    requests.Attach
    | requests.FetchPage
    | requests.SetLive
    | requests.Detach
    | requests.AddRules
    | requests.SetModel
    | requests.SetPolicy
)
"""Request types that change the next model request of their chat."""
_SENDS = requests.Submit | requests.Regenerate | requests.GoOn | requests.Compact


class RequestOrder:
    """The gates of one editor's requests."""

    def __init__(self) -> None:
        """Create the gate that `hello` opens."""
        self._greeted = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        """Maps each chat to the gate of the request that opens or ends it; later requests wait for this gate."""
        self._changes: dict[str, set[asyncio.Event]] = {}
        """Maps each chat to the pending changes to its next model request; later messages wait for them."""
        self._last: dict[tuple[str, bool], asyncio.Event] = {}
        """The last request by (chat, whether it is ordered with the messages); set once the request begins.

        A gate alone does not keep the order: a request that finds it open overtakes requests that have not been woken
        yet.
        """

    async def turn_of(self, request: requests.Request) -> asyncio.Event | None:
        """Wait for earlier requests; return the gate that this request opens when it is done."""
        if isinstance(request, requests.Hello):
            return self._greeted
        chat, gate, begins = request.chat, None, asyncio.Event()
        is_message = isinstance(request, _SENDS)
        goes_with_messages = is_message or self._stops_what_waits(request)
        earlier = [self._gates.get(chat), self._last.get((chat, False))]
        if goes_with_messages:
            earlier.append(self._last.get((chat, True)))
        if is_message:
            earlier += self._changes.get(chat, ())
        self._last[chat, goes_with_messages] = begins
        if isinstance(request, requests.OpenChat | requests.CloseChat | requests.DeleteSession):
            gate = self._gates[chat] = asyncio.Event()
        elif isinstance(request, _CHANGES):
            gate = asyncio.Event()
            self._changes.setdefault(chat, set()).add(gate)
        try:
            await self._greeted.wait()
            for event in filter(None, earlier):
                await event.wait()
        finally:
            begins.set()
        return gate

    def _stops_what_waits(self, request: requests.Request) -> bool:
        """Return whether this request stops a waiting message, which becomes a draft again once the request begins."""
        message = self._last.get((request.chat, True))
        return isinstance(request, requests.Cancel) and message is not None and not message.is_set()

    def is_done(self, request: requests.Request, gate: asyncio.Event | None) -> None:
        """Release the requests that wait for this one; `gate` is the result of `turn_of` for it."""
        if gate is None:
            return
        gate.set()
        changes = self._changes.get(request.chat, set())
        changes.discard(gate)
        if not changes:
            self._changes.pop(request.chat, None)
