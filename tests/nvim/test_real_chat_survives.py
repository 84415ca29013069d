"""A chat survives Vim's operations on its buffer: it is drawn once from the log, including the draft."""

from __future__ import annotations

import signal

import pytest

from harness import find_nvim, other_nvims
from real_chat import COUNT_TURNS, KEY, RealChat, init_lua, start_chat
from tests.providers.chat.answers import reply
from tests.providers.chat.thread import ChatServerThread


@pytest.fixture(params=[find_nvim() or "nvim", *other_nvims()])
def chat(request, nvim_factory, tmp_path):
    def answer(http):
        if http.json["messages"][-1]["content"] == "slowly":
            return reply("slow " * 60, chunk_chars=5, delay_s=0.02)
        return reply("an answer")

    with ChatServerThread(key=KEY, default=answer) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 40), binary=request.param)
        chat.url = server.url
        yield chat


def drawn(chat: RealChat) -> list[str]:
    """Return the lines of the buffer once everything has been drawn."""
    chat.nvim.wait_lua(
        """local c = require('codecompanion.chat').current()
           return c and not c.awaiting and not c.queue.scheduled and not c.restore.running"""
    )
    return chat.nvim.lines()


def assert_unchanged(chat: RealChat, before: list[str]) -> None:
    """Wait until the buffer is as before."""
    chat.nvim.wait_for(lambda: drawn(chat) == before, f"{before}, not {drawn(chat)}")


def said_something(chat: RealChat) -> list[str]:
    chat.say("first question")
    chat.say("second question")
    chat.nvim.feed("Gia draft<CR>of two lines<Esc>")
    chat.nvim.settle()
    return drawn(chat)


@pytest.mark.parametrize("command", ["edit", "edit!", "windo edit"])
def test_rereading_the_buffer_draws_the_same_chat(chat, command):
    """The text, draft, filetype, keys and options are unchanged, and the chat continues."""
    before = said_something(chat)
    chat.nvim.command(command)
    assert_unchanged(chat, before)
    assert chat.draft() == "a draft\nof two lines"
    assert chat.nvim.lua("return { vim.bo.buftype, vim.bo.filetype, vim.bo.modified, vim.bo.buflisted }") == [
        "acwrite",
        "codecompanion",
        False,
        False,
    ]
    chat.nvim.feed("<CR>")
    chat.nvim.wait_for(lambda: len(chat.view().messages) == 6, "the third answer")
    assert chat.view().messages[4].text == "a draft\nof two lines"
    assert chat.nvim.messages().strip() == ""


@pytest.mark.parametrize("back", ["buffer {}", "sbuffer {}", "CodeCompanionChat Toggle", "CodeCompanionChat"])
def test_an_unloaded_chat_is_restored(chat, back):
    """After `:bd`, a buffer number or a command restores it; a used chat is not reused for a new one."""
    before = said_something(chat)
    number, name = chat.nvim.lua("return { vim.api.nvim_get_current_buf(), vim.api.nvim_buf_get_name(0) }")
    chat.nvim.command("bdelete")
    assert chat.nvim.lua("return vim.api.nvim_buf_is_loaded(...)", number) is False
    chat.nvim.command(back.format(number))
    if back == "CodeCompanionChat":
        chat.nvim.wait_lua("return vim.api.nvim_buf_get_name(0) ~= ...", name)
        chat.nvim.command(f"buffer {number}")
    assert_unchanged(chat, before)
    assert chat.nvim.messages().strip() == ""


def test_a_wiped_chat_is_resumed_with_its_draft(chat):
    before, chat_id = said_something(chat), chat.id
    chat.nvim.command("bwipeout")
    chat.nvim.command(f"CodeCompanionChat Resume {chat_id}")
    chat.wait_ready()
    assert_unchanged(chat, before)


def test_a_reply_continues_while_the_buffer_is_unloaded(chat):
    """The host runs the turn: when the buffer is shown again, it has the text received so far, and the rest follows."""
    chat.send("slowly")
    chat.nvim.wait_screen("slow slow")
    chat.nvim.command("bdelete")
    chat.nvim.command("CodeCompanionChat Toggle")
    chat.nvim.wait_screen("slow slow")
    chat.nvim.command("edit")
    chat.nvim.wait_for(lambda: chat.finished() == 1, "the end of the turn")
    text = chat.text()
    assert text.count("slow ") + text.count("slow\n") + text.count("slowly") == 61
    assert text.count("## CodeCompanion") == 1
    assert [m.role for m in chat.view().messages] == ["user", "assistant"]
    before = drawn(chat)
    chat.nvim.command("edit")
    assert_unchanged(chat, before)


