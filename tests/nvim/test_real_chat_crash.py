"""The whole stack with killed, stopped or abandoned processes, and with a full disk."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import time

import pytest

from codecompanion.model.history import MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.model.view import project
from harness import wait_until, wait_until_gone
from real_chat import KEY, read_log, start_chat
from tests.providers.chat.answers import Call, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections

pytestmark = pytest.mark.slow("hosts and editors are killed again and again")

UNASKED = {"interactions": {"chat": {"tools": {"run_command": {"opts": {"require_approval_before": False}}}}}}
ROUNDS = int(os.environ.get("KILL_ROUNDS", "8"))


DEAD_OR_BACK = """
local host = require("codecompanion.host")
local chat = require("codecompanion.chat").current()
-- with a message on its way a new host is asked at once whether it was stored
return host.status() == "failed" and chat.attached == "no" and #chat.outgoing == 0
  or chat.attached == "yes" and host.inspect().pid ~= ...
"""


def typed(chat):
    """Return the user's messages as stored."""
    return [m.text for m in chat.view().messages if m.role == "user" and not m.tag]


@pytest.mark.parametrize("when", ["streaming", "compacting", "running_tools"])
def test_leaving_during_a_turn_is_quick_and_leaves_a_valid_history(nvim_factory, tmp_path, when):
    long = reply("word " * 4_000, chunk_chars=5, delay_s=0.1)
    nap = f"sleep 777.{os.getpid()}"
    tool = reply(calls=[Call("run_command", json.dumps({"command": nap}), id="call_s")])
    script = {"streaming": [long], "running_tools": [tool], "compacting": [reply("Answer. " * 300), silence()]}[when]
    with ChatServerThread(script, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=UNASKED)
        if when == "compacting":
            chat.say("first")
            chat.nvim.command("CodeCompanionCompact!")
        else:
            chat.send("first")
        chat.wait_state(when)
        if when == "streaming":
            chat.nvim.wait_screen("word")
        chat_id, pid = chat.id, chat.host_pid()
        chat.nvim.leave()  # each of the three would take minutes
        wait_until_gone(pid)
        wait_until(lambda: subprocess.run(["pgrep", "-f", nap], stdout=subprocess.DEVNULL, check=False).returncode == 1)
        view = project(read_log(tmp_path, chat_id))
        assert [m.text for m in view.messages if m.role == "user" and not m.tag] == ["first"]
        again = start_chat(nvim_factory, tmp_path, server, opened=False)
        again.nvim.lua("require('codecompanion').resume(...)", chat_id)
        again.wait_ready()
        if when == "streaming":
            again.nvim.wait_screen("Interrupted: Neovim or its Python process closed before the reply was complete")
        assert "Stopped." not in again.text()
        server.script[:] = [reply("fine again")]
        again.say("next")
        assert "fine again" in again.text()
        assert server.refusals == []
        assert violations(again.view().messages) == []


