"""Runs one stage of a policy: its tiers in order until a result is accepted (pipeline.md 5.4, R-529, R-530).

    for each tier: its steps → fallback writers of the summary, if a model failed → check the result → the target

The run is a generator that yields `Ask`s, receives `SummaryReply`s and returns a `StageReport`; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import msgspec

from codecompanion.context.policy.policy import CHAT_ADAPTER, Stage, Step, Tier
from codecompanion.context.stage_report import Ask, StageReport
from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.summary.writers import Kind, Writers
from codecompanion.context.thresholds import room_of, target_tokens
from codecompanion.context.work import (
    Env,
    Failed,
    Measure,
    Messages,
    Outcome,
    Skipped,
    Steps,
    SummaryReply,
    Trigger,
    Work,
)
from codecompanion.model.invariants import violations
from codecompanion.model.messages import SUMMARY_TAG, is_protected
from codecompanion.model.provenance import inherited

NOTHING_TO_DO = Skipped("nothing_to_do", "there is nothing to do")


def run_stage(
    stage: Stage,
    tiers: tuple[Tier, ...],
    messages: Messages,
    before: Measure,
    env: Env,
    trigger: Trigger,
    writers: Writers,
    most: int = 0,
) -> Generator[Ask, SummaryReply, StageReport]:
    """Run the tiers of one stage until a result is accepted (R-114, R-309, R-414); the last only has to be valid.

    Data read for the checks of a summary is dropped afterwards.
    """
    from codecompanion.context.read_ahead import forget  # stages run in long chats only

    try:
        return (yield from _run_tiers(stage, tiers, messages, before, env, trigger, writers, most))
    finally:
        forget(env.folds)


def _run_tiers(
    stage: Stage,
    tiers: tuple[Tier, ...],
    messages: Messages,
    before: Measure,
    env: Env,
    trigger: Trigger,
    writers: Writers,
    most: int,
) -> Generator[Ask, SummaryReply, StageReport]:
    """Run the tiers.

    A result that misses the target is kept if the later tiers have nothing to do. `most`: maximum size of the request
    afterwards, whatever the stage's own target, or 0 if only the target applies.
    """
    wanted = target_tokens(
        stage.trigger, stage.target, stage.target_gap, room_of(env, messages, stage.trigger, stage.target)
    )
    wanted = min(size for size in (wanted, most) if size) if wanted or most else 0
    env = msgspec.structs.replace(env, target=wanted)
    start = Work(before=messages, messages=messages)
    reached: dict[str, Work] = {}
    best: StageReport | None = None
    problems: list[str] = []
    asked_at_all = False
    not_asked = next(filter(None, (writers.failure((stage.event, tier.id)) for tier in tiers)), "")
    report = report_of(stage, NOTHING_TO_DO, before, before, trigger)
    for tier in tiers:
        calls = _Calls(stage, tier, trigger, before, writers, messages, env)
        result, asked = yield from _run_tier(tier, reached.get(tier.start, start), env, calls)
        asked_at_all = asked_at_all or asked
        after = before
        if isinstance(result, Work):
            reached[tier.id] = result
        if env.manual and not tier.manual:
            continue  # a tier that others continue is not a result
        if isinstance(result, Work):
            after = env.measure(result.messages)
            result = result if stage.event == "memory_flushed" else _checked(result, before, after)
        report = report_of(stage, result, before, after, trigger, tier)
        whether = {"asked": asked_at_all, "not_asked": "" if asked_at_all else not_asked}
        wrote_none = asked_at_all and writers.wrote_none
        report = msgspec.structs.replace(report, **whether, wrote_none=wrote_none, problems=tuple(problems))
        if report.work is None:
            problems.append(f"{tier.id or stage.id}: {report.detail}")
            continue
        if tier is tiers[-1] or tier.accept == "always":
            return report
        # The best guess is compared, because a target is not a safety limit.
        if stage.target is None or after.tokens <= wanted:
            return report
        problems.append(f"{tier.id}: {after.tokens} tokens are left, more than the target of {wanted}")
        best = report
    return best if best is not None and report.outcome == "skipped" else report


class _Calls(msgspec.Struct, frozen=True):
    """The context shared by a stage's model requests: the stage and tier, and the available writers."""

    stage: Stage
    tier: Tier
    trigger: Trigger
    before: Measure
    writers: Writers
    messages: Messages
    env: Env

    @property
    def kind(self) -> Kind:
        return self.stage.event, self.tier.id


