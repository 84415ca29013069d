"""Logs and reports one compaction, with exactly one start and one end, whichever summariser is used (R-543)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from codecompanion.context.policy.policy import Card
from codecompanion.context.work import Trigger
from codecompanion.errors import CodeCompanionError
from codecompanion.model import history
from codecompanion.model.change_report import ChangeReport
from codecompanion.model.history import PolicyEvent, ViewChanged
from codecompanion.model.messages import SUMMARY_TAG, UNSHOWN_TAGS, Message
from codecompanion.session.history.card_sections import card_sections
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.history.messages_out_of_view import place_of_card, summary_ids
from codecompanion.session.services import Services
from codecompanion.wire.events import Compacted, CompactionFailed, CompactionStarted, Notice, Severity

STANDARD_CARD = Card()


def failure(card: Card, reason: str) -> str:
    """Return the message for a failed compaction, which says that nothing was changed."""
    return f"{card.failed}: {reason.rstrip('.')}. Nothing was changed."


class CompactionRecord(msgspec.Struct):
    """The running compaction; the object is reused for the next one.

    `id` is also the id of the change that completes it.

    `is_open`: the compaction has begun and not ended, both in the log and for the user. `has_told`: the user has seen
    why the newest compaction failed.
    """

    services: Services
    log: ChatLog
    on_compacting: Callable[[bool], None]
    id: str = ""
    label: str = ""
    trigger: Trigger = "proactive"
    card: Card = STANDARD_CARD
    is_open: bool = False
    has_told: bool = False
    _started_at: float = 0.0

    async def begin(
        self,
        trigger: Trigger,
        label: str,
        tokens_before: int,
        *,
        failed_event: str = "",
        card: Card = STANDARD_CARD,
        also: Callable[[str], Sequence[PolicyEvent]] = lambda compaction_id: (),
    ) -> Sequence[PolicyEvent]:
        """Announce the compaction once; until it ends, later calls only update the summariser's name.

        Returns the named events that `also` created and that were logged with it; the caller sends them to the editor.

        Raises:
            StoreError: the compaction has not begun; the user has seen why.
        """
        self.label = label
        if self.is_open:
            return ()
        self.id, self.trigger, self._started_at = self.services.new_token(), trigger, self.services.clock()
        self.card = card
        self.on_compacting(True)
        named = also(self.id)
        began = history.CompactionStarted(
            compaction_id=self.id,
            trigger=trigger,
            summariser=label,
            tokens_before=tokens_before,
            failed_event=failed_event,
        )
        try:
            await self.log.write(began, *named)
        except CodeCompanionError as error:
            text = failure(card, str(error))
            self.services.emit(Notice(chat=self.log.chat_id, level=Severity.WARN, text=text))
            self.has_told = True
            raise
        self.is_open = True
        started = CompactionStarted(
            chat=self.log.chat_id, compaction_id=self.id, trigger=trigger, summariser=label, label=card.running
        )
        self.services.emit(started)
        return named

    async def fail(self, reason: str, *, cancelled: bool = False, also: Sequence[PolicyEvent] = ()) -> None:
        """End the compaction without a change, unless it has already ended, and show the user why.

        The `also` events are logged with the end.
        """
        if not self.is_open:
            return
        self.is_open = False
        text = "Compaction stopped. Nothing was changed." if cancelled else failure(self.card, reason)
        try:
            await self.log.write(
                history.CompactionFailed(compaction_id=self.id, reason=reason, cancelled=cancelled), *also
            )
        finally:
            failed = CompactionFailed(chat=self.log.chat_id, compaction_id=self.id, reason=text, cancelled=cancelled)
            self.services.emit(failed)
            self.has_told = True

    @property
    def duration_ms(self) -> int:
        """Return the duration so far, in milliseconds."""
        return round((self.services.clock() - self._started_at) * 1000)

    def report(self, removed: Sequence[Message], summary: str) -> ChangeReport:
        """Return the report to store with the change: summariser, number of messages, cycles, duration."""
        gone = [message for message in removed if message.tag != SUMMARY_TAG]
        cycles = [message.cycle for message in gone if message.cycle is not None] or [0]
        return ChangeReport(
            compaction_id=self.id,
            summariser=self.label,
            messages=sum(message.tag not in UNSHOWN_TAGS for message in gone),  # the number that the fold above shows
            cycles=(min(cycles), max(cycles)),
            duration_ms=self.duration_ms,
            summary=summary,
            title=self.card.title,
            folded=self.card.folded,
        )

    def placed(self, change: ViewChanged, messages: Sequence[Message]) -> ViewChanged:
        """Return the change with the message above which its card is shown; `messages`: the view before the change."""
        report = msgspec.structs.replace(change.report, before=place_of_card(messages, change))
        return msgspec.structs.replace(change, report=report)

    def show(self, change: ViewChanged) -> None:
        """Send the completed change to the editor."""
        self.is_open = False
        report = change.report
        self.services.emit(
            Compacted(
                chat=self.log.chat_id,
                compaction_id=self.id,
                trigger=cast(Trigger, report.trigger or self.trigger),
                summariser=self.label,
                summary=report.summary,
                sections=card_sections(report.summary),
                messages=report.messages or 0,
                cycles=report.cycles,
                tokens_before=change.tokens_before,
                tokens_after=change.tokens_after,
                duration_ms=report.duration_ms,
                title=report.title,
                folded=report.folded,
                tier=report.tier,
                counts=report.counts,
                removed=change.removed,
                summary_ids=summary_ids(change),
                before=report.before or "",
            )
        )

    def close(self) -> None:
        """Leave the state `compacting`, however the compaction ended."""
        if self.id:
            self.on_compacting(False)