@pytest.mark.parametrize("end", ["quit", "SIGHUP", "SIGTERM"])
def test_a_session_file_restores_the_chat(chat, nvim_factory, tmp_path, end):
    """`:mksession` and `nvim -S` work before any plugin command (formerly E95), even after the terminal was closed.

    In that case Neovim closes its buffers before it announces its exit, and a draft read from them is empty.
    """
    before, chat_id = said_something(chat), chat.id
    session = tmp_path / "Session.vim"
    chat.nvim.command(f"mksession! {session}")
    if end == "quit":
        chat.nvim.__exit__()
    else:
        chat.nvim.end(getattr(signal, end))
    init = init_lua(chat.url) + COUNT_TURNS
    again = nvim_factory(
        root=tmp_path, init=init, env={"LOOP_KEY": KEY}, args=["-S", str(session)], size=(100, 40),
        binary=chat.nvim.binary,
    )  # fmt: skip
    back = RealChat(again, tmp_path)
    back.wait_ready()
    assert back.id == chat_id
    assert_unchanged(back, before)
    assert "E95" not in again.messages()
    assert "Error" not in again.messages()


def test_reloading_the_modules_keeps_the_chat(chat):
    """`:Lazy reload` calls `deactivate` and unloads the modules."""
    before = said_something(chat)
    chat.nvim.lua(
        """require('codecompanion').deactivate()
           for name in pairs(package.loaded) do
             if name == 'codecompanion' or vim.startswith(name, 'codecompanion.') then package.loaded[name] = nil end
           end
           vim.g.loaded_codecompanion = nil
           vim.cmd.source(vim.api.nvim_get_runtime_file('plugin/codecompanion.lua', false)[1])
        """
        + init_lua(chat.url).split("\n")[2]
    )
    assert_unchanged(chat, before)


def test_nothing_prevents_leaving_neovim(chat):
    """With unsent text, `:qa` quits immediately, `:w` works, and the draft reappears the next time."""
    chat.nvim.feed("Gia draft<Esc>:w<CR>")
    chat.nvim.settle()
    assert chat.nvim.lua("return vim.bo.modified") is False
    assert chat.nvim.messages().strip() == ""
    chat.nvim.lua("vim.cmd('normal! Amore')\nassert(pcall(vim.cmd, 'bdelete'))")


def test_a_second_command_reuses_an_unused_chat(chat):
    first = chat.id
    chat.nvim.command("CodeCompanionChat")
    assert chat.id == first
    assert chat.nvim.lua("return #require('codecompanion.chat').list()") == 1


COMMANDS = (
    "%s/./X/e",
    "%d",
    "1,$d",
    "1,$sort",
    "1m$",
    "g/answer/d",
    "g/./normal! x",
    "normal! ggdG",
    "normal! ggVGd",
    "normal! kkkdd",
    "normal! ggxggJGkkD",
    "normal! gg/an answer\rvGd",
    "2,3>",
    "silent! undo",
)


def test_sent_messages_cannot_be_changed(chat):
    """After any change the transcript is as logged, and the draft as the user left it."""
    before = said_something(chat)
    for command in COMMANDS:
        for start in ("G", "gg"):
            chat.nvim.feed(f"<Esc>{start}")
            chat.nvim.settle()
            chat.nvim.lua("pcall(vim.cmd, ...)", command)
            chat.nvim.wait_lua("return not require('codecompanion.chat').current().damaged")
            chat.nvim.wait_for(
                lambda: drawn(chat)[:-2] == before[:-2], f"the transcript after {command} from {start}: {drawn(chat)}"
            )
            chat.nvim.wait_for(lambda: chat.state() == "idle", "an idle chat")
            chat.nvim.lua(
                "require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').current(), ...)",
                "a draft\nof two lines",
            )
    assert_unchanged(chat, before)


