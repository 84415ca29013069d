"""Code for a question, end to end: a project on disk, the real host and its gatherers, and the bytes on the wire."""

from __future__ import annotations

import os
import re
import signal

import pytest

from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import GATHERED_TAG
from codecompanion.store.opening import open_store
from real_chat import KEY, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread

FILES = [
    ("src/stack.py", "class Stack:\n    def pop_item(self):\n        return self.items.pop()\n"),
    ("src/queue.py", "class Queue:\n    def put_item(self, item):\n        self.items.append(item)\n"),
    ("README.md", "# A project of stacks\n"),
]
QUESTION = "what does pop_item of the Stack return? #{codebase}"
SLOW = {"timeout": 60, "team": {"enabled": True, "command": ["sleep", "300"]}}
SLOW_QUESTION = "what did the team say in the standup about pop_item? #{codebase}"


def sent(server, index=-1):
    """Return the texts of a request, without the system prompt."""
    requests = [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")]
    return [message["content"] for message in requests[index] if message["role"] != "system"]


def stored_draft(root, chat):
    store = open_store(root / "data" / "nvim" / "codecompanion")
    try:
        return store.load_draft(chat)
    finally:
        store.close()


def start(nvim_factory, tmp_path, server, **more):
    options = {"rules": {"enabled": False}, **more.pop("options", {})}
    return start_chat(nvim_factory, tmp_path, server, files=FILES, options=options, **more)


def test_a_question_gets_its_code_right_before_it(nvim_factory, tmp_path):
    """R-201, R-253: the code is found and sent once, with identical bytes in later requests."""
    with ChatServerThread([reply("The last item."), reply("Yes.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.say(QUESTION)
        screen = chat.nvim.screen()
        assert "snippet" in screen
        assert "K show" in screen
        code, question = sent(server)
        assert question == QUESTION
        assert "def pop_item(self)" in code
        assert "src/stack.py" in code
        chat.say("Are you sure?")
        assert sent(server)[:2] == [code, question]
        assert sent(server)[2:] == ["The last item.", "Are you sure?"]
        assert [m.tag for m in chat.view().messages] == [GATHERED_TAG, None, None, None, None]
        chat.nvim.lua("vim.fn.search('snippets\\\\? from')")
        chat.nvim.feed("K")
        chat.nvim.wait_screen("src/stack.py:")


def test_a_plain_message_gets_no_code_and_a_named_file_does(nvim_factory, tmp_path):
    """R-213: this is `auto` under a policy other than `codebuddy`."""
    with ChatServerThread([reply("Hello."), reply("A readme.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.say("hello")
        assert sent(server) == ["hello"]
        chat.say("what is in @README.md")
        assert "# A project of stacks" in sent(server)[2]
        assert sent(server)[3] == "what is in @README.md"


def test_under_codebuddy_the_question_decides(nvim_factory, tmp_path):
    """R-201, R-204: it is recognised whether it is about the project; the user does not have to ask for code."""
    with ChatServerThread(default=lambda received: reply("Ok."), key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, opts={"context_window": 64_000})
        chat.send("/policy codebuddy")
        chat.nvim.wait_screen("Policy codebuddy")
        chat.say("thank you, that is nice")
        assert sent(server) == ["thank you, that is nice"]
        assert "No code" not in chat.text(), "nobody waits for any"
        poem = "may roses rhyme with noses?"
        chat.say(poem)
        assert re.search(r"· No code added \(.+\) · #\{codebase\} adds it", chat.text())
        chat.send(f"/context {poem}")
        screen = chat.nvim.wait_screen("No code is added to this message")
        said = " ".join(screen.replace("│", " ").split())
        assert re.search(r"\(not about the project, [^)]+\)", said), "by the index, as soon as there is one"
        assert "code was requested" not in screen
        chat.nvim.feed("q")
        chat.say("see @src/stack.py:2-3 and @src/ please")
        assert "src/stack.py:2-3" in chat.text()
        assert "@src/ was not read: it is a folder" in chat.text()
        chat.say("which function in this code base pops an item of the Stack class?")
        assert "def pop_item(self)" in sent(server)[-2]


def test_a_damaged_index_does_not_block_a_question(nvim_factory, tmp_path):
    """The index is rebuilt, and the question is answered in the meantime."""
    with ChatServerThread(default=lambda received: reply("Ok."), key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.say(QUESTION)
        found = chat.nvim.wait_for(lambda: list((tmp_path / "cache").rglob("*.db")), "the index in the cache folder")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_lua("return require('codecompanion.host').status() ~= 'ready'")
        for path in found:
            path.write_bytes(b"rubbish" * 1000)
        chat.say(QUESTION + " again")
        assert "Already above, unchanged: src/stack.py:1-3" in sent(server)[-2]


def test_unsaved_changes_are_read(nvim_factory, tmp_path):
    """Lesson 53: the text is read as the user sees it."""
    with ChatServerThread([reply("Both.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.nvim.command("new src/stack.py")
        chat.nvim.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# not saved yet' })")
        chat.nvim.command("wincmd p")
        chat.say(QUESTION + " @src/stack.py")
        assert "# not saved yet" in sent(server)[-2]


def test_q_stops_the_gathering_and_returns_the_message(nvim_factory, tmp_path):
    """Lesson 41: gathering stops immediately, and nothing is sent or stored."""
    with ChatServerThread([reply("Now.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, options={"context": SLOW})
        chat.send(SLOW_QUESTION)
        chat.nvim.wait_screen("gathering code")
        chat.nvim.feed("q")
        chat.nvim.wait_for(lambda: chat.draft() == SLOW_QUESTION, "the words in the input")
        chat.wait_state("idle")
        assert server.requests == []
        assert not [e for e in chat.log() if isinstance(e.payload, MessageAdded)]
        assert "Not sent. Your message is back in the input." in chat.text()
        assert "Stopped." not in chat.text()


@pytest.mark.parametrize("who", ["host", "editor"])
def test_a_kill_during_gathering_loses_no_text(nvim_factory, tmp_path, who):
    """Lessons 36, 44: this applies if the host or the editor is killed."""
    with ChatServerThread([reply("Now.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server, options={"context": SLOW})
        chat.send(SLOW_QUESTION)
        chat.nvim.wait_screen("gathering code")
        if who == "host":
            os.kill(chat.host_pid(), signal.SIGKILL)
            chat.nvim.wait_for(lambda: chat.draft() == SLOW_QUESTION, "the words in the input")
            return
        chat_id = chat.id
        chat.nvim.wait_for(lambda: stored_draft(tmp_path, chat_id) == SLOW_QUESTION, "the draft in the store")
        host = chat.host_pid()
        os.kill(chat.nvim.pid, signal.SIGKILL)
        os.kill(host, signal.SIGKILL)
        again = start(nvim_factory, tmp_path, server)
        again.nvim.lua("require('codecompanion').resume(...)", chat_id)
        again.nvim.wait_for(lambda: SLOW_QUESTION in again.text(), "the words in the chat that is resumed")


def test_two_chats_gather_in_parallel(nvim_factory, tmp_path):
    with ChatServerThread(default=lambda received: reply("Done."), key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.send(QUESTION)
        chat.nvim.command("CodeCompanion chat")
        chat.wait_ready()
        chat.send(QUESTION)
        chat.nvim.wait_for(lambda: chat.finished() == 2, "both turns")
        assert ["def pop_item(self)" in sent(server, index)[0] for index in (0, 1)] == [True, True]


def test_without_a_project_there_is_no_search(nvim_factory, tmp_path):
    """The home directory and `/` are not indexed, and that is reported."""
    with ChatServerThread([reply("Hm.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.nvim.command("cd /")
        chat.say("where is pop_item? #{codebase}")
        lines = chat.text().split("\n")
        (said,) = (place for place, line in enumerate(lines) if "/ is a home directory or larger" in line)
        assert lines.index("where is pop_item? #{codebase}") < said
        assert said < lines.index("Hm.")
        assert sent(server) == ["where is pop_item? #{codebase}"]


def test_context_shows_the_code_and_sends_nothing(nvim_factory, tmp_path):
    with ChatServerThread([reply("Ok.")], key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.send("/context what does pop_item of the Stack return?")
        screen = chat.nvim.wait_screen("src/stack.py:")
        assert "tokens" in screen
        assert chat.draft() == "what does pop_item of the Stack return?", "it can be sent now"
        assert server.requests == []
        chat.nvim.feed("x")
        left_out = re.search(r"✗.* (\S+):(\d+)-\d+.*left out", chat.nvim.wait_screen("left out"))
        assert left_out
        chat.nvim.feed("q")
        chat.say(QUESTION)
        pieces = [(piece.path, str(piece.start)) for piece in chat.view().messages[0].gathered]
        assert pieces
        assert left_out.groups() not in pieces


def test_a_pin_follows_its_code_and_survives_the_host(nvim_factory, tmp_path):
    """It is read from the log, even if the host was killed and the file has changed."""
    with ChatServerThread(default=lambda request: reply("Ok."), key=KEY) as server:
        chat = start(nvim_factory, tmp_path, server)
        chat.say("hello #{symbols}")
        chat.send("/context what does pop_item of the Stack return?")
        chat.nvim.wait_screen("src/stack.py:")
        chat.nvim.feed("p")
        pinned = re.search(r"⚑.* (src/\S+):1-\d+", chat.nvim.wait_screen("pinned"))
        assert pinned
        chat.nvim.feed("q")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_for(lambda: "Python process ended" in chat.text(), "the end of the host")
        file = tmp_path / "work" / pinned[1]
        file.write_text("new = 1\n" * 30 + file.read_text())
        chat.say("and the readme? #{codebase}")
        gathered = next(message for message in chat.view().messages if message.gathered)
        assert [(piece.path, piece.start) for piece in gathered.gathered if piece.source == "pinned"] == [
            (pinned[1], 31)
        ]
        assert "item(self" in gathered.text
        assert chat.text().count("· Sent as plain text: #{symbols} · paste its content") == 1