def test_an_approval_open_when_neovim_is_closed_was_not_answered(nvim_factory, tmp_path):
    """The user cancelled nothing: the call's line and one note say so, and the model reads it too."""
    edited = Call("create_file", json.dumps({"path": "a.txt", "content": "a"}), id="c1")
    with ChatServerThread([reply(calls=[edited])], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("make it")
        chat.nvim.wait_screen("g2 accept")
        chat_id, pid = chat.id, chat.host_pid()
        chat.nvim.leave()
        wait_until_gone(pid)
        again = start_chat(nvim_factory, tmp_path, server, opened=False)
        again.nvim.lua("require('codecompanion').resume(...)", chat_id)
        again.wait_ready()
        screen = again.nvim.wait_screen("Neovim or its Python process was closed. · gr retries")
        assert "create_file a.txt · not answered" in screen
        assert "cancelled" not in screen
        assert "Interrupted" not in screen
        server.script[:] = [reply("fine again")]
        again.say("next")
        assert "Not answered: Neovim or its Python process was closed" in json.dumps(server.requests[-1].json)


@pytest.mark.parametrize("how", ["killed", "restarted"])
def test_a_turn_lost_with_the_host_is_reported_with_a_remedy(nvim_factory, tmp_path, how):
    """The host may be killed, or restarted by the user, during a request; `gr` then sends the unanswered message."""
    with ChatServerThread([silence(), reply("At last.")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 30))
        chat.send("first")
        chat.nvim.wait_for(lambda: len(server.requests) == 1, "the request")
        chat.nvim.wait_lua("return _G.cc_sent == 1")  # a message not yet shown as sent is asked for in other words
        if how == "killed":
            os.kill(chat.host_pid(), signal.SIGKILL)
        else:
            chat.nvim.command("CodeCompanion restart")
        chat.nvim.wait_screen(r"The reply was interrupted\. · gr retries")
        chat.nvim.feed("gr")
        chat.nvim.wait_screen(r"At last\.")
        assert [m["content"] for m in server.requests[-1].json["messages"] if m["role"] == "user"] == ["first"]


def test_a_stopped_host_does_not_freeze_the_editor(nvim_factory, tmp_path):
    """The host receives SIGSTOP, as from a suspended machine or a debugger."""
    with ChatServerThread([reply("one"), reply("two")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        pid = chat.host_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            chat.send("second")
            chat.nvim.feed("q")
            chat.nvim.feed("Gistill typing<Esc>")
            chat.nvim.command("CodeCompanionChat Toggle")
            chat.nvim.command("CodeCompanionChat Toggle")
            chat.nvim.wait_screen("The Python process does not answer")
            assert not chat.nvim.blocked()
        finally:
            os.kill(pid, signal.SIGCONT)
        chat.nvim.wait_for(lambda: "second" in str(typed(chat)) or "second" in chat.draft(), "second")


def test_leaving_with_a_stopped_host_is_quick(nvim_factory, tmp_path):
    with ChatServerThread([reply("one")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        pid = chat.host_pid()
        os.kill(pid, signal.SIGSTOP)
        chat.nvim.leave()  # waiting for the host would take forever
        wait_until_gone(pid)


def test_a_chat_survives_a_disk_that_fills_up(nvim_factory, tmp_path):
    """Messages shown as sent stay, and a message that cannot be stored returns as a draft.

    Once there is room, the chat works again.
    """
    with ChatServerThread([reply("one")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        pid = chat.host_pid()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        chat.say("second")
        assert "second" in chat.draft()
        assert "disk" in chat.nvim.screen()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        before = chat.finished()
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        assert typed(chat) == ["first", "second"]
        assert server.refusals == []


def test_a_tool_loop_survives_a_disk_that_fills_up(nvim_factory, tmp_path):
    waits = {"command": "until [ -e go ]; do sleep 0.05; done; echo hi"}
    with ChatServerThread(key=KEY) as server:
        server.script = [
            reply("x" * 200, calls=[Call("run_command", json.dumps(waits), id="call_s")]),
            reply("two"),
        ]
        chat = start_chat(nvim_factory, tmp_path, server, options=UNASKED)
        before = chat.finished()
        chat.send("first")
        chat.wait_state("running_tools")
        pid = chat.host_pid()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))
        (tmp_path / "work" / "go").touch()
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        server.script[:] = [reply("recovered")]
        chat.say("second")
        assert "recovered" in chat.text()
        assert typed(chat) == ["first", "second"]
        assert server.refusals == []
        assert violations(chat.view().messages) == []


def logged(chat):
    """Return the texts of all messages the user has ever sent, as stored, including compacted messages."""
    messages = [event.payload.message for event in chat.log() if isinstance(event.payload, MessageAdded)]
    return [message.text for message in messages if message.role == "user" and not message.tag]


def shown_as_sent(chat, numbers):
    """Return the questions shown as sent in the buffer: neither in the draft nor pending."""
    text, waiting = chat.nvim.lua(
        "local c = require('codecompanion.chat').current()"
        " local waiting = { require('codecompanion.chat.buffer.chat_text').input_text(c) }"
        " for _, o in ipairs(c.outgoing) do waiting[#waiting + 1] = o.text end"
        " local lines = vim.api.nvim_buf_get_lines(c.bufnr, 0, -1, false)"
        " return { table.concat(lines, '\\n'), table.concat(waiting, '\\n') }"
    )
    return {n for n in range(numbers) if text.count(f"question {n} ") > waiting.count(f"question {n} ")}


def test_a_host_killed_at_random_moments_loses_nothing(nvim_factory, tmp_path):
    """Lessons 35, 36: after `kill -9` during tools and compaction, messages shown as sent are stored exactly once."""
    rng = random.Random(int(os.environ.get("SEED", "7")))
    window = 9_000

    def answer(received):
        messages = received.json["messages"]
        if "nine headings" in str(messages[0]["content"])[:3000]:
            return reply(nine_sections("All."), delay_s=0.01)
        if messages[-1]["role"] == "tool":
            return reply("Read. " + "More words about it. " * 10, delay_s=0.002)
        return reply(calls=[Call("read_file", '{"path": "big.txt"}', id=f"call_{len(messages)}")], delay_s=0.01)

    big = "".join(f"{i}: the quick brown fox number {i} jumps\n" for i in range(80))
    with ChatServerThread(key=KEY, window=window, default=answer) as server:
        options = {
            "interactions": {"chat": {"opts": {"context_management": {"compaction": {"min_token_savings": 300}}}}}
        }
        chat = start_chat(
            nvim_factory, tmp_path, server, options=options, opts={"context_window": window}, files=[("big.txt", big)]
        )
        shown = set()
        for number in range(ROUNDS):
            chat.send(f"question {number} " + "some words " * 60)
            time.sleep(rng.choice([0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5]) * rng.random() * 2)
            assert shown <= shown_as_sent(chat, number + 1)
            shown = shown_as_sent(chat, number + 1)
            if chat.nvim.lua("return require('codecompanion.host').inspect().pid ~= nil"):
                job = chat.job_pid()
                os.kill(chat.host_pid(), signal.SIGKILL)
                chat.nvim.wait_lua(DEAD_OR_BACK, job)
                chat.nvim.settle()
            stored = "\n".join(logged(chat))
            assert [n for n in shown if stored.count(f"question {n} ") != 1] == []
            if number % 4 == 3:
                before = chat.finished()
                chat.nvim.feed("Gi plus<Esc><CR>")
                chat.nvim.wait_for(lambda b=before: chat.finished() > b, "a whole turn")
                chat.wait_state("idle")
        before = chat.finished()
        chat.send("the end")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the last turn")
        stored = "\n".join(logged(chat))
        assert [n for n in range(ROUNDS) if stored.count(f"question {n} ") != 1] == []
        assert violations(chat.view().messages) == []
        assert server.refusals == []


def test_the_model_gets_the_displayed_part_of_a_reply(nvim_factory, tmp_path):
    """The host stores a reply once a second; text displayed since then is sent to the next host."""
    numbers = " ".join(str(number) for number in range(10_000))
    with ChatServerThread([reply(numbers, chunk_chars=5, delay_s=0.02), reply("fine again")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("count")
        chat.nvim.wait_for(lambda: "0 1 2 3 4 5 6 7" in chat.text(), "the beginning of the reply")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_lua("return require('codecompanion.chat').current().attached == 'no'")
        chat.nvim.settle()
        shown = next(line for line in chat.nvim.lines() if line.startswith("0 1 2"))
        chat.say("go on")
        assert [m.text for m in chat.view().messages] == ["count", shown, "go on", "fine again"]
        assert shown in chat.nvim.lines()
