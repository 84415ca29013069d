"""THE ORDER: how the next request is prepared (pipeline.md 5.4, R-518…R-520, R-529, R-530).

    repair pairs → is management on, and no call open? →
        do new results fit? else older ones are cleared, and the new ones cut by what is missing then (R-524) →
        for each stage of the policy, in its order:
            trigger crossed? → for each of its tiers, until a result is accepted:
                run its steps → check the result → does it fit the target?
            → swap
        → does the request fit the window? else the stages of `recovery.toml`, which ask no model (R-524)
        → has that made room? new results that were cut are cut again, by what is missing in the end

`prepare` and `compact` are generators: they yield `SummaryRequest`s and receive `SummaryReply`s, and return
`Prepared`. They change nothing; the session commits the result as one event per stage.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import takewhile
from typing import Literal

import msgspec

from codecompanion.context.arriving import arrival, cut_anew, max_without_summary, new_results, with_results
from codecompanion.context.editing.repair_pairs import Repair, repair_pairs
from codecompanion.context.policy.budget import aim_tokens, is_crossed, room_of
from codecompanion.context.policy.catalog import NEWEST_RESULTS, arrival_stages, recovery_stages
from codecompanion.context.policy.schema import (
    CHAT_ADAPTER,
    Card,
    Effects,
    Emits,
    Policy,
    Stage,
    StageEvent,
    Step,
    Tier,
)
from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.summary.writers import Writers
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
from codecompanion.model.history import View
from codecompanion.model.invariants import violations
from codecompanion.model.messages import SUMMARY_TAG, is_protected, is_system_prompt


class StageReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one stage did. `outcome` is `changed`, `skipped` or `failed`; `work` is set when changed.

    `asked`: a model was asked for a summary; `not_asked`: why none was any more, by what failed before. `tier` and
    `tier_id` say which way through the stage it was; `problems` what was wrong with the ways tried before, `curtailed`
    that those that summarise were left out. A stage that only writes to the memory is `changed` with equal messages.
    """

    stage: str
    event: StageEvent
    outcome: Literal["changed", "skipped", "failed"]
    trigger: Trigger
    before: Measure
    after: Measure
    work: Work | None = None
    reason: str = ""
    detail: str = ""
    asked: bool = False
    not_asked: str = ""
    tier: int = 0
    tier_id: str = ""
    problems: tuple[str, ...] = ()
    curtailed: bool = False
    effects: Effects = Effects()
    emits: Emits = Emits()
    card: Card = Card()

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


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A summary request on its way out: which stage wants it, and whether the chat's own adapter must be used."""

    request: SummaryRequest
    stage: str
    event: StageEvent
    emits: Emits
    card: Card
    trigger: Trigger
    before: Measure
    use_chat_adapter: bool = False


Preparation = Generator[Ask, SummaryReply, Prepared]


def prepare(
    view: View,
    policy: Policy,
    env: Env,
    *,
    automatic_summaries: bool = True,
    fitting: bool = True,
    resting: frozenset[str] = frozenset(),
) -> Preparation:
    """Prepare the next request (R-518): run before **every** provider request.

    `automatic_summaries` false leaves out whatever puts a summary in the place of messages: the adapter compacts by
    itself (K15) or the guard of R-532 is resting. What comes before it in a stage still runs. `resting` are events
    whose stages do not run at all: the user has just undone what they did (R-545). `fitting` false leaves a request
    that is larger than the window to the caller.
    """
    policy = _without_resting(policy, resting)
    repair = _repaired(view)
    measured = env.measure(repair.messages)
    if not policy.enabled or view.has_open_calls:
        return Prepared(messages=repair.messages, measure=measured, repair=repair)
    current, reports, writers = repair.messages, list[StageReport](), Writers(env)
    # A request that only leaves too little for its reply is a matter of the policy's own stages first.
    arrived = () if env.fits(current, measured, reserve=0) else new_results(current)
    if arrived:
        stages = arrival(policy, current, env, clears="context_edited" not in resting)
        current, measured = yield from _fit(stages, current, measured, env, reports)
    for stage in policy.stages:
        usable = _usable(stage, policy, automatic_summaries)
        if not usable or not _is_due(stage, policy, current, measured, env, automatic_summaries):
            continue
        if any(report.stage in stage.unless and report.removed_messages for report in reports):
            continue
        report = yield from _run_stage(stage, usable, current, measured, env, stage.label, writers)
        curtailed = stage.summarises and not any(tier.summarises for tier in usable)
        reports.append(msgspec.structs.replace(report, curtailed=curtailed))
        if report.work is not None:
            current, measured = report.work.messages, report.after
    if fitting and not env.fits(current, measured):
        current, measured = yield from _fit(_fitting_stages(policy), current, measured, env, reports)
    if arrived:
        current, measured = _cut_once(policy, arrived, current, measured, env, reports)
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(reports))


