"""Puts the lines of an edit in place into a context message before the instruction, counted and folded."""

from __future__ import annotations

from codecompanion.edit_in_place.request import chars_around, lines_of, title_of
from codecompanion.model.history import MessageAdded
from codecompanion.model.mentioned import Mentioned
from codecompanion.model.messages import EDITOR_TAG, Message
from codecompanion.session.message_context.found_context import Found
from codecompanion.session.message_context.resolve_mentions import body_of_mentioned
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.events import EditorContextSent
from codecompanion.wire.requests import EditTarget


def text_of(target: EditTarget, control: ContextControl) -> str:
    """Return the lines to edit as text, as the model sees them."""
    return lines_of(target, chars_around(control.fitting.room))


def lines_before(target: EditTarget, services: Services, control: ContextControl, turn_id: str, cycle: int) -> Found:
    """Return the context sent before the instruction of an edit."""
    title = title_of(target)
    message = control.meter.counted(
        Message(
            id=services.new_token(),
            role="user",
            tag=EDITOR_TAG,
            content=text_of(target, control),
            mentioned=Mentioned(title, title),
            cycle=cycle,
            turn_id=turn_id,
            ts=services.clock(),
        )
    )
    told = EditorContextSent(
        chat=control.chat_id,
        message_id=message.id,
        title=title,
        body=body_of_mentioned(message),
        tokens=control.meter.scaled(message.tokens),
    )
    return Found((MessageAdded(message=message),), (told,))
