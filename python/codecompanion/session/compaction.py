"""Carries a preparation out: asks the summariser, commits each stage as one event, tells the user (R-529…R-533, R-543).

The decisions are `context.pipeline`'s; here are the effects: model calls with a deadline, the log, the events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from codecompanion.adapters.base import Adapter, RetryScheduled
from codecompanion.context.change import repair_change, view_change
from codecompanion.context.pipeline import Ask, Preparation, Prepared, StageReport
from codecompanion.context.policy import Policy
from codecompanion.context.work import SummaryReply
from codecompanion.errors import CodeCompanionError
from codecompanion.events import Compacted, CompactionFailed, CompactionStarted, ContextEdited, Event, Retrying
from codecompanion.history import CompactionBegan, CompactionEnded, ViewChanged
from codecompanion.messages import SUMMARY_TAG
from codecompanion.session.log import ChatLog, to_the_end
from codecompanion.session.summarise import ask_summary


@dataclass(frozen=True, slots=True)
class Summariser:
    """Who writes a summary: an adapter and a model, and how it is called in front of the user."""

    adapter: Adapter
    model: str

    @property
    def label(self) -> str:
        """Return the model's name, or the adapter's when it has none."""
        return self.model or self.adapter.name


@dataclass(slots=True)
class Compactor:
    """Runs preparations of one chat."""

    chat_id: str
    log: ChatLog
    emit: Callable[[Event], None]
    clock: Callable[[], float]
    new_id: Callable[[], str]
    timeout_s: float
    summariser: Callable[[bool], Summariser]
    on_compacting: Callable[[bool], None]

    async def run(self, preparation: Preparation, policy: Policy) -> Prepared:
        """Drive a preparation to its end and commit what it did; the view is then the next request.

        Raises:
            asyncio.CancelledError: the user stopped; nothing was changed and the compaction is logged as cancelled.
            StoreError: the change could not be stored; the view is as before.
        """
        run = _Run(self, policy)
        try:
            return await run.drive(preparation)
        finally:
            preparation.close()
            if run.compaction_id:
                self.on_compacting(False)


class _Run:
    """One preparation on its way."""

    def __init__(self, owner: Compactor, policy: Policy) -> None:
        self._owner, self._policy = owner, policy
        self.compaction_id = ""
        self._trigger, self._label, self._started_at = "proactive", "", 0.0

    async def drive(self, preparation: Preparation) -> Prepared:
        try:
            ask = next(preparation)
            while True:
                await to_the_end(self._begin(ask))
                ask = preparation.send(await self._answer(ask))
        except StopIteration as stop:
            prepared: Prepared = stop.value
        except BaseException as error:
            await self._abandon(error)
            raise
        try:
            await to_the_end(self._commit(prepared))
        except CodeCompanionError as error:
            await self._abandon(error)
            raise
        return prepared

    async def _begin(self, ask: Ask) -> None:
        """Announce the compaction once, before its first model call."""
        self._label = self._name_summariser(ask.use_chat_adapter)
        if self.compaction_id:
            return
        owner = self._owner
        self.compaction_id, self._trigger, self._started_at = owner.new_id(), ask.trigger, owner.clock()
        owner.on_compacting(True)
        await owner.log.write(
            CompactionBegan(
                compaction_id=self.compaction_id,
                trigger=ask.trigger,
                summariser=self._label,
                tokens_before=ask.before.tokens,
            )
        )
        owner.emit(
            CompactionStarted(
                chat=owner.chat_id,
                compaction_id=self.compaction_id,
                trigger=ask.trigger,
                summariser=self._label,
            )
        )

    def _name_summariser(self, use_chat_adapter: bool) -> str:
        try:
            return self._owner.summariser(use_chat_adapter).label
        except CodeCompanionError:
            return self._policy.summary_adapter.name

    async def _answer(self, ask: Ask) -> SummaryReply:
        """Ask the summariser; a name that does not resolve is a failure like any other (R-504)."""
        try:
            summariser = self._owner.summariser(ask.use_chat_adapter)
        except CodeCompanionError as error:
            return SummaryReply(error=str(error))
        return await ask_summary(
            summariser.adapter,
            summariser.model,
            ask.request,
            timeout_s=self._owner.timeout_s,
            on_retry=self._tell_retry,
        )

    def _tell_retry(self, event: RetryScheduled) -> None:
        owner = self._owner
        owner.emit(Retrying(chat=owner.chat_id, reason=event.reason, attempt=event.attempt, wait_ms=event.wait_ms))

    async def _abandon(self, error: BaseException) -> None:
        """End an announced compaction that cannot go on; nothing was changed."""
        if not self.compaction_id:
            return
        cancelled = isinstance(error, asyncio.CancelledError)
        reason = "it was stopped" if cancelled else str(error)
        await self._end(reason, cancelled=cancelled)

    async def _end(self, reason: str, *, cancelled: bool = False) -> None:
        owner = self._owner
        text = f"Compaction skipped: {reason.rstrip('.')}. Nothing was changed."
        try:
            await owner.log.write(CompactionEnded(compaction_id=self.compaction_id, reason=reason, cancelled=cancelled))
        finally:
            owner.emit(
                CompactionFailed(chat=owner.chat_id, compaction_id=self.compaction_id, reason=text, cancelled=cancelled)
            )

    async def _commit(self, prepared: Prepared) -> None:
        """Log what changed, then show it; a repair comes first because the stages stand on it."""
        owner = self._owner
        before = owner.log.view.messages
        if prepared.repair.changed:
            await owner.log.write(repair_change(before, prepared.repair, owner.new_id()))
        current = prepared.repair.messages if prepared.repair.changed else before
        ended = False
        for report in prepared.reports:
            if report.work is None:
                continue
            # An edit gets an id of its own, so that it can be undone apart from the compaction of the same run.
            change_id = self.compaction_id if report.event == "context_compacted" else owner.new_id()
            change = view_change(report, report.work, current, change_id, self._details(report))
            await owner.log.write(change)
            current = report.work.messages
            self._show(report, change)
            ended = ended or report.event == "context_compacted"
        if self.compaction_id and not ended:
            failed = next(r for r in prepared.reports if r.event == "context_compacted")
            await self._end(failed.detail)

    def _details(self, report: StageReport) -> dict[str, object]:
        if report.event == "context_edited" or report.work is None:
            return {}
        removed = [message for message in report.work.removed if message.tag != SUMMARY_TAG]
        cycles = [message.cycle for message in removed if message.cycle is not None] or [0]
        duration_ms = round((self._owner.clock() - self._started_at) * 1000)
        return {
            "compaction_id": self.compaction_id,
            "summariser": self._label,
            "messages": len(removed),
            "cycles": [min(cycles), max(cycles)],
            "duration_ms": duration_ms,
            "summary": report.work.summary,
        }

    def _show(self, report: StageReport, change: ViewChanged) -> None:
        owner, details = self._owner, change.report
        if report.event == "context_edited":
            owner.emit(
                ContextEdited(
                    chat=owner.chat_id,
                    cleared=details["cleared"],
                    tokens_before=change.tokens_before,
                    tokens_after=change.tokens_after,
                    call_ids=tuple(details["call_ids"]),
                )
            )
            return
        owner.emit(
            Compacted(
                chat=owner.chat_id,
                compaction_id=self.compaction_id,
                trigger=report.trigger,
                summariser=self._label,
                summary=details["summary"],
                messages=details["messages"],
                cycles=(details["cycles"][0], details["cycles"][1]),
                tokens_before=change.tokens_before,
                tokens_after=change.tokens_after,
                duration_ms=details["duration_ms"],
            )
        )
