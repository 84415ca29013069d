"""Reports compaction events under the names used in the policies' documents (R-327…R-333, R-144, R-423, R-453).

Each event is one `history.PolicyEvent`: stored in one transaction with the change it describes, then sent to the
editor. The policy table lists the names for each stage (`emits`); `context.named_events` defines their fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from codecompanion.context.named_events import Occasion, events_of
from codecompanion.context.policy.policy import Policy
from codecompanion.context.stage_report import Ask, Prepared, StageReport
from codecompanion.context.thresholds import Room, basis_tokens, target_tokens, threshold_tokens, warning_level
from codecompanion.model.history import PolicyEvent
from codecompanion.wire import events
from codecompanion.wire.events import Event


def tell(emit: Callable[[Event], None], chat_id: str, named: Sequence[PolicyEvent]) -> None:
    """Send named events that are in the log to the editor."""
    for one in named:
        emit(events.PolicyEvent(chat=chat_id, name=one.name, fields=one.fields, compaction_id=one.compaction_id))


class Announcer(msgspec.Struct, frozen=True):
    """Creates the named events of one preparation.

    `exact`: the provider has counted the request. `limit_source`: the source of the window size (R-325).
    """

    chat_id: str
    policy: Policy
    room: Room
    exact: bool
    limit_source: str
    emit: Callable[[Event], None]

    def started(self, ask: Ask, compaction_id: str) -> tuple[PolicyEvent, ...]:
        """Return the events logged at the start of a compaction."""
        occasion = self._occasion(ask.stage.id, Occasion(trigger=ask.trigger, tokens=ask.before.tokens))
        return events_of((ask.stage.emits.started,), occasion, compaction_id)

    def began(self, report: StageReport, compaction_id: str) -> tuple[PolicyEvent, ...]:
        """Return the events to log at the start of a compaction that asks no model (R-332)."""
        occasion = self._occasion(report.stage.id, Occasion(trigger=report.trigger, tokens=report.before.tokens))
        return events_of((report.stage.emits.started,), occasion, compaction_id)

    def changed(self, report: StageReport, change_id: str, model: str, duration_ms: int) -> tuple[PolicyEvent, ...]:
        """Return the events to log with a change that a stage made."""
        occasion = Occasion(report=report, trigger=report.trigger, tier=report.tier, compacted=True)
        occasion = self._occasion(report.stage.id, occasion, model=model, duration_ms=duration_ms)
        return events_of(report.stage.emits.changed, occasion, change_id)

    def failed(self, stage: str, tokens: int, reason: str, compaction_id: str) -> tuple[PolicyEvent, ...]:
        """Return the events to log with a compaction that ended without a change."""
        found = self.policy.stage(stage)
        if found is None or not found.emits.failed:
            return ()
        occasion = self._occasion(stage, Occasion(tokens=tokens, detail=reason, reason="artifact_generation_failed"))
        return events_of((found.emits.failed,), occasion, compaction_id)

    def status(self, prepared: Prepared) -> tuple[PolicyEvent, ...]:
        """Return an event reporting how full the window was before the policy ran, if it justifies a warning (R-144).

        `sentTokens` is the size of the request that is sent, which shows the effect of the policy.
        """
        first = prepared.reports[0].before if prepared.reports else prepared.measure
        if not self.policy.status_event or warning_level(first.tokens, self.room.window) == "none":
            return ()
        compacted = prepared.changed
        occasion = Occasion(
            tokens=first.tokens,
            window=self.room.window,
            compacted=bool(compacted),
            tier=compacted[-1].tier if compacted else 0,
            sent_tokens=prepared.measure.tokens,
        )
        return events_of((self.policy.status_event,), occasion)

    def tell(self, named: Sequence[PolicyEvent]) -> None:
        """Send events that are now in the log to the editor."""
        tell(self.emit, self.chat_id, named)

    def _occasion(self, stage_id: str, occasion: Occasion, *, model: str = "", duration_ms: int = 0) -> Occasion:
        """Return the occasion with the stage's thresholds and the current model filled in."""
        stage, room = self.policy.stage(stage_id), self.room
        trigger = threshold_tokens(stage.trigger, room) if stage is not None else None
        target = target_tokens(stage.trigger, stage.target, stage.target_gap, room) if stage is not None else 0
        return msgspec.structs.replace(
            occasion,
            window=room.window,
            available=basis_tokens("available", room),
            trigger_tokens=trigger or 0,
            target_tokens=target,
            exact=self.exact,
            model=model,
            duration_ms=duration_ms,
            limit_source=self.limit_source,
        )
