"""Counts an arriving reply in the meter, so that a filling window is seen before the reply ends (ours)."""

from __future__ import annotations

import msgspec

from codecompanion.session.chat.chat import Chat


class ArrivingSize:
    """The meter while one reply arrives: the request, and an estimate of the reply's text so far."""

    def __init__(self, chat: Chat) -> None:
        self._chat, self._request = chat, chat.control.meter_event()
        self._chars = self._tokens = 0

    def show(self, text: str) -> None:
        """Show the meter with the text received so far; only the text since the last call is counted."""
        if len(text) == self._chars:
            return
        self._tokens += self._chat.services.count_text(text[self._chars :])
        self._chars = len(text)
        tokens = self._request.tokens + self._chat.meter.scaled(self._tokens)
        ratio = tokens / self._request.window
        self._chat.emit(msgspec.structs.replace(self._request, tokens=tokens, ratio=ratio, exact=False))
