"""Restores a policy as its document defines it, without the additions that its table marks as ours.

The table itself marks our additions and gives the reason: `ours = "…"` on a stage, a tier or a step that the document
does not have, `ours = { parameter = "…" }` on a step of the document with a changed parameter. In that case `document =
{ parameter = … }` gives the document's value, which is by default the strategy's default.

`ALWAYS` lists the guarantees that remain in the strict form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from codecompanion.context.policy.policy import Policy, ShapeStep, Stage, Step, Tier
from codecompanion.context.policy.step_order import check_order
from codecompanion.context.policy.table import without_lost_options
from codecompanion.deviation import Deviation
from codecompanion.errors import ConfigError

S = TypeVar("S", Step, ShapeStep)
RECALL = "recall"
"""The path under which the memory at the start of a new chat is listed among the deviations."""
SUFFIX = " strict"
"""Suffix of strict policy names: `codebuddy strict` is the `codebuddy` policy without our additions."""
_DESCRIPTION = "Exactly as in its document, without our additions; see :help codecompanion-strict."
ALWAYS = (
    "No request exceeds the context window: tool results are cut, then the chat is compacted without a model.",
    "A tool call still waiting for its result is never compacted, and no call is sent without its result.",
    "The system prompt, rules and pinned messages are kept.",
    "A reply that is not a summary never replaces messages.",
    "After three failed compactions in a row, automatic compaction pauses for two messages.",
    "The log keeps everything; every change can be undone.",
)
"""Guarantees of every policy, worded for the user; a document's rules cannot override them."""


def deviations(policy: Policy) -> tuple[Deviation, ...]:
    """Return the policy's additions to its document, in the order of its table."""
    recall = policy.recall
    of_memory = (Deviation(RECALL, recall.ours),) if recall is not None and recall.ours else ()
    return (*_in_stages(policy), *_in_steps(policy.shape, "shape"), *of_memory)


def _in_stages(policy: Policy) -> Iterator[Deviation]:
    for stage in policy.stages:
        if stage.ours:
            yield Deviation(stage.id, stage.ours)
            continue
        for tier in stage.tiers:
            place = _place(stage, tier)
            if tier.ours:
                yield Deviation(place, tier.ours)
            else:
                yield from _in_steps(tier.steps, place)


def _place(stage: Stage, tier: Tier) -> str:
    return f"{stage.id}.{tier.id}" if tier.id else stage.id


def _in_steps(steps: tuple[Step, ...] | tuple[ShapeStep, ...], place: str) -> Iterator[Deviation]:
    for step in steps:
        if step.ours:
            yield Deviation(f"{place}.{step.use}", step.ours)
        elif step.departs is not None:
            for name, why in step.departs.why.items():
                ours, document = (getattr(params, name) for params in (step.params, step.departs.document))
                yield Deviation(f"{place}.{step.use}.{name}", why, ours, document)


def strict(policy: Policy, key: str = "") -> Policy:
    """Return the policy without our additions, under its strict name; idempotent.

    Raises:
        ConfigError: the policy follows no document, or the remaining steps cannot work; the error names `key`.
    """
    if policy.ours:
        raise ConfigError(key, f"{policy.name} does not follow a document, so it has no strict form")
    made = without(policy, frozenset(one.place for one in deviations(policy)), key)
    other = made.without_tools
    return msgspec.structs.replace(made, name=_strict_name(made.name), without_tools=other and _strict_name(other))


def strict_form(policy: Policy, key: str = "") -> Policy:
    """Return the policy as listed under `… strict`; raises `ConfigError` like `strict`."""
    return msgspec.structs.replace(strict(policy, key), description=_DESCRIPTION)


def is_strict(policy: Policy) -> bool:
    """Return whether a policy is in its strict form."""
    return policy.name.endswith(SUFFIX)


def _strict_name(name: str) -> str:
    return name if name.endswith(SUFFIX) else name + SUFFIX


def without(policy: Policy, places: frozenset[str], key: str = "") -> Policy:
    """Return the policy without our additions at these places; raises `ConfigError` if the result cannot work."""
    stages = tuple(_stage(stage, places, key) for stage in policy.stages if not _is_gone(stage, stage.id, places))
    recall = None if RECALL in places else policy.recall
    made = msgspec.structs.replace(policy, stages=stages, shape=_steps(policy.shape, "shape", places), recall=recall)
    return without_lost_options(made, key)


def _is_gone(marked: Stage | Tier | Step | ShapeStep, place: str, places: frozenset[str]) -> bool:
    return bool(marked.ours) and place in places


def _stage(stage: Stage, places: frozenset[str], key: str) -> Stage:
    tiers, made = [], dict[str, frozenset[str]]()
    for tier in stage.tiers:
        place = _place(stage, tier)
        if _is_gone(tier, place, places):
            continue
        where = f"{key}.{place}"
        if tier.start and tier.start not in made:
            raise ConfigError(
                f"{where}.from", f"the tier {tier.start!r} exists only with our additions", "another tier"
            )
        kept = msgspec.structs.replace(tier, steps=_steps(tier.steps, place, places))
        made[tier.id] = check_order(kept, made.get(tier.start, frozenset()), where)
        tiers.append(kept)
    if not all(tier.steps for tier in tiers) or not tiers:
        raise ConfigError(f"{key}.{stage.id}", "the stage is empty without our additions", "`ours` on the whole stage")
    return msgspec.structs.replace(stage, tiers=tuple(tiers))


def _steps(steps: tuple[S, ...], place: str, places: frozenset[str]) -> tuple[S, ...]:
    kept = []
    for step in steps:
        at = f"{place}.{step.use}"
        if _is_gone(step, at, places):
            continue
        if step.departs is not None:
            named = [name for name in step.departs.why if f"{at}.{name}" in places]
            params = {name: getattr(step.departs.document, name) for name in named}
            why = {name: why for name, why in step.departs.why.items() if name not in named}
            departs = msgspec.structs.replace(step.departs, why=why) if why else None
            step = msgspec.structs.replace(step, params=msgspec.structs.replace(step.params, **params), departs=departs)
        kept.append(step)
    return tuple(kept)