def _fit(
    stages: tuple[Stage, ...], messages: Messages, measured: Measure, env: Env, reports: list[StageReport]
) -> Generator[Ask, SummaryReply, tuple[Messages, Measure]]:
    """Run these stages one after the other until the request fits (R-524); what they did is added to the reports.

    They are about what is sent: where that is shaped, it is what they measure.
    """
    as_sent = _as_sent(env)
    for stage in stages:
        if env.fits(messages, measured):
            break
        before, writers = as_sent.measure(messages), Writers(as_sent)
        report = yield from _run_stage(stage, stage.tiers, messages, before, as_sent, "reactive", writers)
        if report.work is not None:
            reports.append(report)
            messages, measured = report.work.messages, env.measure(report.work.messages)
    return messages, measured


def _as_sent(env: Env) -> Env:
    return env if env.sent is None else msgspec.structs.replace(env, measure=env.sent)


def _cut_once(
    policy: Policy, arrived: Messages, messages: Messages, measured: Measure, env: Env, reports: list[StageReport]
) -> tuple[Messages, Measure]:
    """Cut the new results by what is missing in the end, when something was taken out after their cut (R-524).

    The reports tell it as if they had been cut to that at once; one with nothing left to tell goes.
    """
    place = next((i for i, report in enumerate(reports) if report.stage == NEWEST_RESULTS), len(reports))
    done = [report for report in reports[place:] if report.work is not None and report.event != "memory_flushed"]
    if len(done) < 2:
        return messages, measured
    as_sent, stage = _as_sent(env), arrival_stages()[-1]
    size, ran = as_sent.measure(messages).tokens, {report.stage for report in done}
    # What a compaction has just brought the request below is not filled up again: it would come once more.
    most = max_without_summary(tuple(one for one in policy.stages if one.id in ran), messages, as_sent, size)
    aim = aim_tokens(stage.trigger, stage.target, 0, room_of(as_sent, messages, stage.trigger))
    cut = cut_anew(messages, arrived, most, aim, as_sent)
    if cut is None:
        return messages, measured
    results = {message.id: message for message in cut}
    before, told = done[0].work.before if done[0].work else messages, list[StageReport]()
    for report in reports[place:]:
        if report.work is not None and report.event != "memory_flushed":
            work = with_results(report.work, before, results)
            if work.messages == before:
                continue
            report = msgspec.structs.replace(
                report, work=work, before=env.measure(before), after=env.measure(work.messages)
            )
            before = work.messages
        told.append(report)
    reports[place:] = told
    return cut, env.measure(cut)


def compact(view: View, policy: Policy, env: Env) -> Preparation:
    """Run the policy's manual stages at any token count: `/compact` (R-533). Nothing happens with an open call."""
    repair = _repaired(view)
    current, measured, done = repair.messages, env.measure(repair.messages), list[StageReport]()
    writers = Writers(env)
    for stage in policy.stages:
        if not stage.manual:
            continue
        obstacle = _obstacle(stage, view, current)
        if obstacle is not None:
            done.append(_report(stage, obstacle, measured, measured, "manual"))
            continue
        tiers = tuple(tier for tier in stage.tiers if tier.manual)
        report = yield from _run_stage(stage, tiers, current, measured, env, "manual", writers)
        done.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(done))


def _obstacle(stage: Stage, view: View, messages: Messages) -> Skipped | None:
    """Return why a stage cannot be run by hand, None when it can."""
    if view.has_open_calls:
        return Skipped("open_calls", "a tool call is still unanswered")
    if sum(not is_system_prompt(message) for message in messages) < stage.manual_min_messages:
        return Skipped("not_enough_messages", f"not enough messages (minimum {stage.manual_min_messages})")
    return None


def recover(view: View, policy: Policy, env: Env, target: int) -> Preparation:
    """Make a request smaller that the provider refused as too long (R-535), wherever the triggers stand.

    The policy's own stages come first, in their order; what needs a model may fail, the last tier does not. Ends as
    soon as the request is at most `target` tokens. What is switched off stays off (lesson 13), and nothing happens
    with an open call.
    """
    repair = _repaired(view)
    current, measured = repair.messages, env.measure(repair.messages)
    reports, writers = list[StageReport](), Writers(env)
    for stage in _recovery_program(policy) if not view.has_open_calls else ():
        # The target is a share of what was refused, as counted here: the best guess, like that.
        if reports and measured.tokens <= target:
            break
        # A refusal is no time to weigh savings: the manual limits count.
        tiers = _usable(stage, policy, automatic_summaries=True)
        report = yield from _run_stage(stage, tiers, current, measured, env, "reactive", writers, target)
        reports.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(reports))


