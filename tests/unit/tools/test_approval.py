"""The approval matrix: which calls ask, under every setting, grant and mode."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.approval import Approvals, check_prefix
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


@pytest.mark.parametrize("command", ["git checkout -- a", "rm -rf build", "cd x && git reset --hard"])
def test_a_command_that_destroys_work_is_asked_about_whatever_was_granted(command: str) -> None:
    """README: "are always asked about". Grants of earlier versions cover it no more."""
    asked = ApprovalQuestion(key=f"run_command:\0{command}", title="", body="", command=command)
    granted = Approvals(always=frozenset({asked.key}))
    question = granted.with_reason(asked, "", "/x")
    assert question.why == "this can destroy work for good"
    assert granted.needs_question(_tool("execute"), question)
    assert Approvals().after(question, "always").always == frozenset()
    assert not Approvals(_settings(ask=False)).needs_question(_tool("execute"), question)
    harmless = msgspec.structs.replace(asked, command="git status")
    assert not granted.needs_question(_tool("execute"), granted.with_reason(harmless, "", "/x"))


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


def test_switching_yolo_off_keeps_what_was_granted() -> None:
    approvals = Approvals(_settings(True)).after(_QUESTION, "always").with_yolo(True).with_yolo(False)
    assert approvals.always == {"t"}
    assert not approvals.yolo


def _command(command: str, folder: str = "") -> ApprovalQuestion:
    return ApprovalQuestion(key=f"t:{folder}:{command}", title="", body=command, command=command, folder=folder)


def test_a_configured_prefix_covers_commands_that_begin_with_its_words_and_no_others() -> None:
    settings = {"t": msgspec.structs.replace(_settings(True)["t"], allowed_prefixes=("make test", "./run.sh", "a;b"))}
    approvals, tool = Approvals(settings), _tool("execute")
    assert not approvals.needs_question(tool, _command("make test K=one", "sub"))
    assert not approvals.needs_question(tool, _command("./run.sh"))
    for command, folder in [
        ("make tests", ""),
        ("make test; rm x", ""),
        ("./run.sh", "sub"),
        ("a;b", ""),
        ("make", ""),
    ]:
        assert approvals.needs_question(tool, _command(command, folder)), command


def test_a_prefix_is_granted_by_a_key_in_this_chat_and_its_folder() -> None:
    tool, asked = _tool("execute"), _command("./go.sh one", "sub")
    approvals = Approvals(_settings(True)).after(asked, "always", "./go.sh")
    assert not approvals.needs_question(tool, _command("./go.sh two", "sub"))
    assert approvals.needs_question(tool, _command("./go.sh two"))
    assert approvals.needs_question(tool, _command("./go.sh two && x", "sub"))
    assert not approvals.always


@pytest.mark.parametrize("prefix", ["make tests", "make; x", "sh", "rm"])
def test_a_prefix_that_does_not_fit_leaves_the_question_open(prefix: str) -> None:
    with pytest.raises(InputError, match="still open"):
        check_prefix(prefix, _command("make test"))


@pytest.mark.parametrize(("yolo", "ask"), list(product((False, True), (False, True))))
def test_a_file_that_something_runs_is_asked_about_whatever_was_granted(yolo: bool, ask: bool) -> None:
    """Neither `always`, nor YOLO, nor a tool that asks nothing else; the option takes a file out."""
    tool = _tool("write")
    question = ApprovalQuestion(key="t", title="", body="", path="/p/Makefile")
    approvals = Approvals(_settings(ask), yolo=yolo, always=frozenset({"t"}))
    seen = approvals.with_reason(question, "", "/p")
    assert seen.why == "a build, test or install command runs it"
    assert approvals.may_ask(tool)
    assert approvals.needs_question(tool, seen)
    assert approvals.after(seen, "always") == approvals
    without = msgspec.structs.replace(approvals, guarded_files=("!Makefile",))
    assert not without.needs_question(tool, without.with_reason(question, "", "/p"))
