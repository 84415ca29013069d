"""Tests that the audit log contains every run exactly once, and that later changes to it are detected."""

from __future__ import annotations

import hashlib
import json
import random

import msgspec
import pytest

from codecompanion.adapters.keys.known_secrets import KnownSecrets
from codecompanion.cli.__main__ import main
from codecompanion.engine.hello import hide_in_audit
from codecompanion.errors import InputError
from codecompanion.reports.audit_page import audit_page, joined
from codecompanion.session.actions.show_audit import show_audit
from codecompanion.session.tool_calls.audited import AuditedCall
from codecompanion.session.trust.trust import Trust
from codecompanion.store.audit import FILE, HEAD, MAX_LINE_BYTES, OLDER, AuditLog, read_audit
from codecompanion.tools.builtin import RUN_COMMAND
from codecompanion.wire.events import ApprovalRequested, ToolFinished
from codecompanion.wire.requests import Approve, ShowAudit
from tests.attacks.sizes import amount
from tests.patience import PATIENCE_S
from tests.secret_shapes import Fake
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

SECRET = "sk-test-0123456789abcdef"
CALLS = [
    ("read_file", {"path": "a.txt"}),
    ("grep_search", {"query": "alpha"}),
    ("create_file", {"path": "new{n}.txt", "content": "new {n}"}),
    ("insert_edit", {"path": "a.txt", "old_text": "alpha", "new_text": "alpha {n}"}),
    ("delete_file", {"path": "gone{n}.txt"}),
    ("run_command", {"command": "echo {n} " + SECRET}),
    ("run_command", {"command": "false {n}"}),
    ("memory", {"command": "create", "path": "/memories/{n}.md", "file_text": "x"}),
]


