"""The language of policy tables: sizes, shared steps, the order of steps, and error messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import codecompanion.context
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.policy.policy_file import read_policy_file
from codecompanion.context.thresholds import Room, Trigger, is_crossed, threshold_tokens
from codecompanion.context.work import Measure
from codecompanion.errors import ConfigError

FOLDER = Path(codecompanion.context.__file__).parent / "policies"
CLEAR = {"use": "clear_tool_results"}
SELECT, FORMAT = {"use": "select_window"}, {"use": "format_transcript"}
ASK, INSERT = {"use": "summarize_one"}, {"use": "insert_summary"}


def mine(stage: dict[str, Any], **more: Any) -> Policy:
    """Return the default policy with one more stage, as written by a user."""
    stage = {"id": "x", "event": "context_compacted", "trigger": 0.5, **stage}
    return load_policy("mine", {"mine": {"extends": "codecompanion", "stage": [stage], **more}})


def mistake(stage: dict[str, Any], **more: Any) -> str:
    """Return the error message about that stage, from its key on."""
    with pytest.raises(ConfigError) as caught:
        mine(stage, **more)
    return str(caught.value).removeprefix("policies.mine.").removeprefix("stage[1].")


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ({"at": 0.5}, Trigger(at=0.5)),
        ({"at": "50%"}, Trigger(at=0.5)),
        ({"at": 1}, Trigger(at=1.0)),
        ({"tokens": "16k"}, Trigger(tokens=16_000)),
        ({"always": True}, Trigger(always=True)),
        ({"at": 0.9, "basis": "input_limit", "op": ">"}, Trigger(at=0.9, basis="input_limit", op=">")),
        (0.5, Trigger(at=0.5)),
        (16_000, Trigger(tokens=16_000)),
        ("85%", Trigger(at=0.85)),
        (False, Trigger()),
        ({"at": False}, Trigger()),
    ],
)
def test_a_trigger_describes_its_meaning(trigger: Any, expected: Trigger) -> None:
    assert mine({"trigger": trigger, "step": [CLEAR]}).stages[-1].trigger == expected


def test_a_stage_only_for_compact_needs_no_trigger() -> None:
    assert not mine({"manual": True, "step": [CLEAR]} | {"trigger": False}).stages[-1].trigger.is_on
    stage = {"id": "x", "event": "context_compacted", "manual": True, "step": [CLEAR]}
    policy = load_policy("mine", {"mine": {"extends": "codecompanion", "stage": [stage]}})
    assert not policy.stages[-1].trigger.is_on


def test_always_is_not_a_size() -> None:
    room = Room(window=1000)
    assert is_crossed(Trigger(always=True), Measure(0, 0), room) or is_crossed(
        Trigger(always=True), Measure(1, 1), room
    )
    assert Trigger(always=True).is_on
    assert not Trigger().is_on
    assert threshold_tokens(Trigger(), room) is None


def test_an_option_may_use_the_other_kind_of_size() -> None:
    """A share replaces tokens, and vice versa; the rest of the trigger stays."""
    cowork = load_policy("mine", {"mine": {"extends": "cowork", "flush.trigger": 0.1, "compaction.trigger": "12k"}})
    flush, proactive = cowork.stages[0].trigger, cowork.stages[1].trigger
    assert (flush.at, flush.tokens, flush.measure, flush.basis) == (0.1, None, "slack", "window_less_reserve")
    assert (proactive.at, proactive.tokens) == (None, 12_000)


@pytest.mark.parametrize(
    ("trigger", "said"),
    [
        ({"at": 2}, "trigger: at = 2 is not a share; expected a share from 0 to 1, such as 0.85 or \"85%\","
         " or tokens = 2 (to run before every request: always = true)"),
        ({"at": 1200}, "or tokens = 1200"),
        ({"at": 0}, "trigger: at = 0 is not a share"),
        ({"at": "120%"}, "trigger.at: 120% is not between"),
        ({"tokens": 0}, "trigger: tokens = 0 is not a token count; expected 1 or more"),
        ({"at": 0.5, "tokens": 5}, "trigger: set either `at` or `tokens`, not both"),
        ({"at": 0.5, "always": True}, "trigger: set either `always` or a size, not both"),
        ({"measure": "messages"}, "trigger: it has no size; expected { at = 0.85 }, { tokens = 16000 }"),
        ({"at": 0.5, "measure": "chat"}, "trigger.measure: there is no 'chat'; expected 'request', or no value"),
        ({"at": 0.5, "measure": "raw_replay"}, "expected 'request', or no value"),
        ({"at": 0.5, "op": "<="}, "trigger.op: there is no '<='; expected '>=' or '>'"),
        ({"at": "16k"}, "trigger.at: '16k' is a number of tokens; expected a share from 0 to 1, such as 0.85 or "
         "\"85%\", or tokens = \"16k\""),
        (None, "trigger: it is missing; expected { at = 0.85 }"),
    ],
)  # fmt: skip
def test_an_invalid_trigger_is_answered_with_a_valid_form(trigger: Any, said: str) -> None:
    """Triggers in the notation of earlier versions are covered, too."""
    assert said in mistake({"trigger": trigger, "step": [CLEAR]})


def test_a_comparison_is_allowed_only_in_triggers() -> None:
    said = mistake({"target": {"at": 0.5, "op": "<="}, "step": [CLEAR]})
    assert said == "target.op: the key no longer exists; expected no op: only a trigger can have one"


def test_steps_are_shared_by_name() -> None:
    """The names are the user's own; a shared step list may be combined with other steps."""
    shared = {"write": [FORMAT, {**ASK, "max_tokens": "2k"}, INSERT]}
    policy = mine({"tier": [{"id": "a", "step": [SELECT, {"steps": "write"}]}]}, steps=shared)
    steps = policy.stages[-1].tiers[0].steps
    assert [step.use for step in steps] == ["select_window", "format_transcript", "summarize_one", "insert_summary"]
    assert steps[2].params.max_tokens == 2000
    assert "steps.write[2].max_token: unknown key; expected max_tokens" in mistake(
        {"step": [SELECT, {"steps": "write"}]}, steps={"write": [FORMAT, {**ASK, "max_token": 5}, INSERT]}
    )
    assert (
        mistake({"step": [{"steps": "wriet"}]}, steps=shared)
        == "step[1].steps: there is no list of steps 'wriet'; expected write"
    )
    said = mistake({"step": [{"steps": "write", "max_tokens": 3}]}, steps=shared)
    assert said == "step[1]: the steps 'write' cannot be changed here; expected no keys besides `steps`"


