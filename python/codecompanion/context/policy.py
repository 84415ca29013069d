"""A policy is data: triggers plus a program of strategies, as a TOML table that round-trips (pipeline.md 5.5, K1).

`load_policy("codecompanion")` reads a built-in table; `with_options` lays a user's `context_management` settings over
it, through the policy's own list of option names. Every error names the key path.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeVar

import msgspec

from codecompanion.context.budget import Trigger, parse_at
from codecompanion.context.strategies import STRATEGIES
from codecompanion.errors import ConfigError

OnFail = Literal["chat_adapter"]
T = TypeVar("T")


class Step(msgspec.Struct, frozen=True):
    """One strategy with its parameters, already checked against the strategy's own struct."""

    use: str
    params: Any


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the program with its own trigger and its own event.

    `after` names stages that must have had their chance before this one; `manual` means `/compact` runs it;
    `needs_model` stages are left out when the adapter compacts by itself (K15).
    """

    id: str
    event: Literal["context_edited", "context_compacted"]
    trigger: Trigger
    steps: tuple[Step, ...]
    after: tuple[str, ...] = ()
    manual: bool = False
    needs_model: bool = False
    on_fail: tuple[OnFail, ...] = ()


class Cooldown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """After `failures` failed or useless compactions in a row, automatic ones rest for `cycles` cycles (R-532)."""

    failures: int = 3
    cycles: int = 2


class SummaryAdapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who writes summaries (R-504): an adapter by name, and a model of it ("" = its default)."""

    name: str = ""
    model: str = ""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy in force. `summary_adapter` "" = the chat's own adapter."""

    name: str
    description: str
    default_window: int
    stages: tuple[Stage, ...]
    options: dict[str, str]
    resume: Literal["submit", "continue"] = "submit"
    cooldown: Cooldown = Cooldown()
    enabled: bool = True
    summary_adapter: SummaryAdapter = SummaryAdapter()


def policy_names() -> tuple[str, ...]:
    """Return the names of the built-in policies."""
    folder = resources.files("codecompanion.context").joinpath("policies")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml")))


def load_policy(name: str) -> Policy:
    """Return a built-in policy.

    Raises:
        ConfigError: there is no policy of that name; the nearest one is suggested.
    """
    if name not in policy_names():
        near = difflib.get_close_matches(name, policy_names(), 1)
        raise ConfigError("policy", f"there is no policy {name!r}", near[0] if near else ", ".join(policy_names()))
    text = resources.files("codecompanion.context").joinpath("policies", f"{name}.toml").read_text(encoding="utf-8")
    return policy_from_table(tomllib.loads(text), f"policy.{name}")


@cache
def recovery_stages() -> tuple[Stage, ...]:
    """Return the stages every policy falls back to when a provider refuses a request as too long (R-535)."""
    text = resources.files("codecompanion.context").joinpath("recovery.toml").read_text(encoding="utf-8")
    return policy_from_table(tomllib.loads(text), "recovery").stages


def policy_from_table(table: Mapping[str, Any], key: str) -> Policy:
    """Return the policy a table describes.

    Raises:
        ConfigError: unknown key, wrong type, unknown strategy or stage; the text names the key path.
    """
    fields = dict(table)
    stages = tuple(_stage(stage, f"{key}.stage[{i}]") for i, stage in enumerate(fields.pop("stage", ())))
    known = {stage.id for stage in stages}
    for stage in stages:
        for other in stage.after:
            if other not in known:
                raise ConfigError(f"{key}.stage.{stage.id}.after", f"there is no stage {other!r}", ", ".join(known))
    allowed = set(Policy.__struct_fields__) - {"stages"}
    _refuse_unknown(fields, allowed, key)
    fields.setdefault("options", {})
    return _convert({**fields, "stages": stages}, Policy, key)


def policy_to_table(policy: Policy) -> dict[str, Any]:
    """Return the table that gives the policy back (a plain dict of TOML types; absent values are left out)."""
    fields: dict[str, Any] = msgspec.to_builtins(policy)
    fields["stage"] = [_stage_table(stage) for stage in policy.stages]
    del fields["stages"]
    return fields


def with_options(policy: Policy, options: Mapping[str, Any], key: str) -> Policy:
    """Return the policy with a user's settings laid over it.

    `options` is the nested or dotted `context_management` subtree: `enabled`, `editing.trigger`,
    `compaction.min_token_savings`, …; what exists is listed in the policy's own `options`.

    Raises:
        ConfigError: unknown option, or a value of the wrong type; the text names the key path below `key`.
    """
    for name, value in flatten(options).items():
        path = f"{key}.{name}"
        if name == "enabled":
            policy = msgspec.structs.replace(policy, enabled=_boolean(value, path))
        elif name == "compaction.adapter":
            policy = msgspec.structs.replace(policy, summary_adapter=_summary_adapter(value, path))
        elif name == "compaction.fallback_to_chat_adapter":
            policy = _with_fallback(policy, _boolean(value, path))
        elif name in policy.options:
            policy = _with_value(policy, policy.options[name], value, path)
        else:
            known = [*policy.options, "enabled", "compaction.adapter", "compaction.fallback_to_chat_adapter"]
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(path, "there is no such option", near[0] if near else ", ".join(sorted(known)))
    return policy


