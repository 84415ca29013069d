"""Undo, recall and pin with keys in a real Neovim, the real host and a real SQLite file: R-361, R-516, R-545."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest

from codecompanion.model.history import MessageAdded, ViewChanged
from codecompanion.model.messages import PIN_TAG
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import five_lines, nine_sections

BIG = "".join(f"{i}: the quick brown fox number {i} jumps\n" for i in range(60))
EDITING = {"trigger": 2000, "keep_cycles": 1}
SETTINGS = {"editing": EDITING, "compaction": {"trigger": False, "min_token_savings": 100}}
OPTIONS = {"interactions": {"chat": {"opts": {"context_management": SETTINGS, "on_compact": "stop"}}}}


def answer(received):
    """Return an answer that reads a file for every question, or a short summary."""
    messages = received.json["messages"]
    if "nine headings" in str(messages[0]["content"])[:3000]:
        return reply(five_lines("Read everything."))
    if messages[-1]["role"] == "tool":
        return reply("Read.")
    path = json.dumps({"path": "big.txt"})
    return reply(calls=[Call("read_file", path, id=f"call_{len(messages)}_{len(messages[-1]['content'])}")])


@pytest.fixture
def chat(nvim_factory, tmp_path):
    """Return a chat whose old results are cleared soon."""
    with ChatServerThread(key=KEY, default=answer) as server:
        yield start_chat(nvim_factory, tmp_path, server, options=OPTIONS, files=[("big.txt", BIG)], size=(100, 44))


def messages(chat: RealChat):
    return chat.view().messages


def originals(chat: RealChat):
    return [e.payload.message for e in chat.log() if isinstance(e.payload, MessageAdded)]


def changes(chat: RealChat):
    return [e.payload for e in chat.log() if isinstance(e.payload, ViewChanged)]


def type_command(chat: RealChat, command: str) -> None:
    chat.nvim.feed(f":{command}<CR>")


def put_cursor(chat: RealChat, text: str, offset: int = 0) -> None:
    row = next(number for number, line in enumerate(chat.nvim.lines(), 1) if text in line)
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", row + offset)


def test_an_edit_is_undone_redone_and_restored_with_keys_also_after_a_host_crash(chat):
    """R-545, R-516: the stored view equals the previous one, message for message."""
    for number in range(2):
        chat.say(f"question {number}")
    assert "✂ 1 tool result cleared" in chat.nvim.wait_screen("✂")
    edited = messages(chat)
    assert sum(m.edited for m in edited) == len(changes(chat)) == 1
    type_command(chat, "CodeCompanionUndo")
    screen = chat.nvim.wait_screen("Undone: 1 tool result restored")
    assert "K original" not in screen
    assert "undone · <C-r> redo · ✂ 1 tool result cleared" in screen
    assert list(messages(chat)) == originals(chat)
    os.kill(chat.host_pid(), signal.SIGKILL)
    chat.nvim.wait_screen("The Python process ended")
    type_command(chat, "CodeCompanionRedo")
    chat.nvim.wait_for(lambda: messages(chat) == edited, "the redo")
    chat.nvim.wait_screen("big.txt.* · cleared")
    put_cursor(chat, "read_file big.txt")
    chat.nvim.feed("K")
    chat.nvim.wait_screen("the quick brown fox number 7 jumps")
    chat.nvim.feed("q")
    put_cursor(chat, "read_file big.txt")
    chat.nvim.feed("r")
    chat.nvim.wait_for(lambda: not any(m.edited for m in messages(chat)), "the restored message")
    assert [m.text for m in messages(chat)] == [m.text for m in originals(chat)]
    assert "K original" not in chat.nvim.wait_screen("Restored: ")
    chat.nvim.feed("gd")
    chat.nvim.wait_screen("Next request")
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: messages(chat) == edited, "the undo of the restoring")
    chat.nvim.wait_screen(r"cleared +tool .*\n.*\n.*\n.*\n.*live +tool ")
    kept = next(m.id for m in edited if m.role == "tool" and not m.edited)
    row = next(n for n, line in enumerate(chat.nvim.lines(), 1) if re.search("live +tool ", line))
    chat.nvim.feed(f"{row}Gc")
    chat.nvim.wait_for(lambda: next(m for m in messages(chat) if m.id == kept).edited, "the result cleared manually")


def test_a_compaction_is_undone_on_its_card_and_removed_messages_are_recalled(chat):
    """R-545: the card shows that it is undone, and the old turns are open again.

    R-516: removed messages are found, marked as changed, and restored.
    """
    chat.say("question about foxes")
    before = messages(chat)
    type_command(chat, "CodeCompanionCompact!")
    screen = chat.nvim.wait_screen("Summary · 4 messages")
    compacted = messages(chat)
    assert "messages summarised" in screen
    (chat.root / "work" / "big.txt").write_text("changed\n")
    type_command(chat, "CodeCompanionRecall quick fox")
    screen = chat.nvim.wait_screen("its file has changed on disk since then")
    assert "read_file big.txt" in screen
    chat.nvim.feed("<CR>")
    chat.nvim.wait_screen("the quick brown fox number 7 jumps")
    chat.nvim.feed("q")
    chat.nvim.wait_screen("r restore")
    chat.nvim.feed("q")
    put_cursor(chat, "Summary · 4")
    chat.nvim.feed("u")
    screen = chat.nvim.wait_screen("Compaction undone; 4 messages are back")
    assert messages(chat) == before
    assert "▸ undone · <C-r> redo · Summary · 4 messages" in screen
    assert "messages summarised" not in screen
    assert "\nquestion about foxes" in screen
    assert "▸ ✓ read_file big.txt" in screen, "what was folded inside still is"
    put_cursor(chat, "Summary · 4")
    chat.nvim.feed("<C-r>")
    chat.nvim.wait_screen("messages summarised")
    chat.nvim.wait_for(lambda: "\nquestion about foxes" not in chat.nvim.screen(), "the folded messages")
    assert messages(chat) == compacted
    assert "undone · " not in chat.nvim.screen()


def test_recall_lists_identical_reads_once(chat):
    """R-516: the row shows how many there are, separate from a read of other text; restoring one keeps the others."""
    for number in range(4):
        chat.say(f"question {number} about foxes")
    (chat.root / "work" / "big.txt").write_text("another fox\n")
    chat.say("question 4 about foxes")
    type_command(chat, "CodeCompanionCompact!")
    chat.nvim.wait_screen("messages summarised")
    for words in ("", " quick fox"):
        type_command(chat, f"CodeCompanionRecall{words}")
        screen = chat.nvim.wait_screen("r restore")
        assert len(re.findall(r"read_file big\.txt ×4", screen)) == 1
        assert len(re.findall(r"^.*r\d+ +read_file big\.txt", screen, re.M)) == 2
        chat.nvim.feed("q")
    type_command(chat, "CodeCompanionRecall quick fox")
    chat.nvim.wait_screen("r restore")
    chat.nvim.feed("/×4<CR>r")
    assert "read_file big.txt ×3" in chat.nvim.wait_screen("×3")


def test_pins_are_set_listed_and_removed_with_keys(chat):
    """R-361: `/pin`, `/pins`, `/unpin`, and `p` in the inspector work."""
    chat.say("question 0")
    chat.send("/pin use tabs")
    chat.nvim.wait_for(lambda: any(m.tag == PIN_TAG for m in messages(chat)), "the pinned text")
    assert "<pin>“use tabs”</pin>" in chat.nvim.wait_screen("<pin>")
    chat.send("/pin")
    chat.nvim.wait_screen("Read. *⚑ pinned")
    chat.send("/pins")
    screen = chat.nvim.wait_screen("x unpin")
    assert "1  ⚑" in screen
    assert "“Read.”" in screen
    chat.nvim.feed("q")
    chat.send("/unpin 2")
    chat.nvim.wait_for(lambda: sum(m.pinned for m in messages(chat)) == 1, "the unpinning")
    chat.nvim.feed("gd")
    chat.nvim.wait_screen("Next request")
    chat.nvim.feed("jjp")
    chat.nvim.wait_for(lambda: sum(m.pinned for m in messages(chat)) == 2, "the pin by key")
    chat.nvim.wait_screen(r"⚑ pinned +user ")
    chat.nvim.feed("u")
    chat.nvim.wait_for(lambda: sum(m.pinned for m in messages(chat)) == 1, "the undone pin")


def test_r_still_replaces_a_character_if_nothing_can_be_restored(chat):
    """In the input, the key keeps Vim's function."""
    chat.type("cat")
    chat.nvim.feed("0rb")
    assert chat.draft() == "bat"