def test_a_stage_like_another_inherits_the_rest() -> None:
    """R-403: the reactive stage of CoWork differs only in its trigger."""
    _, proactive, reactive = load_policy("cowork").stages
    same = ("tiers", "event", "target", "target_gap", "effects", "emits", "card")
    assert [getattr(reactive, name) for name in same] == [getattr(proactive, name) for name in same]
    assert (reactive.label, reactive.manual, reactive.trigger.op) == ("reactive", False, ">")
    history, running = load_policy("kodacode").stages
    assert [getattr(running, name) for name in same[1:]] == [getattr(history, name) for name in same[1:]]
    assert [step.use for step in running.tiers[0].steps][:2] == ["select_window", "summarize_artifact"]
    assert running.tiers[0].steps[2:] == history.tiers[0].steps[2:]


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"step": [SELECT, ASK, FORMAT, INSERT]}, "step[2]: 'summarize_one' can never run before 'format_transcript'"),
        ({"step": [FORMAT, ASK, INSERT]}, "step[1]: 'format_transcript' can never run: it needs the messages to remove,"
         " which no earlier step produces; expected one of these before it: select_window"),
        ({"step": [SELECT, FORMAT, ASK]}, "its summary is never inserted; expected a step 'insert_summary' after it"),
        ({"step": [SELECT, FORMAT, ASK, INSERT, {"use": "verify_summary"}]}, "step[5]: 'verify_summary' can never run"),
        ({"step": [SELECT, FORMAT, ASK, {"use": "fit_summary"}, INSERT]}, "'fit_summary' would only see an earlier"),
        ({"step": [SELECT, FORMAT, ASK, {"use": "summarize_ledger"}, INSERT]}, "'summarize_ledger' would replace"),
        ({"step": [{"use": "require_savings"}, CLEAR]}, "step[1]: 'require_savings' can never run before"),
        ({"step": [CLEAR], "on_fail": ["summarize_raw"]}, "on_fail: no step here calls a model"),
        ({"on_fail": ["summarize_raw"], "like": "compaction"}, "on_fail: it does not belong here"),
        ({"step": [{"use": "summarize_flush"}], "on_fail": ["summarize_raw"]},
         "on_fail: 'summarize_raw' can never run: it needs the messages to remove"),
        ({}, "stage[1]: it has no steps; expected step or tier or like"),
        ({"step": [CLEAR], "tier": [{"step": [CLEAR]}]}, "stage[1]: its steps are defined in more than one way"),
        ({"tier": [{"id": "a", "step": [CLEAR]}] * 2}, "tier[2].id: an earlier tier has the id 'a'"),
        ({"step": [CLEAR], "after": ["x"]}, "'x' does not come before this stage; expected editing, compaction"),
        ({"step": [CLEAR], "unless": ["edting"]}, "there is no stage 'edting'"),
    ],
)  # fmt: skip
def test_steps_in_an_impossible_order_are_refused(stage: dict[str, Any], said: str) -> None:
    assert said in mistake(stage)


def test_a_tier_may_continue_from_another_ones_result() -> None:
    """The change or the text that a step needs may be in the starting point of the tier."""
    cheap = {"id": "cheap", "accept": "target", "step": [CLEAR]}
    after = {"id": "after", "from": "cheap", "step": [{"use": "require_target"}]}
    assert mine({"target": 0.3, "tier": [cheap, after]}).stages[-1].tiers[1].start == "cheap"
    del after["from"]
    assert "tier[2].step[1]: 'require_target' can never run" in mistake({"target": 0.3, "tier": [cheap, after]})


