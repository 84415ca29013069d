"""The tools of several providers as one registry: clashes, mistakes and changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.formats.deferred import Deferred
from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.tool import Tool, ToolOutput
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.tools.toolbox import Toolbox, _problem_with

ROOT = Path("/project")
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
ASKS = ToolSettings(enabled=True, require_approval_before=True, allowed_in_yolo_mode=False, timeout_s=3)


async def _run(arguments: dict[str, Any], context: Any) -> ToolOutput:
    return ToolOutput(text="ran")


def tool(name: Any, description: Any = "What it does.", parameters: Any = NO_ARGUMENTS, **more: Any) -> Tool:
    """Return a tool as supplied by a provider."""
    spec = ToolSpec(name, description, parameters)
    return Tool(
        spec=spec, run=_run, title=lambda arguments: str(name), question=lambda arguments, context: None, **more
    )


class Changing:
    """A provider whose tools a test changes."""

    source = "the server demo"

    def __init__(self, *tools: Tool) -> None:
        self.now: Sequence[Tool] | Exception = tools
        self.roots: list[Path] = []

    def tools(self, root: Path) -> Sequence[Tool]:
        self.roots.append(root)
        if isinstance(self.now, Exception):
            raise self.now
        return list(self.now)


def test_the_order_is_that_of_the_providers_after_the_built_in_tools() -> None:
    given = Toolbox([GivenTools("built in", BUILTIN_TOOLS), Changing(tool("b"), tool("a"))]).registry(ROOT)
    alone = ToolRegistry(BUILTIN_TOOLS).specs(something_removed=True)
    assert (*given.specs()[:-2], given.specs(something_removed=True)[-1]) == alone
    assert [spec.name for spec in given.specs()][-2:] == ["b", "a"]
    assert given.sources["a"] == "the server demo"
    assert given.sources["read_file"] == "built in"


def test_the_registry_is_rebuilt_only_after_a_change() -> None:
    provider = Changing(tool("a"))
    box = Toolbox([provider])
    first = box.registry(ROOT)
    assert box.registry(ROOT) is first
    provider.now = [tool("a"), tool("c")]
    assert box.registry(ROOT).names() == ("a", "c")
    assert first.names() == ("a",)
    later = GivenTools("later", [tool("d")])
    box.add(later)
    assert box.registry(ROOT).names() == ("a", "c", "d")
    box.remove(later)
    box.remove(later)
    assert box.registry(ROOT).names() == ("a", "c")


def test_each_folder_is_queried_and_many_folders_do_not_leak() -> None:
    provider = Changing(tool("a"))
    box = Toolbox([provider])
    for number in range(100):
        box.registry(Path(f"/{number}"))
    assert provider.roots[-1] == Path("/99")
    assert len(box._made) <= 32


@pytest.mark.parametrize("error", [RuntimeError("no luck"), InputError("It is not connected.")])
def test_a_failing_provider_costs_its_tools_and_one_sentence(error: Exception) -> None:
    said: list[str] = []
    provider = Changing()
    provider.now = error
    box = Toolbox([provider, GivenTools("mine", [tool("mine")])], tell=said.append)
    for _ in range(3):
        assert box.registry(ROOT).names() == ("mine",)
    assert len(said) == 1
    assert said[0].startswith("The tools of the server demo are missing: ")
    assert str(error) in said[0]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (tool("a.b"), "a.b of the server demo is not offered: its name must be 1 to 64 characters: letters, digits, "),
        (tool(""), "its name must be 1 to 64"),
        (tool("x" * 65), "its name must be 1 to 64"),
        (tool(7), "its name must be 1 to 64"),
        (tool("x", ""), "it has no description"),
        (tool("x", "d" * 20_001), "longer than 20,000"),
        (tool("x", parameters=None), "its schema is not an object"),
        (tool("x", parameters={"type": "string"}), 'its schema is not of type "object"'),
        (tool("x", parameters={"type": "object", "x": object()}), "its schema is not JSON"),
        (tool("x", parameters={"type": "object", "x": "y" * 200_000}), "longer than 100,000"),
        (tool("x", parameters={"type": "object", "properties": []}), "an invalid 'properties'"),
        (
            tool("x", parameters={"type": "object", "properties": {"y": {"type": "strnig"}}}),
            "an invalid type 'strnig' at y",
        ),
        (tool("x", parameters={"type": "object", "properties": {"y": {"minimum": "1"}}}), "an invalid 'minimum' at y"),
        (tool("read_file"), "another tool (built in) has this name"),
        (tool("insert_edit_into_file"), "another tool (built in) has this name"),
    ],
)
def test_a_tool_that_cannot_be_offered_is_named_once_and_costs_no_other(bad: Tool, why: str) -> None:
    said: list[str] = []
    providers = [GivenTools("built in", BUILTIN_TOOLS), Changing(bad, tool("good"))]
    box = Toolbox(providers, tell=said.append)
    assert box.registry(ROOT).names()[-1] == "good"
    providers[1].now = [bad, tool("good"), tool("more")]  # type: ignore[attr-defined]
    assert box.registry(ROOT).names()[-2:] == ("good", "more")
    assert len(box.registry(ROOT).names()) == len(BUILTIN_TOOLS) + 2
    assert len(said) == 1, said
    assert why in said[0]


def test_an_endless_schema_is_not_a_schema() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    said: list[str] = []
    assert Toolbox([Changing(tool("x", parameters=deep))], tell=said.append).registry(ROOT).names() == ()
    assert "nested deeper than 32" in said[0]


def test_unusual_schemas_of_others_are_not_a_mistake() -> None:
    """Schemas from Zod, from pydantic or written manually are not validated, and are sent whole."""
    parameters = {
        "type": "object",
        "$defs": {"P": {"type": "object"}},
        "properties": {
            "any": True,
            "point": {"$ref": "#/$defs/P"},
            "pair": {"type": "array", "items": [{"type": "integer"}]},
            "one": {"oneOf": [{"type": "string"}]},
            "word": {"type": "string", "pattern": r"\p{L}+(?<!x"},
            "maybe": {"type": ["string", "null"], "default": None},
        },
        "additionalProperties": True,
    }
    box = Toolbox([Changing(tool("x", parameters=parameters))])
    registry = box.registry(ROOT)
    given = b'{"any": [1], "point": {"x": 1}, "pair": [1, "b"], "one": "s", "word": "w", "maybe": null, "more": 2}'
    assert registry.validate("x", given.decode()) == msgspec.json.decode(given)
    assert registry.specs()[0].parameters == parameters


def test_a_tools_settings_apply_unless_the_user_overrides_them() -> None:
    box = Toolbox(
        [Changing(tool("a", settings=ASKS), tool("b", settings=ASKS))],
        {"b": msgspec.structs.replace(ASKS, require_approval_before=False, timeout_s=9)},
    )
    registry = box.registry(ROOT)
    assert (registry.timeout_s("a", 60), registry.timeout_s("b", 60)) == (3, 9)
    assert registry.settings["a"].require_approval_before
    assert not registry.settings["b"].require_approval_before


def test_two_hundred_tools_are_offered_in_their_order() -> None:
    names = [f"tool_{number}" for number in range(200)]
    box = Toolbox([Changing(*map(tool, names))])
    assert list(box.registry(ROOT).names()) == names
    assert [spec.name for spec in box.registry(ROOT).specs()] == names


@pytest.mark.parametrize("tool", BUILTIN_TOOLS, ids=lambda tool: tool.spec.name)
def test_a_built_in_tool_can_be_offered_and_its_functions_exist(tool: Tool) -> None:
    """A toolbox takes them unchecked, and their modules are imported by the first call."""
    assert _problem_with(tool) == ""
    for function in filter(None, (tool.run, tool.title, tool.question, tool.why_asked)):
        assert isinstance(function, Deferred)
        assert function.load().__name__ == function.name
