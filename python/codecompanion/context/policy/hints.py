"""Suggests a correction for an unknown key or word: it was renamed, misplaced or mistyped."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from functools import cache

import msgspec.inspect

from codecompanion.context.policy.policy import OWN_FIELDS, Policy
from codecompanion.context.strategies import SHAPERS, STRATEGIES

OLD_WORDS = {
    "chat": "'request', or no value: 'request' is the default",
    "all": "'request', or no value: 'request' is the default",
    "raw_replay": "'request', or no value: 'request' is the default",
    "messages_system": "'request', or no value: 'request' is the default",
    "<=": "'>=' or '>'; targets and limits need no op",
    "<": "no op: slack is always compared this way",
}
"""Words of earlier versions and their replacements."""
OLD_KEYS = {
    "op": "no op: only a trigger can have one",
    "least_ratio": "min_ratio",
    "cap": "max_tokens",
    "least": "min_tokens",
    "checkpoint_every_messages": "the setting interactions.chat.opts.checkpoint_every_messages, shared by all policies",
}
"""Keys of earlier versions and their replacements."""
_NEAR = 0.8
_LISTS = {"stages": "a stage", "tiers": "a tier", "steps": "a step"}


def nearest(name: str, known: Collection[str]) -> str:
    """Return the closest known name, or else a list of all known names."""
    near = difflib.get_close_matches(name, known, 1)
    return near[0] if near else ", ".join(sorted(known))


def unknown_key(name: str, known: Collection[str], problem: str = "unknown key") -> tuple[str, str]:
    """Return the problem with an unknown key, and the expected key."""
    if name in OLD_KEYS:
        return "the key no longer exists", OLD_KEYS[name]
    near = difflib.get_close_matches(name, known, 1, _NEAR)
    places = _places().get(name, ())
    if near or not places:
        return problem, near[0] if near else nearest(name, known)
    return "it does not belong here", f"it in {' or '.join(places[:3])}"


@cache
def _places() -> dict[str, list[str]]:
    """Return descriptions of the places where each key belongs."""
    found: dict[str, list[str]] = {}
    roots = {"the policy": msgspec.inspect.type_info(Policy)}
    params = {**{name: strategy.params for name, strategy in STRATEGIES.items()}, **SHAPERS}
    roots |= {f"the step {use!r}": msgspec.inspect.type_info(struct) for use, struct in params.items()}
    for root, kind in roots.items():
        for name, place in _fields(kind, root):
            if place == "the policy" and name not in OWN_FIELDS:
                continue
            if place not in found.setdefault(name, []):
                found[name].append(place)
    return found


def _fields(kind: msgspec.inspect.Type, place: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a struct and its nested structs, each with the name of its table."""
    match kind:
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _fields(one, place)
        case msgspec.inspect.VarTupleType(item_type=item):
            yield from _fields(item, place)
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                yield field.encode_name, place
                yield from _fields(field.type, _LISTS.get(field.encode_name, f"{field.encode_name!r}"))
