"""Prepares the next request: step 7.12 of "From Enter to the bytes" (`doc/dev/architecture.md`).

Specified in pipeline.md 5.4, R-518…R-520, R-529, R-530.

`prepare`, `compact` and `recover` are generators: they yield `Ask`s and receive `SummaryReply`s, and return `Prepared`.
They change nothing; the session commits the result as one event per stage.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from itertools import takewhile

import msgspec

from codecompanion.context.editing.repair_pairs import Repair, repair_pairs
from codecompanion.context.fit_new_results import (
    arrival,
    clears_results,
    cut_again,
    is_too_large,
    max_without_summary,
    new_results,
    surviving_messages,
    with_results,
)
from codecompanion.context.policy.policy import Policy, Stage, Tier
from codecompanion.context.policy.policy_catalog import NEWEST_RESULTS, arrival_stages, recovery_stages
from codecompanion.context.stage_report import Ask, Preparation, Prepared, StageReport
from codecompanion.context.stage_run import report_of, run_stage
from codecompanion.context.summary.writers import Writers
from codecompanion.context.thresholds import Room, is_crossed, room_of, target_tokens
from codecompanion.context.thresholds import Trigger as Threshold
from codecompanion.context.work import Env, Measure, Messages, Skipped, SummaryReply, Trigger
from codecompanion.model.messages import is_system_prompt
from codecompanion.model.view import View


def prepare(
    view: View,
    policy: Policy,
    env: Env,
    *,
    automatic_summaries: bool = True,
    fitting: bool = True,
    paused: frozenset[str] = frozenset(),
) -> Preparation:
    """Prepare the next request (R-518). Runs before **every** provider request.

    If `automatic_summaries` is False, every step that replaces messages with a summary is skipped, because the adapter
    compacts automatically (K15) or compactions are paused (R-532). Earlier steps of the stage still run. `paused`:
    events whose stages do not run, because the user has just undone them (R-545). If `fitting` is False, the caller has
    to handle a request larger than the window.
    """
    policy = _without_paused(policy, paused)
    draft = _draft(view, env)
    if not policy.enabled or view.has_open_calls:
        return draft.prepared()
    # A request that merely leaves too little room for its reply is left to the policy's own stages first.
    arrived = () if draft.fits(reserve=0) else new_results(draft.messages)
    clears = "context_edited" not in paused and clears_results(policy)
    if arrived and is_too_large(draft.messages, _as_sent(env)):
        yield from _make_room(draft, policy, clears=clears) if clears else _cut_alone(draft)
    yield from _walk(draft, _due(draft, policy, automatic_summaries))
    if arrived:
        yield from _make_room(draft, policy, clears=clears)
    if fitting:
        yield from _walk(draft, _until_it_fits(draft, lambda: _fitting_stages(policy)), as_sent=True)
    if arrived:
        _cut_once(draft, policy, arrived)
    return draft.prepared()


def compact(view: View, policy: Policy, env: Env) -> Preparation:
    """Run the policy's manual stages for `/compact`, whatever the token count (R-533).

    Does nothing while a call is open.
    """
    draft = _draft(view, env)
    stages = (stage for stage in policy.stages if stage.manual and not draft.is_spared(stage))
    yield from _walk(draft, (_manual_run(stage, draft, view) for stage in stages))
    return draft.prepared()


def recover(view: View, policy: Policy, env: Env, target: int) -> Preparation:
    """Shrink a request that the provider refused as too long (R-535), regardless of triggers.

    The policy's own stages run first, in order; steps that need a model may fail, but the last tier does not. Shrinking
    stops once the request has at most `target` tokens. Disabled stages stay disabled (lesson 13), and nothing happens
    while a call is open. No summary is requested within the chat itself, because that request would be refused as well.
    """
    draft = _draft(view, msgspec.structs.replace(env, continuation=None))
    if not view.has_open_calls:
        yield from _walk(draft, _until_smaller(draft, policy, target), most=target)
    return draft.prepared()


def last_tier(view: View, policy: Policy, env: Env) -> Preparation:
    """Compact manually without a model, in case the provider refuses every request, including summaries."""
    draft = _draft(view, env)
    if policy.enabled and not view.has_open_calls:
        # A compaction was requested, and clearing results would free only a tenth as much.
        compactions = tuple(stage for stage in recovery_stages() if stage.event == "context_compacted")
        yield from _walk(draft, _until_changed(draft, compactions))
    return draft.prepared()


class _Draft(msgspec.Struct):
    """The next request in progress: its messages, their size, and the reports of its stages."""

    env: Env
    repair: Repair
    messages: Messages
    measured: Measure
    reports: list[StageReport] = msgspec.field(default_factory=list)

    def fits(self, reserve: int | None = None) -> bool:
        return self.env.fits(self.messages, self.measured, reserve=reserve)

    def is_spared(self, stage: Stage) -> bool:
        """Return whether an earlier stage listed in this stage's `unless` has removed messages."""
        return any(report.stage.id in stage.unless and report.removed_messages for report in self.reports)

    def prepared(self) -> Prepared:
        return Prepared(messages=self.messages, measure=self.measured, repair=self.repair, reports=tuple(self.reports))


