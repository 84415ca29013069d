"""Shared by all tests: a clean environment, the number of Hypothesis examples, and whether they are new in each run.

Developers get new examples in every run; `make ci` (HYPOTHESIS_PROFILE=ci) uses the same ones each time, so that a
change is judged by its own effect. A failure found by chance is then fixed like any other. `make check` uses the
profile quick, `make fuzz` the profile thorough; a test that sets its own number needs that many, or can afford no more.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.amounts import PROFILE
from tests.attacks.table import print_table
from tests.conform import plugin as conform
from tests.forked_python import own_modules, share_one
from tests.leftovers import LeftoverCheck
from tests.machine_state import clean_the_environment
from tests.rewritten import rewrite_share
from tests.shares import mark_the_rest
from tests.shuffled import shuffle
from tests.transport import IS_SDK

_HOME = Path(tempfile.mkdtemp(prefix="codecompanion-tests-"))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)
clean_the_environment(_HOME)

# Time shows how busy the machine is, nothing about the code: neither an example nor its generation has a limit.
settings.register_profile("people", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
_PEOPLE = settings.get_profile("people")
settings.register_profile("quick", _PEOPLE, max_examples=10)
settings.register_profile("ci", _PEOPLE, max_examples=30, derandomize=True, print_blob=True)
settings.register_profile("thorough", _PEOPLE, max_examples=1_000)
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run the tests in the order that belongs to SEED")
    conform.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    if IS_SDK:
        from tests.transport import use_sdk

        use_sdk()
    config.pluginmanager.register(LeftoverCheck(), "leftovers")
    conform.register(config)
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        rewrite_share(config, worker)
    elif getattr(config.option, "numprocesses", None):
        share_one()


@pytest.fixture(autouse=True, scope="module")
def _garbage_of_the_module() -> Iterator[None]:
    """Collect the garbage of a module while its last test can still be the one that fails.

    The remaining objects, such as imported SDKs, are not scanned again at the end of the next module.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves tests out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_the_rest(items)
    for item in items:
        for mark in (*item.iter_markers("slow"), *item.iter_markers("thorough")):
            if not (mark.args and isinstance(mark.args[0], str)):
                raise pytest.UsageError(f"{item.nodeid}: {mark.name} needs a sentence that says why")
    if (seed := config.getoption("shuffle")) is not None:
        items[:] = shuffle(items, seed)


def pytest_collection_finish() -> None:
    """Import the whole package, and exclude it and the 10,000 test items from garbage collection.

    Otherwise a module first imported by a test would permanently keep objects that the test has patched in other
    modules.
    """
    for name in own_modules():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    print_table(terminalreporter)
