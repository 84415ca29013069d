"""Tests of the step from claims and results to verdicts: which rows count as shown."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conform.chat_path import started
from tools.conform.claims import Claim
from tools.conform.rows import ROOT, Row
from tools.conform.verdicts import Result, judge, table, together

EXACT = Row("R-101", "codebuddy", "", "doc", "It is so.")
OURS = Row("R-102", "codebuddy", "", "src", "It is so. Ours: never more.")
SHOWN = Result("passed", frozenset({"session"}))
CLAIM = Claim(("a::b",))


@pytest.mark.parametrize(
    ("row", "claim", "results", "verdict"),
    [
        (EXACT, CLAIM, {"a::b": SHOWN}, ("exact", "")),
        (OURS, CLAIM, {"a::b": SHOWN}, ("ours", "Ours: never more.")),
        (EXACT, Claim(not_applicable="it is about files"), {}, ("not applicable", "it is about files")),
        (EXACT, None, {}, ("not shown", "no claim")),
        (EXACT, CLAIM, {}, ("not shown", "a::b did not run")),
        (OURS, CLAIM, {"a::b": Result("failed", SHOWN.path)}, ("not shown", "a::b failed")),
        (EXACT, CLAIM, {"a::b": Result("skipped", SHOWN.path)}, ("not shown", "a::b skipped")),
        (
            EXACT,
            CLAIM,
            {"a::b": Result("passed", frozenset())},
            ("not shown", "a::b drove no session, Neovim or command line"),
        ),
        (EXACT, Claim(("a::b", "a::c")), {"a::b": SHOWN}, ("not shown", "a::c did not run")),
    ],
)
def test_a_row_is_judged(row, claim, results, verdict):
    judged = judge(row, claim, results)
    assert (judged.status, judged.reason) == verdict


def test_all_parameters_of_a_test_must_pass_on_the_chats_path():
    both = Result("passed", frozenset({"session", "editor"}))
    assert together([SHOWN, both]) == SHOWN
    assert together([SHOWN, Result("passed", frozenset())]).path == frozenset()
    assert together([SHOWN, Result("failed", SHOWN.path)]).outcome == "failed"
    assert together([SHOWN, Result("skipped", frozenset())]) == SHOWN
    assert together([Result("skipped", frozenset())]).outcome == "skipped"


def test_the_table_names_the_rows_not_shown():
    lines = list(table([judge(EXACT, CLAIM, {"a::b": SHOWN}), judge(OURS, None, {})]))
    assert lines[1].split()[-5:] == ["2", "1", "0", "0", "1"]
    assert lines[-1] == "R-102  not shown: no claim"


@pytest.mark.parametrize(
    ("argv", "path"),
    [
        (["/x/nvim", "--embed"], {"editor"}),
        (["tmux", "new"], {"editor"}),
        (["python", "-m", "codecompanion", "gather", "why?"], {"command"}),
        (["python", "-m", "codecompanion", "--help"], set()),
        (["python", "-m", "codecompanion", "doctor"], set()),
        (["git", "status"], set()),
        ([], set()),
    ],
)
def test_some_processes_count_as_the_chats_path(argv, path):
    assert started(argv) == path


SESSION = """
async def test_it(tmp_path):
    from tests.conform.chat import chat_with
    await chat_with(tmp_path, "codecompanion", [])
"""


@pytest.mark.thorough("it checks the checker")
@pytest.mark.parametrize(("source", "way"), [(SESSION, ["session"]), ("def test_it():\n    pass\n", [])])
def test_a_session_in_a_test_is_noticed(tmp_path, source, way):
    """The path is recorded in a separate run, as started by `--conform`."""
    (tmp_path / "test_one.py").write_text(source, encoding="utf-8")
    (tmp_path / "shown.py").write_text(
        "import json\nimport pytest\nfrom tests.conform.chat_path import ChatPath\n"
        "def pytest_configure(config):\n    config.pluginmanager.register(ChatPath(), 'chat path')\n"
        "def pytest_runtest_logreport(report):\n"
        "    if report.when == 'call':\n        print('\\nPATH', json.dumps(dict(report.user_properties)))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "shown", "--rootdir", str(tmp_path), "-o",
         "asyncio_mode=auto", "-p", "no:cacheprovider", str(tmp_path / "test_one.py")],
        capture_output=True, text=True, check=False, cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": f"{ROOT}/python:{ROOT}:{tmp_path}"},
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith("PATH")]
    assert [json.loads(line.removeprefix("PATH ")) for line in told] == [{"chat path": way}], done.stdout + done.stderr
