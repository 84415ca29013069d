"""The life cycle of a chat: opening, layouts, restoring and crashes (lessons 33, 35, 36; R-544)."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from chat_driver import INIT, ChatDriver, make_chat
from codecompanion.wire import events
from harness import Nvim


def entries(count: int) -> list[events.Entry]:
    """Return the entries of a stored chat with `count` turns."""
    found = []
    for number in range(count):
        found.append(events.Entry(kind="user", text=f"question {number}", message_id=f"u{number}"))
        found.append(
            events.Entry(
                kind="tool",
                call_id=f"c{number}",
                message_id=f"t{number}",
                title=f"tool {number}",
                summary="3 lines",
                text="some\noutput",
                status="ok",
                adapter="openai",
                model="gpt-4o",
            )
        )
        reply = events.Entry(kind="reply", text=f"answer {number}\n\nmore", adapter="openai", model="gpt-4o")
        found.append(msgspec.structs.replace(reply, message_id=f"r{number}"))
    return found


def test_the_chat_is_painted_before_the_host_answers(nvim_factory: Callable[..., Nvim]) -> None:
    """Header, hint and intro are drawn immediately; the host gets its request afterwards."""
    chat = ChatDriver(nvim_factory(init=INIT))
    chat.setup({"display": {"chat": {"window": {"layout": "buffer"}}}})
    before = chat.nvim.lua(
        """require('codecompanion.chat').open()
           return vim.tbl_filter(function(name)
             return package.loaded['codecompanion.' .. name] ~= nil
           end, { 'chat.wire.events', 'chat.draw.blocks', 'chat.question.approval', 'chat.ui.actions',
                'chat.state.session', 'install' })"""
    )
    assert before == [], "what draws and sends messages is loaded after the first paint"
    chat.open(opened=False)
    screen = chat.nvim.wait_screen(r"<CR> send · g\? help")
    assert screen.startswith("## Me")
    assert "Type / for commands, #{ for context" in screen
    assert screen.count("g?") == 1
    chat.submit("sent before the host is there")
    assert [request for request in ("open_chat", "submit") if chat.sent(request)] == ["open_chat", "submit"]


def test_several_chats_are_open_at_once(chat: ChatDriver) -> None:
    """Events reach the chat they belong to; `]b` and `[b` switch between chats."""
    first = chat.id
    chat.nvim.feed("]b")
    chat.nvim.wait_screen("No other chat is open")
    chat.accept("in the first")
    chat.open()
    chat.push(
        events.ReplyStarted(chat=first, adapter="openai", model="gpt-4o"), events.Text(chat=first, text="for one")
    )
    assert "for one" not in chat.text()
    chat.nvim.wait_for(lambda: "in the first" not in chat.nvim.screen(), "the second chat")
    chat.nvim.feed("]b")
    chat.nvim.wait_screen("for one")
    chat.nvim.feed("[b")
    chat.nvim.wait_for(lambda: "for one" not in chat.nvim.screen(), "the second chat again")


@pytest.mark.parametrize("layout", ["vertical", "horizontal", "float", "tab", "buffer"])
def test_every_layout_opens_and_hides(nvim_factory: Callable[..., Nvim], layout: str) -> None:
    """Hiding restores the windows; the buffer stays."""
    chat = make_chat(nvim_factory, options={"display": {"chat": {"window": {"layout": layout}}}})
    chat.nvim.wait_screen("## Me")
    assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    chat.nvim.settle()
    assert "## Me" not in chat.nvim.screen()
    assert chat.nvim.lua("return #vim.api.nvim_list_wins()") == 1
    chat.nvim.lua("require('codecompanion.chat').toggle()")
    chat.nvim.wait_screen("## Me")


def test_closing_a_chat_leaves_everything_else_working(chat: ChatDriver) -> None:
    """The key closes in normal mode and only leaves insert mode; the host keeps the history."""
    chat.record_autocmds()
    first = chat.id
    chat.open()
    chat.nvim.feed("idraft")
    chat.nvim.press_ctrl_c(lambda: chat.nvim.request("nvim_get_mode")["mode"] == "n")
    chat.nvim.press_ctrl_c(lambda: chat.sent("close_chat"))
    assert chat.sent("close_chat")[0]["chat"] == chat.id
    assert chat.sent("save_draft")[-1]["text"] == "draft"
    assert ("CodeCompanionChatClosed") in [name for name, _ in chat.fired()]
    chat.push(events.Text(chat=chat.id, text="too late"))
    assert chat.nvim.lua("return require('codecompanion.chat').last_chat().id") == first
    assert chat.nvim.messages() == ""


def test_a_wiped_buffer_closes_its_chat(chat: ChatDriver) -> None:
    """:bwipeout also closes a chat, even while text arrives."""
    chat.accept("go")
    chat.push_soon(events.Text(text="text " * 100))
    chat.nvim.command("bwipeout!")
    chat.nvim.wait_for(lambda: chat.sent("close_chat"), "close_chat")
    chat.nvim.settle()
    assert chat.nvim.messages() == ""


def test_a_stored_chat_is_drawn_newest_first_without_moving_the_view(chat_everywhere: ChatDriver) -> None:
    """The first batch fills the screen; the rest is drawn above it without scrolling."""
    chat = chat_everywhere
    stored = entries(120)
    chat.push(events.Restored(entries=tuple(stored[-30:]), first=True))
    chat.nvim.settle()
    before = chat.nvim.screen()
    assert "answer 119" in before
    for start in range(len(stored) - 60, -30, -30):
        chat.push_soon(events.Restored(entries=tuple(stored[start : start + 30]), last=start <= 0))
    chat.drain()
    chat.nvim.settle()
    lines_above = chat.nvim.screen().split("\n")[:-2]
    assert lines_above == before.split("\n")[:-2]
    questions = [line for line in chat.text().split("\n") if line.startswith("question")]
    assert questions == [f"question {number}" for number in range(120)]
    assert chat.text().count("## CodeCompanion") == 120


def test_the_view_of_a_restored_chat_does_not_move(chat: ChatDriver) -> None:
    """Older batches are drawn above the cursor; the visible text stays in place."""
    stored = entries(200)
    chat.push(events.Restored(entries=tuple(stored[-60:]), first=True))
    chat.nvim.feed("gg30Gzt")
    chat.nvim.settle()
    before = chat.nvim.screen().split("\n")[:20]
    chat.push(events.Restored(entries=tuple(stored[:-60]), last=True))
    chat.nvim.settle()
    assert chat.nvim.screen().split("\n")[:20] == before


def test_a_turn_split_between_two_pieces_has_one_header(chat: ChatDriver) -> None:
    """The temporary header is removed when the question arrives."""
    stored = entries(2)
    chat.push(events.Restored(entries=tuple(stored[4:]), first=True))
    assert chat.text().count("## CodeCompanion") == 1
    chat.push(events.Restored(entries=tuple(stored[:4]), last=True))
    assert chat.text().count("## CodeCompanion") == 2
    assert chat.text().count("question") == 2


def test_an_answer_after_a_redraw_during_an_undo_has_its_header(chat: ChatDriver) -> None:
    """A redraw during a running operation may end inside a turn.

    An undo does not, so the next answer has its own header.
    """
    chat.push(events.State(state="busy", label="undoing"))
    chat.push(events.Redrawn(), events.Restored(entries=tuple(entries(1)), first=True, last=True))
    chat.push(events.State(state="idle"), events.ReplyStarted(adapter="openai", model="gpt-4o"))
    assert chat.text().count("## CodeCompanion") == 2


def test_a_restored_compaction_folds_the_messages_above_it(chat: ChatDriver) -> None:
    """This also works if the summarised turns arrive later."""
    card = events.Entry(
        kind="compacted",
        text="## 1. Intent\nthe summary",
        trigger="manual",
        summariser="offline",
        messages=20,
        cycles=(1, 5),
        tokens_before=9000,
        tokens_after=900,
        duration_ms=20,
    )
    stored = entries(6)
    gone = [msgspec.structs.replace(entry, gone="compacted", number=1) for entry in stored[:15]]
    chat.push(events.Restored(entries=(*gone[12:], card, *stored[15:]), first=True))
    chat.push(events.Restored(entries=tuple(gone[:12]), last=True))
    screen = chat.nvim.wait_screen("▸ your message 1 · 15 messages summarised")
    assert "answer 3" not in screen
    assert "the summary" in screen
    assert "answer 5" in screen
    assert chat.text().count("question") == 6


SLOW_CLOCK = """
local now = vim.uv.hrtime()
vim.uv.hrtime = function() now = now + 20e6 return now end
local resume = coroutine.resume
_G.slices = 0
coroutine.resume = function(...) _G.slices = _G.slices + 1 return resume(...) end
"""


def test_removed_messages_of_a_long_chat_are_folded_in_slices(chat: ChatDriver) -> None:
    """Typing and streaming continue; messages removed during the work are folded too, and restored ones are not."""
    stored = [
        msgspec.structs.replace(entry, text="a line\n" * 150) if entry.kind == "reply" else entry
        for entry in entries(30)
    ]
    chat.push(events.Restored(entries=tuple(stored), first=True, last=True))
    chat.nvim.lua(SLOW_CLOCK)
    ids = [entry.message_id for entry in stored]
    take_out = """local chat, ids = require('codecompanion.chat').last_chat(), ...
                  require('codecompanion.chat.draw.fold_removed_messages').take_out(chat, ids, 'compacted')
                  return chat.refreshing ~= nil"""
    assert chat.nvim.lua(take_out, ids[:30]) is True
    chat.nvim.lua("vim.api.nvim_buf_set_lines(0, -2, -1, false, { 'typed' })")
    assert chat.nvim.lua(take_out, ids[30:60]) is True
    chat.accept("asked meanwhile")
    settled = "return require('codecompanion.chat').last_chat().refreshing == nil"
    chat.nvim.wait_lua(settled)
    assert chat.nvim.lua("return _G.slices") > 4
    assert chat.text().count("▾ 60 messages summarised") == 1
    closed = "return { vim.fn.foldclosed(...), vim.fn.foldclosedend(...) }"
    first = chat.text().split("\n").index("▾ 60 messages summarised") + 1
    after = chat.text().split("\n").index("question 20")
    assert chat.nvim.lua(closed, first) == [first, after - 2]
    chat.nvim.lua(
        """local chat = require('codecompanion.chat').last_chat()
           chat.gone = {}
           require('codecompanion.chat.draw.fold_removed_messages').refresh(chat)"""
    )
    chat.nvim.wait_lua(settled)
    assert "summarised" not in chat.text()
    tools = [number for number, line in enumerate(chat.text().split("\n"), 1) if "▾ tool" in line]
    assert len(tools) == 30
    assert all(chat.nvim.lua(closed, line) == [line, line + 4] for line in tools)
    assert chat.nvim.lua(closed, 1) == [-1, -1]
    chat.nvim.feed("<Esc>")
    chat.nvim.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", tools[3])
    chat.nvim.feed("<Tab>")
    chat.nvim.lua("vim.cmd.edit()")
    # earlier drawings leave no marks: at once where there is text, soon below it
    marks = "return #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_get_namespaces()['codecompanion.chat.items'], "
    assert chat.nvim.lua(marks + "0, { vim.api.nvim_buf_line_count(0), 0 }, {})") == 0
    chat.nvim.wait_lua(marks + "0, -1, {}) == 0")
    chat.push(events.Redrawn(), events.Restored(entries=tuple(stored), first=True, last=True))
    again = [number for number, line in enumerate(chat.text().split("\n"), 1) if "▾ tool" in line]
    assert len(again) == 30
    is_open = [at for at, line in enumerate(again) if chat.nvim.lua(closed, line) == [-1, -1]]
    assert is_open == [3], "what the user opened is open again"


def test_a_message_is_sent_in_one_edit(chat: ChatDriver) -> None:
    """The overhead per edit (setting options, scrolling windows) is most of the cost of a submit."""
    chat.nvim.lua(
        """_G.followed = 0
           local view = require('codecompanion.chat.buffer.scroll')
           local follow = view.follow
           view.follow = function(...) _G.followed = _G.followed + 1 return follow(...) end"""
    )
    chat.nvim.lua("require('codecompanion.chat.wire.draft').set(require('codecompanion.chat').last_chat(), 'hello')")
    chat.nvim.lua(
        "_G.followed = 0 require('codecompanion.chat.ui.submit').send(require('codecompanion.chat').last_chat())"
    )
    assert chat.nvim.lua("return _G.followed") == 1
    assert chat.text() == "## Me\nhello\n\n## Me\n"


def crash(chat: ChatDriver, **more: object) -> None:
    """Let the host die."""
    event = {"type": "host_exit", "code": 9, "text": "The Python process ended (status 9).", **more}
    chat.nvim.lua("require('codecompanion.host').on_events(...)", json.dumps([event]))
    chat.drain()


def test_after_a_crash_of_the_host_received_text_stays(chat: ChatDriver) -> None:
    """Lesson 36: the buffer stays; the next action reopens the chat without redrawing old messages."""
    chat.accept("stored")
    chat.push(
        events.ReplyStarted(adapter="openai", model="gpt-4o"),
        events.Text(text="half"),
        events.ToolStarted(call_id="c", name="t", title="tool c"),
    )
    crash(chat)
    screen = chat.nvim.wait_screen(r"! The Python process ended \(status 9\)\.")
    assert "half  ✗ cut off" in screen
    assert "▸ ⊘ tool c · interrupted" in screen
    assert chat.nvim.messages() == ""
    chat.nvim.feed("Gitail<Esc><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("submit")) == 2, "submit")
    assert chat.sent("open_chat")[-1]["resume"] == chat.id
    chat.opened(resumed=True, draft="an older draft")
    chat.push(events.Restored(entries=tuple(entries(1)), first=True, last=True))
    assert "question 0" not in chat.text()
    assert "an older draft" not in chat.text()


def sent_into_a_crash(chat: ChatDriver) -> str:
    """Send a message, crash the host before it confirms it, and return the message's key."""
    chat.submit("sent or not")
    chat.nvim.feed("Gitail")
    crash(chat)
    text = chat.text()
    assert "## Me\nsent or not\n" in text
    assert chat.input() == "tail"
    assert "! The Python process ended (status 9). Checking whether your message was sent." in text
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "the question to the next host")
    key = chat.sent("submit")[-1]["key"]
    assert chat.sent("open_chat")[-1]["unconfirmed"] == [key]
    return str(key)


