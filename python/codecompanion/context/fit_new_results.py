"""Makes room for new tool results, which the model requested and has not seen yet (R-524).

If the request does not fit, the policy's own stages run first. If it still does not fit, older results are cleared, and
then the new ones are truncated by the remaining excess. Results that are too large on their own are truncated
beforehand. At the end, every truncation is repeated from the full text, by the final excess. `recovery.toml` defines
the stages, `pipeline` their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from codecompanion.context.policy.policy import Policy, Stage, Step
from codecompanion.context.policy.policy_catalog import arrival_stages
from codecompanion.context.strategy_parameters import FitToolResults
from codecompanion.context.thresholds import Size, room_of, target_tokens, threshold_tokens
from codecompanion.context.work import Env, Messages, Work
from codecompanion.model.messages import Message, is_protected

_CLEARING = frozenset({"clear_tool_results", "clear_when_it_pays"})


def new_results(messages: Messages) -> Messages:
    """Return the results that the model has not seen."""
    from codecompanion.context.editing.fit_tool_results import unseen_results  # not needed at startup

    return tuple(messages[index] for index in unseen_results(messages))


def surviving_messages(messages: Messages) -> Messages:
    """Return the messages that survive any compaction: the protected ones and the newest round."""
    from codecompanion.context.selection.fill_window import unanswered_messages  # not needed at startup

    kept = unanswered_messages(messages)
    return tuple(message for index, message in enumerate(messages) if index in kept or is_protected(message))


def is_too_large(messages: Messages, env: Env) -> bool:
    """Return whether the new results must be truncated even after everything removable is removed."""
    alone, stage = surviving_messages(messages), arrival_stages()[-1]
    room = room_of(env, alone, stage.trigger)
    return env.measure(alone).tokens > target_tokens(stage.trigger, stage.target, stage.target_gap, room)


def arrival(policy: Policy, messages: Messages, env: Env, *, clears: bool) -> tuple[Stage, ...]:
    """Return the stages that make room for new results; if `clears` is False, they do not clear older results.

    Clearing continues until no summary is due, because a summary would remove more and call a model.
    """
    older, newest = arrival_stages()
    if not clears:
        return (newest,)
    target = Size(tokens=max_without_summary(policy.stages, messages, env))
    return (msgspec.structs.replace(_with_exclusions(older, policy), target=target), newest)


def max_without_summary(stages: tuple[Stage, ...], messages: Messages, env: Env, least: int = 0) -> int:
    """Return the size of the largest request that fits and triggers no summary in these stages.

    Summary limits of at most `least` are ignored. So are stages that run before every request, which decide for
    themselves.
    """
    ways = [stage.trigger for stage in stages if stage.summarises and not stage.trigger.always]
    room = room_of(env, messages, *ways)
    limits = (threshold_tokens(trigger, room) for trigger in ways)
    return min([room.window - room.reserve, *(at - 1 for at in limits if at is not None and at - 1 > least)])


def clears_results(policy: Policy) -> bool:
    """Return whether the policy clears results and this is not disabled (lesson 13)."""
    edits = (stage.trigger.is_on for stage in policy.stages if stage.event == "context_edited")
    if not all(edits) or not any(stage.trigger.is_on for stage in policy.stages):
        return False
    used = {step.use for stage in policy.stages for tier in stage.tiers for step in tier.steps}
    return not _CLEARING.isdisjoint(used | {step.use for step in policy.shape})


def _with_exclusions(stage: Stage, policy: Policy) -> Stage:
    """Return the stage with steps that exclude the tools whose results the policy never clears (R-512)."""
    excluded = tuple(dict.fromkeys(_excluded_tools(policy)))
    tiers = (
        msgspec.structs.replace(tier, steps=tuple(_without_tools(step, excluded) for step in tier.steps))
        for tier in stage.tiers
    )
    return msgspec.structs.replace(stage, tiers=tuple(tiers))


def _excluded_tools(policy: Policy) -> Iterator[str]:
    steps = [step.params for stage in policy.stages for tier in stage.tiers for step in tier.steps]
    for params in (*steps, *(step.params for step in policy.shape)):
        yield from getattr(params, "exclude_tools", ())


def _without_tools(step: Step, excluded: tuple[str, ...]) -> Step:
    if not hasattr(step.params, "exclude_tools"):
        return step
    return msgspec.structs.replace(step, params=msgspec.structs.replace(step.params, exclude_tools=excluded))


def cut_again(messages: Messages, whole: Messages, most: int, target: int, env: Env) -> Messages | None:
    """Return the messages with the new results as in `whole`, truncated to `target` if they exceed `most`.

    A result that the policy's own stages truncated stays truncated; a result that they cleared is restored. Returns
    None if the other results cannot be made to fit this way.
    """
    originals = {message.id: message for message in whole}
    was_cut = [message.edited and message.left_out for message in messages]
    restored = tuple(
        message if is_cut else originals.get(message.id, message)
        for message, is_cut in zip(messages, was_cut, strict=True)
    )
    if env.measure(restored).tokens <= most:
        return restored
    work = Work(before=restored, messages=restored)
    params = FitToolResults(newest_only=True)
    from codecompanion.context.editing.fit_tool_results import fit_tool_results  # not needed at startup

    outcome = fit_tool_results(work, params, msgspec.structs.replace(env, target=min(target, most)))
    if not isinstance(outcome, Work) or env.measure(outcome.messages).tokens > most:
        return None
    return outcome.messages


def with_results(work: Work, before: Messages, results: Mapping[str, Message]) -> Work:
    """Return the work as a change from `before`, with the final versions of the new results."""
    messages = tuple(results.get(message.id, message) for message in work.messages)
    was, now = ({message.id: message for message in one} for one in (before, messages))
    cleared = tuple(was[old.id] for old in work.cleared if old.id in was and was[old.id] != now.get(old.id))
    return msgspec.structs.replace(work, before=before, messages=messages, cleared=cleared)
