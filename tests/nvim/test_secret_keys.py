"""A planted key appears only on the wire (lesson 44): all three adapters, with every kind of failure."""

from __future__ import annotations

import base64
import os
import signal
import sqlite3
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codecompanion.model.history import CompactionFailed, ViewChanged
from real_chat import RealChat, start_chat
from tests.contents import contents_below
from tests.providers.anthropic import answers as anthropic_answers
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.thread import AnthropicServerThread
from tests.providers.chat import answers as chat_answers
from tests.providers.chat.thread import ChatServerThread
from tests.providers.responses import answers as responses_answers
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServerThread
from tests.summaries import nine_sections

pytestmark = pytest.mark.slow("a long conversation with each kind of key, and every file is searched")

KEY = "Qx7planted3f9c51d2e84b06Zt"
"""Has no known key format, so only knowing the key can hide it."""
NAME = "PLANTED_CREDENTIAL"
"""The name of the variable does not look like that of a key either."""


@dataclass(frozen=True)
class Case:
    """One adapter: its answers, its server, and where the configuration gets its key."""

    extends: str
    model: str
    answers: Any
    place: str

    def server(self) -> Any:
        """Return the server for this adapter."""
        match self.extends:
            case "openai":
                return ChatServerThread(key=KEY, models=(self.model,), echo_key=True)
            case "anthropic":
                return AnthropicServerThread(key=KEY)
            case _:
                return ResponsesServerThread(key=KEY, rules=Rules((self.model,)), echo_key=True)


CASES = {
    "openai": Case("openai", "gpt-4.1", chat_answers, NAME),
    "anthropic": Case("anthropic", SONNET.id, anthropic_answers, "file:{file}"),
    "openai_responses": Case("openai_responses", "gpt-5.1", responses_answers, "cmd:cat {file}"),
}