def test_an_unstored_message_returns_separately_from_typed_text(chat: ChatDriver) -> None:
    """Lesson 36: it returns only after the next host has checked; the cursor stays on the word being typed."""
    sent_into_a_crash(chat)
    chat.nvim.feed(" more")
    chat.nvim.wait_for(lambda: chat.input() == "tail more", "what is typed")
    chat.opened(resumed=True)
    assert chat.input() == "sent or not\n\ntail more"
    assert "checking whether" not in chat.nvim.screen()
    assert "! Not sent: the Python process had ended. Your message is back in the input." in chat.text()
    chat.nvim.feed(" and more<Esc>")
    chat.nvim.wait_for(lambda: chat.input() == "sent or not\n\ntail more and more", "the rest")
    assert chat.sent("save_draft")[-1]["text"].startswith("sent or not\n\ntail more")


def test_a_stored_message_is_drawn_as_sent_and_cannot_be_sent_again(chat: ChatDriver) -> None:
    """Text typed below it in the meantime is a message of its own."""
    key = sent_into_a_crash(chat)
    chat.nvim.feed("<Esc><CR>")
    chat.nvim.wait_for(lambda: len(chat.sent("submit")) == 2, "the second message")
    assert chat.sent("submit")[-1]["text"] == "tail"
    chat.opened(resumed=True, stored=(events.StoredSubmit(key=key, message_id="m1", text="sent or not"),))
    assert chat.input() == ""
    text = chat.text()
    assert text.count("sent or not") == 1
    assert text.index("sent or not") < text.index("Your message was stored before the Python process ended.")
    assert text.index("Your message was stored") < text.index("\ntail\n")
    chat.push(events.MessageSent(submit_id=chat.sent("submit")[-1]["submit_id"], message_id="m2", text="tail", cycle=2))
    assert chat.text().count("tail") == 1


