"""Tells the model in one line which file the user is looking at, and which lines are visible.

The line is sent only for files of the workspace, and not again while unchanged.
"""

from __future__ import annotations

import logging
from pathlib import Path

from codecompanion.model.messages import LOOKING_TAG, Message
from codecompanion.session.editor_context.rendered_items import one_line
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.wire.events import Notice, Severity
from codecompanion.wire.requests import Snapshot

_log = logging.getLogger(__name__)
_TOLD = "open_file.told"
"""File beside the database that exists once the notice was shown."""
TOLD = "The model knows which file is open"


def looking_at(snapshot: Snapshot, root: Path) -> str:
    """Return the line, or "" if no file of the workspace is open."""
    name = _name(snapshot, root)
    if not name:
        return ""
    if snapshot.visible is None:
        return f"The user is looking at `{name}`."
    first, last, lines = snapshot.visible
    return f"The user is looking at `{name}`, lines {first}-{last} of {lines}, cursor on line {snapshot.cursor[0]}."


def _name(snapshot: Snapshot, root: Path) -> str:
    """Return the workspace path of the open file, or "" if there is none."""
    path = Path(snapshot.current)
    if not snapshot.current or not path.is_relative_to(root):
        return ""
    return one_line(path.relative_to(root).as_posix()).replace("`", "'")


def last_reported(control: ContextControl) -> str:
    """Return the newest line about the visible file that is already in the next request, or "" if there is none."""
    messages = control.shaper.current().messages
    return next((message.text for message in reversed(messages) if message.tag == LOOKING_TAG), "")


def tell_user(services: Services, chat_id: str) -> None:
    """Inform the user after the first reply to a request that contains such a line, once ever."""
    if services.open_file_notice != "due":
        return
    services.open_file_notice = "shown"
    if services.store.path is not None:
        told = services.store.path.with_name(_TOLD)
        if told.exists():
            return
        try:
            told.touch(mode=0o600)
        except OSError as error:
            _log.warning("%s: %s", told, error)
    services.emit(Notice(chat=chat_id, level=Severity.INFO, text=TOLD, help="codecompanion-looking-at"))


def looking_message(line: str, message_id: str) -> Message:
    """Return the line as a message."""
    return Message(id=message_id, role="user", tag=LOOKING_TAG, content=line)
