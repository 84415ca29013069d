"""A chat whose tools come from several providers and change between its requests."""

from __future__ import annotations

from pathlib import Path

from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.toolbox import Toolbox
from codecompanion.wire.events import ApprovalRequested, ToolFinished
from codecompanion.wire.requests import Approve
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.tools.test_toolbox import ASKS, Changing, tool


def bench_with(tmp_path: Path, provider: Changing, *replies, **tools) -> Bench:
    bench = Bench(tmp_path, ScriptedAdapter("s", [*replies, says("done")]), tools=tools)
    entries = bench.services.settings.tools.entries
    bench.services.tools = Toolbox([GivenTools("built in", BUILTIN_TOOLS), provider], entries)
    return bench


async def test_a_tool_change_between_two_requests_applies_from_the_next_one(tmp_path: Path) -> None:
    """A server connects or disconnects: the schemas, the meter and the callable tools follow."""
    provider = Changing()
    bench = bench_with(
        tmp_path,
        provider,
        says("one"),
        calls(("c1", "late", "{}")),
        says("two"),
        calls(("c2", "late", "{}")),
        yolo=True,
    )
    session = await bench.open()
    session.submit(submit("go"))
    await bench.idle(session)
    before = session.control.measured().tokens
    provider.now = [tool("late", "A tool that comes late. " * 20)]
    session.submit(submit("again"))
    await bench.idle(session)
    assert [spec.name for spec in bench.adapter.requests[0].tools][-1] != "late"
    assert [spec.name for spec in bench.adapter.requests[1].tools][-1] == "late"
    assert session.control.measured().tokens > before + 80
    provider.now = []
    session.submit(submit("and now"))
    await bench.idle(session)
    assert [event.status for event in bench.of(ToolFinished)] == ["ok", "error"]
    assert "There is no tool named 'late'" in bench.adapter.requests[-1].messages[-1].text


async def test_an_external_tool_asks_per_its_settings_and_always_covers_it(tmp_path: Path) -> None:
    provider = Changing()
    bench = bench_with(
        tmp_path, provider, calls(("c1", "mine", "{}")), calls(("c2", "mine", "{}"), ("c3", "free", "{}")), yolo=True
    )
    session = await bench.open()
    provider.now = [tool("mine", settings=ASKS), tool("free")]
    session.submit(submit("go"))
    await bench.until(lambda: len(bench.of(ApprovalRequested)) == 1)
    session.desk.answer(Approve(call_id="c1", decision="always"))
    await bench.idle(session)
    assert len(bench.of(ApprovalRequested)) == 1
    assert [event.status for event in bench.of(ToolFinished)] == ["ok", "ok", "ok"]
