"""What a preparation tells the session: what each stage did, and what it asks on the way."""

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
    """What one stage did. `outcome` is `changed`, `skipped` or `failed`; `work` is set when changed.

    `asked`: a model was asked for a summary; `not_asked`: why none was any more, by what failed before; `wrote_none`:
    it answered, but with no usable summary. `way`: the tier that ran last; `problems` what was wrong with those tried
    before, `curtailed` that those that summarise were left out. A stage that only writes to the memory is `changed`
    with equal messages.
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
        """Return what the change is called; a tier may have a name of its own for what it did (R-411)."""
        own = self.way.event if self.way is not None and self.work is not None else ""
        return own or self.stage.event

    @property
    def tier(self) -> int:
        """Return the number of the tier, 0 when none ran (R-137)."""
        return self.way.number if self.way is not None else 0

    @property
    def details(self) -> Details:
        """Return what its steps said of their work."""
        return self.work.details if self.work is not None else Details()

    @property
    def removed_messages(self) -> bool:
        """Return whether messages left the view."""
        return self.work is not None and bool(self.work.removed)


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of the next request and how they came about."""

    messages: Messages
    measure: Measure
    repair: Repair
    reports: tuple[StageReport, ...] = ()

    @property
    def changed(self) -> tuple[StageReport, ...]:
        """Return what the stages say that changed something."""
        return tuple(report for report in self.reports if report.work is not None)


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A summary request on its way out: which stage wants it, and whether the chat's own adapter must be used.

    `meanwhile` reads what the steps after it will need, and calls what it is given in between: it may be run in a
    thread while the summary is written, and changes no result.
    """

    request: SummaryRequest
    stage: Stage
    trigger: Trigger
    before: Measure
    use_chat_adapter: bool = False
    meanwhile: Callable[[Callable[[], None]], None] = lambda pause: None


Preparation = Generator[Ask, SummaryReply, Prepared]


def drive(preparation: Preparation, answer: Callable[[Ask], SummaryReply]) -> tuple[Prepared, list[Ask]]:
    """Run a preparation to its end; return what came of it, and what was asked, each answered at once by `answer`."""
    asked: list[Ask] = []
    try:
        ask = next(preparation)
        while True:
            asked.append(ask)
            ask = preparation.send(answer(ask))
    except StopIteration as stop:
        return stop.value, asked