def _sha(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


async def test_everything_that_ran_in_a_random_chat_is_recorded_exactly_once(tmp_path, tally) -> None:
    chance = random.Random(20)
    work, data = tmp_path / "work", tmp_path / "data"
    work.mkdir()
    (work / "a.txt").write_text("alpha\n")
    wanted = []
    for number in range(amount(12, full=200)):
        name, arguments = chance.choice(CALLS)
        (work / f"gone{number}.txt").write_text("x")
        filled = json.loads(json.dumps(arguments).replace("{n}", str(number)))
        wanted.append((f"c{number}", name, json.dumps(filled)))
    adapter = ScriptedAdapter("s", [*(calls(one) for one in wanted), says("done")])
    bench = Bench(work, adapter, tools={"yolo": True})
    bench.services.trust = Trust(enabled=False)
    bench.services.known_secrets.learn((SECRET,))
    bench.services.audit = AuditLog(data, bench.services.known_secrets.hide, bench.services.report_failure)
    session = await bench.open()
    answers = dict[str, str]()
    session.submit(submit("go"))

    def answer() -> bool:
        for asked in bench.of(ApprovalRequested):
            if asked.call_id not in answers:
                answers[asked.call_id] = chance.choice(["once", "reject"])
                session.desk.answer(Approve(call_id=asked.call_id, decision=answers[asked.call_id]))  # type: ignore[arg-type]
        return bench.is_idle(session) and len(bench.of(ToolFinished)) == len(wanted)

    await bench.until(answer)
    bench.services.audit.close()
    found = joined(read_audit(data).records)
    ran = {one.call_id: one for one in bench.of(ToolFinished) if one.status in ("ok", "error")}
    recorded = [one["call"] for one in found]
    held = sum(recorded.count(call) == 1 for call in ran)
    assert sorted(recorded) == sorted(set(recorded))
    assert set(recorded) <= set(ran)  # rejected calls did not run
    # A call that cannot succeed (its text is not in the file) ends before it runs.
    missing = set(ran) - set(recorded)
    assert all(ran[call].status == "error" and call not in answers for call in missing)
    held += len(missing)
    for one in found:
        assert one["status"] == ran[one["call"]].status
        assert one["grant"] == ("asked" if one["call"] in answers else one["grant"]) != ""
        assert (one["grant"] == "asked") is (one["call"] in answers)
        for file in one["files"]:
            assert file["after"] == _sha(work / "x") or len(file["after"]) == 64
    text = (data / FILE).read_text()
    assert SECRET not in text
    last = [file for one in found for file in one["files"] if file["path"].endswith("a.txt")][-1:]
    assert all(file["after"] == _sha(work / "a.txt") for file in last)
    tally("audit: calls of a random chat", tried=len(ran), held=held)
    assert held == len(ran)


async def test_a_stopped_command_has_a_record_with_its_outcome(tmp_path) -> None:
    adapter = ScriptedAdapter("s", [calls(("c1", "run_command", '{"command": "sleep 30"}'))])
    bench = Bench(tmp_path, adapter)
    bench.services.audit = AuditLog(tmp_path / "data", str, bench.services.report_failure)
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.until(lambda: bool((tmp_path / "data" / FILE).exists() and read_audit(tmp_path / "data").records))
    session.cancel()
    await bench.idle(session)
    bench.services.audit.close()
    [one] = joined(read_audit(tmp_path / "data").records)
    assert (one["kind"], one["status"], one["grant"]) == ("command", "stopped", "asked")


def test_a_command_that_ran_again_elsewhere_has_two_records(tmp_path) -> None:
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    bench.services.audit = AuditLog(tmp_path / "data", str, bench.services.report_failure)
    call = AuditedCall(bench.services, "c", "t", "c1")
    call.record_start(RUN_COMMAND, {"command": "date > ../note.txt"}, grant="asked", sandbox="inside", narrowed="")
    call.record_rerun("exit 2 · 1 line", "outside", "asked")
    call.record_end("ok", "exit 0 · outside · 1 line")
    bench.services.audit.close()
    records = read_audit(tmp_path / "data").records
    assert len({one["run"] for one in records}) == 2
    assert [(one["sandbox"], one["status"], one["result"], one["call"]) for one in joined(records)] == [
        ("inside", "error", "exit 2 · 1 line", "c1"),
        ("outside", "ok", "exit 0 · outside · 1 line", "c1"),
    ]
    page = audit_page(records, "", "/data")
    assert "sandbox: outside · ok · exit 0 · outside" in page
    assert "sandbox: inside · error · exit 2" in page


def _filled(folder, count=6) -> None:
    log = AuditLog(folder, str, pytest.fail)
    for number in range(count):
        log.add(
            {
                "event": "ran",
                "kind": "fetch",
                "chat": f"c{number % 2}",
                "time": "2026-11-23T10:00:00+00:00",
                "n": number,
            }
        )
    log.close(PATIENCE_S)


def test_a_changed_removed_or_inserted_record_is_detected(tmp_path, tally) -> None:
    _filled(tmp_path)
    lines = (tmp_path / FILE).read_bytes().splitlines(keepends=True)
    assert read_audit(tmp_path).broken == ""
    tries = [
        *(b"".join(lines[:at] + lines[at + 1 :]) for at in range(1, 5)),
        *(b"".join([*lines[:at], lines[at].replace(b'"n": ', b'"n": 1'), *lines[at + 1 :]]) for at in range(6)),
        b"".join([*lines[:3], lines[1], *lines[3:]]),
        b"".join([lines[1], lines[0], *lines[2:]]),
        b"".join(lines[:3]) + b"not a record\n" + b"".join(lines[3:]),
    ]
    held = 0
    for changed in tries:
        (tmp_path / FILE).write_bytes(changed)
        held += read_audit(tmp_path).broken != ""
    tally("audit: records changed later", tried=len(tries), held=held)
    assert held == len(tries)


def test_half_a_line_of_a_killed_host_is_named_and_the_next_one_is_whole(tmp_path) -> None:
    _filled(tmp_path, 2)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"event": "ra')
    _filled(tmp_path, 1)
    audit = read_audit(tmp_path)
    assert len(audit.records) == 3
    assert "is not a record" in audit.broken


def test_the_log_is_limited_and_the_chain_continues_after_a_rotation(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("codecompanion.store.audit.MAX_BYTES", 1_000)
    for _ in range(6):
        _filled(tmp_path)
    assert (tmp_path / OLDER).exists()
    assert sum(path.stat().st_size for path in (tmp_path / FILE, tmp_path / OLDER)) < 8_000
    assert read_audit(tmp_path).broken == ""


def test_two_hosts_write_one_chain(tmp_path) -> None:
    one, two = AuditLog(tmp_path, str, pytest.fail), AuditLog(tmp_path, str, pytest.fail)
    for number in range(20):
        (one if number % 2 else two).add({"event": "ran", "time": "", "n": number})
    one.close()
    two.close()
    audit = read_audit(tmp_path)
    assert (len(audit.records), audit.broken) == (20, "")


def test_an_unwritable_log_is_reported_once(tmp_path) -> None:
    (tmp_path / "data").write_text("a file")
    said: list[str] = []
    log = AuditLog(tmp_path / "data", str, said.append)
    for _ in range(3):
        log.add({"event": "ran"})
        log.close(PATIENCE_S)
    [sentence] = said
    assert "Audit log not written" in sentence


def test_a_long_argument_is_truncated_with_its_hash(tmp_path) -> None:
    log = AuditLog(tmp_path, str, pytest.fail)
    log.add({"event": "ran", "time": "", "arguments": {"content": "x" * 300_000}})
    log.close(PATIENCE_S)
    [record] = read_audit(tmp_path).records
    assert hashlib.sha256(b"x" * 300_000).hexdigest() in record["arguments"]["content"]
    assert (tmp_path / FILE).stat().st_size < 10_000


def _nested(depth: int) -> dict:
    found: dict = {"x": 1}
    for _ in range(depth):
        found = {"a": [found]}
    return found


@pytest.mark.parametrize(
    "arguments",
    [
        {f"key {number}": "x" for number in range(100_000)},
        {"k" * 300_000: 1},
        {"list": list(range(100_000))},
        {"lists": [[["x" * 1_900] * 90] * 90] * 9},
        _nested(600),
        _nested(100_000),
    ],
)
def test_a_line_is_bounded_whatever_the_arguments_are(tmp_path, arguments) -> None:
    log = AuditLog(tmp_path, str, pytest.fail)
    log.add({"event": "ran", "time": "", "arguments": arguments})
    log.close(PATIENCE_S)
    log.add({"event": "ran", "time": "", "arguments": {"command": "next"}})
    log.close(PATIENCE_S)
    audit = read_audit(tmp_path)
    assert (len(audit.records), audit.broken) == (2, "")
    assert max(map(len, (tmp_path / FILE).read_bytes().splitlines())) < MAX_LINE_BYTES


def test_a_lost_end_and_a_lost_older_file_are_named(tmp_path, monkeypatch) -> None:
    _filled(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert read_audit(tmp_path).broken == f"the newest records of {FILE} are missing"
    (tmp_path / FILE).unlink()
    assert read_audit(tmp_path).broken == f"the newest records of {FILE} are missing"
    (tmp_path / FILE).write_bytes(whole)
    monkeypatch.setattr("codecompanion.store.audit.MAX_BYTES", 1_000)
    _filled(tmp_path)
    assert read_audit(tmp_path).broken == ""
    (tmp_path / OLDER).unlink()
    assert read_audit(tmp_path).broken == f"{OLDER} is missing"
    monkeypatch.setattr("codecompanion.store.audit.MAX_BYTES", 5_000_000)
    _filled(tmp_path, 1)
    assert read_audit(tmp_path).broken == f"{OLDER} is missing"


@pytest.mark.parametrize("rotations", [1, 4])
def test_a_lost_beginning_and_a_lost_head_are_named(tmp_path, monkeypatch, rotations) -> None:
    monkeypatch.setattr("codecompanion.store.audit.MAX_BYTES", 1_000)
    for _ in range(1 + rotations):
        _filled(tmp_path)
    assert read_audit(tmp_path).broken == ""
    monkeypatch.setattr("codecompanion.store.audit.MAX_BYTES", 5_000_000)
    whole = (tmp_path / OLDER).read_bytes()
    for kept in (whole.splitlines(keepends=True)[1:], []):
        (tmp_path / OLDER).write_bytes(b"".join(kept))
        assert read_audit(tmp_path).broken == "the oldest records are missing"
        _filled(tmp_path, 1)
        assert read_audit(tmp_path).broken == "the oldest records are missing"
    (tmp_path / OLDER).write_bytes(whole)
    (tmp_path / HEAD).unlink()
    assert read_audit(tmp_path).broken == f"{HEAD} is missing"


def test_undeclared_secrets_are_not_recorded(tmp_path) -> None:
    fake = Fake(20)
    commands = [
        f"curl -H 'Authorization: Bearer {fake.word(40)}' https://example.org",
        f"PGPASSWORD={fake.alnum(14)} psql -h db",
        f"git clone https://ann:{fake.alnum(20)}@example.org/a.git",
        f"curl -u ann:{fake.password()} https://example.org",
    ]
    log = AuditLog(tmp_path, hide_in_audit(KnownSecrets()), pytest.fail)
    for command in commands:
        log.add({"event": "began", "kind": "command", "time": "", "arguments": {"command": command}})
    log.close(PATIENCE_S)
    text = (tmp_path / FILE).read_text()
    assert not [value for value in fake.values if value in text]
    assert text.count("example.org") == 3


def test_a_lost_end_is_still_named_after_the_next_record(tmp_path) -> None:
    _filled(tmp_path)
    (tmp_path / FILE).write_bytes(b"".join((tmp_path / FILE).read_bytes().splitlines(keepends=True)[:-2]))
    _filled(tmp_path, 1)
    assert "does not follow" in read_audit(tmp_path).broken


def test_a_host_killed_before_it_wrote_the_head_breaks_nothing(tmp_path) -> None:
    _filled(tmp_path, 2)
    head = (tmp_path / HEAD).read_bytes()
    _filled(tmp_path, 2)
    (tmp_path / HEAD).write_bytes(head)
    assert read_audit(tmp_path).broken == ""
    _filled(tmp_path, 1)
    assert (len(read_audit(tmp_path).records), read_audit(tmp_path).broken) == (5, "")


def test_it_is_shown_filtered_and_exported(tmp_path, monkeypatch, capsys) -> None:
    data = tmp_path / "nvim" / "codecompanion"
    _filled(data)
    bench = Bench(tmp_path, ScriptedAdapter("s", []))
    bench.services.audit = AuditLog(data, str, pytest.fail)
    assert show_audit(bench.services, ShowAudit(chat="c0", of="c0"))["text"].count("\n## ") == 3
    target = tmp_path / "audit.json"
    assert "6 records" in show_audit(bench.services, ShowAudit(chat="", file=str(target)))["said"]
    assert [json.loads(line)["n"] for line in target.read_text().splitlines()] == list(range(6))
    with pytest.raises(InputError, match="already exists"):
        show_audit(bench.services, ShowAudit(chat="", file=str(target)))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("NVIM_APPNAME", "nvim")
    assert main(["audit", "--chat", "c1", "--json"]) == 0
    assert [json.loads(line)["n"] for line in capsys.readouterr().out.splitlines()] == [1, 3, 5]
    (data / FILE).write_bytes((data / FILE).read_bytes().replace(b'"n": 3', b'"n": 9'))
    assert main(["audit"]) == 1
    assert "changed or damaged" in capsys.readouterr().out


def test_the_page_shows_the_command_the_grant_and_the_hashes() -> None:
    began = {
        "event": "began", "run": "r", "chat": "c", "kind": "command", "tool": "run_command", "grant": "always",
        "arguments": {"command": "make test"}, "time": "2026-11-23T10:00:00+00:00", "narrowed": "text from x",
    }  # fmt: skip
    files = [{"path": "/w/a.txt", "before": "", "after": "b" * 64, "state": "written"}]
    ended = {"event": "ended", "run": "r", "status": "ok", "time": "2026-11-23T10:00:01+00:00", "files": files}
    page = audit_page([began, ended], "", "/data")
    for words in ("$ make test", "grant: always", "narrowed: text from x", "`/w/a.txt` written: none → bbbbbbbbbbbb"):
        assert words in page
    assert "no end" in audit_page([began], "", "/data")
    lines = {"command": "ls # all of it\nrm -rf build"}
    assert "$ ls # all of it ⏎ rm -rf build" in audit_page([{**began, "arguments": lines}], "", "/data")
    assert msgspec.json.encode(joined([began, ended]))
