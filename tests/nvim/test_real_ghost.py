"""Ghost text with the real host and a loopback server that fills in code: a suggestion end to end."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ghost import OPTIONS, Ghost
from harness import NO_PROVIDER, Nvim, lua_string, wait_until_gone
from tests.forked_python import forked_python, process_of
from tests.providers.completion.server import FillServerThread

PLUGS = {"F2": "Accept", "F5": "Next", "F8": ""}


@pytest.fixture
def server() -> Iterator[FillServerThread]:
    """Yield a server with an empty script."""
    with FillServerThread() as thread:
        yield thread


def start(factory: Callable[..., Nvim], url: str, **options: Any) -> Ghost:
    """Start a Neovim with completion on, using Ollama at `url`."""
    completion = {**OPTIONS, "url": url, **options}
    settings = {"python": {"host_prog": forked_python()}, "completion": completion}
    text = lua_string(json.dumps(settings))
    ghost = Ghost(
        factory(init=f"{NO_PROVIDER}require('codecompanion').setup(vim.json.decode({text}))\n", size=(80, 16))
    )
    for key, name in PLUGS.items():
        ghost.nvim.command(f"imap <{key}> <Plug>(CodeCompanionComplete{name})")
    return ghost


def test_a_suggestion_works_end_to_end(nvim_factory: Callable[..., Nvim], server: FillServerThread) -> None:
    """The request reaches the server after a pause and its answer is shown.

    Nothing starts the host before the first pause.
    """
    server.script.extend(["range(3):\n    print(i)", "\nprint('done')"])
    ghost = start(nvim_factory, server.address)
    ghost.open("a.py", "import os\n\n\nx = 1\n", (4, 5))
    assert ghost.nvim.lua("return package.loaded['codecompanion.host'] == nil")
    ghost.type("ofor i in ")
    ghost.wait_shown("range(3):\n    print(i)")
    body = server.requests[0].json
    assert body["model"] == "qwen2.5-coder"
    assert "x = 1\nfor i in " in json.dumps(body).replace("\\n", "\n")
    ghost.type("<F2>")
    assert ghost.nvim.lines()[-3:] == ["for i in range(3):", "    print(i)", ""]
    ghost.wait_shown("\nprint('done')")
    assert len(server.requests) == 2


def test_a_secret_file_never_reaches_the_server(nvim_factory: Callable[..., Nvim], server: FillServerThread) -> None:
    """R-266."""
    server.script.extend(["hunter2"] * 3)
    ghost = start(nvim_factory, server.address)
    ghost.open(".env", "PASSWORD=", (1, 8))
    ghost.type("Ax")
    ghost.nvim.wait_lua("return require('codecompanion.inline.completion_status').sentences()[1]:find('off here')")
    assert server.requests == []
    assert ghost.status().endswith("off here: .env may contain secrets")


def test_a_server_that_goes_down_and_recovers_is_handled(
    nvim_factory: Callable[..., Nvim], server: FillServerThread
) -> None:
    """The failure is reported once, after leaving insert mode; a manual request retries immediately."""
    ghost = start(nvim_factory, "http://127.0.0.1:9")
    ghost.open("a.py")
    ghost.type("ix = ")
    ghost.nvim.wait_lua("return require('codecompanion.inline.source').state().is_failure")
    assert ghost.nvim.messages() == ""
    ghost.type("<Esc>")
    said = ghost.nvim.wait_for(ghost.nvim.messages, "the sentence")
    assert "No suggestions: no connection to http://127.0.0.1:9" in said
    assert not ghost.nvim.blocked()
    ghost.type("a1")
    ghost.pause()
    assert "; retries in Insert mode, in " in ghost.status()


def test_a_host_killed_during_a_request_is_restarted(
    nvim_factory: Callable[..., Nvim], server: FillServerThread
) -> None:
    """Nothing is lost or blocked; the next request starts another host."""
    ghost = start(nvim_factory, server.address)
    ghost.open("a.py")
    server.script.append("first")
    ghost.type("ix = ")
    ghost.wait_shown("first")
    pid = process_of(ghost.nvim.lua("return require('codecompanion.host').inspect().pid"))
    os.kill(pid, signal.SIGSTOP)
    ghost.type("y")
    ghost.nvim.wait_lua("return require('codecompanion.inline.flow').is_asking()")
    os.kill(pid, signal.SIGKILL)
    ghost.nvim.wait_lua("return require('codecompanion.inline.source').state().is_failure")
    wait_until_gone(pid)
    server.script.extend(["second"] * 4)  # on a slow machine a pause asks too, and the key asks again
    ghost.type(" + ")
    assert ghost.nvim.lines() == ["x = y + "]
    ghost.type("<F8>")
    ghost.wait_shown("second")
    assert ghost.nvim.messages() == ""


def test_another_suggestion_is_requested(nvim_factory: Callable[..., Nvim], server: FillServerThread) -> None:
    """It comes from the server, when the user asks for it."""
    server.script.extend(["one", "two", "three", "four"])
    ghost = start(nvim_factory, server.address)
    ghost.open("a.py")
    ghost.type("ix = ")
    ghost.wait_shown("one")
    ghost.type("<F5>")
    ghost.nvim.wait_for(lambda: ghost.shown() not in ("", "one"), "another suggestion")
    index, count = ghost.nvim.lua("return { require('codecompanion.inline.flow').shown() }")
    assert (index, count > 1) == (2, True)


def test_names_of_an_unsaved_buffer_are_known(nvim_factory: Callable[..., Nvim], server: FillServerThread) -> None:
    """The buffer's text counts, not the file's, even if there is no file."""
    server.script.extend([""] * 100)
    ghost = start(nvim_factory, server.address)
    ghost.open("store.py", "def open_store(path, *, is_new=False): ...")
    ghost.type("ox = 1<Esc>")
    ghost.open("main.py")
    ghost.type("istore = open_store(")

    def is_known() -> bool:
        ghost.type("x")
        ghost.pause()
        return any("is_new" in request.json["prompt"] for request in server.requests)

    ghost.nvim.wait_for(is_known, "the signature in the prompt")
    assert not (ghost.nvim.root / "work" / "store.py").exists()
