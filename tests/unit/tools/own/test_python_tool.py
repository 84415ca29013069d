"""A user's own tools in Python: loaded once, called in threads, and harmless to the host whatever they do."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.settings_sections import OwnToolSettings, ToolSettings
from codecompanion.tools.own.own_tools import OwnTools
from codecompanion.tools.own.python_tool import MAX_LEFT_BEHIND
from codecompanion.tools.runner import run_call
from codecompanion.tools.tool import ToolContext, ToolOutput
from codecompanion.tools.toolbox import Toolbox

SETTINGS = ToolSettings(enabled=True, require_approval_before=True, allowed_in_yolo_mode=True, timeout_s=60)
ROOT = Path("/project")


def own(python: str, description: str = "", parameters: Any = None, **settings: Any) -> OwnToolSettings:
    """Return a tool as the configuration describes it."""
    return OwnToolSettings(
        python=python,
        description=description,
        parameters=parameters,
        settings=msgspec.structs.replace(SETTINGS, **settings),
    )


class Desk:
    """A user's tools in one file, loaded like in the host."""

    def __init__(self, tmp_path: Path, context: ToolContext, source: str, *names: str, **more: Any) -> None:
        self.path = tmp_path / "mine.py"
        self.path.write_text(source, encoding="utf-8")
        self.said: list[str] = []
        self.context = context
        self.provider = OwnTools({name: own(f"{self.path}:{name}", **more) for name in names}, self.said.append)
        self.box = Toolbox([self.provider], tell=self.said.append)

    async def call(self, name: str, /, timeout_s: float = 60, **arguments: Any) -> ToolOutput:
        await self.box.settle(ROOT)
        registry = self.box.registry(ROOT)
        checked = registry.validate(name, msgspec.json.encode(arguments).decode())
        return await run_call(registry.get(name), checked, msgspec.structs.replace(self.context, timeout_s=timeout_s))


async def test_a_plain_function_is_a_tool(tmp_path: Path, context: ToolContext) -> None:
    source = '''
from dataclasses import dataclass

@dataclass
class Point:
    x: int
    y: int = 0

def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    Args:
        a: The first one.
    """
    return a + b

async def later(word: str) -> dict:
    "Say it later."
    import asyncio
    await asyncio.sleep(0)
    return {"word": word, "n": [1, None]}

def move(p: Point) -> Point:
    "Move."
    return Point(p.x + 1, p.y)

def where(context) -> str:
    "Say where."
    return f"{context.root.name} {context.cwd.name} {context.chat}"

def nothing() -> None:
    "Do nothing."

def raw() -> bytes:
    "Bytes."
    return b"\\xff ok"

def surrogate() -> str:
    "Half a character."
    return "a\\ud800b"
'''
    names = ("add", "later", "move", "where", "nothing", "raw", "surrogate")
    desk = Desk(tmp_path, context, source, *names)
    assert desk.box.registry(ROOT).names() == ()
    assert (await desk.call("add", a=1)).text == "3"
    assert (await desk.call("later", word="hö")).text == '{"word":"hö","n":[1,null]}'
    assert (await desk.call("move", p={"x": 1})).text == '{"x":2,"y":0}'
    context = msgspec.structs.replace(context, chat_id="c1")
    desk.context = context
    assert (await desk.call("where")).text == "workspace workspace c1"
    assert (await desk.call("nothing")).text == ""
    assert (await desk.call("raw")).text == "� ok"
    assert (await desk.call("surrogate")).text == "a?b"
    assert desk.box.registry(ROOT).names() == tuple(sorted(names))
    spec = next(spec for spec in desk.box.registry(ROOT).specs() if spec.name == "add")
    assert spec.description == "Add two numbers."
    assert spec.parameters["properties"]["a"] == {"type": "integer", "description": "The first one."}
    assert desk.said == []
    assert desk.box.registry(ROOT).settings["add"].require_approval_before


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no\\nluck')", "bad failed: ValueError: no luck ("),
        ("import sys; sys.exit(3)", "bad failed: SystemExit: 3 ("),
        ("raise KeyboardInterrupt", "bad failed: KeyboardInterrupt ("),
        ("raise StopIteration", "StopIteration"),
        ("import asyncio; raise asyncio.CancelledError", "ancelled"),
        ("return object", "<class 'object'>"),
        ("a = []; a.append(a); return a", "bad returned a list that is neither text nor JSON"),
        ("return 'x' * 20_000_001", "20,000,001 characters; the limit is 20,000,000"),
        ("return '\\0'", "\0"),
    ],
)
@pytest.mark.parametrize("how", ["def", "async def"])
async def test_any_behaviour_of_a_function_is_a_result_and_the_host_continues(
    tmp_path: Path, context: ToolContext, body: str, said: str, how: str
) -> None:
    desk = Desk(tmp_path, context, f'{how} bad():\n    "Bad."\n    {body}\n', "bad")
    output = await desk.call("bad")
    assert said in output.text
    assert "\n" not in output.text
    if "(" in said and output.is_error:
        assert "mine.py, line 3)" in output.text
    assert (await desk.call("bad")).text == output.text


