"""The tests that `make` runs: `make ci` skips the thorough ones, `make test` also the slow ones; a name runs any."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
WITHOUT_SLOW, WITHOUT_THOROUGH = "-m 'not slow and not thorough'", "-m 'not thorough'"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


def pytest_call(*arguments: str) -> str:
    """Return the pytest call that `make` would run."""
    # Not the variables of the `make` that runs these tests.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "SHUFFLE", "T")}
    planned = subprocess.run(
        ["make", "-n", *arguments], cwd=REPO, env=environment, capture_output=True, text=True, check=True
    ).stdout
    (call,) = [line for line in planned.splitlines() if " -m pytest " in line]
    return call


def test_continuous_integration_skips_only_the_thorough_tests() -> None:
    assert WITHOUT_THOROUGH in pytest_call("ci")
    assert WITHOUT_SLOW in pytest_call("test")
    assert " -m thorough" in pytest_call("thorough")


@pytest.mark.parametrize("named", ["tests/nvim", "tests/unit/test_tiers.py::test_x -x", "-k word", "-m slow", "tests"])
def test_named_tests_run_however_slow_they_are(named: str) -> None:
    assert " -m 'not " not in pytest_call("test", f"T={named}")


@pytest.mark.parametrize("options", ["-x", "--lf -vv"])
def test_options_are_not_test_names(options: str) -> None:
    assert WITHOUT_SLOW in pytest_call("test", f"T={options}")


def test_a_seed_determines_the_order() -> None:
    assert "--shuffle 7" in pytest_call("test", "SHUFFLE=7")
    assert "--shuffle" not in pytest_call("test")
