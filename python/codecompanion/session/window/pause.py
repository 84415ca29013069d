"""Automatic editing and compaction after an undo: paused until the user compacts, redoes or says so (R-545).

A paused chat is never made smaller behind the user's back. Where the next request does not fit the window any more, by
the best count there is, the user is asked instead. What is paused stands in the log: `session.history.undo.rest_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from codecompanion.model.history import PauseEnded, append
from codecompanion.model.messages import Message
from codecompanion.session.compaction.dry_run import dry_run
from codecompanion.wire.events import Severity

if TYPE_CHECKING:
    from codecompanion.session.window.context_control import ContextControl


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
        what = self.what
        await self._control.log.write(PauseEnded())
        self._control.notice(Severity.INFO, f"{what} no longer paused.")

    @property
    def what(self) -> str:
        """Return what is paused, as the beginning of a sentence."""
        edits = "context_edited" in self._control.log.rest.paused
        return "Editing and compaction are" if edits else "Compaction is"

    async def excess(self, coming: Sequence[Message] = ()) -> int:
        """Return the size of the next request, with what joins it, where it does not fit and nothing may make it fit.

        By the best count there is, after all that still happens by itself; 0: it can be sent, or nothing is paused.
        """
        control = self._control
        if not self.is_on:
            return 0
        view = reduce(append, coming, control.log.view)
        if not await control.fitting.excess(control.shaper.of(view.messages)):
            return 0
        prepared = dry_run(control.plan_request(view=view))
        return await control.fitting.excess(control.shaper.of(prepared.messages))
