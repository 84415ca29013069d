"""Shared by all tests: a clean environment, the number of hypothesis examples, and whether they are new each time.

People look at new examples in every run; `make ci` (HYPOTHESIS_PROFILE=ci) at the same ones each time, so that a change
is judged by its own effect. A failure found by chance is then fixed like any other. `make check` takes the profile
quick, `make fuzz` takes thorough; a test that says a number of its own needs that many, or can afford no more.
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
    """Collect what a module left to the garbage collector while its last test can still be the one that fails.

    What stays, such as the SDKs that were imported, is not walked through again at the end of the next module.
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
    """Import the whole package; take it and the 10,000 items out of the walks of the garbage collector.

    A module that a test is the first to import would keep for ever what that test has replaced in another one.
    """
    for name in own_modules():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    print_table(terminalreporter)
