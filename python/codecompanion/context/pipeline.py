"""THE ORDER: how the next request is prepared (pipeline.md 5.4, R-518…R-520, R-529, R-530).

    repair pairs → is management on, and no call open? → for each stage of the policy, in its order:
        trigger crossed? → run its steps → check the result → swap

`prepare` and `compact` are generators: they yield `SummaryRequest`s and receive `SummaryReply`s, and return
`Prepared`. They change nothing; the session commits the result as one event per stage.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Literal

import msgspec

from codecompanion.context.budget import is_crossed
from codecompanion.context.policy import Policy, Stage, recovery_stages
from codecompanion.context.repair import Repair, repair_pairs
from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.work import (
    Env,
    Failed,
    Measure,
    Messages,
    Outcome,
    Skipped,
    Steps,
    SummaryReply,
    SummaryRequest,
    Trigger,
    Work,
)
from codecompanion.history import View
from codecompanion.invariants import violations
from codecompanion.messages import SUMMARY_TAG, is_protected


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage did. `outcome` is `changed`, `skipped` or `failed`; `work` is set when changed.

    `asked`: a model was asked for a summary.
    """

    stage: str
    event: Literal["context_edited", "context_compacted"]
    outcome: Literal["changed", "skipped", "failed"]
    trigger: Trigger
    before: Measure
    after: Measure
    work: Work | None = None
    reason: str = ""
    detail: str = ""
    asked: bool = False


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of the next request and how they came about."""

    messages: Messages
    measure: Measure
    repair: Repair
    reports: tuple[StageReport, ...] = ()


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A summary request on its way out: which stage wants it, and whether the chat's own adapter must be used."""

    request: SummaryRequest
    stage: str
    trigger: Trigger
    before: Measure
    use_chat_adapter: bool = False


Preparation = Generator[Ask, SummaryReply, Prepared]


def prepare(view: View, policy: Policy, env: Env, *, automatic_summaries: bool = True) -> Preparation:
    """Prepare the next request (R-518): run before **every** provider request.

    `automatic_summaries` false leaves out stages that need a model: the adapter compacts by itself (K15) or the
    guard of R-532 is resting.
    """
    repair = _repaired(view)
    measured = env.measure(repair.messages)
    if not policy.enabled or view.has_open_calls:
        return Prepared(messages=repair.messages, measure=measured, repair=repair)
    current, reports = repair.messages, list[StageReport]()
    for stage in policy.stages:
        if stage.needs_model and not automatic_summaries:
            continue
        if not _is_due(stage, policy, measured, env, automatic_summaries):
            continue
        report = yield from _run_stage(stage, current, measured, env, "proactive")
        reports.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(reports))


def compact(view: View, policy: Policy, env: Env) -> Preparation:
    """Run the policy's manual stages at any token count: `/compact` (R-533). Nothing happens with an open call."""
    repair = _repaired(view)
    measured = env.measure(repair.messages)
    if view.has_open_calls:
        detail = "a tool call is still unanswered"
        reports: tuple[StageReport, ...] = tuple(
            _report(stage, Skipped("open_calls", detail), measured, measured, "manual")
            for stage in policy.stages
            if stage.manual
        )
        return Prepared(messages=repair.messages, measure=measured, repair=repair, reports=reports)
    current, done = repair.messages, list[StageReport]()
    for stage in policy.stages:
        if not stage.manual:
            continue
        report = yield from _run_stage(stage, current, measured, env, "manual")
        done.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(done))


def recover(view: View, policy: Policy, env: Env, target: int) -> Preparation:
    """Make a request smaller that the provider refused as too long (R-535), wherever the triggers stand.

    The policy's own stages come first, in their order; what needs a model may fail, the last tier does not. Ends as
    soon as the request is at most `target` tokens. What is switched off stays off (lesson 13), and nothing happens
    with an open call.
    """
    repair = _repaired(view)
    current, measured = repair.messages, env.measure(repair.messages)
    reports: list[StageReport] = []
    for stage in _recovery_program(policy) if not view.has_open_calls else ():
        if reports and measured.upper <= target:
            break
        # A refusal is no time to weigh savings: the manual limits count.
        report = yield from _run_stage(stage, current, measured, env, "reactive")
        reports.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(reports))


