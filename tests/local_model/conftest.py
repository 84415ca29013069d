"""Fixtures: llama.cpp's server with SmolLM2 below .cache/local-model, installed by `make test-local-model`.

`make test` runs these tests if both are installed, and skips them with a message otherwise.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nvim"))

from harness import REPO, Nvim
from real_chat import KEY
from tests.local_model.llama_server import LlamaServer
from tests.peers.litellm_proxy import LiteLLMProxy

FOLDER = REPO / ".cache" / "local-model"


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[LlamaServer]:
    """Return a server that is not started yet."""
    if not (FOLDER / "installed.lock").exists():
        sentence = "llama.cpp's server is not in .cache/local-model: run make test-local-model"
        pytest.fail(sentence, pytrace=False) if os.environ.get("LOCAL_MODEL") == "required" else pytest.skip(sentence)
    server = LlamaServer(FOLDER / "bin" / "llama-server", FOLDER / "smollm2.gguf", tmp_path)
    yield server
    server.stop()


@pytest.fixture
def litellm(llama: LlamaServer, tmp_path: Path) -> Iterator[LiteLLMProxy]:
    """Return LiteLLM's proxy in front of a running server with a window of 4,096 tokens."""
    program = REPO / ".cache" / "peers" / "litellm" / "bin" / "litellm"
    if not program.exists():
        pytest.skip("LiteLLM is not in .cache/peers: run make test-peers")
    llama.start(4096, "--predict", "48", "--temp", "0")  # else a reply may fill the whole window
    proxy = LiteLLMProxy(program, tmp_path, llama.url, KEY)
    yield proxy
    proxy.process.stop()


@pytest.fixture
def nvim_factory(tmp_path: Path) -> Iterator[Callable[..., Nvim]]:
    """Return `start(**options) -> Nvim`, as in tests/nvim."""
    with ExitStack() as stack:
        yield lambda root=tmp_path, **options: stack.enter_context(Nvim(root, **options))