class _Run(msgspec.Struct, frozen=True):
    """A stage to run now, its tiers and its trigger; `obstacle`: the reason why it cannot run."""

    stage: Stage
    tiers: tuple[Tier, ...]
    trigger: Trigger
    obstacle: Skipped | None = None
    curtailed: bool = False


def _walk(
    draft: _Draft, runs: Iterator[_Run], *, most: int = 0, as_sent: bool = False
) -> Generator[Ask, SummaryReply, None]:
    """Run stages one after another; `runs` picks the next stage from the current state of the draft.

    `as_sent`: measure the request as sent, after shaping, and report only changes. `most`: see `run_stage`.
    """
    writers = Writers(draft.env)
    for run in runs:
        is_sent = as_sent or run.stage.trigger.measure == "sent"
        env = _as_sent(draft.env) if is_sent else draft.env
        before = env.measure(draft.messages) if is_sent else draft.measured
        if run.obstacle is not None:
            report = report_of(run.stage, run.obstacle, before, before, run.trigger)
        else:
            report = yield from run_stage(run.stage, run.tiers, draft.messages, before, env, run.trigger, writers, most)
        if report.work is None and as_sent:
            continue
        draft.reports.append(msgspec.structs.replace(report, curtailed=run.curtailed))
        if report.work is not None:
            draft.messages = report.work.messages
            draft.measured = draft.env.measure(draft.messages) if is_sent else report.after


def _due(draft: _Draft, policy: Policy, automatic_summaries: bool) -> Iterator[_Run]:
    """Yield the stages of the policy that are due, each checked when its turn comes."""
    for stage in policy.stages:
        usable = _usable(stage, policy, automatic_summaries)
        if not usable or not _is_due(stage, policy, draft, automatic_summaries):
            continue
        if draft.is_spared(stage):
            continue
        curtailed = stage.summarises and not any(tier.summarises for tier in usable)
        yield _Run(stage, usable, stage.label, curtailed=curtailed)


def _manual_run(stage: Stage, draft: _Draft, view: View) -> _Run:
    worked_on = {tier.start for tier in stage.tiers if tier.manual}
    tiers = tuple(tier for tier in stage.tiers if tier.manual or tier.id in worked_on)
    return _Run(stage, tiers, "manual", _obstacle(stage, view, draft.messages))


def _until_it_fits(draft: _Draft, stages: Callable[[], tuple[Stage, ...]]) -> Iterator[_Run]:
    """Yield stages until the request fits; `stages` is called only if it does not fit, because it may read a file."""
    if draft.fits():
        return
    for stage in stages():
        if draft.fits():
            return
        yield _Run(stage, stage.tiers, "reactive")


def _until_smaller(draft: _Draft, policy: Policy, target: int) -> Iterator[_Run]:
    """Yield the remedies for a refused request: the enabled stages, then the tiers without a model."""
    for stage in (*_stages_on(policy), *_fitting_stages(policy)):
        # The target is a share of the refused request's best-guess count, so that count is compared.
        if draft.reports and draft.measured.tokens <= target:
            return
        # After a refusal, savings do not matter: the manual limits apply.
        yield _Run(stage, _usable(stage, policy, automatic_summaries=True), "reactive")


def _until_changed(draft: _Draft, stages: tuple[Stage, ...]) -> Iterator[_Run]:
    for stage in stages:
        if any(report.work is not None for report in draft.reports):
            return
        yield _Run(stage, stage.tiers, "manual")


def _draft(view: View, env: Env) -> _Draft:
    """Return a draft of the view with complete pairs of calls and results; a valid view is used as it is."""
    sound = view.sound and not view.has_open_calls
    repair = Repair(view.messages) if sound else repair_pairs(view.messages)
    return _Draft(env, repair, repair.messages, env.measure(repair.messages))


def _make_room(draft: _Draft, policy: Policy, *, clears: bool) -> Generator[Ask, SummaryReply, None]:
    """Clear older results, then truncate the new ones by the remaining excess, unless the request fits (R-524)."""
    if not draft.fits():
        stages = arrival(policy, draft.messages, draft.env, clears=clears)
        yield from _walk(draft, _until_it_fits(draft, lambda: stages), as_sent=True)


