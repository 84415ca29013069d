"""Pauses automatic editing and compaction after an undo, until the user compacts, redoes or resumes (R-545).

A paused chat is never made smaller without the user's knowledge. If the next request no longer fits the context window
according to the best count, the user is asked instead. The log records which events are paused:
`session.history.undo.pauses_of`.
"""

from __future__ import annotations

from collections.abc import Callable

from codecompanion.context.work import Env
from codecompanion.model.history import PauseEnded
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.wire.events import Severity


class Pause:
    """Tracks the stages that are paused in one chat after an undo or a restore."""

    def __init__(self, chat: ChatModel, env: Callable[[], Env]) -> None:
        self._chat, self._env = chat, env

    @property
    def is_on(self) -> bool:
        """Return whether a stage that would run automatically is paused."""
        policy, paused = self._chat.policy, self._chat.log.pauses.paused
        return policy.enabled and any(stage.event in paused and stage.trigger.is_on for stage in policy.stages)

    @property
    def paused(self) -> frozenset[str]:
        """Return the events of the paused stages; some are paused only while the request fits."""
        log = self._chat.log
        timed = log.pauses.kinds(log.view.cycle)
        if timed and self._env().fits(log.view.messages, self._chat.measured()):
            return log.pauses.paused | timed
        return log.pauses.paused

    async def end(self) -> None:
        """End the pause after a compaction that the user requested, even if it had nothing to do."""
        if not self.is_on:
            return
        what = self.what
        await self._chat.log.write(PauseEnded())
        self._chat.notice(Severity.INFO, f"{what} no longer paused.")

    @property
    def what(self) -> str:
        """Return the paused stages as the start of a sentence."""
        edits = "context_edited" in self._chat.log.pauses.paused
        return "Editing and compaction are" if edits else "Compaction is"