def test_a_host_that_dies_before_answering_leaves_the_question_open(chat: ChatDriver) -> None:
    """The third host answers; the message is neither lost nor duplicated."""
    key = sent_into_a_crash(chat)
    crash(chat, never_ready=True)
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 3, "the question to another host")
    assert chat.sent("open_chat")[-1]["unconfirmed"] == [key]
    assert chat.input() == "tail"
    chat.opened(resumed=True)
    assert chat.input() == "sent or not\n\ntail"


def test_a_chat_with_an_unloaded_buffer_settles_it_too(chat: ChatDriver) -> None:
    """An unstored message is kept in the draft until the chat is shown again."""
    chat.submit("sent or not")
    bufnr = chat.nvim.lua("return require('codecompanion.chat').current().bufnr")
    chat.nvim.command("enew")
    chat.nvim.command(f"bunload! {bufnr}")
    crash(chat)
    chat.nvim.lua("require('codecompanion.chat.state.session').attach(require('codecompanion.chat').last_chat())")
    assert chat.sent("open_chat")[-1]["unconfirmed"] == [chat.sent("submit")[-1]["key"]]
    chat.opened(resumed=True)
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "sent or not", "the draft")
    assert chat.nvim.lua("return #require('codecompanion.chat').last_chat().outgoing") == 0


