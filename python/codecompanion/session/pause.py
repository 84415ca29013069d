"""Automatic editing and compaction after an undo: paused until the user compacts, redoes or says so (R-545).

A paused chat is never made smaller behind the user's back. Where the next request does not fit the window any more, by
the best count there is, the user is asked instead. What is paused stands in the log: `session.undo.rest_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codecompanion.errors import CodeCompanionError
from codecompanion.events import Severity
from codecompanion.history import PauseEnded

if TYPE_CHECKING:
    from codecompanion.session.context_control import ContextControl

_WHAT_TO_DO = "Compaction is paused; type /compact."


class Pause:
    """What rests in one chat because of what the user undid or restored."""

    def __init__(self, control: ContextControl) -> None:
        self._control = control

    @property
    def is_on(self) -> bool:
        """Return whether something that would run by itself waits for the user."""
        policy, paused = self._control.policy, self._control.log.rest.paused
        return policy.enabled and any(stage.event in paused and stage.trigger.at is not None for stage in policy.stages)

    @property
    def resting(self) -> frozenset[str]:
        """Return the events of the stages that do not run: what is paused, and what rests as long as the rest fits."""
        log = self._control.log
        timed = log.rest.kinds(log.view.cycle)
        if timed and self._control.env().fits(log.view.messages, self._control.measured()):
            return log.rest.paused | timed
        return log.rest.paused

    async def end(self) -> None:
        """Let everything run by itself again: the user asked for a compaction, also where there was nothing to do."""
        if not self.is_on:
            return
        edits = "context_edited" in self._control.log.rest.paused
        await self._control.log.write(PauseEnded())
        what = "Editing and compaction are" if edits else "Compaction is"
        self._control.notice(Severity.INFO, f"{what} no longer paused.")

    def question(self) -> str:
        """Return what the user is asked when the next request does not fit while all that makes room is paused."""
        control = self._control
        room = control.fitting.room
        size = control.shaper.current().measure.tokens
        if not self.is_on or not room or size <= room:
            return ""
        return f"Not sent: {size:,} tokens, {room:,} fit. {_WHAT_TO_DO}"

    def question_behind(self, refusal: CodeCompanionError) -> str:
        """Return what the user is asked when the provider refused a request as too long while compaction is paused."""
        control = self._control
        if not self.is_on or not control.is_about_size(refusal):
            return ""
        control.learn_size(refusal)
        return self.question() or f"The model refused it as too long. {_WHAT_TO_DO}"
