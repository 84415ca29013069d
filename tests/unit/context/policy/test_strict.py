"""Our additions to a policy are marked in its table, have an effect, and disappear under `strict`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codecompanion.context.policy import policy_catalog
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.policy_options import option_names, unknown_options, with_known_options, with_options
from codecompanion.context.policy.strict import deviations, strict, without
from codecompanion.context.policy.table import policy_from_table
from codecompanion.context.shape_request import shape
from codecompanion.context.stage_report import Ask
from codecompanion.context.work import CacheState, Continuation, Messages, SummaryReply
from codecompanion.errors import ConfigError
from codecompanion.model.messages import Message
from tests.summaries import nine_sections
from tests.unit.context.builders import (
    PARTS,
    Script,
    assistant,
    count,
    env,
    made,
    run,
    system,
    texts,
    tool,
    turns,
    user,
)

DOCUMENTED = tuple(name for name in policy_names() if not load_policy(name).ours)
MARKS = [(name, one.place) for name in DOCUMENTED for one in deviations(load_policy(name))]
SAID = "The user wants dock_1 and dock_2 of src/harbour.lua changed; lua/nowhere_at_all.lua stays as it is in 4.7.11. "


def writes(ask: Ask) -> SummaryReply:
    """Write a summary in the requested form that names a file unknown to the chat."""
    prompt = ask.request.prompt
    schema = next((name for name in ("cc_9", "cw_9") if nine_sections("", name).splitlines()[0][4:12] in prompt), "")
    return SummaryReply(text=nine_sections(SAID, schema) if schema else 3 * SAID)


def is_wordy(ask: Ask) -> SummaryReply:
    """Write too long a summary if the chat is summarised in parts."""
    is_in_parts = ask.request.parts > 1 or "[Part 1]" in ask.request.prompt
    return SummaryReply(text=600 * SAID) if is_in_parts else writes(ask)


WROTE_NONE = "one who wrote no usable summary before"
"""Only for the mark `asks_unusable`, under which such a model is not asked again."""
SLOW = "one who takes a minute"
WRITERS: dict[str, Script] = {
    "one who writes": writes,
    SLOW: writes,
    "nobody": lambda ask: SummaryReply(error="no model"),
    "one who is wordy": is_wordy,
    WROTE_NONE: writes,
}
SHARES = (0.7, 0.87, 0.93, 0.98, 1.3)
"""Used shares of the window."""


def loop(rounds: int, size: int, told: str = "") -> list[Message]:
    """Return a running turn in which each result has this size; `told` is the model's text in each round."""
    made = [user("Rename dock_1 of src/harbour.lua, but never in the API.")]
    for i in range(rounds):
        made += [assistant(told, (f"l{i}", "run_command")), tool(f"l{i}", f"r{i} " * (size // 4))]
    return made


def dialogue(number: int, size: int) -> list[Message]:
    return [one for i in range(number) for one in (user(said(i, size)), assistant(said(i, size)))]


def said(number: int, size: int) -> str:
    return (f"Change dock_{number} of src/harbour.lua. " * (size // 30))[:size]


DECIDED = (user("Change the store."), assistant("I decided to use SQLite. Next I will write the tests."))
SCENES: dict[str, Messages] = {
    "plain sentences": made(system(), *DECIDED, *turns(24, 1500), user("and now?")),
    "plain sentences, the newest are too large": made(system(), *DECIDED, *dialogue(2, 12_000), user("and now?")),
    "a long loop": made(system(), *turns(3, 400), *loop(30, 1200)),
    "a loop that talks": made(system(), *dialogue(3, 2000), *loop(30, 200, said(1, 1200))),
    "finished turns": made(system(), *turns(24, 1500), user("and now?")),
    "a large window": made(system(), *turns(40, 4000), user("and now?")),
    "few long messages": made(system(), *dialogue(4, 4300), user("and now?")),
    "the newest are too large": made(system(), *dialogue(4, 100), *dialogue(2, 12_000), user("and now?")),
    "short results": made(system(), *turns(60, 60), *turns(4, 8000), user("and now?")),
    "a chat that can be read again": made(system(), *dialogue(40, 2000), user("and now?")),
    "a dialogue in a warm cache": made(system(), *dialogue(14, 1250), user("and now?")),
    "a dialogue in a free cache": made(system(), *dialogue(26, 300), user("and now?")),
    "a small window": made(system(), *dialogue(12, 600), user("and now?")),
}


def outcome(policy: Policy, scene: str, share: float, writer: str) -> tuple[Any, ...]:
    """Return the model's view of the scene, and whether each summary request was made in place.

    Also return whether the policy has recall.
    """
    messages = SCENES[scene]
    size = sum(map(count, messages))
    window = round(size / share)
    warm: dict[str, Any] = {"cache": CacheState(warm_tokens=window // 2), "now": 1.0} if "cache" in scene else {}
    if "free" in scene:
        warm["cache"] = CacheState(warm_tokens=window // 2, read_price=0)
    if "read again" in scene:
        warm = {"cache": CacheState(warm_tokens=size), "continuation": lambda: Continuation(size, 0)}
    if writer == WROTE_NONE:
        warm |= {"unusable_writer": "small-1", "has_utility": policy.name.startswith("kodacode")}
    if writer == SLOW:
        warm |= {"writer_seconds": lambda read, written: 60.0}
    keys = {message.id: f"r{place}" for place, message in enumerate(messages)}
    prepared, asked = run(
        messages, window, policy=policy, script=WRITERS[writer], reserve=window // 20,
        key_of=lambda message_id: keys.get(message_id, ""), **warm,
    )  # fmt: skip
    shaped = shape(prepared.messages, PARTS, policy, env(prepared.messages, window))
    ways = [ask.request.in_place for ask in asked]
    return texts(shaped.messages), ways, policy.recall is not None  # the memory is tested in chats


READ_AGAIN = "a chat that can be read again"
"""Only for marks of requests in the chat itself, because this chat is long."""


def marked(name: str, place: str) -> Policy:
    """Return the policy in which a mark is tested."""
    policy = load_policy(name)
    if place.startswith("reactive."):  # which runs when nothing else has
        return with_options(policy, {"compaction.trigger": False}, "k")
    return policy


@cache
def usual(name: str, stage: str, scene: str, share: float, writer: str) -> tuple[Any, ...]:
    """Return the outcome with all marks, shared by every mark of a stage."""
    return outcome(marked(name, stage), scene, share, writer)


@pytest.mark.parametrize(("name", "place"), MARKS)
def test_every_mark_has_an_effect(name: str, place: str) -> None:
    """A mark on a step without effect would report something that does not exist."""
    other = without(marked(name, place), frozenset({place}))
    stage = "reactive." if place.startswith("reactive.") else ""
    scenes = [scene for scene in SCENES if (scene == READ_AGAIN) == place.endswith(".in_place")]
    special = {"asks_unusable": WROTE_NONE, "max_wait_s": SLOW}
    only = special.get(place.rpartition(".")[2])
    who = [only] if only else [writer for writer in WRITERS if writer not in special.values()]
    cases = itertools.product(scenes, SHARES, who)
    assert any(usual(name, stage, *case) != outcome(other, *case) for case in cases)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_strict_leaves_only_the_documents_steps(name: str) -> None:
    made_strict = load_policy(f"{name} strict")
    assert deviations(made_strict) == ()
    assert made_strict.name == f"{name} strict"
    assert strict(made_strict) == made_strict
    other = load_policy(name).without_tools
    assert made_strict.without_tools == (f"{other} strict" if other else "")


def test_strict_leaves_the_documents_program() -> None:
    """Pipeline 5.5: the steps equal those of P1."""
    policy = load_policy("codecompanion strict")
    editing, compaction = policy.stages
    assert [step.use for step in editing.tiers[0].steps] == ["clear_tool_results"]
    assert [step.use for step in compaction.tiers[0].steps] == [
        "select_window", "replace_attachments", "require_savings", "format_transcript", "summarize_one",
        "insert_summary",
    ]  # fmt: skip
    selection, _, savings = (step.params for step in compaction.tiers[0].steps[:3])
    assert (selection.keep_running, savings.automatic, savings.window_share) == (0.0, 10_000, 1.0)


def test_a_policy_of_our_own_cannot_be_strict() -> None:
    with pytest.raises(ConfigError, match="adaptive does not follow a document"):
        load_policy("adaptive strict")
    adaptive = load_policy("adaptive")
    assert "strict" not in option_names(adaptive)
    assert with_known_options(adaptive, {"strict": True}, "k") == adaptive
    assert unknown_options(adaptive, {"strict": True}) == ("strict",)


def test_an_option_of_a_removed_stage_is_removed_too() -> None:
    """`compaction.trigger` of `cowork_chat` belongs to our stage."""
    policy = load_policy("cowork_chat")
    options = {"strict": True, "compaction": {"trigger": 0.8}, "chat": {"window": 12}}
    made_strict = with_known_options(policy, options, "k")
    assert [stage.id for stage in made_strict.stages] == ["rolling"]
    assert made_strict.stages[0].tiers[0].steps[0].params.window == 12
    assert unknown_options(made_strict, options) == ("compaction.trigger",)
    with pytest.raises(ConfigError, match=r"k\.compaction\.trigger: policy cowork_chat strict has no such option"):
        with_options(policy, options, "k")


def test_a_users_own_policy_can_be_strict() -> None:
    own: dict[str, dict[str, Any]] = {
        "cowork": {"strict": True, "compaction.trigger": 0.8},
        "mine": {"extends": "codecompanion strict", "compaction.trigger": 0.9},
    }
    assert deviations(load_policy("cowork", own)) == deviations(load_policy("mine", own)) == ()
    assert load_policy("cowork", own).stages[1].trigger.at == 0.8
    assert load_policy("mine", own).stages[1].trigger.at == 0.9
    with pytest.raises(ConfigError, match=r"policies\.cowork\.strict: got 'yes'"):
        load_policy("cowork", {"cowork": {"strict": "yes"}})


STEP = {"use": "select_window", "keep_running": 0.2}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({**STEP, "ours": {"keep_runing": "why"}}, r"step\[1\]\.ours.*keep_runing"),
        ({**STEP, "ours": {"fill": "why"}}, r"step\[1\]\.ours.*fill"),
        ({**STEP, "ours": {"keep_running": 3}}, r"step\[1\]\.ours"),
        ({**STEP, "ours": 3}, r"step\[1\]\.ours"),
        ({**STEP, "document": {"keep_running": 0}}, r"step\[1\]\.document: `ours` does not name a parameter"),
        ({**STEP, "ours": {"keep_running": "why"}, "document": {"fill": True}}, r"step\[1\]\.document.*fill"),
        ({**STEP, "ours": {"keep_running": "why"}, "document": {"keep_running": 7}}, r"step\[1\]\.document"),
    ],
)
def test_a_mark_without_a_meaning_is_refused(step: dict[str, Any], said: str) -> None:
    stage = {"id": "s", "event": "context_edited", "trigger": {"at": 0.5}, "step": [step]}
    table = {"name": "p", "description": "", "default_window": 1000, "stage": [stage]}
    with pytest.raises(ConfigError, match=said):
        policy_from_table(table, "k")


STARTS: dict[str, Callable[[], Policy]] = {
    "a stage without anything left": lambda: _with(ours_of_first="x"),
    "a tier that starts from one of ours": lambda: _with(ours_of_first="x", start="first"),
}


def _with(ours_of_first: str, start: str = "") -> Policy:
    clears = [{"use": "clear_tool_results"}]
    second = [{"id": "second", "from": start, "step": clears}] if start else []
    tiers = [{"id": "first", "ours": ours_of_first, "step": clears}, *second]
    stage = {"id": "s", "event": "context_edited", "trigger": {"at": 0.5}, "tier": tiers}
    return policy_from_table({"name": "p", "description": "", "default_window": 1000, "stage": [stage]}, "k")


@pytest.mark.parametrize("kind", STARTS)
def test_an_option_that_depends_on_our_additions_is_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=r"policy\.s"):
        strict(STARTS[kind](), "policy")


POLICIES = Path(policy_catalog.__file__).parents[1] / "policies"
NUMBER = re.compile(r"#.*\b[RS]-?\d")


def steps_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield each step of a policy's file: its text with the line above it, and the text of its tier."""
    parts = re.split(r"(?m)^(?=\s*\[\[(?:stage|shape|steps))", POLICIES.joinpath(f"{name}.toml").read_text("utf-8"))
    tier = ""
    for part in parts:
        if re.match(r"\s*\[\[stage(\.tier)?\]\]", part):
            tier = part if part.lstrip().startswith("[[stage]]") else tier.partition("[[stage.tier]]")[0] + part
        lines = part.splitlines()
        inline = [at for at, line in enumerate(lines) if "{ use =" in line]
        if inline:
            yield from (("\n".join(lines[max(at - 1, 0) : at + 1]), tier) for at in inline)
        elif re.search(r"(?m)^\s*use =", part):
            yield part, tier


@pytest.mark.parametrize("name", DOCUMENTED)
def test_unmarked_steps_name_their_requirement(name: str) -> None:
    """Without a mark, the document requires the step, so the comment cites the place."""
    found = list(steps_of(name))
    assert len(found) > 3
    without_number = [
        step for step, tier in found if not (NUMBER.search(step) or 'ours = "' in step or 'ours = "' in tier)
    ]
    assert without_number == []