def _run_tier(tier: Tier, work: Work, env: Env, calls: _Calls) -> Generator[Ask, SummaryReply, tuple[Outcome, bool]]:
    """Run one tier, with its fallback writers if a model fails to summarise (R-529, R-434, K9)."""
    result, asked = yield from _drive(_run_steps(tier.steps, work, env), calls)
    for other in tier.on_fail:
        if not isinstance(result, Failed):
            break
        why = result.reason
        if other != CHAT_ADAPTER:
            result, _ = yield from _drive(_run_steps(_without_model(tier.steps, other), work, env), calls)
            if isinstance(result, Work):
                result = result.with_details(summary_source=other, failure=why)
        elif not calls.writers.why_not(calls.kind, chat_adapter=True):
            chat_env = msgspec.structs.replace(env, summariser_window=env.window)
            steps = _run_steps(tier.steps, work, chat_env)
            result, also = yield from _drive(steps, calls, chat_adapter=True)
            asked = asked or also
    return result, asked


def _without_model(steps: tuple[Step, ...], other: str) -> tuple[Step, ...]:
    """Return the steps with `other` in place of the step that asks a model."""
    strategy = STRATEGIES[other]
    return tuple(Step(other, strategy.params()) if STRATEGIES[step.use].asks_model else step for step in steps)


def _drive(
    steps: Steps, calls: _Calls, *, chat_adapter: bool = False
) -> Generator[Ask, SummaryReply, tuple[Outcome, bool]]:
    """Forward the requests of the steps as `Ask`s; return the outcome and whether a model was asked.

    A writer that is known to fail is not asked; the steps receive the reason instead.
    """
    stage, writers, wanted, asked = calls.stage, calls.writers, False, False
    from codecompanion.context.read_ahead import read_ahead

    try:
        request = next(steps)
        wanted = True
        while True:
            why_not = writers.why_not(calls.kind, chat_adapter=chat_adapter)
            if why_not:
                request = steps.send(SummaryReply(error=why_not))
                continue
            asked = True
            reply = yield Ask(
                request=request,
                stage=stage,
                trigger=calls.trigger,
                before=calls.before,
                use_chat_adapter=chat_adapter,
                meanwhile=partial(read_ahead, calls.tier.steps, calls.messages, request.subject, calls.env),
            )
            writers.take_reply(reply, chat_adapter=chat_adapter)
            request = steps.send(reply)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        if wanted:
            writers.take_outcome(outcome, calls.kind, chat_adapter=chat_adapter, asked=asked)
        return outcome, asked
    finally:
        steps.close()


def _run_steps(steps: tuple[Step, ...], work: Work, env: Env) -> Steps:
    """Run strategies in order, up to the first whose outcome is not `Work`.

    An optional step with nothing to do is skipped; if no step changes anything, the outcome is `Skipped`.
    """
    start, idle = work, NOTHING_TO_DO
    for step in steps:
        strategy = STRATEGIES[step.use]
        outcome = strategy.run(work, step.params, env)
        if isinstance(outcome, Generator):
            outcome = yield from outcome
        if isinstance(outcome, Skipped) and step.optional:
            idle = outcome
        elif not isinstance(outcome, Work):
            return outcome
        else:
            work = outcome
    return idle if work is start else work


def _checked(work: Work, before: Measure, after: Measure) -> Outcome:
    """Return the work if it is smaller, its pairs complete and protected messages unchanged, else the problem (R-530).

    New messages get the sources of the messages they replace, as they will in the view.
    """
    if after.tokens >= before.tokens:
        return Failed(f"it would not make the request smaller ({before.tokens} tokens before, {after.tokens} after)")
    broken = violations(work.messages)
    if broken:
        return Failed(f"it would separate a tool call from its result: {broken[0]}")
    kept = {message.id: message for message in work.messages}
    for message in work.before:
        if is_protected(message) and kept.get(message.id) != message:
            return Failed(f"it would change the protected message {message.id}")
    if sum(message.tag == SUMMARY_TAG for message in work.messages) > 1:
        return Failed("there would be two summaries")
    return msgspec.structs.replace(work, messages=inherited(work.before, work.messages))


def report_of(
    stage: Stage, result: Outcome, before: Measure, after: Measure, trigger: Trigger, tier: Tier | None = None
) -> StageReport:
    """Return the report of a stage."""
    report = StageReport(stage=stage, outcome="changed", trigger=trigger, before=before, after=before, way=tier)
    match result:
        case Work():
            return msgspec.structs.replace(report, after=after, work=result)
        case Skipped(reason=reason, detail=detail):
            return msgspec.structs.replace(report, outcome="skipped", reason=reason, detail=detail)
        case Failed(reason=detail):
            return msgspec.structs.replace(report, outcome="failed", reason="failed", detail=detail)
