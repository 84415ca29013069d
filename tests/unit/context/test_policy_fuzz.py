"""Any policy table yields a policy or an error with its key path, and every accepted policy runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codecompanion.cli.commands.context import Options, prepare_with_policy
from codecompanion.context.policy.policy import Policy, Stage
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.policy_options import COMMON_OPTIONS, with_options
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.strategies import SHAPERS, STRATEGIES
from codecompanion.errors import ConfigError
from codecompanion.model.transcript_format import read_objects
from tests.unit.context.policy.written import policy_to_table

POLICIES = policy_names()
OPTIONS = sorted({*COMMON_OPTIONS, *(name for policy in POLICIES for name in load_policy(policy).options)})
PARAMETERS = sorted({field for strategy in STRATEGIES.values() for field in strategy.params.__struct_fields__})
WORDS = sorted(
    {*POLICIES, *STRATEGIES, *SHAPERS, "editing", "compaction", "context_edited", "context_compacted", "always"}
    | {"target", "window", "chat", "85%", "16k", "0k", "cycles", "", "user", "chat_adapter", "checkpoint", "mine"}
)
KEYS = sorted(
    {*Policy.__struct_fields__, *Stage.__struct_fields__, *PARAMETERS, *OPTIONS}
    | {"stage", "step", "tier", "like", "use", "at", "basis", "measure", "op", "unit", "count", "extends", "from"}
    | {"tokens", "always", "steps"}
)

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner),
    max_leaves=12,
)
tables = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), anything, max_size=5)
PLACES = {name: msgspec.to_builtins(policy_to_table(load_policy(name))) for name in POLICIES}
SESSION = read_objects(
    [
        message
        for number in range(8)
        for message in (
            {"role": "user", "content": f"question {number} " * 40},
            {
                "role": "assistant",
                "content": "looking",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "line\n" * 900},
            {"role": "assistant", "content": "answer " * 30},
        )
    ],
    "here",
)


def places(table: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in a table."""
    inner = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


@st.composite
def almost_policies(draw: st.DrawFn) -> dict[str, Any]:
    """Return the table of a built-in policy with one or two changed values."""
    name = draw(st.sampled_from(POLICIES))
    table = msgspec.json.decode(msgspec.json.encode(PLACES[name]))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from([place for place in places(table) if place]))
        target = table
        for key in path:
            target = target[key]
        if draw(st.booleans()):
            target[last] = draw(anything)
        elif isinstance(target, dict):
            target[draw(st.sampled_from(KEYS))] = target.pop(last)
        else:
            del target[last]
    return table


def read(load: Any, key: str) -> Policy | None:
    """Return the policy, or None after an error that names its key."""
    mistake: ConfigError | None = None
    try:
        policy = load()
    except ConfigError as error:
        mistake = error
    if mistake is None:
        assert isinstance(policy, Policy)
        return policy
    assert mistake.key.startswith(key), str(mistake)
    assert "\n" not in mistake.key
    return None


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(anything, st.sampled_from(POLICIES))
def test_any_users_policy_is_valid_or_names_its_mistake(table: Any, base: str) -> None:
    if isinstance(table, dict):
        table = {"extends": base, **table}
    read(lambda: load_policy("mine", {"mine": table}, "policies"), "policies.mine")


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(almost_policies(), st.sampled_from(POLICIES))
def test_an_almost_valid_policy_is_valid_or_names_its_mistake_and_runs(table: dict[str, Any], base: str) -> None:
    """Both the whole table and the part that a user may write are read; an accepted policy prepares a request."""
    read(lambda: policy_from_table(table, "k"), "k")
    own = {
        "extends": base,
        **{key: value for key, value in table.items() if key in ("stage", "steps", "cooldown", "recovery")},
    }
    policy = read(lambda: load_policy("mine", {"mine": own}, "policies"), "policies.mine")
    if policy is not None and len(policy.stages) < 12:
        for manual in (False, True):
            prepare_with_policy(SESSION, policy, Options(policy="mine", window=8_000, manual=manual))


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(POLICIES), st.dictionaries(st.sampled_from(OPTIONS), anything, max_size=3))
def test_any_option_is_accepted_or_names_its_mistake(base: str, options: dict[str, Any]) -> None:
    read(lambda: with_options(load_policy(base), options, "k"), "k.")


@pytest.mark.parametrize("name", POLICIES)
def test_a_users_policy_may_be_a_copy(name: str) -> None:
    """The stages written by `policy_to_table` can be pasted into a configuration."""
    own = {"extends": name, "stage": PLACES[name]["stage"]}
    assert load_policy("mine", {"mine": own}).stages == load_policy(name).stages
