"""The tools of a chat, and the validation of a model's calls."""

from __future__ import annotations

import pytest

from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import ConfigError, ToolInputInvalid
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.tool_registry import ESSENTIAL, ToolRegistry
from tests.unit.tools.test_toolbox import tool

OWN = tool("own")


def _setting(enabled: bool = True, timeout_s: float = 60) -> ToolSettings:
    return ToolSettings(enabled=enabled, require_approval_before=True, allowed_in_yolo_mode=True, timeout_s=timeout_s)


def test_the_tools_are_listed_in_a_stable_order() -> None:
    registry = ToolRegistry(BUILTIN_TOOLS)
    names = [spec.name for spec in registry.specs(something_removed=True)]
    assert names == [tool.spec.name for tool in BUILTIN_TOOLS]
    assert len(set(names)) == len(names) == 11
    # Later additions come after all others: those begin the prompt, which the provider has cached.
    assert [spec.name for spec in registry.specs()] == names[:-1]
    assert names[-1] == "recall"


def test_a_small_window_gets_the_essential_tools_in_a_short_form() -> None:
    """All tools take 2,300 tokens, these four 316; tools of other sources stay."""
    count = MessageCounter().tools
    registry = ToolRegistry([*BUILTIN_TOOLS, ("my tools", OWN)])
    few = registry.for_small_window(400, count)
    assert few.names() == ("read_file", "grep_search", "insert_edit", "run_command", "own")
    assert count(few.only(ESSENTIAL).specs()) < 330 < count(registry.only(ESSENTIAL).specs()) / 3
    assert registry.for_small_window(200, count).names() == ("read_file", "insert_edit", "own")
    assert registry.for_small_window(1, count).names() == ("read_file", "own")
    assert registry.only(("memory",)).for_small_window(400, count).names() == ()
    assert registry.specs()[0] == BUILTIN_TOOLS[0].spec, "the registry itself is as it was"


@pytest.mark.parametrize("name", ESSENTIAL)
def test_a_short_form_accepts_only_arguments_of_the_full_form(name: str) -> None:
    """The model's arguments are valid for the full form, too, which is what runs."""
    given = ToolRegistry(BUILTIN_TOOLS).get(name)
    assert given.short is not None
    whole, short = given.spec.parameters, given.short.parameters
    assert short["required"] == whole["required"]
    assert set(short["required"]) <= set(short["properties"]) <= set(whole["properties"])
    assert all(short["properties"][one]["type"] == whole["properties"][one]["type"] for one in short["properties"])


@pytest.mark.parametrize("tool", BUILTIN_TOOLS, ids=lambda tool: tool.spec.name)
def test_every_tool_explains_itself_and_every_argument(tool: object) -> None:
    spec = tool.spec  # type: ignore[attr-defined]
    assert len(spec.description) > 30
    assert spec.parameters["type"] == "object"
    assert spec.parameters["additionalProperties"] is False
    assert set(spec.parameters["required"]) <= set(spec.parameters["properties"])
    for name, argument in spec.parameters["properties"].items():
        assert argument["type"], name
        assert len(argument["description"]) > 5, name


def test_a_disabled_tool_is_neither_listed_nor_callable() -> None:
    registry = ToolRegistry(BUILTIN_TOOLS, {"memory": _setting(enabled=False)})
    assert "memory" not in [spec.name for spec in registry.specs()]
    with pytest.raises(ToolInputInvalid, match="no tool named 'memory'"):
        registry.get("memory")


def test_codecompanions_name_of_the_edit_tool_is_accepted_everywhere() -> None:
    registry = ToolRegistry(BUILTIN_TOOLS, {"insert_edit_into_file": _setting(timeout_s=7)})
    assert registry.get("insert_edit_into_file").spec.name == "insert_edit"
    assert registry.timeout_s("insert_edit", 60) == 7
    assert registry.timeout_s("read_file", 60) == 60
    assert (
        ToolRegistry(BUILTIN_TOOLS, {"insert_edit_into_file": _setting(enabled=False)}).specs()[4].name != "insert_edit"
    )


def test_a_setting_for_a_tool_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"interactions\.chat\.tools\.reed_file: there is no such tool"):
        ToolRegistry(BUILTIN_TOOLS, {"reed_file": _setting()})


def test_two_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(ConfigError, match="two tools"):
        ToolRegistry([*BUILTIN_TOOLS, BUILTIN_TOOLS[0]])


def test_an_unknown_tool_is_answered_with_the_closest_name_and_the_list() -> None:
    with pytest.raises(ToolInputInvalid, match=r"'readfile'. Did you mean read_file\? The tools are: read_file, file_"):
        ToolRegistry(BUILTIN_TOOLS).validate("readfile", "{}")


@pytest.mark.parametrize(
    ("called", "ours"), [("edit_file", "insert_edit"), ("Bash", "run_command"), ("str-replace", "insert_edit")]
)
def test_other_agents_tool_names_are_answered_with_ours(called: str, ours: str) -> None:
    """By similarity alone `edit_file` would be `read_file`; a tool that is not offered is not suggested."""
    registry = ToolRegistry(BUILTIN_TOOLS)
    with pytest.raises(ToolInputInvalid, match=rf"Did you mean {ours}\?"):
        registry.validate(called, "{}")
    with pytest.raises(ToolInputInvalid) as caught:
        registry.only({"recall"}).validate(called, "{}")
    assert ours not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"path": "a"', "not valid JSON"),
        ('{"path": "a",}', "trailing comma"),
        ("{'path': 'a'}", "not valid JSON"),
        ('["a"]', r'must be one JSON object, not the array \["a"\]'),
        ('"{}"', "must be one JSON object, not the string"),
        ("null", "must be one JSON object, not null"),
        ('{"path": "\\ud800"}', "not valid JSON"),
        ("\ud800", "not valid JSON"),
        ("", "`path` is missing"),
        ('{"path": "a", "start_line": 0}', "`start_line` must be at least 1, not 0"),
    ],
)
def test_wrong_arguments_are_an_error_the_model_can_act_on(text: str, said: str) -> None:
    with pytest.raises(ToolInputInvalid, match=said) as caught:
        ToolRegistry(BUILTIN_TOOLS).validate("read_file", text)
    assert "read_file" in str(caught.value)


def test_valid_arguments_are_returned_as_intended() -> None:
    registry = ToolRegistry(BUILTIN_TOOLS)
    assert registry.validate("read_file", '{"path": "ä", "start_line": 2.0, "end_line": null}') == {
        "path": "ä",
        "start_line": 2,
    }
    assert registry.validate("get_diagnostics", " ") == {}
