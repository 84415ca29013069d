"""The input region: its text is what is sent, and nothing may lose it (lessons 16, 32, 36, 37; R-547)."""

from __future__ import annotations

import pytest

from chat_driver import ChatDriver
from codecompanion.wire import events

HEADINGS = (
    "## Me\nnot a header\n\n# Title\n```lua\n-- ## CodeCompanion\nlocal x = 1\n```\n\n## CodeCompanion (openai)\nend"
)


def test_text_with_headings_and_fences_is_sent_complete(chat: ChatDriver) -> None:
    """R-547, lesson 32: role borders are extmarks, so headings in a message mean nothing."""
    chat.submit(HEADINGS)
    assert chat.sent("submit")[0]["text"] == HEADINGS
    assert chat.input() == ""


def test_typed_text_is_sent_with_the_key_and_the_input_cleared(chat: ChatDriver) -> None:
    """As a user does: type, leave insert mode, <CR>."""
    chat.nvim.feed("iWhy is it slow?<CR>  second line<Esc><CR>")
    chat.nvim.wait_for(lambda: chat.sent("submit"), "submit")
    assert chat.sent("submit")[0]["text"] == "Why is it slow?\n  second line"
    assert chat.sent("submit")[0]["submit_id"] == 1
    screen = chat.nvim.wait_screen(r"sending…")
    assert "Why is it slow?" in screen
    assert chat.input() == ""


def test_insert_mode_sends_with_ctrl_s(chat: ChatDriver) -> None:
    """<C-s> in insert mode sends the message and leaves the cursor in the new input."""
    chat.nvim.feed("ihello<C-s>next")
    chat.nvim.wait_for(lambda: chat.sent("submit") and chat.input() == "next", "the new draft")
    assert chat.sent("submit")[0]["text"] == "hello"


def test_a_sent_message_becomes_a_turn_with_the_reply_below(chat: ChatDriver) -> None:
    """`sending…` is replaced by the token count once the message is stored."""
    chat.accept("question", tokens=2100)
    chat.reply("answer")
    assert chat.text() == "\n".join(
        ["## Me", "question", "", "## CodeCompanion (openai · gpt-4o)", "answer", "", "## Me", ""]
    )
    assert "sending" not in chat.nvim.screen()
    assert "(2.1k tokens)" in chat.nvim.screen()


def test_after_a_failed_turn_an_added_line_is_in_the_next_request(chat: ChatDriver) -> None:
    """Lesson 37: the text in the input region is always the text that is sent."""
    chat.accept("first")
    chat.push(events.TurnFinished(reason="failed", error="openai: rate limited"))
    chat.nvim.feed("Gianother line<Esc><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("submit")) == 2, "second submit")
    assert chat.sent("submit")[1]["text"] == "another line"


def test_a_queued_message_is_marked_and_sent_once(chat: ChatDriver) -> None:
    """Lesson 16: a message submitted while the chat is busy waits below the running reply."""
    chat.accept("one")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="work"))
    submit_id = chat.submit("two")
    chat.push(events.Queued(submit_id=submit_id))
    chat.nvim.wait_screen(r"## Me +queued")
    chat.push(events.Text(text="ing"), events.ReplyFinished(message_id="r", stop="stop"))
    chat.push(events.MessageSent(submit_id=submit_id, message_id="m2", text="two", cycle=2))
    chat.reply("done")
    assert chat.text().split("\n")[4:] == [
        "working",
        "",
        "## Me",
        "two",
        "",
        "## CodeCompanion (openai · gpt-4o)",
        "done",
        "",
        "## Me",
        "",
    ]
    assert "queued" not in chat.nvim.screen()
    assert len(chat.sent("submit")) == 2


def test_a_failed_submit_returns_before_newly_typed_text(chat: ChatDriver) -> None:
    """Nothing is lost and nothing is sent twice."""
    submit_id = chat.submit("lost?")
    chat.nvim.feed("Gi and more<Esc>")
    chat.push(events.SubmitFailed(submit_id=submit_id, text="lost?", error="The disk is full."))
    assert chat.input() == "lost?\n\n and more"
    assert chat.text().count("lost?") == 1
    assert "✗ The disk is full." in chat.nvim.screen()


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ("ihello you<C-s>", (0, 9)),
        ("ihello you<Left><Left><Left><C-s>", (0, 6)),
        ("ione<CR>two<Up><Left><C-s>", (0, 2)),
        ("ihello you<Esc>b<CR>", (0, 6)),
    ],
)
def test_the_cursor_keeps_its_place_when_a_message_returns(chat: ChatDriver, keys: str, place: tuple) -> None:
    """The keys typed next continue the text at the cursor, not before it."""
    chat.nvim.feed(keys)
    sent = chat.nvim.wait_for(lambda: chat.sent("submit"), "submit")[0]
    chat.push(events.SubmitFailed(submit_id=sent["submit_id"], text=sent["text"], error="No such group."))
    assert chat.input() == sent["text"]
    assert cursor_in_input(chat) == place