def test_a_queued_message_is_kept_with_the_draft(chat: ChatDriver) -> None:
    """Lesson 36: `kill -9` of Neovim loses neither queued nor newly typed text.

    A sent message is no longer in the draft.
    """
    chat.accept("go")
    chat.push(events.State(state="streaming", label="streaming"))
    chat.submit("a second one")
    number = chat.sent("submit")[-1]["submit_id"]
    chat.push(events.Queued(submit_id=number))
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "a second one", "the draft")
    chat.nvim.feed("Gimore<Esc>")
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "a second one\n\nmore", "both")
    chat.push(events.MessageSent(submit_id=number, message_id="m9", text="a second one", cycle=2))
    chat.nvim.wait_for(lambda: chat.sent("save_draft")[-1]["text"] == "more", "the rest")


def test_resume_without_an_id_lets_the_user_choose(chat: ChatDriver) -> None:
    """The choice uses `vim.ui.select`, newest first; "last" takes the newest."""
    chat.answer(
        "list_sessions",
        [
            {"id": "s2", "title": "second", "updated": 17e8, "messages": 9, "typed": 7, "cwd": "/", "owned": True},
            {"id": "s1", "title": "", "updated": 1600000000, "messages": 2, "cwd": "/", "owned": False},
        ],
    )
    chat.nvim.lua(
        """vim.ui.select = function(items, opts, done)
             _G.shown = vim.tbl_map(opts.format_item, items)
             done(items[2])
           end
           require('codecompanion.chat').resume()"""
    )
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 2, "open_chat")
    assert chat.sent("open_chat")[1]["resume"] == "s1"
    shown = chat.nvim.lua("return _G.shown")
    assert shown[0].startswith("14 Nov 2023  second · 7 turns · / · open elsewhere")
    assert "New chat" in shown[1]
    chat.nvim.lua("require('codecompanion.chat').resume('last')")
    chat.nvim.wait_for(lambda: len(chat.sent("open_chat")) == 3, "open_chat")
    assert chat.sent("open_chat")[2]["resume"] == "s2"