def _recovery_program(policy: Policy) -> tuple[Stage, ...]:
    """Return what may be done about a refused request: the stages that are on, and the tier without a model."""
    if not policy.enabled:
        return ()
    stages = tuple(stage for stage in policy.stages if stage.trigger.at is not None)
    return (*stages, *recovery_stages()) if any(stage.needs_model for stage in stages) else stages


def _repaired(view: View) -> Repair:
    """Return the messages with every pair whole; a sound view costs nothing."""
    if view.sound and not view.has_open_calls:
        return Repair(view.messages)
    return repair_pairs(view.messages)


def _is_due(stage: Stage, policy: Policy, measured: Measure, env: Env, automatic_summaries: bool) -> bool:
    """Return whether the stage runs now: its trigger is crossed, or a crossed later stage wants it first (K11)."""
    if stage.trigger.at is None:
        return False
    if is_crossed(stage.trigger, measured, env):
        return True
    return any(
        stage.id in later.after and is_crossed(later.trigger, measured, env)
        for later in policy.stages
        if automatic_summaries or not later.needs_model
    )


def _run_stage(
    stage: Stage, messages: Messages, before: Measure, env: Env, trigger: Trigger
) -> Generator[Ask, SummaryReply, StageReport]:
    """Run one stage, with its fall-backs when a model failed (R-529), and check what it made (R-530)."""
    work = Work(before=messages, messages=messages)
    result, asked = yield from _drive(_run_steps(stage, work, env), stage, trigger, before, use_chat_adapter=False)
    if isinstance(result, Failed) and "chat_adapter" in stage.on_fail:
        chat_env = msgspec.structs.replace(env, summariser_window=env.window)
        result, _ = yield from _drive(_run_steps(stage, work, chat_env), stage, trigger, before, use_chat_adapter=True)
    after = before
    if isinstance(result, Work):
        after = env.measure(result.messages)
        result = _checked(result, before, after)
    report = _report(stage, result, before, after, trigger)
    return msgspec.structs.replace(report, asked=asked)


def _drive(
    steps: Steps, stage: Stage, trigger: Trigger, before: Measure, *, use_chat_adapter: bool
) -> Generator[Ask, SummaryReply, tuple[Outcome, bool]]:
    """Pass the requests of the steps on, dressed as `Ask`s; return what they made and whether there were any."""
    asked = False
    try:
        request = next(steps)
        while True:
            asked = True
            reply = yield Ask(
                request=request, stage=stage.id, trigger=trigger, before=before, use_chat_adapter=use_chat_adapter
            )
            request = steps.send(reply)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        return outcome, asked
    finally:
        steps.close()


def _run_steps(stage: Stage, work: Work, env: Env) -> Steps:
    """Run the strategies of a stage one after the other; the first that is not `Work` ends it."""
    for step in stage.steps:
        strategy = STRATEGIES[step.use]
        outcome = strategy.run(work, step.params, env)
        if isinstance(outcome, Generator):
            outcome = yield from outcome
        if not isinstance(outcome, Work):
            return outcome
        work = outcome
    return work


def _checked(work: Work, before: Measure, after: Measure) -> Outcome:
    """Return the work if it may be swapped in, else why not: smaller, whole, protected messages equal (R-530)."""
    if after.tokens >= before.tokens:
        return Failed(f"it would not make the request smaller ({before.tokens} tokens before, {after.tokens} after)")
    broken = violations(work.messages)
    if broken:
        return Failed(f"it would break tool calls apart: {broken[0]}")
    kept = {message.id: message for message in work.messages}
    for message in work.before:
        if is_protected(message) and kept.get(message.id) != message:
            return Failed(f"it would change the protected message {message.id}")
    if sum(message.tag == SUMMARY_TAG for message in work.messages) > 1:
        return Failed("there would be two summaries")
    return work


def _report(stage: Stage, result: Outcome, before: Measure, after: Measure, trigger: Trigger) -> StageReport:
    """Return what is told of a stage."""
    if isinstance(result, Work):
        return StageReport(
            stage=stage.id,
            event=stage.event,
            outcome="changed",
            trigger=trigger,
            before=before,
            after=after,
            work=result,
        )
    skipped = isinstance(result, Skipped)
    return StageReport(
        stage=stage.id,
        event=stage.event,
        outcome="skipped" if skipped else "failed",
        trigger=trigger,
        before=before,
        after=before,
        reason=result.reason if skipped else "failed",
        detail=result.detail if isinstance(result, Skipped) else result.reason,
    )
