"""Policies as tables, there and back: a TOML table, or the same from a user's configuration (pipeline.md 5.5).

Every error names the key path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.context.policy.budget import Trigger, parse_at
from codecompanion.context.policy.named_events import NAMES
from codecompanion.context.policy.schema import CHAT_ADAPTER, Policy, ShapeStep, Stage, Step, Tier
from codecompanion.context.policy.table_checks import (
    convert,
    describe,
    list_of,
    nearest,
    refuse_unknown,
    table_of,
    with_sizes,
)
from codecompanion.context.strategies import SHAPERS, STRATEGIES
from codecompanion.errors import ConfigError

STAGES = "a list of stages: { { id = …, event = …, trigger = …, step = { … } } }"
STEPS = 'a list of steps: { { use = "clear_tool_results" }, … }'
A_STEP = 'a step: { use = "clear_tool_results", … }'
_PROGRAMS = ("step", "tier", "like")
TIERS = "a list of tiers: { { id = …, step = { … } }, … }"


def policy_from_table(table: Mapping[str, Any], key: str) -> Policy:
    """Return the policy a table describes.

    Raises:
        ConfigError: unknown key, wrong type, or a name that leads nowhere; the text names the key path.
    """
    fields = dict(table)
    fields["stages"] = read_stages(fields.pop("stage", ()), f"{key}.stage", ())
    shape = list_of(fields.pop("shape", ()), f"{key}.shape", STEPS)
    fields["shape"] = tuple(_shape_step(step, f"{key}.shape[{i}]") for i, step in enumerate(shape, 1))
    refuse_unknown(fields, set(Policy.__struct_fields__), key)
    fields.setdefault("options", {})
    policy = convert(fields, Policy, key)
    check_names(policy, key)
    return policy


def check_names(policy: Policy, key: str) -> None:
    """Refuse names that lead nowhere: other stages, and what the options stand for."""
    known = {stage.id: stage for stage in policy.stages}
    for stage in policy.stages:
        where = f"{key}.stage.{stage.id}"
        needed = tuple(name for tier in stage.tiers for name in tier.needs)
        for field, names in (("after", stage.after), ("unless", stage.unless), ("tier.needs", needed)):
            for name in names:
                if name not in known:
                    raise ConfigError(f"{where}.{field}", f"there is no stage {name!r}", ", ".join(known))
        for name in (stage.emits.started, *stage.emits.changed, stage.emits.failed):
            _check_event(name, f"{where}.emits")
        if stage.target is None and any(tier.accept == "target" for tier in stage.tiers):
            raise ConfigError(f"{where}.target", "a tier is accepted by it", "{ at = 0.5 }")
    _check_event(policy.status_event, f"{key}.status_event")
    for option, target in policy.options.items():
        if led_to(policy, target) != target:
            raise ConfigError(f"{key}.options.{option}", f"{target!r} leads nowhere", "a place in this policy's stages")


def led_to(policy: Policy, target: str) -> str:
    """Return what an option stands for, without those of its stages that have no such place; "" when none has."""
    known = {stage.id: stage for stage in policy.stages}
    ids, _, path = target.partition(".")
    found = [id for id in ids.split("+") if id in known and path.partition(".")[0] in _parts(known[id])]
    return f"{'+'.join(found)}.{path}" if found else ""


def _check_event(name: str, key: str) -> None:
    if name and name not in NAMES:
        raise ConfigError(key, f"there is no event {name!r}", nearest(name, NAMES))


def _parts(stage: Stage) -> set[str]:
    """Return what may follow the stage in the target of an option."""
    steps = {step.use for tier in stage.tiers for step in tier.steps}
    return {"trigger", "target", "on_fail", *steps, *(tier.id for tier in stage.tiers)}


def policy_to_table(policy: Policy) -> dict[str, Any]:
    """Return the table that gives the policy back (a plain dict of TOML types; absent values are left out)."""
    fields: dict[str, Any] = msgspec.to_builtins(policy)
    fields["stage"] = [_stage_table(stage) for stage in policy.stages]
    fields["shape"] = [
        without_none(
            {
                "use": step.use,
                "when": None if step.when is None else msgspec.to_builtins(step.when),
                **msgspec.to_builtins(step.params),
            }
        )
        for step in policy.shape
    ]
    del fields["stages"]
    return fields


def read_stages(tables: Any, key: str, others: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stages of a table; one that is `like` another takes its tiers."""
    made: list[Stage] = []
    for position, table in enumerate(list_of(tables, key, STAGES), 1):
        stage = _stage(table, f"{key}[{position}]", (*made, *others))
        if any(stage.id == other.id for other in made):
            raise ConfigError(f"{key}[{position}].id", f"there is a stage {stage.id!r} before it", "another id")
        made.append(stage)
    return tuple(made)