def last_tier(view: View, policy: Policy, env: Env) -> Preparation:
    """Compact by hand without a model: when the provider refuses every request, the one for a summary included."""
    repair = _repaired(view)
    current, measured = repair.messages, env.measure(repair.messages)
    reports: list[StageReport] = []
    for stage in recovery_stages() if policy.enabled and not view.has_open_calls else ():
        report = yield from _run_stage(stage, stage.tiers, current, measured, env, "manual", Writers(env))
        reports.append(report)
        if report.work is not None:
            current, measured = report.work.messages, report.after
            break
    return Prepared(messages=current, measure=measured, repair=repair, reports=tuple(reports))


def _recovery_program(policy: Policy) -> tuple[Stage, ...]:
    """Return what may be done about a refused request: the stages that are on, and the tiers without a model."""
    return (*_stages_on(policy), *_fitting_stages(policy))


def _fitting_stages(policy: Policy) -> tuple[Stage, ...]:
    """Return the stages without a model that the policy allows: what is switched off stays off (lesson 13)."""
    on = _stages_on(policy)
    summarises = any(stage.summarises for stage in on)
    return tuple(stage for stage in recovery_stages() if on and (summarises or not stage.summarises))


def _stages_on(policy: Policy) -> tuple[Stage, ...]:
    if not policy.enabled:
        return ()
    return tuple(stage for stage in policy.stages if stage.trigger.at is not None and stage.event != "memory_flushed")


def _repaired(view: View) -> Repair:
    """Return the messages with every pair whole; a sound view costs nothing."""
    if view.sound and not view.has_open_calls:
        return Repair(view.messages)
    return repair_pairs(view.messages)


def _without_resting(policy: Policy, resting: frozenset[str]) -> Policy:
    """Return the policy without what makes changes of these kinds, be it a whole stage or one way through it."""
    stages = [
        msgspec.structs.replace(stage, tiers=tuple(tier for tier in stage.tiers if tier.event not in resting))
        for stage in policy.stages
        if stage.event not in resting
    ]
    return msgspec.structs.replace(policy, stages=tuple(stages))


def _usable(stage: Stage, policy: Policy, automatic_summaries: bool) -> tuple[Tier, ...]:
    """Return the tiers that may run: what they need is on, and nobody else summarises instead (K15)."""
    on = {other.id for other in policy.stages if other.trigger.at is not None}
    tiers = tuple(tier for tier in stage.tiers if on.issuperset(tier.needs))
    return tiers if automatic_summaries else tuple(takewhile(lambda tier: not tier.summarises, tiers))


def _is_due(
    stage: Stage, policy: Policy, messages: Messages, measured: Measure, env: Env, automatic_summaries: bool
) -> bool:
    """Return whether the stage runs now: its trigger is crossed, or a crossed later stage wants it first (K11)."""
    if stage.trigger.at is None:
        return False
    later = [
        other for other in policy.stages if stage.id in other.after and (automatic_summaries or not other.summarises)
    ]
    triggers = [stage.trigger, *(other.trigger for other in later)]
    room = room_of(env, messages, *triggers)
    return any(is_crossed(trigger, measured, room) for trigger in triggers)


def _run_stage(
    stage: Stage,
    tiers: tuple[Tier, ...],
    messages: Messages,
    before: Measure,
    env: Env,
    trigger: Trigger,
    writers: Writers,
    most: int = 0,
) -> Generator[Ask, SummaryReply, StageReport]:
    """Run the tiers of one stage until a result is accepted (R-114, R-309, R-414); the last one needs only be sound.

    What an earlier tier achieved without fitting the target stays when the later ones have nothing to do. `most`: the
    request must not be larger afterwards, whatever the stage's own target (0 = that alone counts).
    """
    aim = aim_tokens(stage.trigger, stage.target, stage.target_gap, room_of(env, messages, stage.trigger, stage.target))
    aim = min(size for size in (aim, most) if size) if aim or most else 0
    env = msgspec.structs.replace(env, target=aim)
    start = Work(before=messages, messages=messages)
    reached: dict[str, Work] = {}
    best: StageReport | None = None
    problems: list[str] = []
    asked_at_all, not_asked = False, writers.failure(stage.event)
    report = _report(stage, Skipped("nothing_to_do", "there is nothing to do"), before, before, trigger)
    for tier in tiers:
        calls = _Calls(stage, trigger, before, writers)
        result, asked = yield from _run_tier(tier, reached.get(tier.start, start), env, calls)
        asked_at_all = asked_at_all or asked
        after = before
        if isinstance(result, Work):
            reached[tier.id] = result
            after = env.measure(result.messages)
            result = result if stage.event == "memory_flushed" else _checked(result, before, after)
        report = _report(stage, result, before, after, trigger, tier)
        whether = {"asked": asked_at_all, "not_asked": "" if asked_at_all else not_asked}
        report = msgspec.structs.replace(report, **whether, problems=tuple(problems))
        if report.work is None:
            problems.append(f"{tier.id or stage.id}: {report.detail}")
            continue
        if tier is tiers[-1] or tier.accept == "always":
            return report
        # The best guess counts: a target is no safety limit.
        if stage.target is None or after.tokens <= aim:
            return report
        problems.append(f"{tier.id}: {after.tokens} tokens are left, more than the target of {aim}")
        best = report
    return best if best is not None and report.outcome == "skipped" else report