def flatten(options: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as dotted keys; the value of an adapter stays whole."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and dotted in ("editing", "compaction"):
            flat.update(flatten(value, f"{dotted}."))
        else:
            flat[dotted] = value
    return flat


def _stage(table: Mapping[str, Any], key: str) -> Stage:
    """Return one stage of a table."""
    fields = dict(table)
    steps = tuple(_step(step, f"{key}.step[{i}]") for i, step in enumerate(fields.pop("step", ())))
    _refuse_unknown(fields, set(Stage.__struct_fields__) - {"steps"}, key)
    trigger = dict(fields.pop("trigger", {}))
    trigger["at"] = parse_at(trigger.get("at", False), f"{key}.trigger.at")
    fields["trigger"] = _convert(trigger, Trigger, f"{key}.trigger")
    return _convert({**fields, "steps": steps}, Stage, key)


def _step(table: Mapping[str, Any], key: str) -> Step:
    """Return one step, its parameters checked by the strategy's own struct."""
    fields = dict(table)
    use = fields.pop("use", None)
    if use not in STRATEGIES:
        near = difflib.get_close_matches(str(use), STRATEGIES, 1)
        raise ConfigError(f"{key}.use", f"there is no strategy {use!r}", near[0] if near else ", ".join(STRATEGIES))
    return Step(use, _convert(fields, STRATEGIES[use].params, key))


def _stage_table(stage: Stage) -> dict[str, Any]:
    """Return the table of one stage."""
    fields: dict[str, Any] = msgspec.to_builtins(stage)
    fields["step"] = [{"use": step.use, **msgspec.to_builtins(step.params)} for step in stage.steps]
    del fields["steps"]
    if stage.trigger.at is None:
        fields["trigger"]["at"] = False
    return fields


def _with_value(policy: Policy, target: str, value: Any, key: str) -> Policy:
    """Return the policy with the value at `stage.trigger.at` or `stage.strategy.parameter[.parameter]` replaced."""
    stage_id, part, *rest = target.split(".")
    stages = []
    for stage in policy.stages:
        if stage.id == stage_id and part == "trigger":
            trigger = msgspec.structs.replace(stage.trigger, at=parse_at(value, key))
            stage = msgspec.structs.replace(stage, trigger=trigger)
        elif stage.id == stage_id:
            steps = tuple(
                Step(step.use, _replace_parameter(step.params, rest, value, key)) if step.use == part else step
                for step in stage.steps
            )
            stage = msgspec.structs.replace(stage, steps=steps)
        stages.append(stage)
    return msgspec.structs.replace(policy, stages=tuple(stages))


def _replace_parameter(params: msgspec.Struct, path: list[str], value: Any, key: str) -> msgspec.Struct:
    """Return the parameters with one (nested) field replaced and everything checked again."""
    table: dict[str, Any] = msgspec.to_builtins(params)
    target = table
    for name in path[:-1]:
        target = target[name]
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        raise ConfigError(key, f"{value} is negative", "0 or more")
    target[path[-1]] = value
    try:
        return _convert(table, type(params), key)
    except ConfigError as error:
        raise ConfigError(key, error.problem) from error


def _with_fallback(policy: Policy, on: bool) -> Policy:
    """Return the policy whose model stages retry with the chat adapter, or do not (R-529)."""
    chain: tuple[OnFail, ...] = ("chat_adapter",) if on else ()
    stages = tuple(
        msgspec.structs.replace(stage, on_fail=chain) if stage.needs_model else stage for stage in policy.stages
    )
    return msgspec.structs.replace(policy, stages=stages)


def _summary_adapter(value: Any, key: str) -> SummaryAdapter:
    """Return the adapter that writes summaries: nil, a name, or {name, model} (R-504)."""
    if value is None:
        return SummaryAdapter()
    if isinstance(value, str):
        return SummaryAdapter(value)
    if isinstance(value, Mapping):
        return _convert(dict(value), SummaryAdapter, key)
    raise ConfigError(key, f"{value!r} is not an adapter", 'nil, "name", or { name = "…", model = "…" }')


def _boolean(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(key, f"{value!r} is not a boolean", "true or false")
    return value


def _refuse_unknown(fields: Mapping[str, Any], allowed: set[str], key: str) -> None:
    for name in fields:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            raise ConfigError(f"{key}.{name}", "there is no such key", near[0] if near else ", ".join(sorted(allowed)))


def _convert(value: Any, kind: type[T], key: str) -> T:
    """Return the value as a struct.

    Raises:
        ConfigError: it does not fit; the text names the key.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        raise ConfigError(f"{key}{where.rstrip('`')}", text[0].lower() + text[1:]) from error
