"""Applies a user's settings to a policy, using the policy's own list of option names (R-503, R-504, R-529)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from codecompanion.context.policy.hints import unknown_key
from codecompanion.context.policy.policy import CHAT_ADAPTER, Policy, Stage, SummaryAdapter, Tier
from codecompanion.context.policy.strict import strict
from codecompanion.context.policy.table import SIZES, check_writers, read_size, size_fields
from codecompanion.context.policy.table_checks import convert, describe, refuse_nonsense, with_sizes
from codecompanion.context.thresholds import Size, Trigger
from codecompanion.errors import ConfigError

_STRICT = "strict"
COMMON_OPTIONS = ("enabled", _STRICT, "compaction.adapter", "compaction.fallback_to_chat_adapter")
"""Options of every policy below `context_management`; `strict` only for policies that follow a document."""
_SESSIONS = "sessions."
"""Prefix of the options in KodaCode's document (R-305); options have the same meaning with and without it."""
TARGET_THRESHOLD = "compaction_target_threshold"
_THRESHOLD = "compaction_threshold"
_NAMES_OF_THRESHOLD = (_THRESHOLD, "compaction.trigger", _SESSIONS + _THRESHOLD)
_NAMES_OF_TARGET = (TARGET_THRESHOLD, _SESSIONS + TARGET_THRESHOLD)
"""The names of the target option, without and with the prefix from KodaCode's document (R-305)."""


def with_options(policy: Policy, options: Mapping[str, Any], key: str, beside: tuple[str, ...] = ()) -> Policy:
    """Return the policy with a user's settings applied.

    `options` is the nested or dotted `context_management` subtree: `enabled`, `editing.trigger`,
    `compaction.min_token_savings`, …; the policy's own `options` lists the valid names. `beside`: other keys allowed
    next to them.

    Raises:
        ConfigError: an unknown option, a value of the wrong type, or contradictory options; the error names the key
            path below `key`.
    """
    given = flatten(options, option_names(policy))
    if _boolean(given.pop(_STRICT, False), f"{key}.{_STRICT}"):
        policy = strict(policy, f"{key}.{_STRICT}")
    known = option_names(policy)
    _refuse_contradictions(policy, given, key)
    for name, value in given.items():
        path = f"{key}.{name}"
        refuse_nonsense(value, path)
        if name == "enabled":
            policy = msgspec.structs.replace(policy, enabled=_boolean(value, path))
        elif name == "compaction.adapter":
            policy = msgspec.structs.replace(policy, summary_adapter=_summary_adapter(value, path))
        elif name == "compaction.fallback_to_chat_adapter":
            policy = _with_fallback(policy, _boolean(value, path))
        elif place := _place(policy, name):
            policy = _with_value(policy, place, value, path)
        else:
            raise ConfigError(path, *unknown_key(name, (*known, *beside), f"policy {policy.name} has no such option"))
    return policy


def _refuse_contradictions(policy: Policy, given: Mapping[str, Any], key: str) -> None:
    """Refuse one setting given under two names with different values, and a target not below its threshold (R-305)."""
    told: dict[str, str] = {}
    for name in sorted(given):  # in any order of writing, our own name takes precedence
        place = _place(policy, name)
        other = told.setdefault(place, name) if place else name
        if given[other] != given[name] and _meant(given[other]) != _meant(given[name]):
            raise ConfigError(
                f"{key}.{name}",
                f"{given[name]!r}, but {key}.{other} is {given[other]!r}: both set the same option",
                "only one of them",
            )
    named = next((name for name in _NAMES_OF_TARGET if name in given), "")
    threshold = next((given[name] for name in _NAMES_OF_THRESHOLD if name in given), None)
    if not named or threshold is None or TARGET_THRESHOLD not in policy.options:
        return
    target = given[named]
    wanted, start = _meant(target), _meant(threshold)
    if wanted is None or start is None:
        return  # with_options reports the error when it applies the value
    if (wanted.at or 0) >= (start.at or math.inf) or (wanted.tokens or 0) >= (start.tokens or math.inf):
        raise ConfigError(f"{key}.{named}", f"{target!r} is not below the threshold ({threshold!r})", "a smaller value")


def _meant(value: Any) -> Size | None:
    """Return the size that an option value describes in any of its forms, or None if it is invalid."""
    try:
        return read_size(value, "", Trigger)
    except ConfigError:
        return None


def option_names(policy: Policy) -> tuple[str, ...]:
    """Return the dotted names of the options that apply to the policy."""
    common = (name for name in COMMON_OPTIONS if name != _STRICT or not policy.ours)
    below_sessions = (_SESSIONS + name for name in (_THRESHOLD, TARGET_THRESHOLD) if name in policy.options)
    return (*policy.options, *common, *below_sessions)


def _place(policy: Policy, name: str) -> str:
    """Return the path in the policy's table that an option sets, or "" if there is no such option."""
    return policy.options.get(name.removeprefix(_SESSIONS), "") if name in option_names(policy) else ""


