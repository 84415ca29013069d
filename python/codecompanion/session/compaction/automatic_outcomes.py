"""Tracks whether a chat's automatic compactions succeed: retries, pauses, and warnings to the user (R-532).

There are two guards: one for compactions that failed or had no effect, and one for the model that writes summaries. If
a policy can do without that model, a compaction succeeds even if the model fails, and asking the model each time would
be a hidden cost.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from codecompanion.context.compaction_notes import why_not_by_model
from codecompanion.context.policy.policy import Cooldown, Policy, Stage
from codecompanion.context.stage_report import Prepared, StageReport
from codecompanion.context.thresholds import Room, is_crossed
from codecompanion.context.work import Measure
from codecompanion.formats.plural import counted

_NOT_TRIED = frozenset({"nothing_to_summarise", "window_not_full", "in_tool_loop"})
"""Reasons of stages that had nothing to do yet; these do not count as failures."""


PAUSE_ENDS_WITH_GROWTH = 0.05
"""Growth of the request, as a share of the window, that ends a pause early; a long tool loop is only a single cycle."""


PAUSE_GROWS_TO = 8
"""Maximum length of a pause, as a multiple of the first; the length doubles with each pause until a compaction
succeeds.
"""


class CompactionGuard(msgspec.Struct, frozen=True):
    """The state of automatic compaction: consecutive failures, pauses since the last success, and the end of the pause.

    A pause ends at the cycle or the request size (in tokens) stored here, whichever is reached first.
    """

    failures: int = 0
    pauses: int = 0
    paused_until_cycle: int = 0
    paused_until_tokens: int = 0

    def allows(self, cycle: int, tokens: int) -> bool:
        """Return whether automatic compaction may be tried in this cycle, at this request size."""
        return cycle >= self.paused_until_cycle or tokens >= self.paused_until_tokens

    def after_success(self) -> CompactionGuard:
        """Return the guard after a compaction that helped."""
        return CompactionGuard()

    def after_failure(self, cycle: int, tokens: int, window: int, cooldown: Cooldown) -> CompactionGuard:
        """Return the guard after a failed or useless compaction; the last permitted failure starts a pause.

        After a pause, one attempt is allowed before the next, longer pause. In a small window, a single tool result is
        enough growth, so a pause ends early only above the size that ended the previous pause.
        """
        failures = self.failures + 1
        if failures < cooldown.failures:
            return msgspec.structs.replace(self, failures=failures)
        longer = min(2**self.pauses, PAUSE_GROWS_TO)
        return CompactionGuard(
            cooldown.failures - 1,
            self.pauses + 1,
            cycle + longer * cooldown.cycles,
            max(tokens, self.paused_until_tokens) + longer * int(PAUSE_ENDS_WITH_GROWTH * window),
        )


class CompactionJudge(msgspec.Struct, frozen=True):
    """The figures for judging a compaction. `overhead`: tokens of system prompt and tool schemas."""

    policy: Policy
    room: Room
    cycle: int
    overhead: int

    def no_gain_message(self, after: Measure) -> str:
        """Return a message saying that a compaction with this result did not help."""
        return (
            f"the compacted request still has {after.tokens} tokens, above the trigger"
            f" (system prompt and tools alone take {self.overhead})"
        )

    def problem(self, report: StageReport, stage: Stage) -> str:
        """Return why a compaction did not help, or "" if it did."""
        if report.outcome != "changed":
            return report.detail
        if stage.trigger.always or not is_crossed(stage.trigger, report.after, self.room):
            return ""
        return self.no_gain_message(report.after)


class CompactionWatch:
    """The guards of one chat. Each guard reports its first pause, and another one only after a success."""

    def __init__(self, warn: Callable[[str, bool], None]) -> None:
        """Create the guards.

        `warn` shows a sentence to the user; with True, the sentence is removed when a compaction succeeds.
        """
        self._warn = warn
        self.compactions = CompactionGuard()
        self.writer = CompactionGuard()
        self.writer_is_proven = False
        """Whether the model's last output was a summary; only then are several parts requested at the same time."""
        self.unusable_writer = ""
        """The model whose last replies were not summaries, until it writes a summary or another model is chosen."""
        self.writes_in_place = True
        """Whether the model may be asked within the chat itself; False once it continued the task instead of
        summarising.
        """

    def reset(self) -> None:
        """Forget failures, because the view was cleared or the model changed."""
        self.compactions = self.writer = CompactionGuard()
        self.writer_is_proven, self.writes_in_place, self.unusable_writer = False, True, ""

    def allows_asking(self, cycle: int, tokens: int) -> bool:
        """Return whether a model may be asked for an automatic summary."""
        return self.writer.allows(cycle, tokens) and self.compactions.allows(cycle, tokens)

    def see_writer(self, prepared: Prepared, name: Callable[[], str]) -> None:
        """Record whether the model wrote the requested summary, in any kind of compaction.

        `name` returns the model's name.
        """
        for report in prepared.reports:
            if report.asked and report.event == "context_compacted":
                self.writer_is_proven = report.work is not None and not why_not_by_model(report)
                if self.writer_is_proven:
                    self.unusable_writer = ""
                elif report.wrote_none:
                    self.unusable_writer = name()
                self.writes_in_place = self.writes_in_place and report.details.in_place is not False

    def take(self, prepared: Prepared, judge: CompactionJudge) -> None:
        """Record the results of the automatic compactions in one preparation."""
        for report in prepared.reports:
            stage = next((stage for stage in judge.policy.stages if stage.id == report.stage.id), None)
            if stage is None or not stage.summarises or report.curtailed or report.reason in _NOT_TRIED:
                continue
            problem = judge.problem(report, stage)
            self.keep(problem, report.after, judge, was_told=report.outcome == "failed" and report.asked)
            if (report.asked or report.not_asked) and report.work is not None:
                self._keep_writer(why_not_by_model(report), report.before, judge)

    def take_recovery(self, prepared: Prepared, judge: CompactionJudge) -> None:
        """Record the summariser's results of making a refused request smaller.

        Only the guard of the summariser changes.
        """
        for report in prepared.reports:
            if report.asked and report.event == "context_compacted":
                self._keep_writer(why_not_by_model(report), report.before, judge)

    def keep(self, problem: str, after: Measure, judge: CompactionJudge, *, was_told: bool) -> None:
        """Record the result of an automatic compaction; `problem` is "" if it helped.

        `was_told`: the user has just seen a message about it.
        """
        self.compactions = _judged(self.compactions, problem, after, judge)
        if self.compactions.pauses == 1:
            why = "" if was_told else f": {problem.rstrip('.')}"
            self._warn(
                f"Automatic compaction is paused after {counted(judge.policy.cooldown.failures, 'try', 'tries')}"
                f"{why}. It retries with increasing delays; /compact still works.",
                was_told,
            )

    def _keep_writer(self, why: str, before: Measure, judge: CompactionJudge) -> None:
        self.writer = _judged(self.writer, why, before, judge)
        if self.writer.pauses == 1:
            self._warn(
                "Summaries are written without a model for now: the model failed"
                f" {counted(judge.policy.cooldown.failures, 'time')} in a row. It is retried with increasing delays;"
                " /compact retries it now.",
                False,
            )


def _judged(guard: CompactionGuard, problem: str, size: Measure, judge: CompactionJudge) -> CompactionGuard:
    """Return the guard after one more attempt; `problem` is "" if it succeeded."""
    if not problem:
        return guard.after_success()
    return guard.after_failure(judge.cycle, size.tokens, judge.room.window, judge.policy.cooldown)
