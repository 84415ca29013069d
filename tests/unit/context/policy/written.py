"""Converts a policy back to its table, which proves that policies are data and that the conversion loses nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from codecompanion.context.policy.policy import Policy, ShapeStep, Stage, Step, Tier


def policy_to_table(policy: Policy) -> dict[str, Any]:
    """Return the table of a policy (a plain dict of TOML types; missing values are omitted)."""
    fields: dict[str, Any] = msgspec.to_builtins(policy)
    fields["stage"] = [_stage_table(stage) for stage in policy.stages]
    fields["shape"] = [_plain({"when": step.when, **_step_table(step)}) for step in policy.shape]
    del fields["stages"]
    return fields


def _stage_table(stage: Stage) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(stage)
    fields["tier"] = [_tier_table(tier) for tier in stage.tiers]
    del fields["tiers"]
    for name, size in (("trigger", stage.trigger), ("target", stage.target)):
        if size is not None and not size.is_on:
            fields[name]["at"] = False
    table: dict[str, Any] = _plain(fields)
    return table


def _tier_table(tier: Tier) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(tier)
    del fields["steps"]
    return {**fields, "step": [{"optional": step.optional, **_step_table(step)} for step in tier.steps]}


def _step_table(step: Step | ShapeStep) -> dict[str, Any]:
    fields = {"use": step.use, "ours": step.ours, **_plain(step.params)}
    if step.departs is not None:
        fields["ours"] = dict(step.departs.why)
        fields["document"] = {name: _plain(getattr(step.departs.document, name)) for name in step.departs.why}
    return fields


def _plain(value: Any) -> Any:
    """Return the value without the fields of tables that are None, at any depth; TOML cannot express them."""
    value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value
