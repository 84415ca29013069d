"""Lists and loads policies: the built-in tables in `policies/`, and the user's own, which extend them (K1).

`load_policy("codecompanion")` returns the policy before settings are applied (`policy_options`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.context.policy.hints import nearest
from codecompanion.context.policy.policy import OWN_FIELDS, Policy, Stage
from codecompanion.context.policy.policy_file import read_policy_file
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.policy.strict import SUFFIX, strict_form
from codecompanion.context.policy.table import read_shared, read_stages, without_lost_options
from codecompanion.context.policy.table_checks import convert, refuse_nonsense, table_of, with_sizes
from codecompanion.errors import ConfigError

_POLICIES = Path(__file__).parents[1] / "policies"


def policy_names() -> tuple[str, ...]:
    """Return the names of the built-in policies."""
    return tuple(sorted(entry.stem for entry in _POLICIES.glob("*.toml")))


def known_names(custom: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the built-in policies and those in `custom`."""
    return tuple(sorted({*policy_names(), *custom}))


def load_policy(name: str, custom: Mapping[str, Mapping[str, Any]] | None = None, key: str = "policies") -> Policy:
    """Return a built-in policy, or one of `custom` (name → table, as a user writes them below `key`).

    A custom table `extends` another policy (by default the built-in policy of the same name), sets its options, and may
    replace or add whole stages by id. `strict = true`, or ` strict` after any name, removes our additions.

    Raises:
        ConfigError: the policy does not exist (the nearest name is suggested), extends itself, or has an invalid table;
            the error names the key path.
    """
    return _load(name, custom or {}, key, ())


def _load(name: str, custom: Mapping[str, Mapping[str, Any]], key: str, extending: tuple[str, ...]) -> Policy:
    if name.endswith(SUFFIX) and name not in custom:
        where = f"{key}.{extending[-1]}.extends" if extending else "policy"
        return strict_form(_load(name.removesuffix(SUFFIX), custom, key, extending), where)
    if name in custom and name not in extending:
        table = table_of(custom[name], f"{key}.{name}", '{ extends = "codecompanion", … }')
        refuse_nonsense(table, f"{key}.{name}")
        base_name = table.get("extends", name if name in policy_names() else None)
        if not isinstance(base_name, str):
            raise ConfigError(f"{key}.{name}.extends", "the policy to extend is missing", _sound(custom))
        if base_name in extending or (base_name == name and name not in policy_names()):
            raise ConfigError(f"{key}.{name}.extends", f"extends itself through {base_name!r}", _sound(custom))
        base = _base(base_name, custom, key, (*extending, name))
        return _extended(base, name, table, f"{key}.{name}")
    if name not in policy_names():
        where = f"{key}.{extending[-1]}.extends" if extending else "policy"
        others = (known for known in (*policy_names(), *custom) if known not in extending)
        raise ConfigError(where, f"there is no policy {name!r}", nearest(name, tuple(others)))
    return _built_in(name)


def _base(name: str, custom: Mapping[str, Any], key: str, extending: tuple[str, ...]) -> Policy:
    """Return the base policy; an error in a custom base is reported for the policy that extends it."""
    try:
        return _load(name, custom, key, extending)
    except ConfigError as error:
        if name in custom and error.key.startswith(f"{key}.{name}."):
            raise ConfigError(f"{key}.{extending[-1]}.extends", f"{name!r} is itself invalid ({error})") from error
        raise


@cache
def _built_in(name: str) -> Policy:
    text = _POLICIES.joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return read_policy_file(text, f"policies/{name}.toml")


def _sound(custom: Mapping[str, Any]) -> str:
    """Return the names of the policies that can be extended because their own chain ends at a built-in policy."""
    return ", ".join(sorted({*policy_names(), *(name for name in custom if _is_grounded(name, custom))}))


def _is_grounded(name: str, custom: Mapping[str, Any]) -> bool:
    """Return whether following `extends` ends at a built-in policy."""
    seen: set[str] = set()
    while name in custom and name not in seen:
        seen.add(name)
        table = custom[name]
        base = table.get("extends", name) if isinstance(table, Mapping) else None
        if base == name or not isinstance(base, str):
            return base == name and name in policy_names()
        name = base
    return name not in custom and name in policy_names()


def _extended(base: Policy, name: str, table: Mapping[str, Any], key: str) -> Policy:
    """Return a policy extended by a user's table."""
    fields = {field: value for field, value in table.items() if field != "extends"}
    policy = msgspec.structs.replace(base, name=name)
    for field in OWN_FIELDS:
        if field in fields:
            given = with_sizes({field: fields.pop(field)}, Policy)
            own: Any = convert({**msgspec.structs.asdict(policy), **given}, Policy, key)
            policy = msgspec.structs.replace(policy, **{field: getattr(own, field)})
    shared = read_shared(fields.pop("steps", {}), f"{key}.steps")
    stages = read_stages(fields.pop("stage", ()), f"{key}.stage", policy.stages, shared)
    made = {stage.id: stage for stage in stages}
    replaced = tuple(made.pop(stage.id, stage) for stage in policy.stages)
    policy = msgspec.structs.replace(policy, stages=(*replaced, *made.values()))
    # A replaced stage may lack the place that an option of the old one refers to.
    policy = without_lost_options(policy, key)
    return with_options(policy, fields, key, (*OWN_FIELDS, "extends", "stage", "steps"))


OLDER_RESULTS, NEWEST_RESULTS = "older_results", "newest_results"
_ARRIVAL = (OLDER_RESULTS, NEWEST_RESULTS)


def arrival_stages() -> tuple[Stage, ...]:
    """Return the stages that make room for new results under every policy, beginning with older results (R-524)."""
    return tuple(stage for stage in _stages_of_file() if stage.id in _ARRIVAL)


def recovery_stages() -> tuple[Stage, ...]:
    """Return every policy's fallback stages for a request that does not fit the window (R-524, R-535)."""
    return tuple(stage for stage in _stages_of_file() if stage.id not in _ARRIVAL)


@cache
def _stages_of_file() -> tuple[Stage, ...]:
    text = Path(__file__).with_name("recovery.toml").read_text(encoding="utf-8")
    return read_policy_file(text, "policy/recovery.toml").stages
