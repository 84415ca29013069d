"""Approvals in a running turn: prefixes, files that something runs, and stale proposals."""

from __future__ import annotations

import json

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.session.trust.trust import Trust
from codecompanion.settings_sections import SandboxSettings
from codecompanion.tools.approval import ANY_FILE
from codecompanion.tools.sandbox.sandbox import Sandbox
from codecompanion.tools.tool import ANY_HOST, ApprovalQuestion
from codecompanion.wire.events import ApprovalClosed, ApprovalRequested, GrantScope, Notice, ToolFinished
from codecompanion.wire.requests import Approve, ListGrants, RevokeGrant
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit


def _call(number: int, name: str, **arguments: object) -> tuple[str, str, str]:
    return (f"c{number}", name, json.dumps(arguments))


async def _start(tmp_path, *replies, **tools):
    bench = Bench(tmp_path, ScriptedAdapter("s", [*replies, says("done")]), tools={"yolo": False, **tools})
    bench.services.trust = Trust(enabled=False)  # an untrusted folder narrows: tests/attacks/test_provenance.py
    session = await bench.open()
    session.submit(submit("go"))
    return bench, session


def _on_files(program: str) -> GrantScope:
    what = f"“{program}” on files of this project, with any options"
    return GrantScope(what, "options that run programs or write files still ask")


async def _asked(bench, count):
    await bench.until(lambda: len(bench.of(ApprovalRequested)) == count)
    return bench.of(ApprovalRequested)[-1]


async def test_a_command_prefix_is_offered_accepted_and_covers_later_commands(tmp_path):
    bench, session = await _start(
        tmp_path,
        calls(_call(1, "run_command", command="echo one")),
        calls(_call(2, "run_command", command="echo two three")),
        calls(_call(3, "run_command", command="echo four > five")),
    )
    asked = await _asked(bench, 1)
    assert (asked.exact, asked.covers) == (GrantScope("exactly “echo one”"), _on_files("echo"))
    session.desk.answer(Approve(call_id="c1", decision="always", family=True))
    third = await _asked(bench, 2)
    assert (third.call_id, third.covers) == ("c3", GrantScope())
    session.desk.answer(Approve(call_id="c3", decision="reject"))
    await bench.idle(session)
    assert [event.status for event in bench.of(ToolFinished)] == ["ok", "ok", "rejected"]


async def test_the_list_words_a_grant_as_its_question_did(tmp_path):
    """Also its condition, even after the chat was closed."""
    (tmp_path / "Makefile").write_text("all:\n")
    commands = ("pwd", "flake8 a.py", "make all")
    made = [_call(number, "run_command", command=one) for number, one in enumerate(commands, 1)]
    bench, session = await _start(tmp_path, *(calls(one) for one in made))
    offered = []
    for number in (1, 2, 3):
        asked = await _asked(bench, number)
        offered.append(asked.covers)
        session.desk.answer(Approve(call_id=asked.call_id, decision="always", family=True))
    await bench.idle(session)
    rows = session.grants.carry_out(ListGrants())
    still_asks = "options that run other programs still ask"
    until = "until build or settings files (Makefile, pyproject.toml …) change"
    assert offered[1] == GrantScope("“flake8” with any options", still_asks, until)
    assert offered[2] == GrantScope("“make all” with any options", still_asks, "until Makefile changes")
    assert sorted(row["scope"]["what"] for row in rows) == sorted(one.what for one in offered)
    assert all(msgspec.structs.asdict(one) in [row["scope"] for row in rows] for one in offered)
    await session.close()
    again = await bench.resume()
    assert again is not None
    assert again.grants.carry_out(ListGrants()) == rows


async def test_yolo_asks_about_files_that_something_runs_with_a_reason(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / ".git")
    (tmp_path / ".git").mkdir()
    bench, session = await _start(
        tmp_path,
        calls(
            _call(1, "create_file", path="a.txt", content="a"),
            _call(2, "create_file", path="x/../Makefile", content="all:"),
            _call(3, "create_file", path="link/config", content="x"),
        ),
        yolo=True,
    )
    asked = await _asked(bench, 1)
    assert (asked.call_id, asked.why) == ("c2", "a build, test, lint or install command runs it")
    session.desk.answer(Approve(call_id="c2", decision="always"))
    asked = await _asked(bench, 2)
    assert (asked.call_id, asked.why) == ("c3", "version control runs or uses it")
    session.desk.answer(Approve(call_id="c3", decision="reject"))
    await bench.idle(session)
    assert (tmp_path / "a.txt").exists()
    assert (tmp_path / "Makefile").exists()
    assert not (tmp_path / ".git" / "config").exists()