async def test_printed_text_is_harmless(tmp_path: Path, context: ToolContext, capfd: Any) -> None:
    desk = Desk(tmp_path, context, "def loud():\n    'Loud.'\n    print('noise')\n    return 'ok'\n", "loud")
    assert (await desk.call("loud")).text == "ok"


async def test_a_function_that_never_returns_is_abandoned_and_eventually_not_called(
    tmp_path: Path, context: ToolContext
) -> None:
    """Threads cannot be ended: only those of a few calls are lost, and other work continues."""
    source = (
        "import threading\nGATE = threading.Event()\ndef block():\n    'Block.'\n    GATE.wait()\n    return 'late'\n"
    )
    desk = Desk(tmp_path, context, source, "block")
    for _ in range(MAX_LEFT_BEHIND):
        output = await desk.call("block", timeout_s=0.01)
        assert output.text == "block did not finish within 0.01 seconds and was stopped."
    output = await desk.call("block", timeout_s=60)
    assert output.text == f"{MAX_LEFT_BEHIND} earlier calls to block are still running, so it was not called."
    assert await asyncio.to_thread(lambda: "free") == "free"
    modules = [module for name, module in sys.modules.items() if name.startswith("codecompanion_own_mine")]
    next(module for module in modules if module.__file__ == str(desk.path)).GATE.set()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "tool block":
            thread.join(10)
    assert (await desk.call("block")).text == "late"


async def test_two_chats_can_call_one_function_at_once(tmp_path: Path, context: ToolContext) -> None:
    source = (
        "import threading\nBOTH = threading.Barrier(2, timeout=20)\n"
        "def meet(name: str):\n    'Meet.'\n    BOTH.wait()\n    return name\n"
    )
    desk = Desk(tmp_path, context, source, "meet")
    one, two = await asyncio.gather(desk.call("meet", name="a"), desk.call("meet", name="b"))
    assert (one.text, two.text) == ("a", "b")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def other(): pass", "interactions.chat.tools.mine: there is no mine in {path}"),
        ("mine = 3", "interactions.chat.tools.mine: mine in {path} is not a function"),
        ("def mine(:\n  pass", "{path} cannot be loaded: invalid syntax ({path}, line 1)"),
        ("\nimport nonsense_that_is_not_there", "ModuleNotFoundError: No module named"),
        ("\n\nx = 1 / 0", "ZeroDivisionError: division by zero ({path}, line 3)"),
        ("import sys\nsys.exit(1)", "SystemExit: 1 ({path}, line 2)"),
        ("def mine(a: 'Nope'): pass", "the type hints cannot be read: NameError"),
        ("def mine(): pass", "interactions.chat.tools.mine: it is not offered: it has no description."),
    ],
)
async def test_an_unloadable_tool_is_one_sentence_and_the_others_are_offered(
    tmp_path: Path, context: ToolContext, source: str, said: str
) -> None:
    desk = Desk(tmp_path, context, source, "mine")
    good = tmp_path / "good.py"
    good.write_text("def good():\n    'Good.'\n    return 1\n")
    desk.provider = OwnTools({"mine": own(f"{desk.path}:mine"), "good": own(f"{good}:good")}, desk.said.append)
    desk.box = Toolbox([desk.provider], tell=desk.said.append)
    assert (await desk.call("good")).text == "1"
    assert desk.box.registry(ROOT).names() == ("good",)
    assert len(desk.said) == 1
    assert said.format(path=desk.path) in desk.said[0]
    assert "\n" not in desk.said[0]


async def test_a_module_is_named_by_its_path_and_a_schema_can_be_given(context: ToolContext) -> None:
    parameters = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
    given = {"floor": own("tests.unit.tools.own.a_module:floor", "Round down.", parameters)}
    box = Toolbox([OwnTools(given, lambda text: None)])
    await box.settle(ROOT)
    assert box.registry(ROOT).specs()[0].parameters == parameters
    output = await run_call(box.registry(ROOT).get("floor"), {"value": 1.5}, context)
    assert output.text == "1"


async def test_a_disabled_tool_is_not_even_loaded(tmp_path: Path, context: ToolContext) -> None:
    desk = Desk(tmp_path, context, "raise SystemExit", "mine", enabled=False)
    assert desk.provider.is_settled
    await desk.box.settle(ROOT)
    assert desk.box.registry(ROOT).names() == ()
    assert desk.said == []
