"""When a request may begin: they come in order, and gates keep that order meaningful while each takes its time.

Nothing begins before `hello` was answered; nothing of a chat before its `open_chat`, `close_chat` or `delete_session`
was; no message before what was attached, detached or chosen ahead of it.
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
        self._held: set[str] = set()
        """Chats with a message that waits so."""

    async def turn_of(self, request: requests.Request) -> asyncio.Event | None:
        """Wait for what must come first; return the gate this request opens when it is done."""
        if isinstance(request, requests.Hello):
            return self._greeted
        before, gate = self._before(request), None
        if isinstance(request, requests.OpenChat | requests.CloseChat | requests.DeleteSession):
            gate = self._gates[request.chat] = asyncio.Event()
        elif isinstance(request, _CHANGES):
            gate = asyncio.Event()
            self._changes.setdefault(request.chat, set()).add(gate)
        await self._greeted.wait()
        for earlier in before:
            await earlier.wait()
        return gate

    def _before(self, request: requests.Request) -> list[asyncio.Event]:
        chat = request.chat
        before = [self._gates[chat]] if chat in self._gates else []
        # stopped once it has begun, a message comes back as a draft; nothing else that is stopped has to wait
        if isinstance(request, _SENDS) or (isinstance(request, requests.Cancel) and chat in self._held):
            changes = self._changes.get(chat, ())
            if changes:
                self._held.add(chat)
            before += changes
        return before

    def is_done(self, request: requests.Request, gate: asyncio.Event | None) -> None:
        """Let what waits for the request begin; `gate` is what `turn_of` returned for it."""
        if gate is None:
            return
        gate.set()
        changes = self._changes.get(request.chat, set())
        changes.discard(gate)
        if not changes:
            self._changes.pop(request.chat, None)
            self._held.discard(request.chat)
