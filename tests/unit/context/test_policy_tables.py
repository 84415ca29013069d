"""Policies as data: tables round-trip, users extend them, errors name the key (pipeline.md 5.5, K1, R-503)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

import codecompanion.context
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.policy_options import with_options
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.strategies import STRATEGIES
from codecompanion.errors import ConfigError
from tests.unit.context.policy.written import policy_to_table

FOLDER = Path(codecompanion.context.__file__).parent


@pytest.mark.parametrize("name", policy_names())
def test_a_policy_is_data_that_round_trips(name: str) -> None:
    """The plain table survives JSON, and the policy's own file yields the same policy."""
    policy = load_policy(name)
    table = policy_to_table(policy)
    assert policy_from_table(msgspec.json.decode(msgspec.json.encode(table)), "k") == policy
    written = tomllib.loads((FOLDER / "policies" / f"{name}.toml").read_text(encoding="utf-8"))
    assert policy_from_table(written, "k") == policy
    assert policy.name == name


def test_no_strategy_mentions_a_policy() -> None:
    """The only place a policy's name occurs is its own table; strategies are shared (pipeline.md 5.5)."""
    # A name that is an English word is looked for in quotes.
    names = "|".join(policy_names())
    mention = re.compile(rf"""["'`](?:{names})["'`]""")
    for source in sorted(FOLDER.glob("*.py")):
        if source.name in ("policy.py", "policy_schema.py", "policy_table.py", "policy_options.py"):
            continue
        assert mention.search(source.read_text(encoding="utf-8")) is None, source.name


def test_every_option_of_every_policy_can_be_set_to_its_value() -> None:
    """The paths of all options exist."""
    for name in policy_names():
        policy = load_policy(name)
        for option, target in policy.options.items():
            for id in target.split(".")[0].split("+"):
                stage = policy.stage(id)
                assert stage is not None, (name, option)
                if target.endswith(".trigger"):
                    changed = with_options(policy, {option: 12_345}, "k")
                    assert changed.stage(stage.id).trigger.tokens == 12_345  # type: ignore[union-attr]


MINE = {
    "extends": "codecompanion",
    "description": "My own.",
    "editing": {"trigger": "40%", "keep_cycles": 1},
    "compaction.min_token_savings": 5,
    "resume": "continue",
}


def test_an_invalid_policy_is_not_suggested_as_a_base() -> None:
    """Neither the policy itself nor a policy without a built-in base is suggested."""
    good, broken = {"extends": "codecompanion"}, {"extends": "mine"}
    custom = {"mine": {}, "yours": broken, "ours": good, "table": [], "x": {"extends": "y"}, "y": {"extends": "x"}}
    for wrong in ({}, {"extends": "mine"}):
        with pytest.raises(ConfigError) as caught:
            load_policy("mine", {**custom, "mine": wrong})
        assert caught.value.expected == ", ".join(sorted((*policy_names(), "ours")))
    with pytest.raises(ConfigError) as caught:
        load_policy("fast", {"fast": {"extends": "fats"}})
    assert "fast" not in caught.value.expected


def test_a_user_policy_extends_another() -> None:
    """Options of the base may be nested or dotted; the rest stays."""
    mine = load_policy("mine", {"mine": MINE})
    base = load_policy("codecompanion")
    assert (mine.name, mine.description, mine.resume) == ("mine", "My own.", "continue")
    assert mine.stages[0].trigger.at == 0.4
    assert mine.stages[1].trigger == base.stages[1].trigger
    assert mine.stages[0].tiers[0].steps[0].params.older_than.count == 1
    yours = load_policy("yours", {"mine": MINE, "yours": {"extends": "mine", "editing.trigger": 0.5}})
    assert (yours.stages[0].trigger.at, yours.resume) == (0.5, "continue")


def test_a_built_in_policy_can_be_changed_under_its_own_name() -> None:
    """Without `extends`, a table named like a built-in policy is merged over it."""
    assert load_policy("codecompanion", {"codecompanion": {"editing.trigger": 0.5}}).stages[0].trigger.at == 0.5


