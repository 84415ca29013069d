"""A real host starts without the secrets of Neovim's environment and receives them through another channel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import find_nvim, other_nvims
from real_chat import RealChat, start_chat
from tests.providers.chat import answers as chat_answers
from tests.providers.chat.thread import ChatServerThread

SECRETS = {
    "LOOP_KEY": "pencil-of-the-adapter-1",
    "GH_TOKEN": "pencil-of-the-forge-2",
    "DB_ADDRESS": "postgres://me:pencil-of-the-base-3@db/main",
    "PLAINLY": "sk-pencil-0123456789abcdefghij",
    "SENT_ALONG": "pencil-of-a-header-4",
    "VAULT": "pencil-of-the-vault-5",
}
OPTIONS = {
    "adapters": {"http": {"loop": {"headers": {"X-Who": "${who}"}, "env": {"who": "SENT_ALONG"}}}},
    "interactions": {
        "chat": {
            "tools": {
                "opts": {"yolo": True},
                "run_command": {
                    "opts": {
                        "require_approval_before": False,
                        "hide_variables": ["VAULT"],
                        "keep_variables": ["NEEDED_TOKEN"],
                    }
                },
            }
        }
    },
}


@pytest.fixture
def server() -> Any:
    """Return a server that accepts every key."""
    with ChatServerThread(key="") as made:
        yield made


def host_environment(chat: RealChat) -> str:
    """Return the host's environment as the system shows it; only root has access."""
    pid = chat.host_pid()
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace").replace("\0", "\n")
    except PermissionError:
        return ""  # not accessible to other users


def sent_keys(server: Any) -> list[str]:
    """Return the keys of the requests, in order."""
    return [request.headers["authorization"] for request in server.requests if "authorization" in request.headers]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems show no environment of processes")
@pytest.mark.parametrize("binary", [find_nvim() or "nvim", *other_nvims()])
def test_the_host_has_no_secret_in_its_environment_and_the_keys_work(nvim_factory, tmp_path, server, binary):
    """Lesson 44: neither `/proc/<pid>/environ` nor a command shows a secret; variables that are kept are passed on."""
    env = {**SECRETS, "NEEDED_TOKEN": "kept-pencil-6", "HARMLESS": "stays"}
    key = env.pop("LOOP_KEY")
    chat = start_chat(
        nvim_factory, tmp_path, server, options=OPTIONS, key=key, env=env, binary=binary, python=sys.executable
    )
    shown = host_environment(chat)
    assert "pencil" not in shown
    assert not shown or "HARMLESS=stays\n" in shown
    command = "{\"command\": \"env; cat /proc/$PPID/environ | tr '\\\\0' '\\\\n'; echo done\"}"
    server.script[:] = [
        chat_answers.reply(calls=[chat_answers.Call("run_command", command)]),
        chat_answers.reply("used"),
    ]
    chat.say("look around")
    (result,) = [message.text for message in chat.view().messages if message.role == "tool"]
    assert "done" in result
    assert "HARMLESS=stays" in result
    # The removed variables are not in the output. A kept one is, and is redacted before it is stored.
    assert result.count("[hidden]") == 1
    assert "NEEDED_TOKEN=[hidden]" in result
    assert not [name for name in (*SECRETS, "NVIM") if f"\n{name}=" in f"\n{result}"]
    assert sent_keys(server)[-1] == f"Bearer {key}"
    chat.nvim.command("checkhealth codecompanion")
    health = chat.text()
    assert "LOOP_KEY is set" in health
    assert "keys: in memory only, not in the environment of the Python process" in health
    (line,) = [line for line in health.splitlines() if "commands: do not get " in line]
    assert set(line.partition("do not get ")[2].split(", ")) >= {*SECRETS}
    assert "pencil" not in health


_LOOK = """
import sys
from codecompanion.engine.own_memory import give_up_tracing
if sys.argv[1] == "as others":  # root may look at anything; others may look at what is dumpable
    give_up_tracing()
for name in ("environ", "mem"):
    try:
        with open(f"/proc/{sys.argv[2]}/{name}", "rb") as file:
            print(name, len(file.read(1)) if name == "environ" else 1)
    except PermissionError:
        print(name, "closed")
"""


def seen_of(pid: int, how: str) -> list[str]:
    """Return, for each private file of a process, whether another program of the user can open it."""
    done = subprocess.run([sys.executable, "-c", _LOOK, how, str(pid)], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems offer nothing like it")
def test_a_running_neovim_and_its_host_are_closed_to_other_programs(nvim_factory, tmp_path, server):
    """Startup protects both; for Neovim the kernel flag is checked, because root may read its files."""
    chat = start_chat(nvim_factory, tmp_path, server, key="pencil-of-the-adapter-1", python=sys.executable)
    server.script[:] = [chat_answers.reply("here")]
    chat.say("are you there")
    host = chat.host_pid()
    assert seen_of(host, "as others") == ["environ closed", "mem closed"]
    if os.geteuid() == 0:
        assert seen_of(host, "as root") == ["environ 1", "mem 1"]
    assert chat.nvim.lua("return require('ffi').C.prctl(3, 0, 0, 0, 0)") == 0


def test_a_key_changed_in_the_running_neovim_applies_from_the_next_request(nvim_factory, tmp_path, server):
    """A removed key is reported in a sentence that names the variable."""
    chat = start_chat(nvim_factory, tmp_path, server, key="pencil-first-1")
    server.script[:] = [chat_answers.reply("one")]
    chat.say("first")
    chat.nvim.command("let $LOOP_KEY = 'pencil-second-2'")
    server.script[:] = [chat_answers.reply("two")]
    chat.say("second")
    assert sent_keys(server)[-1] == "Bearer pencil-second-2"
    requests = len(server.requests)
    chat.nvim.command("unlet $LOOP_KEY")
    chat.send("third")
    chat.nvim.wait_for(lambda: "LOOP_KEY is not set" in chat.text(), "the missing key")
    assert len(server.requests) == requests
    chat.nvim.command("let $LOOP_KEY = 'pencil-third-3'")
    server.script[:] = [chat_answers.reply("four")]
    chat.nvim.feed("gr")
    chat.nvim.wait_for(lambda: "four" in chat.text(), "the answer")
    assert sent_keys(server)[-1] == "Bearer pencil-third-3"


def test_each_key_like_part_of_a_value_is_checked(nvim):
    """A key counts as secret even if a short `sk-…` precedes it."""
    lua = """
      vim.env.DOUBLE = "sk-short and sk-ABCDEFGHIJKLMNOPQRSTUV"
      vim.env.SINGLE = "sk-short"
      local open, hidden = require("codecompanion.host.secret_environment").divide({}, { keys = {}, sent = {} })
      return { open.DOUBLE == nil, hidden.DOUBLE ~= nil, open.SINGLE ~= nil }
    """
    assert nvim.lua(lua) == [True, True, True]
