"""Reads policies from tables in a TOML file or in a user's configuration (pipeline.md 5.5).

Every error names the key path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from codecompanion.context.policy.hints import nearest
from codecompanion.context.policy.policy import (
    CHAT_ADAPTER,
    EVENT_NAMES,
    Departure,
    Policy,
    ShapeStep,
    Stage,
    Step,
    Tier,
)
from codecompanion.context.policy.step_order import check_order
from codecompanion.context.policy.table_checks import (
    convert,
    describe,
    list_of,
    refuse_unknown,
    table_of,
    with_sizes,
)
from codecompanion.context.strategies import SHAPERS, STRATEGIES
from codecompanion.context.thresholds import SHARE_FORMS, Size, Trigger, parse_share, parse_threshold
from codecompanion.counting.token_sizes import is_short_form
from codecompanion.errors import ConfigError

S = TypeVar("S", bound=Size)
STAGES = "a list of stages: { { id = …, event = …, trigger = …, step = { … } } }"
STEPS = 'a list of steps: { { use = "clear_tool_results" }, … }'
A_STEP = 'a step: { use = "clear_tool_results", … }'
OURS = '`ours = { parameter = "why" }`, and `document = { parameter = value }` beside it'
SHARED = "named lists of steps: { name = { { use = … }, … } }"
Shared = Mapping[str, tuple[Step, ...]]
"""Steps shared by several tiers, by their name in `steps`."""
NOT_SHARED: Shared = {}
TRIGGER = "{ at = 0.85 }, { tokens = 16000 }, { always = true } or false"
TARGET = "{ at = 0.5 }, { tokens = 16000 } or false"
SIZES = ("at", "tokens", "always")
_PROGRAMS = ("step", "tier", "like")
_LIKE = ("tiers", "event", "target", "target_gap", "effects", "emits", "card")
"""Fields that a stage inherits from the stage named in `like`, unless it sets them."""
TIERS = "a list of tiers: { { id = …, step = { … } }, … }"


def policy_from_table(table: Mapping[str, Any], key: str) -> Policy:
    """Return the policy a table describes.

    Raises:
        ConfigError: unknown key, wrong type, or a reference to a missing name; the error names the key path.
    """
    fields = dict(table)
    shared = read_shared(fields.pop("steps", {}), f"{key}.steps")
    fields["stages"] = read_stages(fields.pop("stage", ()), f"{key}.stage", (), shared)
    shape = list_of(fields.pop("shape", ()), f"{key}.shape", STEPS)
    fields["shape"] = tuple(_shape_step(step, f"{key}.shape[{i}]") for i, step in enumerate(shape, 1))
    refuse_unknown(fields, set(Policy.__struct_fields__), key)
    fields.setdefault("options", {})
    policy = convert(fields, Policy, key)
    check_names(policy, key)
    return policy


def check_names(policy: Policy, key: str) -> None:
    """Refuse references to stages, events and option paths that do not exist."""
    known = [stage.id for stage in policy.stages]
    for number, stage in enumerate(policy.stages):
        where = f"{key}.stage.{stage.id}"
        needed = tuple(name for tier in stage.tiers for name in tier.needs)
        for field, names in (("after", stage.after), ("unless", stage.unless), ("tier.needs", needed)):
            for name in names:
                if name not in known:
                    raise ConfigError(f"{where}.{field}", f"there is no stage {name!r}", ", ".join(known))
                if field != "tier.needs" and name not in known[:number]:
                    expected = ", ".join(known[:number]) or f"no {field}: no stage comes before it"
                    raise ConfigError(f"{where}.{field}", f"{name!r} does not come before this stage", expected)
        for name in (stage.emits.started, *stage.emits.changed, stage.emits.failed):
            _check_event(name, f"{where}.emits")
        if stage.target is None and any(tier.accept == "target" for tier in stage.tiers):
            raise ConfigError(f"{where}.target", "it is missing, but a tier depends on it", "{ at = 0.5 }")
    _check_event(policy.status_event, f"{key}.status_event")
    for option, target in policy.options.items():
        if existing_option_path(policy, target) != target:
            raise ConfigError(
                f"{key}.options.{option}", f"{target!r} does not exist", "a place in this policy's stages"
            )


def existing_option_path(policy: Policy, target: str) -> str:
    """Return an option's path without the stages that lack it, or "" if every stage lacks it."""
    known = {stage.id: stage for stage in policy.stages}
    ids, _, path = target.partition(".")
    found = [id for id in ids.split("+") if id in known and _has(known[id], path.split("."))]
    return f"{'+'.join(found)}.{path}" if found else ""


def without_lost_options(policy: Policy, key: str) -> Policy:
    """Return a policy without the options whose path no longer exists; raises `ConfigError` like `check_names`."""
    options = {
        option: place for option, target in policy.options.items() if (place := existing_option_path(policy, target))
    }
    kept = msgspec.structs.replace(policy, options=options)
    check_names(kept, key)
    return kept