def test_another_message_that_returns_puts_the_cursor_at_its_end(chat: ChatDriver) -> None:
    """With two messages involved, the cursor position in one of them is meaningless."""
    first = chat.submit("first")
    chat.submit("second")
    chat.nvim.feed("i")
    chat.push(events.SubmitFailed(submit_id=first, text="first", error="No such group."))
    assert chat.input() == "first"
    assert cursor_in_input(chat) == (0, 5)


def test_the_cursor_stays_where_the_user_reads(chat: ChatDriver) -> None:
    """A returned message does not move a cursor in the messages above."""
    chat.accept("question")
    chat.reply("answer")
    number = chat.submit("again")
    chat.nvim.feed("<Esc>gg")
    chat.push(events.SubmitFailed(submit_id=number, text="again", error="No such group."))
    assert chat.nvim.request("nvim_win_get_cursor", 0)[0] == 1


def cursor_in_input(chat: ChatDriver) -> tuple[int, int]:
    """Return the cursor position as a row relative to the first input row and a byte column."""
    chat.nvim.settle()
    row, col = chat.nvim.lua(
        """local chat = require('codecompanion.chat').last_chat()
           local cursor = vim.api.nvim_win_get_cursor(0)
           return { cursor[1] - 1 - require('codecompanion.chat.buffer.anchors').position(chat, 'input'), cursor[2] }"""
    )
    return row, col


def test_typing_during_a_reply_stays_in_the_input(chat: ChatDriver) -> None:
    """Lesson 16: the buffer stays editable; generated text is inserted above the input."""
    chat.accept("go")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"))
    chat.nvim.feed("Gi")
    for number in range(20):
        chat.push(events.Text(text=f"line {number}\n"))
        chat.nvim.feed(f"w{number} ")
    chat.nvim.feed("<Esc>")
    chat.nvim.settle()
    assert chat.input() == "".join(f"w{number} " for number in range(20))
    assert [line for line in chat.text().split("\n") if line.startswith("line")] == [f"line {n}" for n in range(20)]


def test_undo_restores_the_draft_and_never_removes_machine_text(chat_everywhere: ChatDriver) -> None:
    """`u` steps through the user's own edits, even when the plugin has written text between them."""
    chat = chat_everywhere
    chat.accept("go")
    chat.nvim.feed("Gione<Esc>")
    chat.nvim.settle()
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"), events.Text(text="machine "))
    chat.nvim.feed("Ga two<Esc>")
    chat.nvim.settle()
    chat.push(events.Text(text="text"))
    assert chat.input() == "one two"
    chat.nvim.feed("u")
    chat.nvim.settle()
    assert chat.input() == "one"
    chat.nvim.feed("u")
    chat.nvim.settle()
    assert chat.input() == ""
    chat.nvim.feed("uuuu")
    chat.nvim.settle()
    assert "machine text" in chat.text()
    chat.nvim.feed("9<C-r>")
    chat.nvim.settle()
    assert chat.input() == "one two"


def test_undo_does_not_restore_a_sent_message(chat: ChatDriver) -> None:
    """Otherwise it could be sent twice; a message that could not be sent returns on its own."""
    chat.accept("sent once")
    chat.reply("ok")
    chat.nvim.feed("Gu")
    chat.nvim.wait_screen("Nothing to undo in the input")
    assert chat.input() == ""
    chat.nvim.feed("Ginext<Esc>")
    chat.nvim.settle()
    chat.nvim.feed("uu")
    chat.nvim.settle()
    assert chat.input() == ""
    number = chat.submit("not stored")
    chat.push(events.SubmitFailed(submit_id=number, text="not stored", error="The disk is full."))
    assert chat.input() == "not stored"


