"""The request as sent: R-302, R-304, R-334, R-335, R-338…R-345, R-348, R-354; K14."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion import prompts
from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.shape_request import Kept, Parts, shape
from codecompanion.context.shaping.prompt_shape import TERSE, Fragment, join_fragments, shape_specs
from codecompanion.context.strategy_parameters import ShapeSchemas
from codecompanion.model.messages import Message, ToolSpec
from codecompanion.tools import check_arguments
from codecompanion.tools.builtin import BUILTIN_TOOLS
from tests.unit.context.builders import assistant, chars4, chat, count, env, tool, turns, user

KODACODE = load_policy("kodacode")
SYSTEM = Message(id="system", role="system", content="long " * 100)
FRAGMENTS = (Fragment("agent", "agent", "long " * 100, "short"),)
DOCUMENTED = ToolSpec(
    "search",
    "Find text.",
    {
        "type": "object",
        "description": "root",
        "properties": {
            "description": {"type": "string", "description": "d" * 400},
            "options": {
                "type": "array",
                "items": {"type": "object", "properties": {"case": {"type": "boolean", "description": "c" * 400}}},
            },
        },
        "required": ["description"],
    },
)


def fixed(system, specs):
    return chars4(system.text) + sum(chars4(msgspec.json.encode(spec).decode()) for spec in specs)


def shaped(messages, window, policy=KODACODE, kept=None, packets=None, **changes):
    parts = Parts(system=SYSTEM, specs=(DOCUMENTED,), fragments=FRAGMENTS, fixed=fixed, packets=packets or {})
    environment = env(messages, window, **changes)
    measure = environment.measure
    plus = fixed(SYSTEM, (DOCUMENTED,))

    def whole(measured):
        inner = measure(measured)
        return msgspec.structs.replace(inner, tokens=inner.tokens + plus, upper=inner.upper + plus)

    return shape(messages, parts, policy, msgspec.structs.replace(environment, measure=whole), kept)


def running(*steps, size=3000, name="grep_search"):
    """Return a turn during its tool loop."""
    messages = [user("go")]
    for step in steps:
        messages += [assistant("", (step, name)), tool(step, (f"{step} " * size)[:size])]
    return chat(*messages)


def test_older_results_of_the_running_turn_become_placeholders():
    """R-338, R-339, R-341: results before the latest tool step are replaced; the stored list is unchanged (K14)."""
    messages = running("call-a", "call-b", "call-c")
    frozen = msgspec.json.encode(messages)
    result = shaped(messages, 1_000_000)
    assert [m.text for m in result.messages if m.role == "tool"][:2] == [
        "[older retained output from grep_search turn-1 call-a pruned for prompt budget]",
        "[older retained output from grep_search turn-1 call-b pruned for prompt budget]",
    ]
    assert result.messages[-1] is messages[-1]
    assert result.pruned == 2
    assert msgspec.json.encode(messages) == frozen
    assert result.measure.tokens == result.raw.tokens - result.savings.history


@pytest.mark.parametrize(
    ("change", "pruned"),
    [
        ({}, 1),
        ({"size": 511}, 0),  # large is 512 bytes and more
        ({"size": 512}, 1),
        ({"name": "read_file"}, 0),  # read is excluded within the active turn
        ({"name": "insert_edit"}, 0),  # never edits
    ],
)
def test_only_some_results_of_the_running_turn_count(change, pruned):
    """R-340, R-341."""
    assert shaped(running("a", "b", **change), 1_000_000).pruned == pruned


def test_errors_of_the_running_turn_are_kept():
    """R-341: the model must see the error."""
    messages = chat(user("go"), assistant("", ("a", "grep_search")), tool("a", "e" * 900, is_error=True),
                    assistant("", ("b", "grep_search")), tool("b", "x" * 900))  # fmt: skip
    assert shaped(messages, 1_000_000).pruned == 0


def test_finished_turns_are_pruned_oldest_first_down_to_the_raw_tail():
    """R-342: errors and reads are pruned, too, but never the last finished turn, and only until the budget is met."""
    messages = chat(*turns(6, 4000), user("and now?"))
    assert shaped(messages, 1_000_000).pruned == 0
    result = shaped(messages, 24_000)  # a raw tail of 3000 tokens
    placeholders = [m.tool_call_id for m in result.messages if m.role == "tool" and m.edited]
    assert placeholders == ["c0", "c1", "c2"]
    assert shaped(messages, 8_000).pruned == 5


def test_pruned_results_stay_pruned_within_the_turn():
    """R-343: the objects are identical, so that the prefix of the request is unchanged; nothing is pruned twice."""
    first = shaped(running("a", "b"), 1_000_000)
    more = running("a", "b", "c")
    second = shaped(more, 1_000_000, kept=first.kept)
    assert second.messages[2] is first.messages[2]
    assert second.pruned == 2
    again = shaped(more, 1_000_000, kept=second.kept)
    assert again.messages == second.messages
    assert all(old is new for old, new in zip(again.messages, second.messages, strict=True))
    assert again.kept == second.kept


def test_a_placeholder_of_a_changed_message_is_not_used():
    """R-343, K14: a result that the history itself cleared meanwhile is sent in that form."""
    messages = running("a", "b")
    kept = shaped(messages, 1_000_000).kept
    edited = tuple(msgspec.structs.replace(m, content="cleared", edited=True) if m.id == "m2" else m for m in messages)
    assert shaped(edited, 1_000_000, kept=kept).messages[2].text == "cleared"


def test_schemas_and_fragments_are_shortened_as_the_request_grows():
    """R-344, R-345: schemas are shortened above the target, fragments above the trigger; below, nothing is."""
    messages = chat(user("word " * 2000))
    small = shaped(messages, 100_000)
    assert small.specs == (DOCUMENTED,)
    assert small.system is SYSTEM
    size = small.raw.tokens
    over_target = shaped(messages, int(size / 0.7))
    assert over_target.savings.tools > 150
    assert over_target.savings.prompt == 0
    over_trigger = shaped(messages, int(size / 0.95))
    assert over_trigger.system.text == "short"
    assert over_trigger.savings.prompt > 100
    assert over_trigger.is_compact
    assert not over_target.is_compact
    assert over_trigger.measure.tokens == size - over_trigger.savings.tools - over_trigger.savings.prompt


def test_a_short_form_stays_within_the_turn():
    """R-343: a request near the target does not keep changing its beginning."""
    messages = chat(user("word " * 2000))
    kept = Kept(steps=frozenset({"shape_schemas"}))
    assert shaped(messages, 100_000, kept=kept).savings.tools > 0


def test_above_the_trigger_a_request_is_under_pressure():
    """R-334."""
    messages = chat(user("word " * 2000))
    size = shaped(messages, 1_000).measure.tokens
    assert not shaped(messages, 2 * size).is_pressed
    assert shaped(messages, int(size / 0.9)).is_pressed


def test_the_packet_precedes_its_turn_and_is_dropped_under_pressure():
    """R-353, R-354: above the trigger, the whole packet is omitted and its tokens are recorded."""
    messages = chat(*turns(2), user("word " * 2000))
    packet = Message(id="p", role="user", tag="context_packet", content="facts", cycle=3, tokens=40)
    result = shaped(messages, 100_000, packets={3: packet})
    assert result.messages.index(packet) == len(result.messages) - 2
    assert result.savings.packet == 0
    pressed = shaped(messages, int(result.raw.tokens / 0.9), packets={3: packet})
    assert packet not in pressed.messages
    assert pressed.savings.packet == 40


def test_a_policy_without_steps_costs_nothing():
    """Disabled shaping returns the identical list."""
    messages = running("a", "b")
    result = shaped(messages, 100, policy=load_policy("codecompanion"))
    assert result.messages is messages
    off = msgspec.structs.replace(KODACODE, enabled=False)
    assert shaped(messages, 100, policy=off).messages is messages


def test_the_style_fragment_has_its_three_lines():
    """R-348: the lines follow the agent's prompt verbatim."""
    text = join_fragments((Fragment("agent", "agent", "Be good."), TERSE))
    assert text == (
        "Be good.\n\nResponse style: terse.\n- Keep ordinary model replies brief and direct.\n"
        "- Do not shorten safety, permission, destructive-action, or ambiguity clarifications."
    )


