"""Chooses the replacement for a stopped policy: one whose table or one of whose options is invalid."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.settings import Settings, load

POLICIES_KEY = "interactions.chat.opts.policies"


class StoppedPolicy(msgspec.Struct, frozen=True):
    """A stopped policy. `instead`: its replacement; `key`: the invalid option; `problem`: why it is invalid."""

    instead: str
    key: str
    problem: str


def default_policy() -> str:
    """Return the name of the default policy of an empty configuration, which is never stopped."""
    return load({}).chat.policy


def running_policy(settings: Settings, stopped: Mapping[str, StoppedPolicy], name: str) -> Policy:
    """Return the policy that runs if `name` is wanted, before settings are applied to it.

    Raises:
        ConfigError: the policy does not exist.
    """
    own = settings.chat.policies
    policy = load_policy(_in_place_of(name, stopped), own, POLICIES_KEY)
    if policy.without_tools and not settings.tools.enabled:
        policy = load_policy(_in_place_of(policy.without_tools, stopped), own, POLICIES_KEY)
    return policy


def _in_place_of(name: str, stopped: Mapping[str, StoppedPolicy]) -> str:
    seen: set[str] = set()
    while name in stopped and name not in seen:
        seen.add(name)
        name = stopped[name].instead
    return name


def find_stopped(settings: Settings, stopped: Mapping[str, StoppedPolicy], name: str) -> str:
    """Return the name of the stopped policy that would run if `name` is wanted, or "" if none is stopped."""
    if stopped and name not in stopped and not settings.tools.enabled:
        name = load_policy(name, settings.chat.policies, POLICIES_KEY).without_tools
    return name if name in stopped else ""