def test_clearing_empties_the_buffer_and_keeps_the_draft(chat: ChatDriver) -> None:
    """`gC` empties the buffer; the log keeps everything."""
    chat.push(events.ContextItems(items=(events.ContextItem(id="a", kind="rules", label="AGENTS.md"),)))
    chat.accept("question")
    chat.reply("answer")
    chat.nvim.feed("Gidraft<Esc>gC")
    chat.nvim.wait_for(lambda: chat.sent("clear"), "clear")
    chat.push(
        events.Redrawn(),
        events.ContextItems(items=(events.ContextItem(id="a", kind="rules", label="AGENTS.md"),)),
        events.Restored(entries=(events.Entry(kind="cleared", change_id="k"),), first=True, last=True),
        events.ViewMarks(undone=(), cleared=(), pinned=(), next_undo="k", undo_kind="cleared"),
    )
    assert chat.text() == "> Context:\n> - <rules>AGENTS.md</rules>\n\nChat cleared\n\n## Me\ndraft"
    chat.nvim.wait_screen("Chat cleared · u undo")
    chat.nvim.feed("ggu")
    chat.nvim.wait_for(lambda: chat.sent("undo_change"), "undo_change")
    chat.nvim.feed("Gu")
    chat.nvim.settle()
    assert len(chat.sent("undo_change")) == 1
    chat.accept("new")
    chat.reply("begin")
    assert "## CodeCompanion (openai · gpt-4o)\nbegin" in chat.text()