def test_the_compact_system_prompt_is_shorter_and_keeps_the_safety_rules():
    """R-344."""
    full, compact = prompts.load("system"), prompts.load("system_compact")
    assert len(compact) < 0.7 * len(full)
    assert "data" in compact


def test_a_schema_keeps_everything_but_its_documentation():
    """R-345: the tool's own description, names and types stay, also a property called description."""
    (spec,) = shape_specs((DOCUMENTED,), ShapeSchemas())
    assert spec.description == "Find text."
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "options": {"type": "array", "items": {"type": "object", "properties": {"case": {"type": "boolean"}}}},
        },
        "required": ["description"],
    }
    assert shape_specs((DOCUMENTED,), ShapeSchemas(keep_tools=("search",))) == (DOCUMENTED,)
    (outer,) = shape_specs((DOCUMENTED,), ShapeSchemas(depth=1))
    assert "description" in outer.parameters["properties"]["description"]
    assert outer.parameters["properties"]["options"]["items"]["properties"]["case"] == {"type": "boolean"}


NAMES = st.sampled_from(["description", "type", "items", "enum", "a"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def schemas():
    leaf = st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
        optional={"description": st.text(max_size=5), "enum": st.lists(st.text(max_size=2), min_size=1, max_size=3)},
    )
    return st.recursive(
        leaf,
        lambda inner: (
            st.fixed_dictionaries(
                {"type": st.just("array"), "items": inner}, optional={"description": st.text(max_size=5)}
            )
            | st.dictionaries(NAMES, inner, max_size=3).flatmap(
                lambda properties: st.fixed_dictionaries(
                    {
                        "type": st.just("object"),
                        "properties": st.just(properties),
                        "required": st.lists(st.sampled_from(sorted(properties) or ["a"]), max_size=2, unique=True),
                    },
                    optional={"description": st.text(max_size=5)},
                )
            )
        ),
        max_leaves=6,
    )


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(schemas(), JSON, st.integers(0, 2))
def test_a_shaped_schema_accepts_exactly_the_same_arguments(parameters, arguments, depth):
    """R-345: the schema accepts and rejects the same arguments as before."""
    (spec,) = shape_specs((ToolSpec("t", "d", parameters),), ShapeSchemas(depth=depth))
    given_problems = check_arguments.problems(arguments, parameters)
    assert check_arguments.problems(arguments, spec.parameters) == given_problems


@pytest.mark.sweep
@settings(max_examples=200, deadline=None)
@given(st.sampled_from([tool.spec for tool in BUILTIN_TOOLS]), st.data())
def test_our_own_tools_stay_callable(spec, data):
    """R-345: this is true for the schemas that are actually sent."""
    properties = spec.parameters.get("properties", {})
    arguments = data.draw(st.dictionaries(st.sampled_from([*properties, "other"]), JSON, max_size=4))
    (short,) = shape_specs((spec,), ShapeSchemas())
    assert check_arguments.problems(arguments, short.parameters) == check_arguments.problems(arguments, spec.parameters)
    assert count(Message(id="", role="user", content=msgspec.json.encode(short).decode())) <= count(
        Message(id="", role="user", content=msgspec.json.encode(spec).decode())
    )
