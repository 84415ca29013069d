"""`context.embedding` in a real Neovim and host (R-239).

Vectors are computed in the background, and errors are one sentence.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import init_lua
from tests.forked_python import forked_python
from tests.providers.embeddings.server import EmbeddingServer, EmbeddingServerThread

NOWHERE = "http://127.0.0.1:9/v1"
KEY = "sk-proj-aBcD1234efGH5678"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServerThread("ollama", key=KEY) as server:
        yield server


@pytest.fixture
def start(nvim_factory: Callable[..., Nvim], server: EmbeddingServer, tmp_path: Path) -> Callable[[str], Nvim]:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "login.py").write_text("def signin(user):\n    return user.token\n")
    (folder / "mail.py").write_text("def send_mail(address):\n    return smtp(address)\n")

    def start(key: str) -> Nvim:
        embedding = {"url": server.url, "model": "test-embedding", "key": "MY_EMBED_KEY"}
        options = {"context": {"embedding": embedding}}
        nvim = nvim_factory(init=init_lua(NOWHERE, options=options, python=forked_python()), env={"MY_EMBED_KEY": key})
        nvim.command(f"cd {folder}")
        return nvim

    return start


def vectors(nvim: Nvim) -> int:
    folder = Path(nvim.lua("return vim.fn.stdpath('cache')")) / "codecompanion" / "code_index"
    for path in folder.glob("*.db"):
        connection = sqlite3.connect(path)
        try:
            return int(connection.execute("SELECT count(*) FROM vectors").fetchone()[0])
        except sqlite3.Error:
            return 0
        finally:
            connection.close()
    return 0


def test_the_index_gets_vectors_in_the_background(start: Callable[[str], Nvim], server: EmbeddingServer) -> None:
    """The key goes to the embedding process over a pipe, and to the endpoint."""
    nvim = start(KEY)
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: vectors(nvim) == 2, "two vectors")
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert [text.partition("\n")[0] for text in server.texts] == ["login.py", "mail.py"]


def test_the_progress_of_the_vectors_is_shown(start: Callable[[str], Nvim]) -> None:
    nvim = start(KEY)
    nvim.lua(
        "_G.hints = {} local say = require('codecompanion.say')"
        " say.hint = function(text) table.insert(_G.hints, text) end"
    )
    nvim.command("CodeCompanion index")
    done = "The code of project can be searched by meaning (2 vectors)"
    nvim.wait_for(lambda: done in nvim.lua("return _G.hints"), "the end of the run")
    assert "Vectors for the code of project: 2 of 2" in nvim.lua("return _G.hints")


def test_a_refused_key_is_one_sentence(start: Callable[[str], Nvim], server: EmbeddingServer) -> None:
    nvim = start("sk-proj-wrong-0987654321")
    nvim.command("CodeCompanion index")
    nvim.wait_for(lambda: "was refused (401)" in nvim.messages(), "what is wrong")
    assert "sk-proj-wrong" not in nvim.messages()
    assert vectors(nvim) == 0
