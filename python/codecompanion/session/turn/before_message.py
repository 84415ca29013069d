"""What stands before a message, in this order: changes of attached files, what it mentions of the editor, code."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from codecompanion.model.history import MessageAdded
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.attachments.live_updates import LiveUpdates
from codecompanion.session.codebase.gathering import CodeGathering
from codecompanion.session.editor_context.taking import LABEL, MentionedContext
from codecompanion.session.going_along import Along, Found
from codecompanion.wire.events import Event, Gathering
from codecompanion.wire.requests import Submit


class BeforeMessage(msgspec.Struct, frozen=True):
    """Brings together what goes along with the messages of one chat."""

    chat_id: str
    updates: LiveUpdates
    mentioned: MentionedContext
    gathering: CodeGathering
    meter: ContextMeter
    emit: Callable[[Event], None]

    async def of(self, submit: Submit, words: str, turn_id: str, cycle: int) -> Found:
        """Return what goes along with a submit; `words` is what the user has said in it.

        Raises:
            InputError: something it mentions cannot be had; nothing was logged.
            asyncio.CancelledError: stopped; nothing was logged.
        """

        def tell(what: str) -> None:
            self.emit(Gathering(chat=self.chat_id, submit_id=submit.submit_id, what=what))

        changed = await self.updates.before(submit.text, submit.snapshot, turn_id, cycle)
        found = changed.and_then(await self.mentioned.before(submit, turn_id, cycle, lambda: tell(LABEL)))
        tokens = sum(payload.message.tokens for payload in found.payloads if isinstance(payload, MessageAdded))
        along = Along(frozenset(item.written for item in submit.items), self.meter.scaled(tokens))
        code = await self.gathering.before(
            words, submit.snapshot, turn_id, cycle, lambda: tell("gathering code"), along
        )
        return found.and_then(code)
