"""The approval matrix: which calls ask, under every setting, grant and mode."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import msgspec
import pytest

from codecompanion.model.messages import ToolSpec
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.approval import Approvals
from codecompanion.tools.commands.offer import Family, Offer, covered, exact_key
from codecompanion.tools.tool import ApprovalQuestion, Tool, ToolContext, ToolOutput
from codecompanion.wire.events import GrantScope


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
    """Viewing memories asks no question; writing them does."""
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
    """README: "are always asked about". Grants of earlier versions no longer cover it."""
    asked = ApprovalQuestion(key=f"run_command:\0{command}", title="", body="", command=command)
    granted = Approvals(always=frozenset({asked.key}))
    question = granted.with_reason(asked, "", "/x")
    assert question.why == "cannot be undone"
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
def test_no_other_answer_grants_anything_for_the_future(decision: Any) -> None:
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


_STATUS, _HEAD = Family("git status"), Family("head")
ON_FILES = "on files of this project, with any options"
STILL_ASKS = "options that run programs or write files still ask"


def _offered(command: str, *families: Family, files: tuple[str, ...] = (), folder: str = "") -> ApprovalQuestion:
    digest = " ".join(family.digest for family in families if family.digest)
    key, offer = exact_key(folder, command, digest), Offer(families, GrantScope("these"), digest, files)
    return ApprovalQuestion(key=key, title="", body="", command=command, folder=folder, offer=offer)


def test_a_command_prefix_covers_lines_that_need_no_other_one() -> None:
    tool = _tool("execute")
    approvals = Approvals(_settings(True)).after(_offered("git status", _STATUS), "always", family=True)
    assert not approvals.needs_question(tool, _offered("git status -s", _STATUS))
    assert approvals.needs_question(tool, _offered("git status | head", _STATUS, _HEAD))
    assert approvals.needs_question(tool, _offered("git status > x"))
    assert not approvals.always
    assert [grant.scope for grant in approvals.grants()] == [GrantScope(f"“git status” {ON_FILES}", STILL_ASKS)]
    assert not approvals.without(approvals.grants()[0].id).families


def test_the_scope_of_an_offer_names_the_files_that_end_it() -> None:
    scope = covered((_STATUS, Family("make a", "sub", "aa"), _HEAD, Family("make b", "sub", "aa")), ("sub/Makefile",))
    what = f"“git status” and “head” {ON_FILES}; “make a” and “make b” in sub with any options"
    assert scope == GrantScope(what, "options that run other programs still ask", "until sub/Makefile changes")


@pytest.mark.parametrize("family", [False, True])
def test_a_command_is_asked_about_again_if_the_file_that_defines_it_changed(family: bool) -> None:
    """This also applies to the exact command; the question names the file, and the new grant replaces the old one."""
    tool, before, after = _tool("execute"), Family("make test", "sub", "aa"), Family("make test", "sub", "bb")
    first = _offered("make test", before, files=("sub/Makefile",), folder="sub")
    approvals = Approvals(_settings(True)).after(first, "always", family=family)
    assert not approvals.needs_question(tool, approvals.with_reason(first, "", "/p"))
    second = approvals.with_reason(_offered("make test", after, files=("sub/Makefile",), folder="sub"), "", "/p")
    assert approvals.needs_question(tool, second)
    assert second.again == "sub/Makefile changed since you allowed it"
    assert not Approvals().with_reason(second, "", "/p").again
    granted = approvals.after(second, "always", family=True)
    assert granted.families == {after}
    elsewhere = _offered("make test", Family("make test", "", "bb"), files=("Makefile",))
    assert granted.needs_question(tool, elsewhere)


@pytest.mark.parametrize(
    "command",
    ["npm install", "pip install x", "git config a.b c", "cp x .git/hooks/pre-commit", "echo x > Makefile",
     "sed -i s/a/b/ package.json", "git -C a config x y", "cd a && tee .envrc", "dd of=conftest.py"],
)  # fmt: skip
def test_nothing_that_changes_later_runs_is_allowed_permanently(command: str) -> None:
    """Such a command is allowed neither as a family nor as an exact command; the user's configuration still applies."""
    asked = ApprovalQuestion(key=exact_key("", command, ""), title="", body="", command=command)
    question = Approvals().with_reason(asked, "", "/p")
    assert question.why
    assert Approvals(always=frozenset({asked.key})).needs_question(_tool("execute"), question)
    assert Approvals().after(question, "always") == Approvals()


def test_a_configured_prefix_is_the_users_decision() -> None:
    settings = {"t": msgspec.structs.replace(_settings(True)["t"], allowed_prefixes=("npm install",))}
    approvals = Approvals(settings)
    assert not approvals.needs_question(_tool("execute"), approvals.with_reason(_command("npm install"), "", "/p"))


@pytest.mark.parametrize(("yolo", "ask"), list(product((False, True), (False, True))))
def test_a_file_that_something_runs_is_asked_about_whatever_was_granted(yolo: bool, ask: bool) -> None:
    """Neither `always`, nor YOLO, nor a tool that otherwise asks nothing skips it; the option exempts a file."""
    tool = _tool("write")
    question = ApprovalQuestion(key="t", title="", body="", path="/p/Makefile")
    approvals = Approvals(_settings(ask), yolo=yolo, always=frozenset({"t"}))
    seen = approvals.with_reason(question, "", "/p")
    assert seen.why == "a build, test, lint or install command runs it"
    assert approvals.may_ask(tool)
    assert approvals.needs_question(tool, seen)
    assert approvals.after(seen, "always") == approvals
    without = msgspec.structs.replace(approvals, guarded_files=("!Makefile",))
    assert not without.needs_question(tool, without.with_reason(question, "", "/p"))