def _cut_alone(draft: _Draft) -> Generator[Ask, SummaryReply, None]:
    """Truncate the new results until they fit on their own; older messages are left to the policy's stages."""
    whole = draft.messages
    alone = msgspec.structs.replace(draft, messages=surviving_messages(whole), reports=[])
    yield from _walk(alone, iter([_Run(stage := arrival_stages()[-1], stage.tiers, "reactive")]), as_sent=True)
    for report in alone.reports:
        if report.work is not None:
            cut = {message.id: message for message in report.work.messages}
            draft.messages = tuple(cut.get(message.id, message) for message in whole)
            work = msgspec.structs.replace(report.work, before=whole, messages=draft.messages)
            before, draft.measured = draft.measured, draft.env.measure(draft.messages)
            draft.reports.append(msgspec.structs.replace(report, work=work, before=before, after=draft.measured))


def _as_sent(env: Env) -> Env:
    return env if env.sent is None else msgspec.structs.replace(env, measure=env.sent)


def _cut_once(draft: _Draft, policy: Policy, arrived: Messages) -> None:
    """Repeat the truncation of new results by the final excess, if other content was removed after it (R-524).

    The reports then describe a single truncation; a report without any change is dropped.
    """
    env, messages, reports = draft.env, draft.messages, draft.reports
    place = next((i for i, report in enumerate(reports) if report.stage.id == NEWEST_RESULTS), len(reports))
    done = [report for report in reports[place:] if report.work is not None and report.event != "memory_flushed"]
    if len(done) < 2:
        return
    as_sent, stage = _as_sent(env), arrival_stages()[-1]
    size, ran = as_sent.measure(messages).tokens, {report.stage.id for report in done}
    # Stay below the threshold of a compaction that just ran: otherwise it would run again.
    most = max_without_summary(tuple(one for one in policy.stages if one.id in ran), messages, as_sent, size)
    wanted = target_tokens(stage.trigger, stage.target, 0, room_of(as_sent, messages, stage.trigger))
    cut = cut_again(messages, arrived, most, wanted, as_sent)
    if cut is None:
        return
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
    draft.messages, draft.measured = cut, env.measure(cut)


def _obstacle(stage: Stage, view: View, messages: Messages) -> Skipped | None:
    """Return why a stage cannot be run manually, or None."""
    if view.has_open_calls:
        return Skipped("open_calls", "a tool call is still unanswered")
    if sum(not is_system_prompt(message) for message in messages) < stage.manual_min_messages:
        return Skipped("not_enough_messages", f"not enough messages (minimum {stage.manual_min_messages})")
    return None


def _fitting_stages(policy: Policy) -> tuple[Stage, ...]:
    """Return the stages without a model that the policy allows: disabled ones stay disabled (lesson 13)."""
    on = _stages_on(policy)
    summarises = any(stage.summarises for stage in on)
    return tuple(stage for stage in recovery_stages() if on and (summarises or not stage.summarises))


def _stages_on(policy: Policy) -> tuple[Stage, ...]:
    if not policy.enabled:
        return ()
    return tuple(stage for stage in policy.stages if stage.trigger.is_on and stage.event != "memory_flushed")


def _without_paused(policy: Policy, paused: frozenset[str]) -> Policy:
    """Return the policy without the stages and tiers that cause these events."""
    stages = [
        msgspec.structs.replace(stage, tiers=tuple(tier for tier in stage.tiers if tier.event not in paused))
        for stage in policy.stages
        if stage.event not in paused
    ]
    return msgspec.structs.replace(policy, stages=tuple(stages))


def _usable(stage: Stage, policy: Policy, automatic_summaries: bool) -> tuple[Tier, ...]:
    """Return the tiers whose needed stages are on; without automatic summaries, only those before a summary (K15)."""
    on = {other.id for other in policy.stages if other.trigger.is_on}
    tiers = tuple(tier for tier in stage.tiers if on.issuperset(tier.needs))
    return tiers if automatic_summaries else tuple(takewhile(lambda tier: not tier.summarises, tiers))


def _is_due(stage: Stage, policy: Policy, draft: _Draft, automatic_summaries: bool) -> bool:
    """Return whether the stage runs now: its trigger, or that of a stage that must run after it, is crossed (K11)."""
    if not stage.trigger.is_on:
        return False
    later = [
        other for other in policy.stages if stage.id in other.after and (automatic_summaries or not other.summarises)
    ]
    triggers = [stage.trigger, *(other.trigger for other in later)]
    room = room_of(draft.env, draft.messages, *triggers)
    return any(_is_crossed(trigger, draft, room) for trigger in triggers)


def _is_crossed(trigger: Threshold, draft: _Draft, room: Room) -> bool:
    """Return whether the request crosses the trigger.

    The request is shaped only if necessary, as that reads all of it.
    """
    if not is_crossed(trigger, draft.measured, room) or trigger.measure != "sent":
        return is_crossed(trigger, draft.measured, room)
    return is_crossed(trigger, _as_sent(draft.env).measure(draft.messages), room)
