"""What a running tool may do in its chat (`tools.base.CallingChat`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from codecompanion.model.messages import Message
from codecompanion.session.attachments.attached import image_attachment
from codecompanion.session.services import Services
from codecompanion.session.state import State
from codecompanion.wire.events import State as StateEvent


class ForTools:
    """The chat of the id. `state` is what it is doing now, `attach` takes what joins its next request."""

    def __init__(
        self, services: Services, chat_id: str, state: Callable[[], State], attach: Callable[[Message], Awaitable[None]]
    ) -> None:
        self._services, self._chat_id, self._state, self._attach = services, chat_id, state, attach

    def progress(self, label: str) -> None:
        """Say what the call is doing, unless the user is asked something meanwhile."""
        if self._state() is State.RUNNING_TOOLS:
            self._services.emit(StateEvent(chat=self._chat_id, state=State.RUNNING_TOOLS.value, label=label))

    async def attach_image(self, name: str, content: bytes) -> None:
        """Attach an image to the next request."""
        message, _ = await asyncio.to_thread(image_attachment, name, content, self._services.new_token())
        await asyncio.to_thread(self._services.store.put_blob, content)
        await self._attach(message)