def _stage(table: Any, key: str, others: tuple[Stage, ...]) -> Stage:
    """Return one stage of a table; one that is `like` another has its target, unless it says otherwise."""
    fields = table_of(table, key, "a stage: { id = …, event = …, trigger = …, step = { … } }")
    refuse_unknown(fields, {*Stage.__struct_fields__, *_PROGRAMS, "on_fail"} - {"tiers"}, key)
    like = fields.pop("like", None)
    steps, on_fail, tiers = fields.pop("step", None), fields.pop("on_fail", ()), fields.pop("tier", None)
    if sum(given is not None for given in (like, steps, tiers)) != 1:
        raise ConfigError(key, "it needs exactly one program", " or ".join(_PROGRAMS))
    if like is not None:
        model = next((stage for stage in others if stage.id == like), None)
        if model is None:
            raise ConfigError(f"{key}.like", f"there is no stage {like!r} before it", ", ".join(s.id for s in others))
        fields["tiers"] = model.tiers
        if "target" not in fields and model.target is not None:
            fields |= {"target": msgspec.to_builtins(model.target), "target_gap": model.target_gap}
    elif tiers is not None:
        tables = list_of(tiers, f"{key}.tier", TIERS)
        fields["tiers"] = tuple(read_tier(tier, f"{key}.tier[{i}]") for i, tier in enumerate(tables, 1))
        if not fields["tiers"]:
            raise ConfigError(f"{key}.tier", "it is empty", TIERS)
        _check_starts(fields["tiers"], key)
    else:
        fields["tiers"] = (read_tier({"step": steps, "on_fail": on_fail}, key),)
    fields["trigger"] = read_trigger(fields.get("trigger", {}), f"{key}.trigger")
    if "target" in fields:
        fields["target"] = read_trigger(fields["target"], f"{key}.target")
    stage = convert(fields, Stage, key)
    if not stage.id:
        raise ConfigError(f"{key}.id", "it is empty", "a name")
    return stage


def read_tier(table: Any, key: str) -> Tier:
    """Return one tier of a stage; raises `ConfigError`."""
    fields = table_of(table, key, "a tier: { id = …, step = { … } }")
    refuse_unknown(fields, {*Tier.__struct_encode_fields__, "step"} - {"steps"}, key)
    steps = list_of(fields.pop("step", ()), f"{key}.step", STEPS)
    fields["steps"] = tuple(_step(step, f"{key}.step[{i}]") for i, step in enumerate(steps, 1))
    tier = convert(fields, Tier, key)
    for name in tier.on_fail:
        writes = name in STRATEGIES and STRATEGIES[name].summarises and not STRATEGIES[name].asks_model
        if name != CHAT_ADAPTER and not writes:
            able = [use for use, strategy in STRATEGIES.items() if strategy.summarises and not strategy.asks_model]
            raise ConfigError(f"{key}.on_fail", f"{name!r} writes no summary", ", ".join((CHAT_ADAPTER, *able)))
    return tier


def _check_starts(tiers: tuple[Tier, ...], key: str) -> None:
    seen: list[str] = []
    for tier in tiers:
        if tier.start and tier.start not in seen:
            known = ", ".join(seen)
            raise ConfigError(f"{key}.tier.{tier.id}.from", f"there is no tier {tier.start!r} before it", known)
        seen.append(tier.id)


def read_trigger(table: Any, key: str) -> Trigger:
    """Return a trigger or target; 1.0 means all of the basis. Raises `ConfigError`."""
    fields = table_of(table, key, '{ at = 0.85, basis = "window" }')
    fields["at"] = parse_at(fields.get("at", False), f"{key}.at", whole=True)
    return convert(fields, Trigger, key)


def _step(table: Any, key: str) -> Step:
    """Return one step, its parameters checked by the strategy's own struct."""
    fields = table_of(table, key, A_STEP)
    use = _used(fields.pop("use", None), STRATEGIES, "strategy", f"{key}.use")
    optional = convert(fields.pop("optional", False), bool, f"{key}.optional")
    params = STRATEGIES[use].params
    return Step(use, convert(with_sizes(fields, params), params, key), optional)


def _shape_step(table: Any, key: str) -> ShapeStep:
    fields = table_of(table, key, A_STEP)
    when = fields.pop("when", None)
    known = {**{name: strategy.params for name, strategy in STRATEGIES.items()}, **SHAPERS}
    use = _used(fields.pop("use", None), known, "step", f"{key}.use")
    crossed = None if when is None else read_trigger(when, f"{key}.when")
    return ShapeStep(use=use, params=convert(with_sizes(fields, known[use]), known[use], key), when=crossed)


def _used(name: Any, known: Mapping[str, Any], noun: str, key: str) -> str:
    """Return the name of a strategy that exists; raises `ConfigError`."""
    if not isinstance(name, str):
        problem = "it is missing" if name is None else f"got {describe(name)}"
        raise ConfigError(key, problem, f"the name of a {noun}, such as {next(iter(known))!r}")
    if name not in known:
        raise ConfigError(key, f"there is no {noun} {name!r}", nearest(name, tuple(known)))
    return name


def tier_table(tier: Tier) -> dict[str, Any]:
    """Return the table of one tier."""
    fields: dict[str, Any] = msgspec.to_builtins(tier)
    del fields["steps"]
    steps = [
        {
            "use": step.use,
            **({"optional": True} if step.optional else {}),
            **without_none(msgspec.to_builtins(step.params)),
        }
        for step in tier.steps
    ]
    return {**fields, "step": steps}


def _stage_table(stage: Stage) -> dict[str, Any]:
    """Return the table of one stage."""
    fields: dict[str, Any] = msgspec.to_builtins(stage)
    fields["tier"] = [tier_table(tier) for tier in stage.tiers]
    del fields["tiers"]
    for name in ("trigger", "target"):
        if fields[name] is not None and fields[name]["at"] is None:
            fields[name]["at"] = False
    table: dict[str, Any] = without_none(fields)
    return table


def without_none(value: Any) -> Any:
    """Return the value without what TOML cannot say: absent fields of tables, at any depth."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_none(inner) for inner in value]
    return value