class _Calls(msgspec.Struct, frozen=True):
    """What the questions of a stage have in common: on whose behalf they are asked, and who may be."""

    stage: Stage
    trigger: Trigger
    before: Measure
    writers: Writers


def _run_tier(tier: Tier, work: Work, env: Env, calls: _Calls) -> Generator[Ask, SummaryReply, tuple[Outcome, bool]]:
    """Run one tier, with those who else may write its summary when a model failed (R-529, R-434, K9)."""
    result, asked = yield from _drive(_run_steps(tier.steps, work, env), calls)
    for other in tier.on_fail:
        if not isinstance(result, Failed):
            break
        why = result.reason
        if other != CHAT_ADAPTER:
            result, _ = yield from _drive(_run_steps(_without_model(tier.steps, other), work, env), calls)
            if isinstance(result, Work):
                details = {**result.details, "summary_source": other, "failure": why}
                result = msgspec.structs.replace(result, details=details)
        elif not calls.writers.why_not(calls.stage.event, chat_adapter=True):
            chat_env = msgspec.structs.replace(env, summariser_window=env.window)
            steps = _run_steps(tier.steps, work, chat_env)
            result, also = yield from _drive(steps, calls, chat_adapter=True)
            asked = asked or also
    return result, asked


def _without_model(steps: tuple[Step, ...], other: str) -> tuple[Step, ...]:
    """Return the steps with `other` in the place of the one that asks a model."""
    strategy = STRATEGIES[other]
    return tuple(Step(other, strategy.params()) if STRATEGIES[step.use].asks_model else step for step in steps)


def _drive(
    steps: Steps, calls: _Calls, *, chat_adapter: bool = False
) -> Generator[Ask, SummaryReply, tuple[Outcome, bool]]:
    """Pass the requests of the steps on, dressed as `Ask`s; return what they made and whether there were any.

    Whoever has been found to fail is not asked: the steps are told why instead.
    """
    stage, writers, asked = calls.stage, calls.writers, False
    try:
        request = next(steps)
        while True:
            why_not = writers.why_not(stage.event, chat_adapter=chat_adapter)
            if why_not:
                request = steps.send(SummaryReply(error=why_not))
                continue
            asked = True
            reply = yield Ask(
                request=request,
                stage=stage.id,
                event=stage.event,
                emits=stage.emits,
                card=stage.card,
                trigger=calls.trigger,
                before=calls.before,
                use_chat_adapter=chat_adapter,
            )
            writers.take_reply(reply, chat_adapter=chat_adapter)
            request = steps.send(reply)
    except StopIteration as stop:
        outcome: Outcome = stop.value
        writers.take_outcome(outcome, stage.event, chat_adapter=chat_adapter)
        return outcome, asked
    finally:
        steps.close()


def _run_steps(steps: tuple[Step, ...], work: Work, env: Env) -> Steps:
    """Run strategies one after the other; the first whose outcome is not `Work` ends it.

    An optional step that has nothing to do is passed over; when that holds of all, there is nothing to do.
    """
    start, idle = work, Skipped("nothing_to_do", "there is nothing to do")
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


def _report(
    stage: Stage, result: Outcome, before: Measure, after: Measure, trigger: Trigger, tier: Tier | None = None
) -> StageReport:
    """Return what is told of a stage."""
    report = StageReport(
        stage=stage.id,
        event=stage.event,
        outcome="changed",
        trigger=trigger,
        before=before,
        after=before,
        tier=tier.number if tier is not None else 0,
        tier_id=tier.id if tier is not None else "",
        effects=stage.effects,
        emits=stage.emits,
        card=stage.card,
    )
    match result:
        case Work():
            event = (tier.event if tier is not None else "") or stage.event
            return msgspec.structs.replace(report, after=after, work=result, event=event)
        case Skipped(reason=reason, detail=detail):
            return msgspec.structs.replace(report, outcome="skipped", reason=reason, detail=detail)
        case Failed(reason=detail):
            return msgspec.structs.replace(report, outcome="failed", reason="failed", detail=detail)