async def test_yolo_asks_before_key_files_are_read_one_by_one(tmp_path):
    """Their text is sent to the provider; parallel calls do not ask at the same time."""
    for name in (".env", ".env.local", "a.py"):
        (tmp_path / name).write_text(f"TOKEN = '{name}'\n")
    reads = [_call(n, "read_file", path=path) for n, path in enumerate((".env", "a.py", ".env.local"), 1)]
    bench, session = await _start(tmp_path, calls(*reads), yolo=True)
    asked = await _asked(bench, 1)
    assert asked.why == "its name suggests keys or passwords"
    assert len(session.desk.questions) == 1
    session.desk.answer(Approve(call_id=asked.call_id, decision="reject"))
    other = await _asked(bench, 2)
    session.desk.answer(Approve(call_id=other.call_id, decision="always"))
    await bench.idle(session)
    assert {asked.call_id, other.call_id} == {"c1", "c3"}
    sent = "".join(message.text for message in bench.adapter.requests[-1].messages)
    refused, given = (".env", ".env.local") if asked.call_id == "c1" else (".env.local", ".env")
    assert f"TOKEN = '{refused}'" not in sent
    assert f"TOKEN = '{given}'" in sent
    assert "TOKEN = 'a.py'" in sent


async def test_a_file_changed_during_the_approval_is_asked_about_again(tmp_path):
    """No text the user has not seen is overwritten; a sentence explains the second question."""
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    edit = _call(1, "insert_edit", path="a.txt", old_text="two", new_text="2")
    bench, session = await _start(tmp_path, calls(edit))
    await _asked(bench, 1)
    file.write_text("zero\none\ntwo\n")
    session.desk.answer(Approve(call_id="c1", decision="once", text="one\n2, mine\n"))
    again = await _asked(bench, 2)
    assert len(bench.of(ApprovalClosed)) == 1
    assert again.before == "zero\none\ntwo\n"
    assert again.after == "zero\none\n2\n"
    assert bench.of(Notice)[-1].text == (
        "a.txt changed while the approval was open; here is the updated change."
        " Your changes to the proposal were not written."
    )
    assert file.read_text() == "zero\none\ntwo\n"
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.idle(session)
    assert file.read_text() == "zero\none\n2\n"