@pytest.fixture
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the key, outside every searched folder."""
    path = tmp_path_factory.mktemp("keys") / "key"
    path.write_text(KEY)
    return path


@pytest.mark.parametrize("name", CASES)
def test_the_key_is_nowhere_but_on_the_wire(nvim_factory, tmp_path, key_file, name):
    """This covers text, tools, refusals that echo the key, retries, and an interrupted stream.

    It also covers a compaction, a bug and a killed host.
    """
    case = CASES[name]
    with case.server() as server:
        chat = begin(nvim_factory, tmp_path, server, case, key_file)
        converse(chat, server, case.answers)
        assert any(KEY in str(request.headers) for request in server.requests)
        shown = everything_shown(chat)
        stored = everything_stored(chat)
        assert "Internal error in the chat (TypeError: a bug with" in shown
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_lua("return require('codecompanion.host').status() ~= 'ready'")
        shown += everything_shown(chat)
    assert KEY not in shown
    assert KEY not in stored
    chat.nvim.__exit__()
    assert files_with_the_key(tmp_path) == []


def begin(nvim_factory: Any, root: Path, server: Any, case: Case, key_file: Path) -> RealChat:
    """Start a chat with a host that has a bug, at the most verbose log level."""
    python = root / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).with_name("buggy_host.py")} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    asks = {"opts": {"require_approval_before": False}}
    options = {
        "python": {"host_prog": str(python)},
        "opts": {"log_level": "TRACE"},
        "adapters": {"http": {"loop": {"env": {"api_key": case.place.format(file=key_file)}}}},
        "interactions": {"chat": {"tools": {"opts": {"yolo": True}, "run_command": asks}}},
    }
    return start_chat(
        nvim_factory,
        root,
        server,
        extends=case.extends,
        model=case.model,
        options=options,
        opts={"max_retries": 1},
        env={"BUGGY_FILE": str(key_file), **({NAME: KEY} if case.place == NAME else {})},
    )


def converse(chat: RealChat, server: Any, answers: Any) -> None:
    """Run every operation that involves a key."""
    environment = answers.Call("run_command", '{"command": "env; echo done"}')
    tries = {
        "hello": [answers.reply("Answer. " * 60)],
        "use a tool": [answers.reply(calls=[environment]), answers.reply("used")],
        "a wrong key": [answers.failure(401, f"Incorrect API key provided: {KEY}. Find yours at …")],
        "a bad request": [answers.failure(400, f"The header authorization: Bearer {KEY} is odd")],
        "too often": [answers.failure(429, f"slow down, {KEY}", headers={"retry-after": "0.01"}), answers.reply("ok")],
        "overloaded": [answers.failure(500, f"boom {KEY}"), answers.reply("ok")],
        "an outage": [answers.failure(500, KEY)] * 2,
        "a cut": [answers.reply("half a sentence that ends here", break_after=6)],
        "provoke a bug": [],
        "and on": [answers.reply("Still here. " * 60)],
    }
    for text, script in tries.items():
        server.script[:] = script
        chat.say(text)
    assert "Still here." in chat.text()
    assert any("done" in message.text for message in chat.view().messages if message.role == "tool")
    told = "hello, use a tool, a wrong key, a bad request, too often, overloaded, an outage, a cut, provoke a bug."
    server.script[:] = [answers.reply(nine_sections(told))]  # Responses has its own answer to this
    chat.nvim.command("CodeCompanionCompact!")
    chat.nvim.wait_for(lambda: compacted(chat), "the compaction")
    server.script[:] = [answers.reply("after the compaction")]
    chat.say("go on")
    assert "after the compaction" in chat.text()


def compacted(chat: RealChat) -> bool:
    """Return whether a compaction has completed; fail if one has failed."""
    payloads = [event.payload for event in chat.log()]
    assert not any(isinstance(payload, CompactionFailed) for payload in payloads)
    return any(isinstance(payload, ViewChanged) and payload.kind == "compacted" for payload in payloads)


def everything_shown(chat: RealChat) -> str:
    """Return all text in the editor: buffers, variables, messages, health, log, inspector."""
    nvim = chat.nvim
    nvim.lua("require('codecompanion.chat').current()")
    nvim.command("checkhealth codecompanion")
    nvim.command("buffer #")
    nvim.feed("gd")
    nvim.wait_screen("Next request")
    shown = nvim.lua(
        """local out = { vim.fn.execute("messages"), vim.inspect(vim.g), vim.inspect(vim.fn.getreg('"')) }
           for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
             out[#out + 1] = table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), "\\n")
             out[#out + 1] = vim.inspect(vim.fn.getbufvar(bufnr, ""))
             out[#out + 1] = vim.inspect(vim.api.nvim_buf_get_extmarks(bufnr, -1, 0, -1, { details = true }))
           end
           out[#out + 1] = vim.inspect(require("codecompanion.host").inspect())
           return table.concat(out, "\\n")"""
    )
    nvim.feed("q")
    assert "codecompanion" in shown
    return str(shown) + nvim.screen()


def everything_stored(chat: RealChat) -> str:
    """Return every value of every table, and the log as read back."""
    values = [str(event) for event in chat.log()]
    for path in (chat.root / "data").rglob("*.db"):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            values.extend(str(row) for row in connection.execute(f'SELECT * FROM "{table}"'))  # noqa: S608
        connection.close()
    assert "use a tool" in str(values)
    return "\n".join(values)


def files_with_the_key(root: Path) -> list[Path]:
    """Return the files that contain the key, including in base64: database and WAL, caches, logs, stderr."""
    forms = [KEY.encode(), *(base64.b64encode(b" " * shift + KEY.encode())[4:-4] for shift in range(3))]
    contents = dict(contents_below(root))
    assert any(path.name == "codecompanion.log" and content for path, content in contents.items())
    assert any(path.name == "sessions.db" for path in contents)
    return [path for path, content in contents.items() if any(form in content for form in forms)]
