"""Collects the context sent before a message: step 5 of "From Enter to the bytes" (`doc/dev/architecture.md`)."""

from __future__ import annotations

import msgspec

from codecompanion.session.message_context.found_context import NOTHING, Found, Preceding
from codecompanion.session.message_context.gathering import CodeGathering
from codecompanion.session.message_context.live_updates import LiveUpdates
from codecompanion.session.message_context.resolve_mentions import LABEL, MentionedContext
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.events import Gathering
from codecompanion.wire.requests import Submit


class BeforeMessage(msgspec.Struct, frozen=True):
    """Collects the context sent before the messages of one chat."""

    services: Services
    control: ContextControl
    updates: LiveUpdates
    mentioned: MentionedContext
    gathering: CodeGathering

    def whole(self, submit: Submit) -> str:
        """Return the text of a submit, including the lines of an edit in place; used to measure its size."""
        if submit.edit is None:
            return submit.text
        from codecompanion.session.message_context.edit_lines import text_of

        return f"{submit.text}\n{text_of(submit.edit, self.control)}"

    async def of(self, submit: Submit, turn_id: str, cycle: int) -> Found:
        """Return the context sent before the message of a submit.

        Raises:
            InputError: something that the message mentions is unavailable; nothing was logged.
            asyncio.CancelledError: stopped; nothing was logged.
        """

        def tell(what: str) -> None:
            self.services.emit(Gathering(chat=self.control.chat_id, submit_id=submit.submit_id, what=what))

        changed = NOTHING
        if submit.snapshot.send_code:
            changed = await self.updates.before(submit.text, submit.snapshot, turn_id, cycle)
        mentioned = await self.mentioned.before(submit, turn_id, cycle, lambda: tell(LABEL), changed.messages)
        found = changed.and_then(mentioned)
        if submit.edit is not None:
            from codecompanion.session.message_context.edit_lines import lines_before  # most chats have none

            found = found.and_then(lines_before(submit.edit, self.services, self.control, turn_id, cycle))
        tokens = self.control.meter.scaled(sum(message.tokens for message in found.messages))
        preceding = Preceding(frozenset(item.written for item in submit.items), tokens, found.messages)
        code = await self.gathering.before(
            submit.text, submit.snapshot, turn_id, cycle, lambda: tell("gathering code"), preceding
        )
        return found.and_then(code)