async def test_a_change_that_became_impossible_is_an_error_for_the_model(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    bench, session = await _start(tmp_path, calls(_call(1, "insert_edit", path="a.txt", old_text="one", new_text="1")))
    await _asked(bench, 1)
    file.unlink()
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.idle(session)
    assert [event.status for event in bench.of(ToolFinished)] == ["error"]


async def test_the_checked_file_is_the_one_that_is_changed(tmp_path):
    """A link that changes between check and write (by a program left running) does not redirect the write."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("text\n")
    link = tmp_path / "link"
    link.symlink_to("one")
    edit = _call(1, "insert_edit", path="link/a.txt", old_text="text", new_text="new")
    bench = Bench(tmp_path, ScriptedAdapter("s", [calls(edit), says("done")]), tools={"yolo": True})
    session = await bench.open()
    known = session._tool_context

    def flipping(name):
        context = known(name)

        def resolve(path):
            real = context.resolve(path)
            link.unlink()
            link.symlink_to("two")
            return real

        return msgspec.structs.replace(context, resolve=resolve)

    session._tool_context = flipping
    session.submit(submit("go"))
    await bench.idle(session)
    assert (tmp_path / "one" / "a.txt").read_text() == "new\n"
    assert (tmp_path / "two" / "a.txt").read_text() == "text\n"


async def test_a_link_redirected_to_a_guarded_file_explains_the_second_question(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to("src")
    create = _call(1, "create_file", path="link/x", content="x")
    bench, session = await _start(tmp_path, calls(create))
    assert (await _asked(bench, 1)).why == ""
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(".git")
    session.desk.answer(Approve(call_id="c1", decision="always"))
    again = await _asked(bench, 2)
    assert again.why == "version control runs or uses it"
    session.desk.answer(Approve(call_id="c1", decision="reject"))
    await bench.idle(session)
    assert not (tmp_path / ".git" / "x").exists()


async def test_standing_approvals_are_listed_stored_and_revoked(tmp_path):
    """They apply only in this chat and workspace; a command prefix is one grant."""
    (tmp_path / "sub").mkdir()
    made = [
        _call(1, "run_command", command="pwd"),
        _call(2, "run_command", command="echo two", cwd="sub"),
        _call(3, "create_file", path="a.txt", content="a"),
    ]
    bench, session = await _start(tmp_path, *(calls(one) for one in made))
    for number, family in ((1, True), (2, False), (3, False)):
        asked = await _asked(bench, number)
        session.desk.answer(Approve(call_id=asked.call_id, decision="always", family=family))
    await bench.idle(session)
    rows = session.grants.carry_out(ListGrants())
    assert [(row["tool"], GrantScope(**row["scope"])) for row in rows] == [
        ("create_file", ANY_FILE),
        ("run_command", GrantScope("exactly “echo two” in sub")),
        ("run_command", _on_files("pwd")),
    ]
    said = session.grants.carry_out(RevokeGrant(grant=rows[1]["grant"]))
    assert said == "run_command asks again: exactly “echo two” in sub"
    with pytest.raises(InputError, match="already"):
        session.grants.carry_out(RevokeGrant(grant=rows[1]["grant"]))
    left = session.desk.approvals
    await session.close()
    again = await bench.resume()
    assert again is not None
    assert (again.desk.approvals.always, again.desk.approvals.families) == (left.always, left.families)
    said = "/approvals from earlier still apply: Create any file; “pwd” on files of this project, with any options."
    assert bench.of(Notice)[-1].text == said
    for row in rows[0], rows[2]:
        again.grants.carry_out(RevokeGrant(grant=row["grant"]))
    await again.close()
    last = await bench.resume()
    assert last is not None
    assert not last.grants.carry_out(ListGrants())


async def test_allowed_hosts_are_stored_with_the_chat_and_the_configured_network_is_not(tmp_path):
    bench, session = await _start(tmp_path)
    settings = bench.services.settings
    sandbox = msgspec.structs.replace(settings.sandbox, network=True)
    bench.services.settings = msgspec.structs.replace(settings, sandbox=sandbox)
    session.desk.approvals = msgspec.structs.replace(session.desk.approvals, hosts=frozenset({ANY_HOST}))
    asked = ApprovalQuestion(key="k", title="", body="", command="pip install x", place="network", hosts=("pypi.org",))
    session.desk.grant(asked, "always")
    await bench.idle(session)
    await session.close()
    bench.services.settings = settings
    again = await bench.resume()
    assert again is not None
    assert again.desk.approvals.hosts == {"pypi.org"}
    await again.close()


@pytest.mark.parametrize("later", ["https://evil.example/a", "ssh://git@evil.example/a"])
async def test_hosts_changed_after_the_question_are_not_reached(tmp_path, tmp_path_factory, later):
    """The hosts of `git fetch` are those of the remotes: another chat may have changed them."""
    settings = SandboxSettings(mode="auto", write=(), read=(), network=False)
    sandbox = Sandbox(settings, tmp_path_factory.mktemp("private"))
    if not sandbox.limits_hosts:
        pytest.skip("no sandbox with a network of its own here")
    (tmp_path / ".git").mkdir()
    config = tmp_path / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = https://asked.example/a\n')
    tries = "import os, urllib.request as u; print(os.environ.get('http_proxy')); u.urlopen('http://evil.example')"
    bench, session = await _start(
        tmp_path, calls(_call(1, "run_command", command=f'git fetch origin; python3 -c "{tries}"'))
    )
    bench.services.sandbox = sandbox
    asked = await _asked(bench, 1)
    assert asked.hosts == ("asked.example",)
    config.write_text(f'[remote "origin"]\n\turl = {later}\n')
    session.desk.answer(Approve(call_id="c1", decision="once"))
    again = await _asked(bench, 2)
    assert (again.retry, again.hosts) == (True, ("asked.example", "evil.example"))
    session.desk.answer(Approve(call_id=again.call_id, decision="reject"))
    await bench.idle(session)
    [result] = [message for message in bench.adapter.requests[-1].messages if message.role == "tool"]
    assert "the sandbox refused to connect to evil.example" in result.text