@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ({"step": [CLEAR], "triger": 0.5}, "triger: unknown key; expected trigger"),
        ({"step": [CLEAR], "at": 0.5}, "at: it does not belong here; expected it in 'trigger' or 'target'"),
        ({"step": [CLEAR], "accept": "target"}, "accept: it does not belong here; expected it in a tier"),
        ({"step": [CLEAR], "cooldown": {}}, "cooldown: it does not belong here; expected it in the policy"),
        ({"step": [CLEAR], "count": 3}, "expected it in 'older_than' or the step 'select_window'"),
        ({"step": [{**CLEAR, "unit": "cycles"}]}, "step[1].unit: it does not belong here; expected it in 'older_than'"),
        ({"step": [{**CLEAR, "exclude_tool": []}]}, "exclude_tool: unknown key; expected exclude_tools"),
        ({"step": [{**CLEAR, "schema": "cc_9"}]}, "expected it in the step 'summarize_one'"),
        ({"step": [{"use": "clear_results"}]}, "there is no strategy 'clear_results'; expected clear_tool"),
    ],
)  # fmt: skip
def test_a_mistyped_or_misplaced_key_is_reported_with_its_place(stage: dict[str, Any], said: str) -> None:
    assert said in mistake(stage)


def test_a_policy_key_is_distinguished_from_an_option() -> None:
    for wrong, said in (
        ({"checkpoint_every_messages": 5}, "expected the setting interactions.chat.opts.checkpoint_every_messages"),
        (
            {"editing": {"triger": 0.5}},
            "policies.mine.editing.triger: policy mine has no such option; expected editing.trigger",
        ),
        ({"keep_cycles": 2}, "expected editing.keep_cycles"),
        ({"older_than": 2}, "expected it in the step 'clear_tool_results'"),
        ({"cooldwn": 2}, "expected cooldown"),
    ):
        with pytest.raises(ConfigError) as caught:
            load_policy("mine", {"mine": {"extends": "codecompanion", **wrong}})
        assert said in str(caught.value)


def test_a_mistake_is_reported_with_file_and_line() -> None:
    """This works for every TOML notation of a table; for a missing key, the line is the place where it belongs."""
    lines = (FOLDER / "cowork_chat.toml").read_text(encoding="utf-8").splitlines()
    for key in ("default_window = ", "max_chars = ", "  on_fail = ", "    refresh_messages = "):
        number = next(number for number, line in enumerate(lines, 1) if line.startswith(key))
        wrong = [*lines[: number - 1], lines[number - 1].replace(key.strip(" ="), "zzz", 1), *lines[number:]]
        assert mistake_of_file(wrong).startswith(f"policies/x.toml:{number}: "), key
    number = next(number for number, line in enumerate(lines, 1) if '{ use = "select_window"' in line)
    wrong = [*lines[: number - 1], lines[number - 1].replace("fill", "fil"), *lines[number:]]
    assert mistake_of_file(wrong).startswith(f"policies/x.toml:{number}: stage[2].tier[1].step[1].fil: unknown key")
    number = next(number for number, line in enumerate(lines, 1) if line.startswith("[[stage]]  "))
    wrong = lines[:number] + [line for line in lines[number:] if not line.startswith(("trigger = ", "manual = "))]
    assert mistake_of_file(wrong).startswith(f"policies/x.toml:{number}: stage[2].trigger: it is missing")


def mistake_of_file(lines: list[str]) -> str:
    with pytest.raises(ConfigError) as caught:
        read_policy_file("\n".join(lines), "policies/x.toml")
    return str(caught.value)


def test_invalid_toml_is_reported_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"policies/x\.toml: .* \(at line 2, column 2\)"):
        read_policy_file('name = "x"\na: b', "policies/x.toml")


KODACODE = {"extends": "kodacode"}


@pytest.mark.parametrize(
    ("threshold", "target"),
    [
        (0.8, {"at": "60%"}),
        ("80%", {"at": 0.09}),
        ({"at": "80%"}, {"at": "9%"}),
        ({"tokens": "80k"}, 60_000),
        ("80k", {"tokens": "60k"}),
        (0.8, 60_000),
    ],
)
def test_sizes_in_different_forms_are_compared_by_meaning(threshold: Any, target: Any) -> None:
    table = {**KODACODE, "compaction_threshold": threshold, "compaction_target_threshold": target}
    load_policy("mine", {"mine": table})
    if not (isinstance(target, int) and threshold == 0.8):
        turned = {**KODACODE, "compaction_threshold": target, "compaction_target_threshold": threshold}
        with pytest.raises(ConfigError, match="is not below the threshold"):
            load_policy("mine", {"mine": turned})


def test_two_names_with_one_meaning_in_two_forms_do_not_conflict() -> None:
    load_policy("mine", {"mine": {**KODACODE, "compaction.trigger": 0.8, "compaction_threshold": "80%"}})
    with pytest.raises(ConfigError, match="both set the same option"):
        load_policy("mine", {"mine": {**KODACODE, "compaction.trigger": 0.8, "compaction_threshold": "81%"}})
