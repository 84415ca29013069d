"""Defines the output of a preparation for the session: a report per stage, and its requests to models."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Literal

import msgspec

from codecompanion.context.editing.repair_pairs import Repair
from codecompanion.context.policy.policy import Stage, Tier
from codecompanion.context.work import (
    Details,
    Measure,
    Messages,
    StageEvent,
    SummaryReply,
    SummaryRequest,
    Trigger,
    Work,
)


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one stage. `outcome` is `changed`, `skipped` or `failed`; `work` is set when changed.

    `asked`: a model was asked for a summary. `not_asked`: why no model was asked, after earlier failures. `wrote_none`:
    the model answered, but not with a usable summary. `way`: the last tier that ran. `problems`: the errors of earlier
    tiers. `curtailed`: the stage's summarising tiers were skipped. A stage that only writes to the memory is `changed`,
    although its messages are unchanged.
    """

    stage: Stage
    outcome: Literal["changed", "skipped", "failed"]
    trigger: Trigger
    before: Measure
    after: Measure
    work: Work | None = None
    reason: str = ""
    detail: str = ""
    asked: bool = False
    not_asked: str = ""
    wrote_none: bool = False
    way: Tier | None = None
    problems: tuple[str, ...] = ()
    curtailed: bool = False

    @property
    def event(self) -> StageEvent:
        """Return the event of the change; a tier may have its own event (R-411)."""
        own = self.way.event if self.way is not None and self.work is not None else ""
        return own or self.stage.event

    @property
    def tier(self) -> int:
        """Return the number of the tier, or 0 if none ran (R-137)."""
        return self.way.number if self.way is not None else 0

    @property
    def details(self) -> Details:
        """Return the details reported by its steps."""
        return self.work.details if self.work is not None else Details()

    @property
    def removed_messages(self) -> bool:
        """Return whether messages left the view."""
        return self.work is not None and bool(self.work.removed)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of the next request, and the reports on how they were prepared."""

    messages: Messages
    measure: Measure
    repair: Repair
    reports: tuple[StageReport, ...] = ()

    @property
    def changed(self) -> tuple[StageReport, ...]:
        """Return the reports of stages that changed something."""
        return tuple(report for report in self.reports if report.work is not None)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a summary: the stage that needs it, and whether it must use the chat's own adapter.

    `meanwhile` reads data for the following steps, calling its argument repeatedly; it may run in a thread while the
    summary is written, and does not change any result.
    """

    request: SummaryRequest
    stage: Stage
    trigger: Trigger
    before: Measure
    use_chat_adapter: bool = False
    meanwhile: Callable[[Callable[[], None]], None] = lambda pause: None


Preparation = Generator[Ask, SummaryReply, Prepared]


def drive(preparation: Preparation, answer: Callable[[Ask], SummaryReply]) -> tuple[Prepared, list[Ask]]:
    """Run a preparation to its end; return the result and all requests, each answered immediately by `answer`."""
    asked: list[Ask] = []
    try:
        ask = next(preparation)
        while True:
            asked.append(ask)
            ask = preparation.send(answer(ask))
    except StopIteration as stop:
        return stop.value, asked
