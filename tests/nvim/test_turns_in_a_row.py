"""Turns without a reply, and our messages before a question, with a server that requires alternating roles."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Nvim
from real_chat import KEY, start_chat
from tests.providers.chat.answers import Call, reply, silence
from tests.providers.chat.thread import ChatServerThread

FILES = [("a.py", "print('a')\n")]


@pytest.mark.parametrize("extends", ["openai_compatible", "openai"])
def test_a_new_message_after_a_crash_is_accepted_by_a_strict_template(
    nvim_factory: Callable[..., Nvim], tmp_path: Path, extends: str
) -> None:
    """This covers `kill -9` before the first word, sending a file and a mention, and stopping an unanswered turn.

    The second kind of adapter does not know the requirement in advance: it is refused once and never again.
    """
    options = {"max_retries": 0, "alternate_roles": extends == "openai_compatible"}
    answers = [silence(), reply("It prints.", calls=[Call("read_file", '{"path": "a.py"}')]), silence(), reply("Yes.")]
    with ChatServerThread(answers, key=KEY, alternates=500) as server:
        chat = start_chat(nvim_factory, tmp_path, server, extends=extends, files=FILES, opts=options)
        chat.send("What does it do?")
        chat.wait_state("streaming")
        chat.nvim.wait_for(lambda: len(server.requests) == 1, "the request")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.wait_state("idle")
        chat.send("Or rather: what does #{file:a.py} do?")
        # Its call ran, and the request that follows gets no answer.
        chat.nvim.wait_for(lambda: len(server.script) == 1, "the request after the call")
        chat.nvim.feed("q")
        chat.wait_state("idle")
        chat.say("Sure?")
        assert "Yes." in chat.text()
        assert len(server.refusals) == (1 if extends == "openai" else 0)
        sent = server.requests[-1].json["messages"]
        roles = [message["role"] for message in sent[1:]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
        first = sent[1]["content"]
        assert first.startswith("What does it do?\n\n")
        assert first.endswith("Or rather: what does #{file:a.py} do?")
        assert "print('a')" in first
        assert sent[-2] == {"role": "assistant", "content": "[No reply: the user continued.]"}
