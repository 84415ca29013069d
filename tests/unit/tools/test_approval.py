"""The approval matrix: which calls ask, under every setting, grant and mode."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import pytest

from codecompanion.messages import ToolSpec
from codecompanion.settings import ToolSettings
from codecompanion.tools.approval import Approvals
from codecompanion.tools.base import ApprovalQuestion, Tool, ToolContext, ToolOutput


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    return ToolOutput(text="")


def _tool(effect: Literal["read", "write", "execute"]) -> Tool:
    spec = ToolSpec("t", "", {"type": "object"})
    return Tool(spec=spec, run=_run, title=lambda a: "t", question=lambda a, c: None, effect=effect)


def _settings(ask: bool, in_yolo: bool = True) -> dict[str, ToolSettings]:
    setting = ToolSettings(enabled=True, require_approval_before=ask, allowed_in_yolo_mode=in_yolo, timeout_s=1)
    return {"t": setting}


_QUESTION = ApprovalQuestion(key="t", title="", body="")


@pytest.mark.parametrize(("effect", "asks"), [("read", False), ("write", True), ("execute", True)])
def test_without_settings_writing_and_executing_ask_and_reading_does_not(effect: Any, asks: bool) -> None:
    assert Approvals().needs_question(_tool(effect), _QUESTION) is asks


def test_without_settings_a_call_without_a_question_runs() -> None:
    """Viewing memories has no question, writing them has."""
    assert not Approvals().needs_question(_tool("write"), None)


@pytest.mark.parametrize(
    ("effect", "ask", "in_yolo", "yolo", "granted"),
    list(product(("read", "write", "execute"), (False, True), (False, True), (False, True), (False, True))),
)
def test_the_settings_decide_then_grants_then_yolo(
    effect: Any, ask: bool, in_yolo: bool, yolo: bool, granted: bool
) -> None:
    approvals = Approvals(_settings(ask, in_yolo), frozenset({"t"} if granted else ()), yolo)
    expected = ask and not granted and not (yolo and in_yolo)
    assert approvals.needs_question(_tool(effect), _QUESTION) is expected
    assert approvals.needs_question(_tool(effect), None) is expected


def test_always_covers_the_key_of_the_question_and_nothing_else() -> None:
    """`always` for one command covers no other command, for one deletion no other path."""
    tool = _tool("execute")
    make = ApprovalQuestion(key="run_command:make test", title="", body="")
    other = ApprovalQuestion(key="run_command:make test; rm -rf ~", title="", body="")
    approvals = Approvals().after(make, "always")
    assert not approvals.needs_question(tool, make)
    assert approvals.needs_question(tool, other)
    assert approvals.needs_question(tool, _QUESTION)


@pytest.mark.parametrize("decision", ["once", "reject", "cancel"])
def test_every_other_answer_grants_nothing_for_the_future(decision: Any) -> None:
    assert Approvals().after(_QUESTION, decision) == Approvals()


def test_switching_yolo_off_keeps_what_was_granted_and_a_fresh_chat_has_nothing() -> None:
    approvals = Approvals(_settings(True)).after(_QUESTION, "always").with_yolo(True).with_yolo(False)
    assert approvals.always == {"t"}
    assert not approvals.yolo
    assert approvals.without_grants() == Approvals(_settings(True))
