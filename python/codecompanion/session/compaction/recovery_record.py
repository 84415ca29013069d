"""Logs and reports how a request that the provider refused as too long was made smaller (R-451).

Uses the event names of the policy's `recovery`; for a policy without them, nothing is logged.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from codecompanion.context.named_events import Occasion, events_of
from codecompanion.context.policy.policy import Emits
from codecompanion.context.stage_report import StageReport
from codecompanion.session.compaction.announcer import Announcer
from codecompanion.session.history.chat_log import ChatLog

NOTHING_LEFT = "nothing more can be removed from the request"


class RecoveryRecord(msgspec.Struct, frozen=True):
    """One attempt to make a request smaller: `refused` is its size and `target` the size to reach, in tokens."""

    announcer: Announcer
    log: ChatLog
    names: Emits
    attempt: int
    refused: int
    target: int

    async def begin(self) -> None:
        """Report the start of the attempt."""
        await self._tell((self.names.started,), None, "")

    async def end(self, reports: Sequence[StageReport], after: int) -> None:
        """Report whether the request is smaller now, and if not, why."""
        changed = [report for report in reports if report.work is not None]
        if after < self.refused:
            await self._tell(self.names.changed, changed[-1] if changed else None, "")
            return
        failed = [report.detail for report in reports if report.outcome == "failed"]
        await self._tell((self.names.failed,), None, failed[-1] if failed else NOTHING_LEFT)

    async def _tell(self, names: Sequence[str], report: StageReport | None, reason: str) -> None:
        occasion = Occasion(
            report=report, tokens=self.refused, target_tokens=self.target, attempt=self.attempt, reason=reason
        )
        events = events_of(names, occasion)
        if events:
            await self.log.write(*events)
            self.announcer.tell(events)
