"""A tool call cannot hurt the session, whatever the tool does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from codecompanion.errors import StoreUnavailable, ToolError
from codecompanion.model.messages import ToolSpec
from codecompanion.tools.approval import Approvals
from codecompanion.tools.files.disk import Check, in_thread
from codecompanion.tools.runner import decided, run_call
from codecompanion.tools.tool import ApprovalQuestion, Tool, ToolContext, ToolOutput
from tests.patience import PATIENCE_S

Run = Callable[[dict[str, Any], ToolContext], Awaitable[ToolOutput]]
Question = Callable[[dict[str, Any], ToolContext], ApprovalQuestion | None]


def _tool(run: Run | None = None, question: Question = lambda a, c: None) -> Tool:
    async def nothing(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text="ok")

    spec = ToolSpec("probe", "", {"type": "object"})
    return Tool(spec=spec, run=run or nothing, title=lambda a: "probe x", question=question, effect="write")


def _raising(error: BaseException) -> Tool:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        raise error

    return _tool(run)


class _Panic(BaseException):
    """An exception like those of a Rust extension (lesson 51)."""


async def test_a_result_has_its_duration(context: ToolContext) -> None:
    output = await run_call(_tool(), {}, context)
    assert (output.text, output.is_error) == ("ok", False)
    assert output.duration_ms >= 0


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("No such file."), "No such file."),
        (StoreUnavailable("The disk is full."), "The disk is full."),
        (ValueError("bad\nvalue"), "probe failed unexpectedly: ValueError: bad value."),
        (KeyError(), "probe failed unexpectedly: KeyError."),
        (_Panic("boom"), "probe failed unexpectedly: _Panic: boom."),
        (SystemExit(1), "probe failed unexpectedly: SystemExit: 1."),
        (RecursionError("x" * 5000), "probe failed unexpectedly: RecursionError: " + "x" * 300 + "."),
        (TimeoutError(), "probe did not finish within 30 seconds and was stopped."),
    ],
)
async def test_any_exception_of_a_tool_is_a_result_of_one_sentence(
    context: ToolContext, error: BaseException, text: str
) -> None:
    output = await run_call(_raising(error), {}, context)
    assert (output.text, output.is_error) == (text, True)


async def test_an_unexpected_failure_is_logged_with_its_traceback(
    context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    await run_call(_raising(ValueError("bad")), {}, context)
    assert "probe" in caplog.text
    assert "Traceback" in caplog.text


async def test_the_time_limit_ends_a_hanging_tool(context: ToolContext) -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        await asyncio.Event().wait()
        raise AssertionError

    output = await run_call(_tool(run), {}, msgspec.structs.replace(context, timeout_s=0.01))
    assert output.text == "probe did not finish within 0.01 seconds and was stopped."
    assert output.is_error


async def test_the_time_limit_also_ends_work_in_a_thread(context: ToolContext) -> None:
    ended = threading.Event()

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        def endless(check: Check) -> ToolOutput:
            try:
                while True:
                    check()
            finally:
                ended.set()

        return await in_thread(endless)

    output = await run_call(_tool(run), {}, msgspec.structs.replace(context, timeout_s=0.01))
    assert output.is_error
    assert ended.is_set()


async def test_a_tool_with_its_own_time_limit_is_not_cut_off(context: ToolContext) -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        await asyncio.to_thread(threading.Event().wait, 0.05)
        return ToolOutput(text="what there was until then")

    tool = msgspec.structs.replace(_tool(run), keeps_time=True)
    output = await run_call(tool, {}, msgspec.structs.replace(context, timeout_s=0.001))
    assert output.text == "what there was until then"


async def test_cancelling_reaches_the_tool_and_is_not_swallowed(context: ToolContext) -> None:
    started, seen = asyncio.Event(), []

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        raise AssertionError

    task = asyncio.create_task(run_call(_tool(run), {}, context))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_blocking_file_work_does_not_stall_the_loop(context: ToolContext) -> None:
    """The loop answers while the thread waits for it: this would deadlock if the work ran on the loop."""
    loop = asyncio.get_running_loop()

    async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        def blocking(check: Check) -> ToolOutput:
            answered = threading.Event()
            loop.call_soon_threadsafe(answered.set)
            assert answered.wait(PATIENCE_S)
            return ToolOutput(text="the loop answered")

        return await in_thread(blocking)

    assert (await run_call(_tool(run), {}, context)).text == "the loop answered"


async def test_an_impossible_question_is_the_result_instead(context: ToolContext) -> None:
    def outside(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
        context.resolve("../x")
        raise AssertionError

    with pytest.raises(ToolError, match="outside the workspace"):
        await decided(_tool(question=outside), {}, context, Approvals())

    def broken(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
        raise ValueError("bad")

    with pytest.raises(ToolError, match="probe failed unexpectedly: ValueError: bad"):
        await decided(_tool(question=broken), {}, context, Approvals())


async def test_the_question_is_built_only_if_it_is_asked(context: ToolContext) -> None:
    question = ApprovalQuestion(key="k", title="t", body="b")
    tool = _tool(question=lambda a, c: question)
    assert (await decided(tool, {}, context, Approvals())).question == question
    assert (await decided(tool, {}, context, Approvals(yolo=True))).question is None
    assert (await decided(tool, {}, context, Approvals().after(question, "always"))).question is None


async def test_a_tool_without_a_question_is_asked_about_by_title_if_the_settings_demand_it(
    context: ToolContext,
) -> None:
    from codecompanion.settings_sections import ToolSettings

    setting = ToolSettings(enabled=True, require_approval_before=True, allowed_in_yolo_mode=True, timeout_s=1)
    asked = (await decided(_tool(), {}, context, Approvals({"probe": setting}))).question
    assert asked == ApprovalQuestion(key="probe", title="probe x", body="")