def test_deleting_everything_leaves_a_working_input(chat_everywhere: ChatDriver) -> None:
    """`:%d` and `ggdG` do not remove sent messages: the chat is redrawn, with the input."""
    chat = chat_everywhere
    chat.accept("question")
    chat.reply("answer")
    chat.nvim.feed("ggdG")
    chat.nvim.settle()
    assert "answer" in chat.text()
    chat.nvim.feed("G:%d<CR>")
    chat.nvim.wait_for(lambda: chat.sent("redraw_chat"), "redraw_chat")
    chat.push(events.Redrawn(), events.Restored(entries=(), first=True, last=True))
    assert chat.text() == "## Me\n"
    chat.nvim.feed("Gistill here<Esc><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("submit")) == 2, "submit")
    assert chat.sent("submit")[1]["text"] == "still here"


def test_edits_across_the_header_keep_the_draft(chat: ChatDriver) -> None:
    """After `dd` in the input, or `dk`, `J` or typing on the header, the region is rebuilt and its text kept."""
    chat.accept("question")
    chat.reply("answer")
    chat.nvim.feed("Giabc<Esc>dd")
    chat.nvim.wait_for(lambda: chat.text().endswith("\n\n## Me\n"), "an empty input")
    chat.nvim.feed("Giabc<Esc>kJ")
    chat.nvim.wait_for(
        lambda: chat.text().endswith("\n\n## Me\nabc") or chat.text().endswith("## Me\n abc"), "J undone"
    )
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), 'draft')")
    chat.nvim.feed("GkA typed<Esc>")
    chat.nvim.wait_for(lambda: chat.text().endswith("\n\n## Me\ndraft typed"), "typed text in the draft")
    chat.nvim.feed("Gkkddd")
    chat.nvim.settle()
    assert chat.text().endswith("\n\n## Me\ndraft typed")


def test_deleting_from_a_reply_into_the_draft_removes_neither(chat: ChatDriver) -> None:
    """Sent messages are redrawn, the draft stays as it was."""
    chat.accept("question")
    chat.reply("keep this drop this")
    draft = "require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), ...)"
    chat.nvim.lua(draft, "gone stays")
    chat.nvim.feed("gg/drop<CR>v/stays<CR>hd")
    chat.nvim.wait_for(lambda: chat.sent("redraw_chat"), "redraw_chat")
    assert chat.input() == "gone stays"


def test_the_draft_is_saved_during_typing(chat: ChatDriver) -> None:
    """Saving is debounced, but immediate when insert mode ends."""
    chat.nvim.feed("ihalf a thought")
    chat.nvim.wait_for(lambda: {"text": "half a thought", "chat": chat.id} in chat.sent("save_draft"), "a saved draft")
    chat.nvim.feed(" more<Esc>")
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "half a thought more", "the whole draft")


def test_a_stored_draft_is_back_in_the_input(chat: ChatDriver) -> None:
    """After an editor crash, the draft arrives with `chat_opened`."""
    stored = {"id": "stored", "title": "", "updated": 1700000000, "messages": 1, "cwd": "/", "owned": False}
    chat.answer("list_sessions", [stored])
    chat.nvim.lua("require('codecompanion.chat').resume('stored')")
    chat.id = "stored"
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "stored"
    chat.opened(resumed=True, draft="half a thought\n## with heading")
    assert chat.input() == "half a thought\n## with heading"


def test_the_draft_survives_toggling(chat: ChatDriver) -> None:
    """After hiding and showing the chat, its text and the cursor are where they were."""
    chat.nvim.feed("idraft<Esc>")
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    chat.nvim.settle()
    assert "draft" not in chat.nvim.screen()
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    chat.nvim.wait_screen("draft")
    assert chat.input() == "draft"


def test_an_empty_input_is_not_sent(chat: ChatDriver) -> None:
    """Blank lines are not a message."""
    chat.nvim.feed("i<CR><CR>  <Esc><CR>")
    chat.nvim.settle()
    assert chat.sent("submit") == []


def test_a_selection_joins_the_draft_with_its_location_and_a_safe_fence(chat: ChatDriver) -> None:
    """:'<,'>CodeCompanionChat."""
    chat.nvim.lua(
        "require('codecompanion.chat').add_selection({'local x = 1', '```'}, {3, 4}, vim.fn.getcwd() .. '/lua/foo.lua')"
    )
    assert chat.input() == "lua/foo.lua:3-4\n````lua\nlocal x = 1\n```\n````\n"


def test_text_moved_into_the_transcript_is_moved_back(chat: ChatDriver) -> None:
    """The draft is unchanged after `:m0` moves one of its lines to the top, and after `:g` damages it before `:bd`."""
    chat.accept("question")
    chat.reply("answer")
    chat.nvim.feed("Gione x<CR>two<Esc>")
    chat.nvim.settle()
    chat.nvim.command("$m0")
    chat.nvim.wait_for(lambda: chat.sent("redraw_chat"), "redraw_chat")
    assert chat.input() == "one x\ntwo"
    assert not chat.text().startswith("two")
    chat.nvim.wait_screen("The transcript is read-only, so it was restored. Your draft is kept.")
    draw_again(chat)
    buffer = chat.nvim.lua("return vim.api.nvim_get_current_buf()")
    chat.nvim.command("g/answer\\|x/d | enew | bdelete #")
    chat.nvim.command(f"buffer {buffer}")
    draw_again(chat)
    assert chat.input() == "one x\ntwo"