def with_known_options(policy: Policy, options: Mapping[str, Any], key: str) -> Policy:
    """Return the policy with the settings that apply to it; others are ignored (`unknown_options`).

    Raises:
        ConfigError: as in `with_options`.
    """
    given = known_options(policy, options)
    policy = with_options(policy, {name: value for name, value in given.items() if name == _STRICT}, key)
    return with_options(policy, known_options(policy, given), key)  # the strict form may have fewer options


def unknown_options(policy: Policy, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the settings that do not apply to the policy, because they belong to another policy."""
    known = option_names(policy)
    return tuple(name for name in flatten(options, known) if name not in known)


def known_options(policy: Policy, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that apply to the policy, as dotted keys."""
    known = option_names(policy)
    return {name: value for name, value in flatten(options, known).items() if name in known}


def flatten(options: Mapping[str, Any], known: tuple[str, ...], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as dotted keys; the value of a known option is not flattened."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and dotted not in known and any(k.startswith(f"{dotted}.") for k in known):
            flat.update(flatten(value, known, f"{dotted}."))
        else:
            flat[dotted] = value
    return flat


def _with_value(policy: Policy, target: str, value: Any, key: str) -> Policy:
    """Return the policy with the value at a path replaced; a table is merged into the existing one.

    Possible paths: `stage.trigger`, `stage.target`, `stage.strategy.parameter…`, `stage.tier.strategy.parameter…`, and
    `stage.tier.on_fail`; `one+other.…` sets the value in two stages.
    """
    ids, *path = target.split(".")
    wanted = ids.split("+")
    stages = tuple(_stage_with(stage, path, value, key) if stage.id in wanted else stage for stage in policy.stages)
    return msgspec.structs.replace(policy, stages=stages)


def _stage_with(stage: Stage, path: list[str], value: Any, key: str) -> Stage:
    part, *rest = path
    if part in ("trigger", "target"):
        kind = Trigger if part == "trigger" else Size
        old: Size = getattr(stage, part) or kind()
        given = size_fields(value, key)
        stays = msgspec.to_builtins(old)
        if any(name in given for name in SIZES):
            stays = {name: inner for name, inner in stays.items() if name not in SIZES}
        return msgspec.structs.replace(stage, **{part: read_size({**stays, **given}, key, kind)})
    tier_ids = {tier.id for tier in stage.tiers}
    wanted, rest = (part, rest) if part in tier_ids else ("", path)
    tiers = tuple(
        _tier_with(tier, rest, value, key) if not wanted or tier.id == wanted else tier for tier in stage.tiers
    )
    return msgspec.structs.replace(stage, tiers=tiers)


def _tier_with(tier: Tier, path: list[str], value: Any, key: str) -> Tier:
    part, *rest = path
    if part == "on_fail":
        if not isinstance(value, list | tuple):
            raise ConfigError(key, f"got {describe(value)}", f'["{CHAT_ADAPTER}"]')
        check_writers(tuple(value), key)
        return msgspec.structs.replace(tier, on_fail=tuple(value))
    steps = tuple(
        msgspec.structs.replace(step, params=_replace_parameter(step.params, rest, value, key))
        if step.use == part
        else step
        for step in tier.steps
    )
    return msgspec.structs.replace(tier, steps=steps)


def _replace_parameter(params: msgspec.Struct, path: list[str], value: Any, key: str) -> msgspec.Struct:
    """Return the parameters with one (nested) field replaced, after checking all of them again."""
    table: dict[str, Any] = msgspec.to_builtins(params)
    target = table
    for name in path[:-1]:
        target = target[name]
    if path:
        target[path[-1]] = value
    elif isinstance(value, Mapping):
        target.update(value)
    else:
        raise ConfigError(key, f"got {describe(value)}", f"a table with {', '.join(params.__struct_fields__)}")
    try:
        return convert(with_sizes(table, type(params)), type(params), "")
    except ConfigError as error:
        # The parameter has its own name, but the user knows the option's.
        inside = error.key.removeprefix("".join(f".{name}" for name in path))
        raise ConfigError(key + inside, error.problem, error.expected) from error


def _with_fallback(policy: Policy, on: bool) -> Policy:
    """Return the policy with or without a retry of summaries by the chat's adapter (R-529)."""
    stages = []
    for stage in policy.stages:
        tiers = []
        for tier in stage.tiers:
            others = tuple(name for name in tier.on_fail if name != CHAT_ADAPTER)
            chain = (CHAT_ADAPTER, *others) if on else others
            tiers.append(msgspec.structs.replace(tier, on_fail=chain) if tier.summarises else tier)
        stages.append(msgspec.structs.replace(stage, tiers=tuple(tiers)))
    return msgspec.structs.replace(policy, stages=tuple(stages))


def _summary_adapter(value: Any, key: str) -> SummaryAdapter:
    """Return the adapter for summaries, given as nil, a name, or {name, model} (R-504)."""
    if value is None:
        return SummaryAdapter()
    if isinstance(value, str):
        return SummaryAdapter(value)
    if isinstance(value, Mapping):
        return convert(dict(value), SummaryAdapter, key)
    raise ConfigError(key, f"got {describe(value)}", 'nil, "name", or { name = "…", model = "…" }')


def _boolean(value: Any, key: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(key, f"got {describe(value)}", "true or false")
    return value