def test_autocmds_carry_the_documented_payload(chat: ChatDriver) -> None:
    """Every field of the table in autocmds.lua, and nothing else."""
    chat.record_autocmds()
    chat.accept("go", tokens=5)
    chat.push(
        events.ToolStarted(call_id="c", name="t", title="tool"),
        events.ToolFinished(
            call_id="c",
            message_id="m",
            name="t",
            title="tool",
            summary="",
            preview="",
            status="ok",
            duration_ms=7,
            change=events.FileChange("f", "/w/a.txt", 1, 0),
        ),
        events.ContextEdited(cleared=1, tokens_before=9, tokens_after=5, call_ids=("c",)),
        events.TurnFinished(reason="done", duration_ms=12),
    )
    fired = dict(chat.fired())
    assert list(fired) == [
        "CodeCompanionChatSubmitted",
        "CodeCompanionToolStarted",
        "CodeCompanionToolFinished",
        "CodeCompanionChatEdited",
        "CodeCompanionChatDone",
    ]
    documented = chat.nvim.lua(
        """local found = {}
           for _, autocmd in ipairs(require('codecompanion.chat.state.autocmds').list) do
             found[autocmd.name] = vim.tbl_map(function(field) return field[1] end, autocmd.data)
           end
           return found"""
    )
    for name, data in fired.items():
        assert set(data) == {*documented[name], "chat", "bufnr"}, name
    assert fired["CodeCompanionToolFinished"]["duration_ms"] == 7


def test_a_policy_event_fires_its_autocmd_and_draws_nothing(chat: ChatDriver) -> None:
    """R-327, R-328: named events of a policy reach the user's autocmds with their fields; the buffer is unchanged."""
    chat.accept("go")
    chat.record_autocmds()
    before = chat.text()
    chat.push(
        events.PolicyEvent(name="context_pruned", fields={"turn_ids": ["t1"], "omitted_prior_turns": 1}),
        events.PolicyEvent(name="session_history_continuation_updated", fields={}, compaction_id="c7"),
    )
    pruned, updated = chat.fired()
    assert pruned[0] == "CodeCompanionContextPruned"
    assert (pruned[1]["turn_ids"], pruned[1]["omitted_prior_turns"]) == (["t1"], 1)
    assert pruned[1]["chat"]
    assert (updated[0], updated[1]["compaction_id"]) == ("CodeCompanionSessionHistoryContinuationUpdated", "c7")
    assert chat.text() == before


COUNT_FOLDS = """
_G.scripts = 0
local exec2 = vim.api.nvim_exec2
vim.api.nvim_exec2 = function(code, opts)
  _G.scripts = _G.scripts + (code:find("fold") and 1 or 0)
  return exec2(code, opts)
end
"""


@pytest.mark.parametrize("layout", ["vertical", "buffer", "float"])
@pytest.mark.parametrize("level", [-1, 99])
def test_a_chat_shown_again_keeps_its_folds(nvim_factory, layout: str, level: int) -> None:
    """Vim keeps them: in a long chat, nothing is rebuilt unless something changed while it was hidden."""
    init = f"vim.o.foldlevelstart = {level}\n"
    chat = make_chat(nvim_factory, init=init, options={"display": {"chat": {"window": {"layout": layout}}}})
    chat.accept("question")
    chat.push(events.ReplyStarted(adapter="openai", model="gpt-4o"))
    for number in range(4):
        chat.push(events.ToolStarted(call_id=f"c{number}", name="read_file", title=f"read_file {number}.txt"))
        chat.push(ran(number))
    chat.nvim.wait_screen("read_file 3.txt")
    chat.toggle_fold("read_file 1.txt")
    before = chat.nvim.wait_screen("line of 1")
    assert "line of 2" not in before
    chat.nvim.lua(COUNT_FOLDS)
    toggle = "require('codecompanion.chat').toggle()"
    chat.nvim.lua(f"{toggle} {toggle}")
    assert chat.nvim.wait_screen("line of 1") == before
    assert chat.nvim.lua("return _G.scripts") == (0 if level == -1 else 1)
    chat.nvim.lua(toggle)
    chat.push(events.ToolStarted(call_id="c9", name="read_file", title="read_file 9.txt"), ran(9))
    chat.nvim.lua(toggle)
    after = chat.nvim.wait_screen("read_file 9.txt")
    assert "line of 1" in after
    assert "line of 2" not in after
    assert "line of 9" not in after


def ran(number: int) -> events.ToolFinished:
    return events.ToolFinished(
        call_id=f"c{number}", message_id=f"t{number}", name="read_file", title=f"read_file {number}.txt",
        summary="2 lines", preview=f"line of {number}\nsecond line of {number}", status="ok", tokens=3, duration_ms=1,
        reply_id="r",
    )  # fmt: skip