def test_deleting_everything_detaches_nothing_with_a_message(chat: ChatDriver) -> None:
    """`dG` from the context block also covers the transcript, and attachments stay attached."""
    item = events.ContextItem(id="i1", kind="file", label="a.txt", tokens=3)
    chat.push(events.ContextItems(items=(item,)))
    chat.accept("question")
    chat.reply("answer")
    chat.nvim.feed("ggdG")
    chat.nvim.wait_screen("so it was restored")
    assert not chat.nvim.blocked()
    assert chat.sent("detach") == []
    assert len(chat.sent("redraw_chat")) == 1


def draw_again(chat: ChatDriver) -> None:
    """Make the host redraw the question and answer."""
    chat.push(
        events.Redrawn(),
        events.Restored(
            entries=(
                events.Entry(kind="user", text="question", message_id="m1"),
                events.Entry(kind="reply", text="answer", message_id="r"),
            ),
            first=True,
            last=True,
        ),
    )


def test_typing_after_arrow_keys_goes_to_the_input(chat: ChatDriver) -> None:
    """Typed or pasted text is kept and none of it acts as a key; each key used to cause an error with a prompt."""
    chat.push(events.ContextItems(items=(events.ContextItem(id="i1", kind="rules", label="AGENTS.md"),)))
    chat.accept("a question")
    chat.reply("an answer\nof two lines")
    before = chat.text()
    chat.nvim.feed("Giab<Up><Up><Up>")
    chat.nvim.settle()
    chat.nvim.feed("hello u dd<CR>more<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == "abhello u dd\nmore", "what was typed")
    chat.nvim.feed("A<C-Home><Down>")
    chat.nvim.settle()
    chat.nvim.feed("!<Up><Up><Up>")
    chat.nvim.settle()
    chat.nvim.request("nvim_paste", "pas\nted", True, -1)
    chat.nvim.feed("<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == "abhello u dd\nmore!pas\nted", "what was pasted")
    chat.nvim.command("normal gg6Gi dd u")
    assert chat.input() == "abhello u dd\nmore!pas\nted dd u"
    assert chat.text().startswith(before)
    assert chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { 6, 0 }) return true")
    chat.nvim.settle()
    assert chat.nvim.lua("return vim.bo.modifiable") is False
    assert chat.sent("redraw_chat") == []
    assert chat.nvim.messages() == ""
    assert not chat.nvim.blocked()


@pytest.mark.parametrize(
    ("key", "left"),
    [
        ("<CR>", "one two\n."),
        ("<C-j>", "one two\n."),
        ("<BS>", "one tw."),
        ("<C-h>", "one tw."),
        ("<C-w>", "one ."),
        ("<C-u>", "."),
        ("<Del>", "one two."),
    ],
)
def test_special_keys_work_in_the_input_too(chat: ChatDriver, key: str, left: str) -> None:
    """In insert mode in the transcript `<CR>` and `<BS>` used to be lost, and the transcript had to be restored."""
    chat.accept("a question")
    chat.reply("an answer\nof two lines")
    before = chat.text()
    chat.nvim.feed("Gione two<Up><Up><Up>")
    chat.nvim.settle()
    chat.nvim.feed(key)
    chat.nvim.settle()
    chat.nvim.feed(".<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == left, f"{left!r}, not {chat.input()!r}")
    assert chat.text().startswith(before)
    chat.nvim.settle()
    assert chat.sent("redraw_chat") == []
    assert chat.nvim.messages() == ""


def test_a_users_mapping_of_return_works_in_the_input(chat: ChatDriver) -> None:
    """Completion and autopairs plugins map `<CR>`; an insert-mode send key also works from the transcript."""
    chat.nvim.lua("vim.keymap.set('i', '<CR>', '<CR>- ')")
    chat.accept("a question")
    chat.nvim.feed("Gione<Up><Up><Up>")
    chat.nvim.settle()
    chat.nvim.feed("<CR>two<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == "one\n- two", "the map")
    chat.nvim.feed("i<Up><Up><Up>")
    chat.nvim.settle()
    chat.nvim.feed("<C-s>")
    chat.nvim.wait_for(lambda: len(chat.sent("submit")) == 2, "the message")
    assert chat.sent("submit")[1]["text"] == "one\n- two"


@pytest.mark.parametrize("key", ["<BS>", "<C-u>"])
def test_fast_typing_after_a_deletion_beyond_the_input_keeps_its_order(chat: ChatDriver, key: str) -> None:
    """The deletion joins the input to its header, where the next characters arrive before the header is restored."""
    chat.nvim.feed("i")
    chat.nvim.settle()
    chat.nvim.feed(f"{key}hel")
    chat.nvim.settle()
    chat.nvim.feed("lo")
    chat.nvim.wait_for(lambda: len(chat.input()) == len("hello"), "all characters")
    assert chat.input() == "hello"
