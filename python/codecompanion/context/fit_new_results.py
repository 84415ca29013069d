"""Tool results that no reply has followed yet: what the model asked for and has not seen (R-524; issue 9).

When the request does not fit with them, older results are cleared first, and these are cut by what then is missing.
What the stages after that take out may make room again: then they are cut again, from the whole, by what is missing at
the end. Which stages do it stands in `recovery.toml`; when they run, in `pipeline`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from codecompanion.context.policy.policy import Policy, Stage, Step
from codecompanion.context.policy.policy_catalog import OLDER_RESULTS, arrival_stages
from codecompanion.context.strategy_parameters import FitToolResults
from codecompanion.context.thresholds import Size, room_of, threshold_tokens
from codecompanion.context.work import Env, Messages, Work
from codecompanion.model.messages import Message


def new_results(messages: Messages) -> Messages:
    """Return the results the model has not seen."""
    from codecompanion.context.editing.fit_tool_results import unseen_results  # not part of the start

    return tuple(messages[index] for index in unseen_results(messages))


def arrival(policy: Policy, messages: Messages, env: Env, *, clears: bool) -> tuple[Stage, ...]:
    """Return the stages that make room for new results under this policy; `clears` false: without clearing older ones.

    Clearing goes as far as no summary is due any more: that would take more out, and ask a model.
    """
    made: list[Stage] = []
    for stage in arrival_stages():
        if stage.id == OLDER_RESULTS:
            if not clears or not _clears_results(policy):
                continue
            target = Size(tokens=max_without_summary(policy.stages, messages, env))
            stage = msgspec.structs.replace(_sparing(stage, policy), target=target)
        made.append(stage)
    return tuple(made)


def max_without_summary(stages: tuple[Stage, ...], messages: Messages, env: Env, least: int = 0) -> int:
    """Return the largest request that fits and for which none of these stages writes a summary, if more than `least`.

    One that is asked before every request decides by itself.
    """
    ways = [stage.trigger for stage in stages if stage.summarises and not stage.trigger.always]
    room = room_of(env, messages, *ways)
    limits = (threshold_tokens(trigger, room) for trigger in ways)
    return min([room.window - room.reserve, *(at - 1 for at in limits if at is not None and at - 1 > least)])


def _clears_results(policy: Policy) -> bool:
    """Return whether results may be cleared at all: what is switched off stays off (lesson 13)."""
    edits = (stage.trigger.is_on for stage in policy.stages if stage.event == "context_edited")
    return all(edits) and any(stage.trigger.is_on for stage in policy.stages)


def _sparing(stage: Stage, policy: Policy) -> Stage:
    """Return the stage with the tools that the policy never clears results of (R-512) left out of its steps."""
    spared = tuple(dict.fromkeys(_spared(policy)))
    tiers = (
        msgspec.structs.replace(tier, steps=tuple(_without_tools(step, spared) for step in tier.steps))
        for tier in stage.tiers
    )
    return msgspec.structs.replace(stage, tiers=tuple(tiers))


def _spared(policy: Policy) -> Iterator[str]:
    steps = [step.params for stage in policy.stages for tier in stage.tiers for step in tier.steps]
    for params in (*steps, *(step.params for step in policy.shape)):
        yield from getattr(params, "exclude_tools", ())


def _without_tools(step: Step, spared: tuple[str, ...]) -> Step:
    if not hasattr(step.params, "exclude_tools"):
        return step
    return msgspec.structs.replace(step, params=msgspec.structs.replace(step.params, exclude_tools=spared))


def cut_again(messages: Messages, whole: Messages, most: int, target: int, env: Env) -> Messages | None:
    """Return the messages with the new results as `whole` has them, or cut to `target` where that is more than `most`.

    None when they cannot be made to fit that way: then they stay as they are.
    """
    originals = {message.id: message for message in whole}
    restored = tuple(originals.get(message.id, message) for message in messages)
    if env.measure(restored).tokens <= most:
        return restored
    work = Work(before=restored, messages=restored)
    params = FitToolResults(newest_only=True)
    from codecompanion.context.editing.fit_tool_results import fit_tool_results  # not part of the start

    outcome = fit_tool_results(work, params, msgspec.structs.replace(env, target=min(target, most)))
    if not isinstance(outcome, Work) or env.measure(outcome.messages).tokens > most:
        return None
    return outcome.messages


def with_results(work: Work, before: Messages, results: Mapping[str, Message]) -> Work:
    """Return the work as a change from `before`, with the new results as they are in the end."""
    messages = tuple(results.get(message.id, message) for message in work.messages)
    was, now = ({message.id: message for message in one} for one in (before, messages))
    cleared = tuple(was[old.id] for old in work.cleared if old.id in was and was[old.id] != now.get(old.id))
    return msgspec.structs.replace(work, before=before, messages=messages, cleared=cleared)