def _check_event(name: str, key: str) -> None:
    if name and name not in EVENT_NAMES:
        raise ConfigError(key, f"there is no event {name!r}", nearest(name, EVENT_NAMES))


def _has(stage: Stage, path: list[str]) -> bool:
    """Return whether a stage has this path: `trigger`, `tier.on_fail`, or a path in a tier."""
    tiers = [tier for tier in stage.tiers if tier.id == path[0]]
    part, *rest = path[1:] if tiers and len(path) > 1 else path
    if part in ("trigger", "target", "on_fail"):
        return not rest
    places: list[Any] = [step.params for tier in tiers or stage.tiers for step in tier.steps if step.use == part]
    for name in rest:
        places = [getattr(place, name) for place in places if name in getattr(place, "__struct_fields__", ())]
    return bool(places)


def read_shared(tables: Any, key: str) -> Shared:
    """Return the named lists of steps in a table; raises `ConfigError`."""
    shared: dict[str, tuple[Step, ...]] = {}
    for name, steps in table_of(tables, key, SHARED).items():
        shared[name] = _steps(steps, f"{key}.{name}", NOT_SHARED)
    return shared


def read_stages(tables: Any, key: str, others: tuple[Stage, ...], shared: Shared) -> tuple[Stage, ...]:
    """Return the stages of a table; a stage `like` another inherits the fields it does not set."""
    made: list[Stage] = []
    for position, table in enumerate(list_of(tables, key, STAGES), 1):
        stage = _stage(table, f"{key}[{position}]", (*made, *others), shared)
        if any(stage.id == other.id for other in made):
            raise ConfigError(f"{key}[{position}].id", f"an earlier stage has the id {stage.id!r}", "another id")
        made.append(stage)
    return tuple(made)


def _stage(table: Any, key: str, others: tuple[Stage, ...], shared: Shared) -> Stage:
    """Return one stage of a table."""
    fields = table_of(table, key, "a stage: { id = …, event = …, trigger = …, step = { … } }")
    refuse_unknown(fields, {*Stage.__struct_fields__, *_PROGRAMS, "on_fail"} - {"tiers"}, key)
    like, tiers = fields.pop("like", None), fields.pop("tier", None)
    own = {name: fields.pop(name) for name in ("step", "on_fail") if name in fields}
    ways = [given for given in (own.get("step"), tiers) if given is not None]
    if len(ways) > 1 or not (ways or like is not None):
        problem = "its steps are defined in more than one way" if ways else "it has no steps"
        raise ConfigError(key, problem, " or ".join(_PROGRAMS))
    if "on_fail" in own and "step" not in own:
        raise ConfigError(f"{key}.on_fail", "it does not belong here", "it in a tier, or beside `step`")
    if like is not None:
        model = next((stage for stage in others if stage.id == like), None)
        if model is None:
            raise ConfigError(f"{key}.like", f"there is no earlier stage {like!r}", ", ".join(s.id for s in others))
        fields = {name: getattr(model, name) for name in _LIKE} | fields
    if tiers is not None:
        tables = list_of(tiers, f"{key}.tier", TIERS)
        fields["tiers"] = tuple(read_tier(tier, f"{key}.tier[{i}]", shared) for i, tier in enumerate(tables, 1))
        if not fields["tiers"]:
            raise ConfigError(f"{key}.tier", "it is empty", TIERS)
        _check_starts(fields["tiers"], key)
    elif "step" in own:
        fields["tiers"] = (read_tier(own, key, shared),)
        check_order(fields["tiers"][0], frozenset(), key)
    default = False if fields.get("manual") is True else None
    fields["trigger"] = read_size(fields.get("trigger", default), f"{key}.trigger", Trigger)
    if not isinstance(fields.get("target"), Size | None):
        fields["target"] = read_size(fields["target"], f"{key}.target", Size)
    stage = convert(fields, Stage, key)
    if not stage.id:
        raise ConfigError(f"{key}.id", "it is empty", "a name")
    return stage


def _steps(tables: Any, key: str, shared: Shared) -> tuple[Step, ...]:
    """Return a list of steps; `{ steps = "name" }` inserts the shared list of that name."""
    made: list[Step] = []
    for number, table in enumerate(list_of(tables, key, STEPS), 1):
        where = f"{key}[{number}]"
        if not (isinstance(table, Mapping) and "steps" in table):
            made.append(_step(table, where))
            continue
        name = table["steps"]
        if not isinstance(name, str) or name not in shared:
            problem = f"there is no list of steps {name!r}" if isinstance(name, str) else f"got {describe(name)}"
            raise ConfigError(f"{where}.steps", problem, nearest(str(name), tuple(shared)) or "a name in `steps`")
        if len(table) > 1:
            raise ConfigError(where, f"the steps {name!r} cannot be changed here", "no keys besides `steps`")
        made += shared[name]
    return tuple(made)