def test_a_cleared_chat_is_restored_in_the_buffer_and_cleared_again(chat):
    """R-545: `/clear` is a change like any other."""
    chat.say("question 0")
    before, text = messages(chat), chat.text()
    chat.nvim.feed("gC")
    chat.nvim.wait_for(lambda: "question 0" not in chat.text(), "the empty chat")
    assert messages(chat) == ()
    type_command(chat, "CodeCompanionUndo")
    chat.nvim.wait_screen("messages restored after /clear")
    chat.nvim.wait_for(lambda: chat.text() == text, "the text as it was")
    assert messages(chat) == before
    type_command(chat, "CodeCompanionRedo")
    chat.nvim.wait_for(lambda: "question 0" not in chat.text(), "the empty chat")
    assert messages(chat) == ()
    chat.say("question 1")
    assert [m.text for m in messages(chat) if m.role == "user"] == ["question 1"]


def test_a_paused_chat_asks_even_after_a_closed_window_and_a_dead_host(nvim_factory, tmp_path):
    """R-545: nothing is logged while the question is open; the next host asks again, and one key compacts and sends."""

    def talk(received):
        head = str(received.json["messages"][0]["content"])[:3000]
        return reply(nine_sections("The stack.") if "nine headings" in head else "Some words about it. " * 160)

    managed = {"compaction": {"trigger": 5000, "min_token_savings": 100}}
    options = {"interactions": {"chat": {"opts": {"context_management": managed}}}}
    asked = "return #require('codecompanion.chat').current().approvals == 1"
    with ChatServerThread(key=KEY, default=talk) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options, opts={"context_window": 10_000})
        while not changes(chat):
            chat.say("tell me more")
        chat.nvim.command("CodeCompanionUndo")
        chat.nvim.wait_screen("compaction paused")
        while chat.nvim.lua("return require('codecompanion.chat').current().meter.ratio") < 0.65:
            chat.say("tell me more")
        question = "does it fit?" + "\nsome words of it" * 800
        draft = "require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), ...)"
        chat.nvim.lua(draft, question)
        chat.nvim.feed("<CR>")
        chat.nvim.wait_lua(asked)
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_for(lambda: chat.draft() == question, "the message back in the input")
        assert question not in [message.text for message in messages(chat)]
        chat.nvim.feed("<CR>")
        chat.nvim.wait_lua(asked)
        chat.nvim.command("CodeCompanionChat Toggle")
        before = chat.finished()
        chat.nvim.command("CodeCompanion approval")
        chat.nvim.feed("g2")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the answer")
        assert [message.text for message in originals(chat)].count(question) == 1
        assert messages(chat)[-1].text.startswith("Some words")
        assert server.refusals == []
