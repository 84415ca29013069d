"""Policies as tables, there and back: a TOML table, or the same from a user's configuration (pipeline.md 5.5).

Every error names the key path.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

from codecompanion.context.budget import Trigger, parse_at
from codecompanion.context.policy_events import NAMES
from codecompanion.context.policy_schema import CHAT_ADAPTER, Policy, ShapeStep, Stage, Step, Tier
from codecompanion.context.strategies import SHAPERS, STRATEGIES
from codecompanion.errors import ConfigError

T = TypeVar("T")


def policy_from_table(table: Mapping[str, Any], key: str) -> Policy:
    """Return the policy a table describes.

    Raises:
        ConfigError: unknown key, wrong type, or a name that leads nowhere; the text names the key path.
    """
    fields = dict(table)
    fields["stages"] = read_stages(fields.pop("stage", ()), f"{key}.stage", ())
    fields["shape"] = tuple(_shape_step(step, f"{key}.shape[{i}]") for i, step in enumerate(fields.pop("shape", ())))
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
        for field, names in (("after", stage.after), ("unless", stage.unless)):
            for name in names:
                if name not in known:
                    raise ConfigError(f"{where}.{field}", f"there is no stage {name!r}", ", ".join(known))
        for name in (stage.emits.started, *stage.emits.changed, stage.emits.failed):
            _check_event(name, f"{where}.emits")
        if stage.target is None and any(tier.accept == "target" for tier in stage.tiers):
            raise ConfigError(f"{where}.target", "a tier is accepted by it", "{ at = 0.5 }")
    _check_event(policy.status_event, f"{key}.status_event")
    for option, target in policy.options.items():
        ids, part, *_ = (*target.split("."), "")
        if any(id not in known or part not in _parts(known[id]) for id in ids.split("+")):
            raise ConfigError(f"{key}.options.{option}", f"{target!r} leads nowhere", "a place in this policy's stages")


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
    for index, table in enumerate(tables):
        made.append(_stage(table, f"{key}[{index}]", (*made, *others)))
    return tuple(made)


def _stage(table: Mapping[str, Any], key: str, others: tuple[Stage, ...]) -> Stage:
    """Return one stage of a table."""
    fields = dict(table)
    like = fields.pop("like", None)
    steps, on_fail, tiers = fields.pop("step", None), fields.pop("on_fail", ()), fields.pop("tier", None)
    if sum(given is not None for given in (like, steps, tiers)) != 1:
        raise ConfigError(key, "it needs exactly one program", "step, tier or like")
    if like is not None:
        model = next((stage for stage in others if stage.id == like), None)
        if model is None:
            raise ConfigError(f"{key}.like", f"there is no stage {like!r} before it", ", ".join(s.id for s in others))
        fields["tiers"] = model.tiers
    elif tiers is not None:
        fields["tiers"] = tuple(read_tier(tier, f"{key}.tier[{i}]") for i, tier in enumerate(tiers))
        _check_starts(fields["tiers"], key)
    else:
        fields["tiers"] = (read_tier({"step": steps, "on_fail": on_fail}, key),)
    refuse_unknown(fields, set(Stage.__struct_fields__), key)
    fields["trigger"] = read_trigger(fields.get("trigger", {}), f"{key}.trigger")
    if "target" in fields:
        fields["target"] = read_trigger(fields["target"], f"{key}.target")
    return convert(fields, Stage, key)


def read_tier(table: Mapping[str, Any], key: str) -> Tier:
    """Return one tier of a stage; raises `ConfigError`."""
    fields = dict(table)
    fields["steps"] = tuple(_step(step, f"{key}.step[{i}]") for i, step in enumerate(fields.pop("step", ()) or ()))
    refuse_unknown(fields, {"id", "number", "accept", "from", "on_fail", "event", "steps"}, key)
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
    if not isinstance(table, Mapping):
        raise ConfigError(key, f"{table!r} is not a table", '{ at = 0.85, basis = "window" }')
    fields = dict(table)
    fields["at"] = parse_at(fields.get("at", False), f"{key}.at", whole=True)
    return convert(fields, Trigger, key)


def _step(table: Mapping[str, Any], key: str) -> Step:
    """Return one step, its parameters checked by the strategy's own struct."""
    fields = dict(table)
    use = fields.pop("use", None)
    if use not in STRATEGIES:
        raise ConfigError(f"{key}.use", f"there is no strategy {use!r}", nearest(str(use), tuple(STRATEGIES)))
    optional = convert(fields.pop("optional", False), bool, f"{key}.optional")
    return Step(use, convert(fields, STRATEGIES[use].params, key), optional)


def _shape_step(table: Mapping[str, Any], key: str) -> ShapeStep:
    fields = dict(table)
    use, when = fields.pop("use", None), fields.pop("when", None)
    known = {**{name: strategy.params for name, strategy in STRATEGIES.items()}, **SHAPERS}
    if use not in known:
        raise ConfigError(f"{key}.use", f"there is no step {use!r}", nearest(str(use), tuple(known)))
    crossed = None if when is None else read_trigger(when, f"{key}.when")
    return ShapeStep(use=use, params=convert(fields, known[use], key), when=crossed)


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


def convert(value: Any, kind: type[T], key: str) -> T:
    """Return the value as a struct.

    Raises:
        ConfigError: it does not fit; the text names the key.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise ConfigError(f"{key}{where.rstrip('`')}", text[0].lower() + text[1:]) from error


def refuse_unknown(fields: Mapping[str, Any], allowed: Collection[str], key: str) -> None:
    """Raise `ConfigError` for the first field that does not exist; the nearest one is suggested."""
    for name in fields:
        if name not in allowed:
            raise ConfigError(f"{key}.{name}", "there is no such key", nearest(name, allowed))


def nearest(name: str, known: Collection[str]) -> str:
    """Return what was probably meant, else all that is known."""
    near = difflib.get_close_matches(name, known, 1)
    return near[0] if near else ", ".join(sorted(known))


def without_none(value: Any) -> Any:
    """Return the value without what TOML cannot say: absent fields of tables, at any depth."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_none(inner) for inner in value]
    return value
