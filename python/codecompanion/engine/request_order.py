"""When a request may begin: requests arrive in order, and gates keep that order while each takes its time.

Nothing begins before `hello` was answered; nothing of a chat before its `open_chat`, `close_chat` or `delete_session`
was; no message before earlier attachments, detachments and choices. Requests other than messages may overtake such a
waiting message; apart from that, nothing of a chat begins before its earlier requests.
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
"""Requests that change the next request of their chat."""
_SENDS = requests.Submit | requests.Regenerate | requests.GoOn | requests.Compact


class RequestOrder:
    """The gates of one editor's requests."""

    def __init__(self) -> None:
        """Begin with the gate that `hello` opens."""
        self._greeted = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        """By chat, the requests that open or end it: later ones wait until they are done."""
        self._changes: dict[str, set[asyncio.Event]] = {}
        """By chat, the changes of its next request: later messages wait until they are done."""
        self._last: dict[tuple[str, bool], asyncio.Event] = {}
        """By chat and whether it is ordered with the messages, the last request: set once it begins.

        A gate alone does not keep the order: a request that finds it open overtakes those that were not yet woken.
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
        """Whether it stops a message that has not begun; the message becomes a draft again once it has."""
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
