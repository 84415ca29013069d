"""Fixtures: aimock and LiteLLM's proxy, once per test process, and chats of the real plugin that use them.

`make test-peers` installs both and runs these tests (PEERS=required: a missing peer is a failure). In `make test` they
run if both are already installed, and are otherwise skipped with an explanation.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import REPO, Nvim, find_nvim
from real_chat import KEY
from tests.peers.aimock import AiMock
from tests.peers.endpoints import WIRES, Endpoint, Wire
from tests.peers.litellm_proxy import LiteLLMProxy
from tests.peers.server_process import ServerProcess

PEERS = REPO / ".cache" / "peers"
AIMOCK = PEERS / "aimock" / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
LITELLM = PEERS / "litellm" / "bin" / "litellm"
_running: list[ServerProcess] = []


def _need(there: bool, sentence: str) -> None:
    if not there:
        pytest.fail(sentence, pytrace=False) if os.environ.get("PEERS") == "required" else pytest.skip(sentence)


def _need_installed(name: str, lock: str) -> None:
    wanted, there = REPO / "tests" / "peers" / lock, PEERS / name / "installed.lock"
    is_there = there.exists() and there.read_bytes() == wanted.read_bytes()
    _need(is_there, f"{name} is not installed in the version that tests/peers/{lock} names: run make test-peers")


@contextmanager
def _kept_running(process: ServerProcess) -> Iterator[None]:
    _running.append(process)
    try:
        yield
    finally:
        _running.remove(process)
        process.stop()


@pytest.fixture(scope="session")
def aimock_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AiMock]:
    _need(shutil.which("node") is not None, "node is not on this machine (aimock needs node >= 20.15)")
    _need_installed("aimock", "package-lock.json")
    server = AiMock(AIMOCK, tmp_path_factory.mktemp("aimock"), KEY)
    with _kept_running(server.process):
        yield server


@pytest.fixture(scope="session")
def litellm_process(tmp_path_factory: pytest.TempPathFactory, aimock_process: AiMock) -> Iterator[LiteLLMProxy]:
    _need_installed("litellm", "litellm.lock")
    server = LiteLLMProxy(LITELLM, tmp_path_factory.mktemp("litellm"), aimock_process.url, KEY)
    with _kept_running(server.process):
        yield server


@pytest.fixture
def aimock(aimock_process: AiMock) -> AiMock:
    """Return aimock without fixtures or recorded requests."""
    aimock_process.forget()
    return aimock_process


@pytest.fixture
def litellm(litellm_process: LiteLLMProxy, aimock: AiMock) -> LiteLLMProxy:
    """Return LiteLLM's proxy in front of a clean aimock."""
    return litellm_process


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Callable[..., Nvim]]:
    """Return `start(**options) -> Nvim`, as in tests/nvim."""
    _need(find_nvim() is not None, "no Neovim was found: set NVIM_BIN, or run make setup")
    with ExitStack() as stack:
        yield lambda root=tmp_path, **options: stack.enter_context(Nvim(root, **options))


@pytest.fixture(params=WIRES, ids=lambda wire: wire.adapter)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Return each of the wire formats."""
    return request.param


@pytest.fixture
def direct(aimock: AiMock, wire: Wire) -> Endpoint:
    """Return an aimock endpoint for each wire format."""
    return Endpoint(aimock.url, wire, "test-model")


@pytest.fixture
def gateway(litellm: LiteLLMProxy, wire: Wire) -> Endpoint:
    """Return an endpoint of LiteLLM in front of aimock for each wire format."""
    return Endpoint(litellm.url, wire, wire.gateway_model)


@pytest.fixture(params=["aimock", "litellm"])
def endpoint(request: pytest.FixtureRequest, wire: Wire) -> Endpoint:
    """Return endpoints of aimock, and of LiteLLM in front of it, for each wire format."""
    server: AiMock | LiteLLMProxy = request.getfixturevalue(request.param)
    model = wire.gateway_model if isinstance(server, LiteLLMProxy) else "test-model"
    return Endpoint(server.url, wire, model)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Add the peers' output to the report of a failed test."""
    report = yield
    if report.failed:
        report.sections += [(f"log of {process.name}", process.read_log()) for process in _running]
    return report
