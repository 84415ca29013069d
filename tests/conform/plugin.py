"""`--conform`: at the end of a run, report for each row of the documents whether its tests showed it."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.conform.chat_path import PROPERTY, ChatPath
from tools.conform.claims import read_all
from tools.conform.verdicts import Result, Verdict, judge, table, together


class Conformance:
    """A pytest plugin for the reporting process: collects results, prints the table and sets the exit status."""

    def __init__(self, *, all_rows: bool) -> None:
        self._reports = defaultdict[str, list[pytest.TestReport]](list)
        self._all_rows = all_rows
        self._verdicts = list[Verdict]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._reports[report.nodeid].append(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        tests = defaultdict[str, list[Result]](list)
        for test, reports in self._reports.items():
            tests[test.partition("[")[0]].append(_result(reports))
        results = {test: together(found) for test, found in tests.items()}
        self._verdicts = [judge(row, claim, results) for row, claim in read_all()]
        if session.exitstatus == pytest.ExitCode.OK and any(v.status == "not shown" for v in self._verdicts):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("conformance")
        for line in table(self._verdicts, all_rows=self._all_rows):
            terminalreporter.write_line(line)


def _result(reports: list[pytest.TestReport]) -> Result:
    path = {word for report in reports for key, words in report.user_properties if key == PROPERTY for word in words}
    outcomes = {report.outcome for report in reports}
    return Result(
        "failed" if "failed" in outcomes else "skipped" if "skipped" in outcomes else "passed", frozenset(path)
    )


def add_options(parser: pytest.Parser) -> None:
    """Add `--conform` and `--conform-rows`."""
    parser.addoption("--conform", action="store_true", help="fail when a row of the documents is not shown by a test")
    parser.addoption("--conform-rows", action="store_true", help="with --conform: print every row")


def register(config: pytest.Config) -> None:
    """Record the path of each test in the workers, and judge the rows in the reporting process."""
    if not config.getoption("conform"):
        return
    config.pluginmanager.register(ChatPath(), "chat path")
    if not hasattr(config, "workerinput"):
        all_rows = bool(config.getoption("conform_rows"))
        config.pluginmanager.register(Conformance(all_rows=all_rows), "conformance")
