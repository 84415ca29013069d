"""When a request may begin: they come in order, and gates keep that order meaningful while each takes its time.

Nothing begins before `hello` was answered; nothing of a chat before its `open_chat`, `close_chat` or `delete_session`
was; no message before what was attached, detached or chosen ahead of it. A message that waits so is passed by what is
no message; else nothing of a chat begins before what came earlier.
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
"""What changes the next request of its chat."""
_SENDS = requests.Submit | requests.Regenerate | requests.GoOn | requests.Compact


class RequestOrder:
    """The gates of one editor's requests."""

    def __init__(self) -> None:
        """Begin with the gate that `hello` opens."""
        self._greeted = asyncio.Event()
        self._gates: dict[str, asyncio.Event] = {}
        """By chat, what opens or ends it: whatever comes later waits until that is done."""
        self._changes: dict[str, set[asyncio.Event]] = {}
        """By chat, what changes its next request: a message that comes later waits until that is done."""
        self._last: dict[tuple[str, bool], asyncio.Event] = {}
        """By chat and whether it goes with the messages, what came last: set once that begins.

        A gate alone keeps no order: what finds it open passes those who were not yet woken.
        """

    async def turn_of(self, request: requests.Request) -> asyncio.Event | None:
        """Wait for what must come first; return the gate this request opens when it is done."""
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
        """Whether it stops a message that has not begun; that comes back as a draft once it has."""
        message = self._last.get((request.chat, True))
        return isinstance(request, requests.Cancel) and message is not None and not message.is_set()

    def is_done(self, request: requests.Request, gate: asyncio.Event | None) -> None:
        """Let what waits for the request begin; `gate` is what `turn_of` returned for it."""
        if gate is None:
            return
        gate.set()
        changes = self._changes.get(request.chat, set())
        changes.discard(gate)
        if not changes:
            self._changes.pop(request.chat, None)