def test_typing_in_the_transcript_goes_to_the_input(chat):
    """On a user message, a hint names the edit key; keys without a function in the transcript are reported."""
    chat.say("first question")
    for keys, text in (("ione", "one"), ("Atwo", "onetwo"), ("othree", "onetwothree")):
        chat.nvim.feed("gg/an answer<CR>" + keys + "<Esc>")
        chat.nvim.wait_for(lambda text=text: chat.draft() == text, f"{text}, not {chat.draft()}")
    chat.nvim.feed("gg/an answer<CR>x")
    chat.nvim.wait_screen("The transcript is read-only")
    chat.nvim.feed("r")
    chat.nvim.wait_screen("Nothing to restore here")
    chat.nvim.feed("u")
    chat.nvim.wait_screen("Nothing to undo here")
    chat.nvim.feed("ggx")
    chat.nvim.wait_screen("edits and resends your message")
    assert "an answer" in chat.text()
    chat.nvim.feed("G0dwu.")
    chat.nvim.settle()
    assert "first question" in chat.text()


def test_operators_in_the_transcript_include_their_motion(chat):
    """`dap` used to read `a` and `p` as separate keys, which caused a long error if the register was empty."""
    chat.say("first question")
    before = chat.text()
    chat.nvim.lua("vim.fn.setreg('\"', '')")
    for start in ("gg", "gg/an answer<CR>"):
        for keys in ("dap", "dd", "d2j", "p<C-\\><C-n>"):
            chat.nvim.feed(start + keys)
            chat.nvim.settle()
            assert chat.text() == before, keys
            assert chat.draft() == ""
    assert chat.nvim.lua("return vim.api.nvim_get_mode().mode") == "n"
    chat.nvim.feed("gg/an answer<CR>ciwone<Esc>")
    chat.nvim.wait_for(lambda: chat.draft() == "one", f"one, not {chat.draft()}")
    chat.nvim.feed("gg/an answer<CR>cctwo<Esc>")
    chat.nvim.wait_for(lambda: chat.draft() == "onetwo", f"onetwo, not {chat.draft()}")
    # on a user message, too, and over a selection: the next keys typed are text
    typed = "onetwo"
    for where, keys in (("first", "cw"), ("first", "C"), ("first", "o"), ("first", "veec"), ("an answer", "VR")):
        chat.nvim.feed(f"gg/{where}<CR>")
        chat.nvim.settle()
        chat.nvim.feed(keys + "dd:q")
        chat.nvim.wait_screen(f"{typed}dd:q")
        why = "g<CR> edits and resends your message" if where == "first" else "the transcript is read-only"
        chat.nvim.wait_screen("## Me you type here · " + why)
        chat.nvim.feed("<Esc>")
        typed += "dd:q"
        chat.nvim.wait_for(lambda typed=typed: chat.draft() == typed, f"{typed}, not {chat.draft()}")


def test_typing_on_the_header_of_the_input_goes_to_the_input(chat):
    """On the header, `O` used to open a line above it, which was never sent and disappeared with the next redraw."""
    chat.say("first question")
    for keys, text in (("Oone", "one"), ("cwtwo", "onetwo"), ("othree", "onetwothree"), ("ifour", "onetwothreefour")):
        chat.nvim.feed("G?^## Me<CR>" + keys + "<Esc>")
        chat.nvim.wait_for(lambda text=text: chat.draft() == text, f"{text}, not {chat.draft()}")


def test_a_context_line_and_its_attachment_stay_in_step(chat):
    """`dd` detaches the file and `u` attaches it again."""
    (chat.root / "work" / "notes.txt").write_text("notes\n")
    chat.send("/file notes.txt")
    chat.nvim.wait_screen("<file>notes.txt</file>")
    chat.nvim.feed("ggjdd")
    chat.nvim.wait_for(lambda: not chat.view().messages, "the detaching")
    chat.nvim.wait_lua("return require('codecompanion.chat').current().undo_kind == 'detached'")
    chat.say("a question")
    chat.nvim.command("CodeCompanionUndo")
    chat.nvim.wait_screen("<file>notes.txt</file>")
    assert [m.path for m in chat.view().messages if m.tag] == ["notes.txt"]
    chat.nvim.feed("ggjdd")
    chat.nvim.wait_for(lambda: not [m for m in chat.view().messages if m.tag], "the detaching")
