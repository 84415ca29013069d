"""The check for resources left open by tests: it blames the test or module responsible, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
CONFTEST = """
import pytest
from tests.conftest import _garbage_of_the_module
from tests.leftovers import LeftoverCheck

def pytest_configure(config):
    config.pluginmanager.register(LeftoverCheck(patience_s=0.2))
"""
HEAD = """
import socket, subprocess, sys, threading, pytest
from tests.leftovers import at_end_of_test, closed_at_end, kept_for_the_run
KEPT = []
"""


def outcomes(folder: Path, tests: str) -> tuple[dict[str, str], str]:
    """Return the outcome of each test of a module, and the output."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(HEAD + tests)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), "-rA", "-W", "error"]
    ran = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "no:asyncio", str(folder)],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": f"{REPO}:{REPO / 'python'}"}, cwd=folder,
    )  # fmt: skip
    found = dict[str, str]()
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) test_it\.py::(\w+)", ran.stdout, re.MULTILINE):
        found[name] = outcome
    return found, ran.stdout


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descriptors are looked up in /proc")


def test_the_test_that_left_something_open_fails_and_the_next_one_passes(tmp_path: Path) -> None:
    found, said = outcomes(
        tmp_path,
        """
def test_socket():
    KEPT.append(socket.socket())

def test_after():
    pass

def test_thread():
    KEPT.append(threading.Event())
    threading.Thread(target=KEPT[-1].wait, name="left", daemon=True).start()

def test_process():
    KEPT.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))

def test_last():
    pass
""",
    )
    assert found == {
        "test_socket": "ERROR",
        "test_after": "PASSED",
        "test_thread": "ERROR",
        "test_process": "ERROR",
        "test_last": "PASSED",
    }
    assert re.search(r"left open by this test: descriptor \d+ of socket:", said)
    assert "left open by this test: thread 'left'" in said
    assert re.search(r"left open by this test: descriptor \d+ of pipe:.*; process \d+: ", said)


def test_a_resource_closed_in_time_is_not_an_error(tmp_path: Path) -> None:
    found, said = outcomes(
        tmp_path,
        """
@pytest.fixture(scope="module")
def of_module():
    with socket.socket() as opened:
        yield opened

def test_closed(of_module):
    closed_at_end(socket.socket())

def test_ends_soon():
    threading.Timer(0.05, int).start()

def test_kept():
    with kept_for_the_run():
        KEPT.append(socket.socket())
""",
    )
    assert found == dict.fromkeys(["test_closed", "test_ends_soon", "test_kept"], "PASSED"), said


def test_a_module_fixture_that_closes_nothing_fails_at_its_end(tmp_path: Path) -> None:
    found, said = outcomes(
        tmp_path,
        """
@pytest.fixture(scope="module")
def of_module():
    KEPT.append(socket.socket())

def test_first(of_module):
    pass

def test_last():
    pass
""",
    )
    assert found == {"test_first": "PASSED", "test_last": "ERROR"}, said


def test_a_resource_closed_only_by_the_garbage_collector_is_an_error_of_its_module(tmp_path: Path) -> None:
    found, said = outcomes(
        tmp_path,
        """
class Ring:
    def __init__(self):
        self.ring = self

    def __del__(self):
        raise RuntimeError("never closed")

def test_first():
    Ring()

def test_last():
    pass
""",
    )
    assert found == {"test_first": "PASSED", "test_last": "ERROR"}, said
    assert "never closed" in said