def read_tier(table: Any, key: str, shared: Shared = NOT_SHARED) -> Tier:
    """Return the tier that a table describes; raises `ConfigError`."""
    fields = table_of(table, key, "a tier: { id = …, step = { … } }")
    refuse_unknown(fields, {*Tier.__struct_encode_fields__, "step"} - {"steps"}, key)
    fields["steps"] = _steps(fields.pop("step", ()), f"{key}.step", shared)
    tier = convert(fields, Tier, key)
    check_writers(tier.on_fail, f"{key}.on_fail")
    return tier


def check_writers(names: tuple[str, ...], key: str) -> None:
    """Refuse a fallback that does not write summaries (K9)."""
    able = [CHAT_ADAPTER, *(use for use, one in STRATEGIES.items() if one.summarises and not one.asks_model)]
    for name in names:
        if name not in able:
            raise ConfigError(key, f"{name!r} does not write summaries", ", ".join(able))


def _check_starts(tiers: tuple[Tier, ...], key: str) -> None:
    """Refuse tiers whose start or inputs no earlier tier or step produces."""
    made: dict[str, frozenset[str]] = {}
    for number, tier in enumerate(tiers, 1):
        where = f"{key}.tier[{number}]"
        if tier.start and tier.start not in made:
            raise ConfigError(f"{where}.from", f"there is no earlier tier {tier.start!r}", ", ".join(made))
        if tier.id and tier.id in made:
            raise ConfigError(f"{where}.id", f"an earlier tier has the id {tier.id!r}", "another id")
        made[tier.id] = check_order(tier, made.get(tier.start, frozenset()), where)


def read_size(value: Any, key: str, kind: type[S]) -> S:
    """Return a trigger or target, given as a table or as an option's value; raises `ConfigError`."""
    forms = TRIGGER if kind is Trigger else TARGET
    if value is None:
        raise ConfigError(key, "it is missing", forms)
    fields = size_fields(value, key)
    if not any(name in fields for name in SIZES):
        raise ConfigError(key, "it has no size", forms)
    at = fields.get("at")
    if at is False:
        del fields["at"]
    elif isinstance(at, str):
        if is_short_form(at):
            raise ConfigError(f"{key}.at", f"{at!r} is a number of tokens", f'{SHARE_FORMS}, or tokens = "{at}"')
        fields["at"] = parse_share(at, f"{key}.at", SHARE_FORMS, whole=True)
    return convert(with_sizes(fields, kind), kind, key)


def size_fields(value: Any, key: str) -> dict[str, Any]:
    """Return a trigger or target as a new table; 0.85, "85%", 16000, "16k" and false are short forms (R-502)."""
    return dict(value) if isinstance(value, Mapping) else parse_threshold(value, key) or {"at": False}


def _step(table: Any, key: str) -> Step:
    """Return one step, with its parameters checked by the strategy's own struct."""
    fields = table_of(table, key, A_STEP)
    use = _used(fields.pop("use", None), STRATEGIES, "strategy", f"{key}.use")
    optional = convert(fields.pop("optional", False), bool, f"{key}.optional")
    params, ours, departs = _params(fields, STRATEGIES[use].params, key)
    return Step(use, params, optional, ours, departs)


def _params(fields: dict[str, Any], kind: type[Any], key: str) -> tuple[Any, str, Departure | None]:
    """Return the parameters of a step, why it is ours ("" if it is in the document), and its changed parameters."""
    ours, document = fields.pop("ours", ""), fields.pop("document", {})
    params = convert(with_sizes(fields, kind), kind, key)
    if isinstance(ours, str):
        if document:
            raise ConfigError(f"{key}.document", "`ours` does not name a parameter", OURS)
        return params, ours, None
    why = convert(ours, dict[str, str], f"{key}.ours")
    values = table_of(document, f"{key}.document", OURS)
    refuse_unknown(why, set(fields), f"{key}.ours")
    refuse_unknown(values, set(why), f"{key}.document")
    others = {name: value for name, value in fields.items() if name not in why}
    return params, "", Departure(why, convert(with_sizes({**others, **values}, kind), kind, f"{key}.document"))


def _shape_step(table: Any, key: str) -> ShapeStep:
    fields = table_of(table, key, A_STEP)
    when = fields.pop("when", None)
    known = {**{name: strategy.params for name, strategy in STRATEGIES.items()}, **SHAPERS}
    use = _used(fields.pop("use", None), known, "step", f"{key}.use")
    crossed = None if when is None else read_size(when, f"{key}.when", Trigger)
    params, ours, departs = _params(fields, known[use], key)
    return ShapeStep(use=use, params=params, when=crossed, ours=ours, departs=departs)


def _used(name: Any, known: Mapping[str, Any], noun: str, key: str) -> str:
    """Return the name of an existing strategy; raises `ConfigError`."""
    if not isinstance(name, str):
        problem = "it is missing" if name is None else f"got {describe(name)}"
        raise ConfigError(key, problem, f"the name of a {noun}, such as {next(iter(known))!r}")
    if name not in known:
        raise ConfigError(key, f"there is no {noun} {name!r}", nearest(name, tuple(known)))
    return name
