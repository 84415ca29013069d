"""Provides the turns before the current one as they were logged, for `context_pruned` (R-330).

Removed messages are read from the log once per change of the view other than an append. Otherwise only the view is
read, however long the chat is (lesson 31).
"""

from __future__ import annotations

from codecompanion.context.shaping.request_parts import NO_TURNS, LeftOut, layer_of, turn_of
from codecompanion.context.work import Messages
from codecompanion.session.compaction.summary_sources import full_history
from codecompanion.session.history.chat_log import ChatLog


class PriorTurns:
    """Reads the prior turns of one chat: the messages of turns still partly in the view, and figures for all others."""

    def __init__(self, log: ChatLog) -> None:
        self._log = log
        self._changes = -1
        self._logged: Messages = ()
        self._left_out = NO_TURNS
        self._named: frozenset[str] = frozenset()

    async def read(self) -> tuple[Messages, LeftOut]:
        """Return the messages of the view's turns as logged, and the turns that are no longer in the view.

        Each removed turn is named once; after a restart all are named again.
        """
        log = self._log
        if not log.has_removed:
            return log.view.messages, NO_TURNS
        changes = log.changes
        if self._changes != changes:
            self._tell_apart(full_history(await log.events()))
            self._changes = changes
        known = {message.id for message in self._logged}
        joined = (message for message in log.view.messages if message.id not in known)
        left_out = self._left_out
        self._left_out = LeftOut(left_out.turns, left_out.size_bytes)
        return (*self._logged, *joined), left_out

    def _tell_apart(self, history: Messages) -> None:
        here = {turn_of(message) for message in self._log.view.messages if layer_of(message, "") == "history"}
        self._logged = tuple(message for message in history if turn_of(message) in here)
        left_out = LeftOut.of(message for message in history if turn_of(message) not in here)
        fresh = tuple(turn for turn in left_out.turn_ids if turn not in self._named)
        self._named = frozenset(left_out.turn_ids)
        self._left_out = LeftOut(left_out.turns, left_out.size_bytes, fresh)