def test_a_users_policy_may_replace_and_add_stages() -> None:
    """A stage is replaced as a whole, by its id; a new one is appended."""
    stage = {
        "id": "editing",
        "event": "context_edited",
        "trigger": {"at": 0.3},
        "step": [{"use": "clear_tool_results"}],
    }
    late = {"id": "late", "event": "context_compacted", "trigger": {"at": 0.95}, "like": "compaction"}
    mine = load_policy("mine", {"mine": {"extends": "codecompanion", "stage": [stage, late]}})
    assert [s.id for s in mine.stages] == ["editing", "compaction", "late"]
    assert mine.stages[0].trigger.at == 0.3
    assert mine.stages[2].tiers == mine.stages[1].tiers
    assert mine.stages[2].target == mine.stages[1].target, "what its tiers are accepted by comes with them"


def test_an_option_still_applies_to_the_stages_not_replaced() -> None:
    """`editing.exclude_tools` applies to two stages; with one replaced it still applies to the other."""
    steps = [{"use": "select_window"}, {"use": "summarize_ledger"}, {"use": "insert_summary"}]
    stage = {"id": "compaction", "event": "context_compacted", "trigger": {"at": 0.9}, "step": steps}
    wish = {"extends": "codecompanion", "stage": [stage], "editing": {"exclude_tools": ["grep_search"]}}
    mine = load_policy("mine", {"mine": wish})
    [step] = mine.stages[0].tiers[0].steps
    assert step.params.exclude_tools == ("grep_search",)


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ({}, "policies.mine.extends"),
        ({"extends": "nobody"}, "policies.mine.extends"),
        ({"extends": "mine"}, "policies.mine.extends"),
        ({"extends": "other"}, "extends"),
        ({"extends": "codecompanion", "editing": {"triger": 1}}, "policies.mine.editing.triger"),
        ({"extends": "codecompanion", "editing.trigger": 1}, "policies.mine.editing.trigger"),
        ({"extends": "codecompanion", "resume": "maybe"}, "policies.mine.resume"),
        (
            {"extends": "codecompanion", "stage": [{"id": "x", "step": [{"use": "y"}]}]},
            "policies.mine.stage[1].step[1].use",
        ),
        ({"extends": "codecompanion", "stage": [{"id": "x", "like": "y"}]}, "policies.mine.stage[1].like"),
        ({"extends": "codecompanion", "stage": [{"id": "x"}]}, "policies.mine.stage[1]"),
        ({"extends": "codecompanion", "stage": {"id": "x"}}, "policies.mine.stage"),
        ({"extends": "codecompanion", "stage": ["x"]}, "policies.mine.stage[1]"),
        ({"extends": "codecompanion", "stage": [{"id": "x", "step": {"use": "y"}}]}, "policies.mine.stage[1].step"),
        ({"extends": "codecompanion", "stage": [{"id": "x", "tier": {"id": "y"}}]}, "policies.mine.stage[1].tier"),
        ({"extends": "codecompanion", "stage": [{"id": "x", "step": [["use"]]}]}, "policies.mine.stage[1].step[1]"),
        (
            {"extends": "codecompanion", "stage": [{"id": "x", "step": [{"use": {}}]}]},
            "policies.mine.stage[1].step[1].use",
        ),
        ("cowork", "policies.mine"),
        ({"extends": "codecompanion", "editing": {"keep_cycles": -1}}, "policies.mine.editing.keep_cycles"),
        ({"extends": "codecompanion", "cooldown": {"failures": "x"}}, "policies.mine.cooldown.failures"),
        ({"extends": "codecompanion", "cooldown": {"fialures": 1}}, "policies.mine.cooldown.fialures"),
        ({"extends": "codecompanion", "stage": "x"}, "policies.mine.stage"),
    ],
)
def test_a_mistake_names_its_key(table: Any, where: str) -> None:
    """The error contains the key path and the expected value."""
    custom: dict[str, Any] = {"mine": table, "other": {"extends": "mine"}}
    with pytest.raises(ConfigError) as caught:
        load_policy("mine", custom)
    assert where in caught.value.key


def test_a_tier_falls_back_only_to_a_writer_of_summaries() -> None:
    """K9: an `on_fail` that names anything else is a mistake."""
    table = policy_to_table(load_policy("codecompanion"))
    table["stage"][1]["tier"][1]["on_fail"] = ["clear_tool_results"]
    with pytest.raises(ConfigError, match="does not write summaries"):
        policy_from_table(table, "k")
    table["stage"][1]["tier"][1]["on_fail"] = ["chat_adapter", "summarize_ledger"]
    assert policy_from_table(table, "k").stages[1].tiers[1].on_fail == ("chat_adapter", "summarize_ledger")
    assert not STRATEGIES["summarize_ledger"].asks_model
