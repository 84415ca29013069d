"""Reads a durable summary's inputs beyond the view: the log, the last summary's facts (R-319, R-324, R-326).

Reading the log takes time in proportion to the chat's length, so it is read only when a durable summary is due. The
originals of cleared messages, from which a ledger is written, are read individually, by their position in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from codecompanion.context.policy.policy import Policy
from codecompanion.context.work import Messages
from codecompanion.errors import StoreError
from codecompanion.model.history import LogEvent, ViewChanged
from codecompanion.model.messages import Message
from codecompanion.model.view import project
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.undo import undone_ids

_log = logging.getLogger(__name__)


class SummarySources:
    """Inputs of a summary: `history` returns all unsummarised messages, `artifact` the last summary's source.

    Both are None until they are read.
    """

    def __init__(self, log: ChatLog) -> None:
        self._log = log
        self.history: Callable[[], Messages] | None = None
        self.artifact: dict[str, Any] | None = None
        self._originals: dict[str, Message] = {}

    def original(self, message: Message) -> Message:
        """Return the original of a cleared message if it has been read, otherwise the message itself."""
        return self._originals.get(message.id, message) if message.edited else message

    async def read(self, policy: Policy, *, due: bool) -> None:
        """Load the inputs that the policy needs if a summary is `due`; drop all others."""
        steps = {step.use for stage in policy.stages for tier in stage.tiers for step in tier.steps}
        self.history = self.artifact = None
        if due and "summarize_artifact" in steps:
            events = await self._log.events()
            messages = full_history(events)
            self.history, self.artifact = lambda: messages, last_artifact(events)
        if due and "append_ledger" in steps:
            await self._read_originals()
        else:
            self._originals = {}

    async def _read_originals(self) -> None:
        """Load the original text of the view's cleared messages; reuse those already loaded."""
        cleared = {message.id for message in self._log.view.messages if message.edited}
        self._originals = {name: one for name, one in self._originals.items() if name in cleared}
        try:
            found = await self._log.added(cleared - self._originals.keys())
        except StoreError as error:  # the compaction continues with a shorter ledger
            _log.warning("the originals of cleared messages could not be read: %s", error)
            return
        self._originals |= {message.id: message for message in found}


def full_history(events: Sequence[LogEvent]) -> Messages:
    """Return a log's messages as if none had been cleared or summarised.

    Messages that the user removed stay removed.
    """
    changed = ("edited", "compacted")
    kept = [e for e in events if not (isinstance(e.payload, ViewChanged) and e.payload.kind in changed)]
    return project(kept).messages


def last_artifact(events: Sequence[LogEvent]) -> dict[str, Any] | None:
    """Return the typed artifact of the newest summary that was not undone, or None if that summary has none (R-319)."""
    undone = undone_ids(events)
    for event in reversed(events):
        change = event.payload
        if isinstance(change, ViewChanged) and change.kind == "compacted" and change.change_id not in undone:
            return change.report.artifact
    return None
